# shellcheck shell=bash
# multipath.sh - cases: two paths to each namespace, and what their ANA states do to I/O. Namespace N is
# in group N. The kernel learns of a change by an event; no case asks it to look again.

native()
{
	same multipath "$(cat /sys/module/nvme_core/parameters/multipath)" Y
}

ana() # GROUP PORTID STATE …: all in one change
{
	ask ana "$@"
}

disk() # NSID
{
	namespace "$NQN" "$1"
}

# The controller that came through a port, by the address in sysfs.
through() # PORTID
{
	local at port=$PORT

	[ "$1" = 1 ] || port=$PORT2
	for at in $(controllers "$NQN"); do
		if grep -q "trsvcid=$port\b" "/sys/class/nvme/$at/address"; then
			echo "$at"
		fi
	done
}

# The kernel's own device for a path, hidden behind the disk's.
path() # NSID PORTID: its folder in sysfs
{
	local at

	for at in /sys/class/nvme/"$(through "$2")"/nvme*c*n*; do
		if [ "$(cat "$at/nsid")" = "$1" ]; then
			echo "$at"
			return
		fi
	done
	return 1
}

shows() # NSID PORTID STATE
{
	[ "$(cat "$(path "$1" "$2")/ana_state")" = "$3" ]
}

connect_port() # PORTID
{
	local service=$PORT

	[ "$1" = 1 ] || service=$PORT2
	# A machine that is busy must not look like a target that is dead.
	PORT=$service connect "$NQN" --keep-alive-tmo=30
	wait_for 10 path 1 "$1"
	wait_for 10 path 2 "$1"
}

connect_ports()
{
	connect_port 1
	connect_port 2
	wait_for 10 disk 1
	wait_for 10 disk 2
	same "controllers" "$(controllers "$NQN" | wc -l)" 2
	same "group of the first" "$(cat "$(path 1 2)/ana_grpid")" 1
	same "group of the second" "$(cat "$(path 2 1)/ana_grpid")" 2
	shows 1 1 optimized
	shows 2 2 optimized
}

ana_log()
{
	ana 1 1 non-optimized
	wait_for 5 shows 1 1 non-optimized
	nvme ana-log "/dev/$(through 1)" -o json | tee /tmp/ana
	jq -e '[.["ANA DESC LIST "][] | [.grpid, .state]] | sort
		== [[1, "non-optimized"], [2, "optimized"]]' /tmp/ana
	ana 1 1 optimized
}

states()
{
	local state

	for state in non-optimized inaccessible change optimized; do
		ana 1 2 $state 2 1 $state
		wait_for 5 shows 1 2 $state
		wait_for 5 shows 2 1 $state
		shows 1 1 optimized
		shows 2 2 optimized
	done
}

writes() # PORTID: what the target has counted for the controller behind it
{
	ask status | jq --argjson port "$1" '[.subsystems[0].controllers[]
		| select(.portid == $port) | .writes] | add'
}

takes_the_best()
{
	local one two

	ana 1 1 inaccessible 1 2 optimized
	wait_for 5 shows 1 1 inaccessible
	one=$(writes 1) two=$(writes 2)
	dd if=/dev/urandom of="$(disk 1)" bs=64k count=16 oflag=direct
	same "writes through port 1" "$(writes 1)" "$one"
	[ "$(writes 2)" -ge $((two + 16)) ]
	ana 1 1 optimized 1 2 non-optimized
	wait_for 5 shows 1 2 non-optimized
	wait_for 5 shows 1 1 optimized
	one=$(writes 1) two=$(writes 2)
	dd if=/dev/urandom of="$(disk 1)" bs=64k count=16 oflag=direct
	same "writes through port 2" "$(writes 2)" "$two"
	[ "$(writes 1)" -ge $((one + 16)) ]
	ana 1 2 optimized
}

waits()
{
	local pid

	random /tmp/data 1048576
	ana 1 1 inaccessible 1 2 inaccessible
	wait_for 5 shows 1 2 inaccessible
	dd if=/tmp/data of="$(disk 1)" bs=64k oflag=direct &
	pid=$!
	sleep 2
	kill -0 $pid
	ana 1 2 optimized
	wait $pid
	cmp -n 1048576 /tmp/data "$(disk 1)"
	ana 1 1 optimized
}

fio_verify()
{
	fio --ioengine=libaio --direct=1 --iodepth=16 --randrepeat=0 --end_fsync=1 \
		--verify=crc32c --verify_fatal=1 --size=16M --bsrange=4k-64k --rw=randwrite "$@" \
		--name=memory --filename="$(disk 1)" --name=file --filename="$(disk 2)"
}

changes_under_fio()
{
	local pid

	fio_verify --loops=1000 --time_based --runtime=15 >/tmp/fio.log 2>&1 &
	pid=$!
	ask flip 50
	ask flip 50
	wait $pid
	grep -E 'err= *0' /tmp/fio.log
	ana 1 1 optimized 1 2 optimized 2 1 optimized 2 2 optimized
	wait_for 5 shows 1 1 optimized
	wait_for 5 shows 2 2 optimized
}

# It lasts as long as the controller does, whatever the rule says then.
loss()
{
	ana 1 2 persistent-loss
	wait_for 5 shows 1 2 persistent-loss
	random /tmp/data 262144
	dd if=/tmp/data of="$(disk 1)" bs=64k oflag=direct
	forget_cache
	cmp -n 262144 /tmp/data "$(disk 1)"
	ana 1 2 optimized
	sleep 1
	shows 1 2 persistent-loss
	nvme disconnect -d "$(through 2)"
	connect_port 2
	wait_for 5 shows 1 2 optimized
}

quiet()
{
	same "kernel messages" "$(dmesg | grep -E 'nvme.*(error|timeout|reset)|BUG|WARNING' || true)" ""
}
