# shellcheck shell=bash
# io.sh - cases: the I/O commands one by one, file systems, fio.

# What our target must offer and another may not.
needs_oncs() # BIT WHAT
{
	local oncs

	oncs=$(nvme id-ctrl "$(ctrl)" -o json | jq .oncs)
	[ $((oncs >> $1 & 1)) = 0 ] || return 0
	[ "$PEER" = weft ] || skip "the target has no $2"
	echo "Identify's ONCS ($oncs) does not offer $2"
	return 1
}

# Write and read back: the first blocks, the last one, and 1 MiB in between.
roundtrip() # NSID
{
	local dev bs blocks

	dev=$(ns "$1") bs=$(block "$1")
	blocks=$(($(blockdev --getsize64 "$dev") / bs))
	random /tmp/data 1048576
	dd if=/tmp/data of="$dev" bs="$bs" count=8 oflag=direct
	dd if=/tmp/data of="$dev" bs="$bs" count=1 seek=$((blocks - 1)) oflag=direct
	dd if=/tmp/data of="$dev" bs=1M count=1 seek=3 oflag=direct
	holds "$dev" 0 <(head -c $((bs * 8)) /tmp/data)
	holds "$dev" $(((blocks - 1) * bs)) <(head -c "$bs" /tmp/data)
	holds "$dev" 3145728 /tmp/data
}

roundtrips()
{
	roundtrip 1
	roundtrip 2
}

# Read without the page cache, in one piece where the kernel can.
holds() # DEVICE OFFSET FILE
{
	cat "$3" >/tmp/expected
	dd if="$1" of=/tmp/got iflag=direct,fullblock,skip_bytes skip="$2" count=1 \
		bs="$(stat -c %s /tmp/expected)"
	cmp /tmp/got /tmp/expected
}

zeroes() # DEVICE OFFSET BYTES
{
	holds "$1" "$2" <(head -c "$3" /dev/zero)
}

beyond_end()
{
	local dev bs blocks

	dev=$(ns 1) bs=$(block 1)
	blocks=$(($(blockdev --getsize64 "$dev") / bs))
	fails nvme read "$dev" -s $blocks -c 0 -z "$bs" -d /tmp/none
	fails nvme write "$dev" -s $((blocks - 1)) -c 1 -z $((bs * 2)) -d /tmp/data
	live "$NQN"
}

compare()
{
	local nsid dev bs

	needs_oncs 0 Compare
	for nsid in 1 2; do
		dev=$(ns $nsid) bs=$(block $nsid)
		random /tmp/data $((bs * 8))
		dd if=/tmp/data of="$dev" bs="$bs" count=8 seek=16 oflag=direct
		nvme compare "$dev" -s 16 -c 7 -z $((bs * 8)) -d /tmp/data
		fails nvme compare "$dev" -s 17 -c 6 -z $((bs * 7)) -d /tmp/data
	done
}

write_zeroes()
{
	local nsid dev bs

	needs_oncs 3 "Write Zeroes"
	for nsid in 1 2; do
		dev=$(ns $nsid) bs=$(block $nsid)
		random /tmp/data 65536
		dd if=/tmp/data of="$dev" bs=64k count=1 oflag=direct
		nvme write-zeroes "$dev" -s $((8192 / bs)) -c $((16384 / bs - 1))
		zeroes "$dev" 8192 16384
		holds "$dev" 0 <(head -c 8192 /tmp/data)
		holds "$dev" 24576 <(tail -c 40960 /tmp/data)
	done
}

dsm()
{
	local nsid dev bs

	needs_oncs 2 "Dataset Management"
	for nsid in 1 2; do
		dev=$(ns $nsid) bs=$(block $nsid)
		random /tmp/data 65536
		dd if=/tmp/data of="$dev" bs=64k count=1 oflag=direct
		nvme dsm "$dev" --ad --slbs=$((8192 / bs)),$((32768 / bs)) \
			--blocks=$((4096 / bs)),$((8192 / bs))
		holds "$dev" 0 <(head -c 8192 /tmp/data)
		holds "$dev" 12288 <(tail -c +12289 /tmp/data | head -c 20480)
		holds "$dev" 40960 <(tail -c 24576 /tmp/data)
	done
}

