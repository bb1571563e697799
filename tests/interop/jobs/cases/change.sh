# shellcheck shell=bash
# change.sh - cases: what changes on the target while the host is connected. Where the host must
# learn of it by an asynchronous event, no case asks the kernel to look again.
# shellcheck disable=SC2154

private=$NQN-private
other_host=nqn.2014-08.org.nvmexpress:uuid:6c9a2f0e-3b7d-4d53-9d0c-6a1f5c1e7b02

private_add() # HOSTNQN: a subsystem for that host alone
{
	ctl subsystem-add "$(jq -nc --arg nqn "$private" --arg host "$1" '
		{ nqn: $nqn, hosts: [$host], namespaces: [{ backend: "mem:16M" }] }')"
}

discovery_persistent()
{
	records -p >/dev/null
	wait_for live "$discovery"
}

discovery_changes()
{
	local monitor

	udevadm monitor --kernel --property --subsystem-match=nvme >/tmp/events &
	monitor=$!
	sleep 3
	private_add "$HOSTNQN"
	wait_for grep -qi 'NVME_AEN=0x70f002' /tmp/events
	kill $monitor
	lists "$private"
}

discovery_ends()
{
	live "$discovery"
	ctl subsystem-remove nqn="$private"
	wait_for gone lists "$private"
	nvme disconnect -d "$(controllers "$discovery" | sed -n 1p)"
	wait_for gone live "$discovery"
}

size_is() # NSID BYTES
{
	local dev

	dev=$(ns "$1") && [ "$(blockdev --getsize64 "$dev")" = "$2" ]
}

added() # FIELD of what namespace-add returned
{
	jq -er ".$1" /tmp/added
}

namespace_added()
{
	ctl namespace-add nqn="$NQN" backend=mem:32M | tee /tmp/added
	wait_for size_is "$(added nsid)" $((32 << 20))
	same uuid "$(cat "/sys/block/$(basename "$(ns "$(added nsid)")")/uuid")" "$(added uuid)"
	roundtrip "$(added nsid)"
}

namespace_resized()
{
	ctl namespace-resize nqn="$NQN" nsid="$(added nsid)" size=48M
	wait_for size_is "$(added nsid)" $((48 << 20))
	roundtrip "$(added nsid)"
}

# Taken away under a writer: the writer gets an error, the controller stays.
namespace_removed()
{
	local writer

	fio --name=writer --filename="$(ns "$(added nsid)")" --rw=randwrite --bs=4k --iodepth=8 \
		--ioengine=libaio --direct=1 --time_based --runtime=30 >/tmp/writer 2>&1 &
	writer=$!
	sleep 1
	ctl namespace-remove nqn="$NQN" nsid="$(added nsid)"
	wait_for gone ns "$(added nsid)"
	fails wait $writer
	live "$NQN"
	same "namespaces left" "$(active)" "[1,2]"
	roundtrips
}

# A new process takes the target's place, again and again: fio and the kernel see nothing of it.
takeovers()
{
	local pid number before

	before=$(dmesg | wc -l)
	rm -f /tmp/enough
	(until [ -e /tmp/enough ]; do fio_verify; done) >/tmp/fio.log 2>&1 &
	pid=$!
	for ((number = 0; number < TAKEOVERS; number++)); do
		ask takeover
	done
	touch /tmp/enough
	wait $pid
	live "$NQN"
	same "kernel messages" "$(dmesg | tail -n +$((before + 1)) | grep nvme || true)" ""
}

reset()
{
	nvme reset "$(ctrl)"
	wait_for live "$NQN"
	same queues "$(attribute "$NQN" queue_count)" 3
	roundtrips
}

host_refused()
{
	private_add "$other_host"
	fails lists "$private"
	lists "$private" --hostnqn="$other_host" --hostid="${other_host##*:}"
	fails connect "$private"
	same controllers "$(controllers "$private")" ""
}

host_allowed()
{
	ctl host-allow nqn="$private" host="$HOSTNQN"
	lists "$private"
	connect "$private"
	wait_for namespace "$private" 1
	disconnect "$private"
	ctl host-refuse nqn="$private" host="$HOSTNQN"
	fails lists "$private"
	fails connect "$private"
	ctl subsystem-remove nqn="$private"
}

# The target dies under a mounted file system and comes back: what was synced is there.
restart()
{
	wipefs -qa "$(ns 2)"
	mkfs.ext4 -q "$(ns 2)"
	mount "$(ns 2)" /mnt
	random /tmp/data 4194304
	cp /tmp/data /mnt/before
	sync
	ask kill
	wait_for gone live "$NQN"
	ask start
	wait_for live "$NQN"
	forget_cache
	cmp /tmp/data /mnt/before
	cp /tmp/data /mnt/after
	sync
	forget_cache
	cmp /tmp/data /mnt/after
	umount /mnt
	fsck.ext4 -f -n "$(ns 2)"
}
