# shellcheck shell=bash
# ana.sh - cases: what ANA states do to I/O. The kernel learns of a change by an event; no case asks
# it to look again. Group 1 stays with node 1 here, group 2 with node 2.

native()
{
	same multipath "$(cat /sys/module/nvme_core/parameters/multipath)" Y
}

discover_both()
{
	local portid

	for portid in 1 3; do
		nvme discover -t tcp -a "$ADDRESS" -s "$(service $portid)" --hostnqn="$HOSTNQN" \
			--hostid="$HOSTID" -o json | tee /tmp/records
		jq -e --arg nqn "$NQN" --arg port "$(service $portid)" \
			'any(.records[]; .subnqn == $nqn and .trsvcid == $port)' /tmp/records
	done
}

connect_port() # PORTID
{
	# A machine that is busy must not look like a target that is dead.
	PORT=$(service "$1") connect "$NQN" --keep-alive-tmo=30
	wait_for path 1 "$1"
	wait_for path 2 "$1"
}

connect_ports()
{
	local portid

	for portid in $ports; do
		connect_port "$portid"
	done
	wait_for disk 1
	wait_for disk 2
	same "controllers" "$(controllers "$NQN" | wc -l)" 4
	same "group of the first" "$(cat "$(path 1 4)/ana_grpid")" 1
	same "group of the second" "$(cat "$(path 2 1)/ana_grpid")" 2
}

# The node that started first serves everything, until it is told otherwise.
spread()
{
	served 1 1
	served 2 1
	move 2 2
	served 1 1
}

ana_log()
{
	ana 1 1 non-optimized
	wait_for shows 1 1 non-optimized
	nvme ana-log "/dev/$(through 1)" -o json | tee /tmp/ana
	jq -e '[.["ANA DESC LIST "][] | [.grpid, .state]] | sort
		== [[1, "non-optimized"], [2, "inaccessible"]]' /tmp/ana
	ana 1 1 optimized
}

states()
{
	local state

	for state in non-optimized inaccessible change optimized; do
		ana 1 2 $state
		ana 2 3 $state
		wait_for shows 1 2 $state
		wait_for shows 2 3 $state
		shows 1 1 optimized
		shows 1 3 inaccessible
		shows 2 4 optimized
		shows 2 2 inaccessible
	done
}

writes() # PORTID: what the target has counted for the controller behind it
{
	ctl "$(node_of "$1")" status | jq --argjson port "$1" '[.subsystems[0].controllers[]
		| select(.portid == $port) | .writes] | add'
}

takes_the_best()
{
	local one two

	ana 1 1 inaccessible 1 2 optimized
	wait_for shows 1 1 inaccessible
	one=$(writes 1) two=$(writes 2)
	dd if=/dev/urandom of="$(disk 1)" bs=64k count=16 oflag=direct
	same "writes through port 1" "$(writes 1)" "$one"
	[ "$(writes 2)" -ge $((two + 16)) ]
	ana 1 1 optimized 1 2 non-optimized
	wait_for shows 1 2 non-optimized
	wait_for shows 1 1 optimized
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
	wait_for shows 1 2 inaccessible
	dd if=/tmp/data of="$(disk 1)" bs=64k oflag=direct &
	pid=$!
	sleep 2
	kill -0 $pid
	ana 1 2 optimized
	wait $pid
	cmp -n 1048576 /tmp/data "$(disk 1)"
	ana 1 1 optimized
}

# It lasts as long as the controller does, whatever the rule says then.
loss()
{
	ana 1 2 persistent-loss
	wait_for shows 1 2 persistent-loss
	random /tmp/data 262144
	dd if=/tmp/data of="$(disk 1)" bs=64k oflag=direct
	forget_cache
	cmp -n 262144 /tmp/data "$(disk 1)"
	ana 1 2 optimized
	sleep 1
	shows 1 2 persistent-loss
	nvme disconnect -d "$(through 2)"
	connect_port 2
	wait_for shows 1 2 optimized
}

takeovers()
{
	local node

	random /tmp/data 262144
	for node in 1 2; do
		dd if=/tmp/data of="$(disk $node)" bs=64k oflag=direct
		ask takeover $node
		served 1 1
		served 2 2
		cmp -n 262144 /tmp/data "$(disk $node)"
	done
}

quiet()
{
	same "kernel messages" \
		"$(grep -E 'nvme.*(error|timeout|reset)|BUG|WARNING' /tmp/said || true)" ""
}
