# shellcheck shell=bash
# rdma-counters.sh - cases: our two ends count what they copy and what they make known to the adapter.
# Under a load that has settled that is nothing: the adapter moves all data, out of memory it knows.

settled_since=0 settled_at=none

# Of our target's I/O queues: commands answered, registrations made, bytes copied.
io_counters()
{
	ask ctl status --json | jq -er '
		[.. | .queue_counters? // empty | .[] | select(.qid > 0)] | select(length > 0)
		| "\(map(.completed) | add) \(map(.registrations) | add) \(map(.copied_bytes) | add)"'
}

# Nothing was registered while the last commands were answered, more than the load sends before it
# counts, and nothing ever copied.
settled()
{
	local commands registrations copied

	io_counters >/tmp/counters || return 1
	tee -a /tmp/looks </tmp/counters
	read -r commands registrations copied </tmp/counters
	if [ "$registrations" != "$settled_at" ]; then
		settled_since=$commands settled_at=$registrations
	fi
	[ "$copied" = 0 ] && [ $((commands - settled_since)) -ge 400 ]
}

# A load that goes on until the target has settled, and checks what it reads.
settles() # NSID BLOCK
{
	local load

	weft bench "$(uri "$1")" --rw randrw --bs "$2" --rate 200 --write-ok --verify --depth 8 \
		--queues 4 --size 4M --warmup 1 --time 40 --json >/tmp/load 2>/tmp/load-said &
	load=$!
	wait_for settled || { cat /tmp/looks /tmp/load-said; return 1; }
	kill -INT $load
	wait $load
	jq -c '{ why, reconnects, counters, steady }' /tmp/load
	jq -e '.read.ios > 0 and .write.ios > 0 and .reconnects == 0' /tmp/load
	jq -e '.steady == { registrations: 0, copied_bytes: 0 }' /tmp/load
}

# Writes of 4 KiB come in the capsule, larger ones are fetched; a file's data passes through buffers.
host_copies_nothing()
{
	settles 1 4K
	settles 2 16K
}
