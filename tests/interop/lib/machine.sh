# shellcheck shell=bash
# machine.sh - sourced: this machine's side of a guest. A test calls, in this order:
#
#   machine_prepare          packages and the guest; skips the test where that cannot be
#   machine_enter WORD…      go on in a network namespace of our own, where the script is run as
#                            "$0 --inside tap|user WORD…"
#   machine_network tap|user the addresses
#   guest_run JOB FOLDER     boot a guest, do what its job asks for, return boot.sh's status
#
# A job's request is a file in the share (see jobs/lib.sh); the test's function answer gets its
# words. The test sets logs and work, folders; share, the folder the guest sees; limit, in seconds.
# shellcheck disable=SC2154

interop=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
booted=''

# shellcheck source=tests/interop/vm/packages.sh
. "$interop/vm/packages.sh"

machine_prepare()
{
	local guest missing status=0

	mkdir -p "$logs"
	guest=$("$interop/vm/setup.sh" 2>"$logs/setup.log") || status=$?
	case $status in
	0)	;;
	77)	skip_all "$(tail -n 1 "$logs/setup.log")" ;;
	*)	tail -n 15 "$logs/setup.log" | sed 's/^/# /'
		bail_out "the guest could not be built; see $logs/setup.log" ;;
	esac
	missing=$(packages_install iproute2 tcpdump tshark 2>>"$logs/setup.log") ||
		echo "# packages are missing: $missing"
	export WEFT_INTEROP_GUEST=$guest
}

# A tap is about five times as fast as QEMU's own network, and a namespace keeps it to ourselves.
machine_enter()
{
	local private=(unshare --net)

	[ "$(id -u)" = 0 ] || private=(unshare --map-root-user --net)
	if [ "${WEFT_VM_NET:-tap}" = tap ] &&
	   "${private[@]}" ip tuntap add tap0 mode tap 2>/dev/null; then
		exec "${private[@]}" "$0" --inside tap "$@"
	fi
	[ "${WEFT_VM_NET:-tap}" = user ] || echo "# no tap here: using QEMU's own network"
	exec "$0" --inside user "$@"
}

# Sets listen and reach, the address that ends here as this machine and as the guest know it.
# shellcheck disable=SC2034
machine_network()
{
	case $1 in
	tap)	ip link set lo up
		ip tuntap add tap0 mode tap
		ip addr add 192.168.77.1/24 dev tap0
		ip link set tap0 mtu 9000 up
		listen=192.168.77.1 reach=192.168.77.1 port=4420 interface=tap0
		boot_words=(-a 192.168.77.2/24 -u 9000
			-n "tap,id=n0,ifname=tap0,script=no,downscript=no") ;;
	user)	listen=127.0.0.1 reach=10.0.2.2 port=$((20000 + RANDOM % 10000)) interface=lo
		boot_words=() ;;
	esac
}

# The share holds what the test put there: the job, and its settings.
guest_run() # JOB FOLDER
{
	local status

	: >"$share/results"
	"$interop/vm/boot.sh" -t "$limit" "${boot_words[@]}" "$WEFT_INTEROP_GUEST" "$share" "$1" \
		>"$2/console.log" 2>&1 &
	booted=$!
	while kill -0 "$booted" 2>/dev/null; do
		guest_answer
		sleep 0.1
	done
	wait "$booted"
	status=$?
	booted=''
	return $status
}

# Not in a subshell: what is started for an answer stays this shell's child.
guest_answer()
{
	local ask words status

	for ask in "$share"/ask.*; do
		[ -e "$ask" ] || continue
		mapfile -t words <"$ask"
		rm "$ask"
		answer "${words[@]}" >"$work/output" 2>&1
		status=$?
		{ echo $status; cat "$work/output"; } >"$share/answer.new"
		mv "$share/answer.new" "$share/answer.${ask##*/ask.}"
	done
}

guest_stop()
{
	[ -n "$booted" ] || return 0
	kill "$booted" 2>/dev/null
	wait "$booted" 2>/dev/null
	booted=''
}
