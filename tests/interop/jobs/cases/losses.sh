# shellcheck shell=bash
# losses.sh - cases: fio writes and verifies, again and again, while paths are lost and groups change
# hands. After each loss and each change sysfs must show what is then true.

# Debian's fio dies in its C library once in hundreds of passes, before it has reported anything. What it
# finds wrong it says with a status of its own.
died_of_signal() # STATUS
{
	[ "$1" -gt 128 ] && [ $((deaths += 1)) -le 2 ] && echo "fio died of signal $(($1 - 128)); once more"
}

# Passes of fio, each of which verifies all that it wrote, until /tmp/enough is there. At a rate that
# leaves an emulated processor to those who look.
fio_passes()
{
	local deaths=0

	rm -f /tmp/enough
	until [ -e /tmp/enough ]; do
		fio --ioengine=libaio --direct=1 --iodepth=16 --randrepeat=0 --end_fsync=1 \
			--verify=crc32c --verify_fatal=1 --size=8M --bsrange=4k-64k --rw=randwrite \
			--rate_iops=100 \
			--name=one --filename="$(disk 1)" --name=two --filename="$(disk 2)" ||
			{ died_of_signal $? || exit 1; continue; }
		echo pass >>/tmp/passes
	done
}

# A node that is lost takes two paths along and the groups that it served; a connection, one path.
lose() # KIND PORTID
{
	local node

	node=$(node_of "$2")
	case $1 in
	kill)	ask kill "$node"
		ask start "$node" ;;
	leave)	ask leave "$node"
		ask start "$node" ;;
	cut)	ss -K dst "$ADDRESS" dport = "$(service "$2")" ;;
	reset)	nvme reset "/dev/$(through "$2")" ;;
	esac
}

kinds=(kill cut leave reset)

lose_one() # NUMBER
{
	local kind=${kinds[$1 % 4]} portid=$(($1 / 4 % 4 + 1)) before

	before=$(count_said 'starting error recovery')
	lose "$kind" $portid
	[ "$kind" = reset ] || wait_for recovered_since "$before"
	wait_for all_live
	wait_for server 1
	wait_for server 2
}

recovered_since() # COUNT
{
	[ "$(count_said 'starting error recovery')" -gt "$1" ]
}

other_state() # STATE
{
	[ "$1" = optimized ] && echo non-optimized || echo optimized
}

# A group goes to the other node, or is less good, or good again, through a port of the node that has it.
change_one() # NUMBER
{
	local group=$(($1 % 2 + 1)) node portid state

	node=$(server $group)
	if [ $(($1 / 2 % 2)) = 0 ]; then
		move $group $((3 - node))
		return
	fi
	portid=$((2 * node - $1 / 4 % 2))
	state=$(other_state "$(state $group $portid)")
	ana $group $portid "$state"
	wait_for shows $group $portid "$state"
}

lose_and_change()
{
	local loss=0 change

	for ((change = 0; change < CHANGES; change++)); do
		change_one $change
		for (( ; loss * CHANGES < (change + 1) * LOSSES; loss++)); do
			lose_one $loss
		done
		fio_runs
	done
}

fio_runs()
{
	kill -0 "$fio_pid" || { tail -n 5 /tmp/fio.log; return 1; }
}

under_fio()
{
	fio_passes >/tmp/fio.log 2>&1 &
	fio_pid=$!
	lose_and_change
	touch /tmp/enough
	wait $fio_pid
	say "# fio: $(wc -l </tmp/passes) passes, each verified"
}

count_said() # WORDS: how often the kernel did
{
	grep -c "$1" /tmp/said || true
}

no_error()
{
	local bad='I/O error|failing I/O|I/O to offline|Buffer|BUG|WARNING|hung|Call Trace|Removing after'

	same "kernel messages" "$(grep -E "$bad" /tmp/said || true)" ""
	! grep -E 'err=[^0]*[1-9]|error|bad' /tmp/fio.log
}

sum() # NSID: what the kernel reads
{
	dd if="$(disk "$1")" bs=1M iflag=direct status=none | md5sum
}

same_data()
{
	local node nsid file

	for node in 1 2; do
		for nsid in 1 2; do
			move $nsid $node
			file=a
			[ $nsid = 1 ] || file=b
			same "namespace $nsid through node $node" "$(sum $nsid)" "$(ask sum $file)"
		done
	done
}