lba_status()
{
	local nsid dev bs

	ours_only
	for nsid in 1 2; do
		dev=$(ns $nsid) bs=$(block $nsid)
		blkdiscard -f "$dev"
		nvme get-lba-status "$dev" -n $nsid -s 0 -m 1023 -a 2 -l 0 | tee /tmp/status
		grep -q "(NLSD): 0$" /tmp/status
		random /tmp/data 65536
		dd if=/tmp/data of="$dev" bs=64k count=1 seek=16 oflag=direct
		nvme get-lba-status "$dev" -n $nsid -s 0 -m 1023 -a 2 -l 0 | tee /tmp/status
		grep -q "(NLSD): 1$" /tmp/status
		grep -Eq "$(printf 'DSLBA: 0x0*%x, NLB: 0x0*%x, Status: 0x0*2 ' \
			$((1048576 / bs)) $((65536 / bs)))" /tmp/status
		fails nvme get-lba-status "$dev" -n $nsid -s 0 -m 1023 -a 0x10 -l 0
	done
}

flush()
{
	nvme flush "$(ns 1)"
	nvme flush "$(ns 2)"
}

verify()
{
	needs_oncs 7 Verify
	nvme verify "$(ns 1)" -s 0 -c 7
	nvme verify "$(ns 2)" -s 0 -c 7
	fails nvme verify "$(ns 1)" -s $((MEM_SIZE / MEM_BLOCK)) -c 0
}

copy()
{
	local nsid dev bs

	needs_oncs 8 Copy
	for nsid in 1 2; do
		dev=$(ns $nsid) bs=$(block $nsid)
		random /tmp/data $((bs * 8))
		dd if=/tmp/data of="$dev" bs="$bs" count=8 oflag=direct
		nvme copy "$dev" --sdlba=128 --slbs=4,0 --blocks=3,3
		holds "$dev" $((bs * 128)) <(tail -c $((bs * 4)) /tmp/data)
		holds "$dev" $((bs * 132)) <(head -c $((bs * 4)) /tmp/data)
	done
}

discard()
{
	local nsid dev

	for nsid in 1 2; do
		dev=$(ns $nsid)
		random /tmp/data 1048576
		dd if=/tmp/data of="$dev" bs=1M count=1 oflag=direct
		blkdiscard -f -o 65536 -l 131072 "$dev"
		holds "$dev" 0 <(head -c 65536 /tmp/data)
		[ "$PEER" != weft ] || zeroes "$dev" 65536 131072
		blkdiscard -f -z -o 262144 -l 131072 "$dev"
		zeroes "$dev" 262144 131072
		holds "$dev" 393216 <(tail -c +393217 /tmp/data)
		blkdiscard -f "$dev"
		blkdiscard -f -z "$dev"
		zeroes "$dev" 0 1048576
	done
}

# Two copies of a file on a new file system, one deleted; the other must be there without the cache.
file_system() # NSID MKFS MIB FSCK…
{
	local dev mkfs=$2 mib=$3

	dev=$(ns "$1")
	shift 3
	random /tmp/data $((mib << 20))
	wipefs -qa "$dev"
	"$mkfs" -q "$dev"
	mount "$dev" /mnt
	mkdir /mnt/folder
	cp /tmp/data /mnt/one
	cp /tmp/data /mnt/folder/two
	sync
	rm /mnt/one
	forget_cache
	cmp /tmp/data /mnt/folder/two
	umount /mnt
	forget_cache
	"$@" "$dev"
}

ext4_memory()
{
	file_system 1 mkfs.ext4 2 fsck.ext4 -f -n
}

ext4_file()
{
	file_system 2 mkfs.ext4 8 fsck.ext4 -f -n
}

xfs_file()
{
	modprobe xfs || skip "the guest's kernel has no xfs"
	file_system 2 mkfs.xfs 8 xfs_repair -n
}

# Blocks that carry their checksum, small and large, alone and beside reads, then all read back.
fio_verify()
{
	fio --ioengine=libaio --direct=1 --iodepth=16 --randrepeat=0 --end_fsync=1 \
		--verify=crc32c --verify_fatal=1 --size=8M --bsrange=4k-128k --rw=randwrite \
		--name=memory --filename="$(ns 1)" \
		--name=file --filename="$(ns 2)" \
		--name=memory-mix --filename="$(ns 1)" --offset=24M --rw=randrw --bs=4k --size=2M \
		--name=file-mix --filename="$(ns 2)" --offset=24M --rw=randrw --bs=4k --size=2M
}

fio_digests()
{
	connect "$NQN" --hdr-digest --data-digest
	wait_for ns 1
	wait_for ns 2
	fio_verify
	disconnect "$NQN"
}
