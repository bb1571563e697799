#!/bin/bash
# rdma.sh - hosts and targets over RDMA, pair by pair, host first: kernel is Linux's nvme-rdma, nvmet
# its target, weft is ours. The target is in this guest, or in another that rdma-peer.sh runs in.

# shellcheck source=tests/interop/jobs/lib.sh
. /share/lib.sh
# shellcheck source=tests/interop/jobs/weft.sh
. /share/weft.sh
# shellcheck source=tests/interop/jobs/rdma-link.sh
. /share/rdma-link.sh
# shellcheck source=tests/interop/jobs/cases/connect.sh
. /share/cases/connect.sh
# shellcheck source=tests/interop/jobs/cases/identify.sh
. /share/cases/identify.sh
# shellcheck source=tests/interop/jobs/cases/io.sh
. /share/cases/io.sh
# shellcheck source=tests/interop/jobs/cases/change.sh
. /share/cases/change.sh
# shellcheck source=tests/interop/jobs/cases/rdma-kernel.sh
. /share/cases/rdma-kernel.sh
# shellcheck source=tests/interop/jobs/cases/rdma-weft.sh
. /share/cases/rdma-weft.sh
# shellcheck source=tests/interop/jobs/cases/rdma-counters.sh
. /share/cases/rdma-counters.sh

# shellcheck disable=SC2034
weft=weft work=/tmp	# for weft.sh

ask() # WORD…
{
	case $PLACE in
	one)	bash /share/rdma-target.sh "$@" ;;
	two)	ask_machine "$@" ;;
	esac
}

try() # NAME FUNCTION…
{
	check "${pair%-*} on ${pair#*-}: $1" "${@:2}"
}

# What is the same whatever carries it is tried once: in one guest, which is quicker, with one end ours.
also() # NAME FUNCTION…
{
	if [ "$PLACE" = one ] && [ "$pair" != weft-weft ]; then
		try "$@"
	fi
}

kernel_host()
{
	also "discover" discover
	try "connect with four I/O queues" connect_four
	live "$NQN" || return 0
	also "capacity and block size are the configured ones" sizes
	also "id-ctrl and id-ns" identify
	also "ext4: copy, compare, fsck" ext4_small
	try "fio verify" fio_small
	try "the kernel complained of nothing" quiet
	also "reset under load" under_load reset_twice
	! link_can_be_cut || try "the link is dead for a while under load" under_load cut_off 8
	also "the target is killed and restarted: reconnect, data intact" restart
	try "disconnect leaves no controller" disconnects
	also "connect over IPv6, to the wildcard address, with write and poll queues" connect_ipv6
	try "the target's device goes away and comes back" replug
	try "the target holds no more than at first" resources_same
}

weft_host()
{
	also "discover" host_discovers
	also "ls" host_lists
	try "id tells of the device" host_identifies
	also "write and read back" host_roundtrips
	[ "$PEER" != weft ] || try "over IPv6, to the wildcard address" host_ipv6
	also "cp, verified, there and back" host_copies
	case $PEER in
	weft)	try "bench verifies; nothing is copied, nothing registered" host_copies_nothing ;;
	nvmet)	try "bench verifies, four queues" host_bench ;;
	esac
	also "refusals are told in words" host_refused
	! link_can_be_cut ||
		try "the link is dead for a while under load" host_under_load cut_off 5
	nvmet_shares_the_device ||
		try "the device goes away and comes back under load" host_under_load link_replug
	try "the target holds no more than at first" resources_same
}

# Programs that the machine shipped: for peers that do what no NVMe host does.
programs()
{
	local program

	for program in /share/extra/*; do
		[ -x "$program" ] || continue
		try "$(basename "$program")" timeout 150 "$(basename "$program")" \
			"$ADDRESS" "$PORT" "$NQN"
	done
}

unpack_programs
link_prepare || exit 1
[ "$PLACE" = one ] || wait_for busybox ping -c 1 -w 1 "$ADDRESS"
for pair in $PAIRS; do
	PEER=${pair#*-}
	link_active || link_add		# as after a case that failed to bring it back
	try "the target serves" ask serve "$PEER"
	ask ctl status >/dev/null || continue
	try "what the target holds before anybody connects" resources_first
	"${pair%-*}_host"
	[ "$PEER" != weft ] || programs
	try "the kernels complained of nothing serious" ask complaints
	try "the target ends" ask stop
done
say "# the job took $SECONDS s"
