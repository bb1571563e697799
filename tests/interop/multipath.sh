#!/bin/bash
# multipath.sh - Linux's native multipath on two ports of our target, whose ANA states change.
#
#   machine, in a network namespace                          guest
#   weft serve 192.168.77.1:4420, port id 1  ◀──┬ tap0 ──▶   nvme-tcp, twice: one disk, two paths
#                            :4421, port id 2  ◀─┘            fio, sysfs
#   this script                                ◀── share ─▶  jobs/multipath.sh: requests, results
#
# Prints TAP. What the guest and the target said stays in build/test-logs/multipath/.
#
# usage: multipath.sh
# environment: WEFT (build/weft), WEFT_ENGINE (auto), WEFT_VM_NET (tap or user)
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
weft=${WEFT:-$root/build/weft}
logs=$root/build/test-logs/multipath
limit=900		# seconds for the guest

nqn=nqn.2026-11.io.weft:multipath

# shellcheck source=tests/interop/lib/tap.sh
. "$here/lib/tap.sh"
# shellcheck source=tests/interop/lib/machine.sh
. "$here/lib/machine.sh"

# --- the target

target=''

ctl()
{
	timeout 20 "$weft" ctl --control "$work/control" "$@"
}

configure()
{
	cat <<-END
	listen: [ "nvme+tcp://$listen:$port?portid=1", "nvme+tcp://$listen:$((port + 1))?portid=2" ]
	control: $work/control
	subsystems:
	  - nqn: $nqn
	    allow_any_host: true
	    namespaces:
	      - { backend: "mem:48M", ana_group: 1 }
	      - { backend: "file:$work/disk.img,size=64M", ana_group: 2 }
	END
}

target_start()
{
	local tries=100

	configure >"$work/weft.yaml"
	"$weft" serve -c "$work/weft.yaml" --engine "${WEFT_ENGINE:-auto}" >"$logs/target.log" 2>&1 \
		</dev/null &
	target=$!
	until ctl status >/dev/null 2>&1; do
		kill -0 "$target" 2>/dev/null && [ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.1
	done
}

target_ends()
{
	kill -TERM "$target"
	wait "$target"
	result "$([ $? = 0 ] && echo ok || echo "not ok")" "the target ends on SIGTERM" \
		"$logs/target.log"
	target=''
}

rules() # GROUP PORTID STATE …: as JSON
{
	local list='' comma=''

	while [ $# -gt 0 ]; do
		list+="$comma{\"group\": $1, \"portid\": $2, \"state\": \"$3\"}"
		comma=', '
		shift 3
	done
	echo "[$list]"
}

# Both groups go back and forth between the ports, in opposite directions, in one change each time.
flip() # TIMES
{
	local i a b

	for ((i = 0; i < $1; i++)); do
		a=$((i % 2 + 1)) b=$((2 - i % 2))
		ctl ana-set nqn=$nqn "rules=$(rules 1 $a inaccessible 1 $b optimized \
			2 $a non-optimized 2 $b inaccessible)" || return 1
	done
}

# Called by guest_run with the words of the job's request.
answer()
{
	local verb=$1

	shift
	echo "asked: $verb $*" >>"$logs/asked.log"
	case $verb in
	ana)	ctl ana-set nqn=$nqn "rules=$(rules "$@")" ;;
	flip)	flip "$1" ;;
	status)	ctl status ;;
	*)	echo "no such request: $verb"
		return 2 ;;
	esac
}

# --- the whole

cleanup()
{
	[ -z "$target" ] || kill -KILL "$target" 2>/dev/null
	guest_stop
	rm -rf "$work"
}

share_fill()
{
	share=$work/share
	mkdir "$share"
	cp -r "$here"/jobs/* "$share/"
	cat >"$share/settings" <<-END
	PEER=weft ADDRESS=$reach PORT=$port PORT2=$((port + 1)) NQN=$nqn
	HOSTID=2f4d5a3c-7f6e-4b1a-8a52-0d9f1c3b5e01
	HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:2f4d5a3c-7f6e-4b1a-8a52-0d9f1c3b5e01
	END
}

main() # tap|user
{
	local status

	machine_network "$1"
	work=$(mktemp -d)
	trap cleanup EXIT
	trap 'exit 130' INT TERM
	target_start || bail_out "the target does not start; see $logs/target.log"
	share_fill
	guest_run multipath.sh "$logs"
	status=$?
	results multipath "$share/results"
	result "$([ $status = 0 ] && echo ok || echo "not ok")" "the guest finishes, status $status" \
		"$logs/console.log"
	target_ends
	tap_end
}

case ${1:-} in
--inside)	main "$2"
		exit ;;
"")		[ -x "$weft" ] || bail_out "$weft is not there: make build" ;;
*)		echo "usage: multipath.sh" >&2
		exit 2 ;;
esac
rm -rf "$logs"
machine_prepare
machine_enter
