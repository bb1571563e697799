# shellcheck shell=bash
# connect.sh - cases: discovery, connecting, keep-alive, disconnecting.

discovery=nqn.2014-08.org.nvmexpress.discovery

# Shorthands for the connected subsystem.
ctrl() { echo "/dev/$(controllers "$NQN" | sed -n 1p)"; }
ns() { namespace "$NQN" "$1"; }
block() { blockdev --getss "$(ns "$1")"; }

records() # [nvme discover's words…]: the discovery log as JSON
{
	nvme discover -t "$TRTYPE" -a "$ADDRESS" -s "$PORT" \
		--hostnqn="$HOSTNQN" --hostid="$HOSTID" -o json "$@"
}

lists() # NQN [nvme discover's words…]
{
	local nqn=$1

	shift
	records "$@" | jq -e --arg nqn "$nqn" 'any(.records[]; .subnqn == $nqn)' >/dev/null
}

discover()
{
	records | tee /tmp/records
	jq -e --arg nqn "$NQN" --arg port "$PORT" --arg at "$TRADDR" --arg type "$TRTYPE" '
		.records[] | select(.subnqn == $nqn)
		| .trtype == $type and .adrfam == "ipv4" and .traddr == $at and .trsvcid == $port
		  and .subtype == "nvme subsystem"' /tmp/records
}

discover_itself()
{
	records | tee /tmp/records
	jq -e --arg nqn "$discovery" '.records[] | select(.subnqn == $nqn)
		| .subtype == "current discovery subsystem"' /tmp/records
}

connect_queues()
{
	connect "$NQN"
	wait_for live "$NQN"
	same "queues, with the admin queue" "$(attribute "$NQN" queue_count)" 3
	wait_for ns 1
	wait_for ns 2
}

connect_digests()
{
	connect "$NQN" --hdr-digest --data-digest
	wait_for live "$NQN"
	wait_for ns 1
	wait_for ns 2
	roundtrips
}

connect_no_flow_control()
{
	connect "$NQN" --disable-sqflow
	wait_for ns 1
	wait_for ns 2
	roundtrips
	disconnect "$NQN"
}

# Queues of their own for writes and for polled reads, beside the usual two.
connect_more_queues()
{
	connect "$NQN" --nr-write-queues=1 --nr-poll-queues=1
	wait_for ns 1
	wait_for ns 2
	same "queues, with the admin queue" "$(attribute "$NQN" queue_count)" 5
	roundtrips
	disconnect "$NQN"
}

# Two associations of one host are two paths to the same namespaces.
connect_twice()
{
	connect "$NQN"
	wait_for ns 2
	connect "$NQN" --duplicate-connect
	wait_for two_paths
	same "controllers" "$(controllers "$NQN" | wc -l)" 2
	roundtrips
	disconnect "$NQN"
	wait_for no_controllers
}

# The kernel hides a device per controller behind each namespace's own.
two_paths()
{
	[ "$(find /sys/block/ -maxdepth 1 -name 'nvme*c*n*' | wc -l)" = 4 ]
}

sizes()
{
	same "memory capacity" "$(blockdev --getsize64 "$(ns 1)")" "$MEM_SIZE"
	same "memory block" "$(block 1)" "$MEM_BLOCK"
	same "file capacity" "$(blockdev --getsize64 "$(ns 2)")" "$FILE_SIZE"
	same "file block" "$(block 2)" "$FILE_BLOCK"
}

# Longer than the keep-alive timeout, which connect sets to 10 s.
idle()
{
	local before

	before=$(dmesg | wc -l)
	sleep 11
	live "$NQN"
	same "kernel messages" "$(dmesg | tail -n +$((before + 1)) | grep nvme || true)" ""
}

disconnects()
{
	live "$NQN"
	disconnect "$NQN"
	same "block devices left" "$(ns 1 || true)$(ns 2 || true)" ""
	wait_for no_controllers || { ctl status; return 1; }
}

no_controllers()
{
	ctl status | jq -e '[.. | .controllers? // empty] | flatten | length == 0'
}

# What the kernel never says of a healthy association; asked before the cases that break one. A
# Keep Alive that was out while the controller was removed has failed, to the kernel.
quiet()
{
	local trouble='nvme[0-9cn]*: .*(error|timeout|fail|reset|reconnect|digest|invalid)'

	dmesg | grep -iE "$trouble" | grep -v nvme_keep_alive_end_io >/tmp/trouble || true
	dmesg | grep -E 'hung|BUG|WARNING|Call Trace' >>/tmp/trouble || true
	cat /tmp/trouble
	[ ! -s /tmp/trouble ]
}
