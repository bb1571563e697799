#!/bin/bash
# rdma.sh - NVMe over RDMA, Linux's and ours at either end, over soft RoCE v2 and soft iWARP. There
# is no adapter here: both ends are in guests, and this machine only looks after them.
#
#   siw   iWARP, one guest   host ─ eth0 ─ target                        jobs/rdma.sh
#   two   RoCE, two guests   host ─ eth0 ── a cable ── eth0 ─ target     jobs/rdma.sh, jobs/rdma-peer.sh
#                                   MTU 4200, so that RoCE's is 4096
#
# Prints TAP. What the guests and our target said stays in build/test-logs/rdma/.
#
# usage: rdma.sh [--self-check]   with the kernel at both ends: what fails there is a wrong case
# environment: WEFT (build/weft), WEFT_RDMA ("siw two", also rxe, two-siw) for others,
#              WEFT_RDMA_PAIRS ("kernel-weft …"), WEFT_RDMA_EXTRA: programs to run in the guest on
#              our target, with ADDRESS PORT NQN; 0 passes, 77 skips, the last line says why
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
weft=${WEFT:-$root/build/weft}
logs=$root/build/test-logs/rdma
limit=600		# seconds for a guest

hostid=2f4d5a3c-7f6e-4b1a-8a52-0d9f1c3b5e03

# shellcheck source=tests/interop/lib/tap.sh
. "$here/lib/tap.sh"
# shellcheck source=tests/interop/lib/machine.sh
. "$here/lib/machine.sh"
# shellcheck source=tests/interop/lib/cases.sh
. "$here/lib/cases.sh"
# shellcheck source=tests/interop/lib/ship.sh
. "$here/lib/ship.sh"

# --- one guest

# shellcheck disable=SC2154
settings() # OWN-ADDRESS6
{
	cat <<-END
	TRTYPE=rdma PROVIDER=$provider PLACE=$place ENGINE=$engine PAIRS="$pairs" PEER=
	ADDRESS=$address TRADDR=$address PORT=4420 ADDRESS6=$address6 PORT2=4421 OWN6=$1
	NQN=nqn.2026-11.io.weft:rdma ACTIVE_MTU=$active_mtu
	MEM_SIZE=$((16 << 20)) MEM_BLOCK=512 FILE_SIZE=$((48 << 20)) FILE_BLOCK=4096
	HOSTID=$hostid HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:$hostid
	END
}

fill_share() # FOLDER OWN-ADDRESS6
{
	local program

	rm -rf "$1"
	mkdir -p "$1/bin" "$1/lib" "$1/extra"
	cp -r "$here"/jobs/* "$1/"
	settings "$2" >"$1/settings"
	[ "$self_check" = yes ] || ship "$1/bin" "$weft" weft
	for program in ${WEFT_RDMA_EXTRA:-}; do
		ship "$1/extra" "$program"
	done
}

one_guest()
{
	place=one address=10.0.2.15 address6=fd00:77::1 active_mtu=1024
	boot_words=(-p max -n "user,id=n0,restrict=on")
	share=$work/share
	fill_share "$share" $address6
	guest_run rdma.sh "$logs/$name"
}

# --- two guests

peer='' peer_status=0

# The host's guest asks; the target's does it.
answer() # WORD…
{
	local share=$work/peer booted=$peer

	echo "asked: $*" >>"$logs/$name/asked.log"
	guest "$@"
}

wire() # server on|off: QEMU's words
{
	echo "stream,id=n0,server=$1,addr.type=unix,addr.path=$work/wire"
}

peer_boot()
{
	local tries=100

	fill_share "$work/peer" "$address6"
	rm -f "$work/wire"
	"$here/vm/boot.sh" -p max -t "$limit" -a "$address/24" -u 4200 -n "$(wire on)" \
		"$WEFT_INTEROP_GUEST" "$work/peer" rdma-peer.sh >"$logs/$name/peer.log" 2>&1 &
	peer=$!
	until [ -S "$work/wire" ] || [ $((tries -= 1)) = 0 ]; do
		sleep 0.1
	done
}

peer_end()
{
	[ -n "$peer" ] || return 0
	answer end >"$work/end.log" 2>&1 || kill "$peer" 2>/dev/null
	wait "$peer"
	peer_status=$?
	peer=''
}

two_guests()
{
	local status

	place=two address=192.168.78.1 address6=fd00:78::1 active_mtu=4096
	peer_boot
	boot_words=(-p max -a 192.168.78.2/24 -u 4200 -n "$(wire off)")
	share=$work/share
	fill_share "$share" fd00:78::2
	guest_run rdma.sh "$logs/$name"
	status=$?
	peer_end
	[ "$peer_status" = 0 ] || status=$peer_status
	return $status
}

# --- all

attempt()
{
	case $name in
	rxe)	provider=rxe engine=uring one_guest ;;
	siw)	provider=siw engine=epoll one_guest ;;
	two)	provider=rxe engine=uring two_guests ;;
	two-siw) provider=siw engine=epoll two_guests ;;
	esac
}

keep_logs()
{
	local file

	for file in "$work"/{share,peer}/target.log; do
		[ ! -e "$file" ] || cat "$file" >>"$logs/$name/target.log"
	done
}

guests_run() # NAME
{
	local status

	name=$1 pairs=${WEFT_RDMA_PAIRS:-kernel-weft weft-nvmet weft-weft}
	[ "$self_check" = no ] || pairs=kernel-nvmet
	rm -rf "${logs:?}/$name"
	mkdir -p "$logs/$name"
	attempt
	status=$?
	if [ $status = 125 ]; then
		echo "# $name: a guest died; once more (see $logs/$name/console-died.log)"
		mv "$logs/$name/console.log" "$logs/$name/console-died.log"
		attempt
		status=$?
	fi
	keep_logs
	results "$name" "$share/results"
	if [ $status = 0 ]; then
		result ok "$name: the guests finish"
	else	# 124: not in their time
		result "not ok" "$name: the guests finish, status $status" "$logs/$name/console.log"
	fi
}

cleanup()
{
	guest_stop
	[ -z "$peer" ] || kill "$peer" 2>/dev/null
	rm -rf "$work"
}

has_rdma()
{
	"$weft" version | grep -i rdma | grep -qv ' no$'
}

case ${1:-} in
--self-check)	self_check=yes ;;
"")		self_check=no
		[ -x "$weft" ] || bail_out "$weft is not there: make build"
		has_rdma || skip_all "this build has no RDMA" ;;
*)		echo "usage: rdma.sh [--self-check]" >&2
		exit 2 ;;
esac
machine_prepare
work=$(mktemp -d)
trap cleanup EXIT
trap 'exit 130' INT TERM
for which in ${WEFT_RDMA:-siw two}; do
	guests_run "$which"
done
echo "# it took $SECONDS s"
tap_end
