#!/bin/bash
# linux-target.sh - the kernel's own target, nvmet over TCP in a guest, under our host's commands.
#
#   machine, in a network namespace            guest
#   weft discover, ls, read, cp, bench  ─tap0─▶  nvmet 192.168.77.2:4420   1 block, 2 file, 3 memory
#   this script: cases/*.sh             ◀─share─▶ jobs/linux-target.sh: does what is asked for
#
# Prints TAP. What the guest and the wire said stays in build/test-logs/linux-target/.
# The block device is a file of this machine: what the guest wrote is checked from both sides.
#
# environment: WEFT (build/weft), WEFT_VM_NET (tap or user), WEFT_BIG=4G for a cp of that size
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
weft=${WEFT:-$root/build/weft}
logs=$root/build/test-logs/linux-target
big=${WEFT_BIG:-}
limit=600		# seconds for the guest
[ -z "$big" ] || limit=3600

nqn=nqn.2026-11.io.weft:kernel second=nqn.2026-11.io.weft:second
hostid=2f4d5a3c-7f6e-4b1a-8a52-0d9f1c3b5e02
hostnqn=nqn.2014-08.org.nvmexpress:uuid:$hostid
size=$((96 << 20))	# of namespaces 1 and 2
small=$((32 << 20))	# of namespace 3

# shellcheck source=tests/interop/lib/tap.sh
. "$here/lib/tap.sh"
# shellcheck source=tests/interop/lib/machine.sh
. "$here/lib/machine.sh"
# shellcheck source=tests/interop/lib/traffic.sh
. "$here/lib/traffic.sh"
# shellcheck source=tests/interop/lib/cases.sh
. "$here/lib/cases.sh"
# shellcheck source=tests/interop/jobs/weft.sh
. "$here/jobs/weft.sh"
# shellcheck source=tests/interop/cases/look.sh
. "$here/cases/look.sh"
# shellcheck source=tests/interop/cases/data.sh
. "$here/cases/data.sh"
# shellcheck source=tests/interop/cases/change.sh
. "$here/cases/change.sh"

forward() # PORT
{
	echo "hostfwd=tcp:$address:$1-:$1"
}

# The target is the guest: its address, and ports that are the same on both sides.
network() # tap|user
{
	machine_network "$1"
	address=192.168.77.2 port2=4421
	[ "$1" = user ] || return 0
	port=$((21300 + RANDOM % 49 * 2)) port2=$((port + 1)) address=127.0.0.1
	boot_words=(-n "user,id=n0,$(forward "$port"),$(forward "$port2")")
}

settings()
{
	cat <<-END
	ADDRESS=$address PORT=$port PORT2=$port2 NQN=$nqn SECOND=$second
	SIZE=$size SMALL=$small
	END
}

# Boots the guest beside us; it answers when the target is up.
attempt()
{
	local disk="if=none,id=d0,format=raw,cache=writeback,discard=unmap,file=$work/disk.img"

	share=$work/share
	rm -rf "$share" "$work/disk.img"
	mkdir "$share"
	cp -r "$here"/jobs/* "$share/"
	settings >"$share/settings"
	truncate -s "${big:-$size}" "$work/disk.img"
	disk_size=$(stat -c %s "$work/disk.img")
	"$here/vm/boot.sh" -t "$limit" "${boot_words[@]}" \
		-q "-drive $disk -device virtio-blk-pci,drive=d0,romfile=" \
		"$WEFT_INTEROP_GUEST" "$share" linux-target.sh >"$logs/console.log" 2>&1 &
	booted=$!
	guest serve >"$work/serve.log" 2>&1
}

start()
{
	attempt && return 0
	echo "# the guest did not come up; once more (see $logs/console-died.log)"
	guest_stop
	mv "$logs/console.log" "$logs/console-died.log"
	attempt && return 0
	result "not ok" "the guest serves" "$work/serve.log"
	tap_end
}

all()
{
	capture_start "$logs/first.pcap"
	check "discover lists both ports' subsystems, through the referral" discovers
	check "discover for people" discovers_text
	check "ls shows the namespaces with their sizes" lists
	check "id tells what the kernel says" identifies
	check "id of each namespace" identifies_namespaces
	check "read what the guest wrote" reads_guests
	check "write, and the guest reads the same" writes_for_guest
	check "write and read, digests and depths" roundtrips
	check "odd places: the first block, the last, beyond" places
	check "a host that is not allowed is told so" host_refused
	check "a subsystem that is not there" subsystem_absent
	check "a port where nobody listens" port_absent
	capture_stop

	[ -n "$big" ] || check "cp of 64 MiB to a block device and back" copy_to 1
	check "cp of 64 MiB to a file and back, with digests" copy_to 2 hdgst=1 ddgst=1
	check "cp from namespace to namespace" copy_between
	check "bench reads, 4 queues" bench_reads
	check "bench verifies, 8 queues" bench_verifies
	check "bench verifies, 3 jobs, digests" bench_verifies_digests
	check "the kernel complained of nothing" quiet hosts
	[ -z "$big" ] || case_limit=3000 check "cp of $big there and back" copy_big

	capture_start "$logs/second.pcap"
	check "a discovery change arrives by event" discovery_changes
	check "a namespace added is there" namespace_added
	check "a namespace resized has its new size" namespace_resized
	check "a namespace removed under load" namespace_removed
	capture_stop
	check "the target restarted under load: reconnect, data intact" restarted
	check "the network cut under load: reconnect, data intact" cut_off
	check "the kernel complained of nothing, in the end" quiet
}

finish()
{
	guest end >"$work/end.log" 2>&1
	if wait "$booted"; then
		result ok "the guest finishes"
	else
		result "not ok" "the guest finishes" "$logs/console.log"
	fi
	booted=''
	traffic_check "traffic, first part" "$logs/first.pcap"
	traffic_check "traffic, second part" "$logs/second.pcap"
}

cleanup()
{
	capture_stop
	guest_stop
	rm -rf "$work"
}

main() # tap|user
{
	network "$1"
	work=$(mktemp -d)
	trap cleanup EXIT
	trap 'exit 130' INT TERM
	start
	all
	finish
	echo "# it took $SECONDS s"
	tap_end
}

case ${1:-} in
--inside)	main "$2" ;;
"")		[ -x "$weft" ] || bail_out "$weft is not there: make build" ;;
*)		echo "usage: linux-target.sh" >&2
		exit 2 ;;
esac
rm -rf "$logs"
machine_prepare
machine_enter
