# shellcheck shell=bash
# rdma-kernel.sh - cases: the kernel's host over RDMA, beyond what it does over TCP as well.

# With two CPUs the kernel makes no more than two queues of a kind.
connect_four()
{
	connect "$NQN" --nr-write-queues=2
	four_queues
}

four_queues()
{
	wait_for live "$NQN"
	same "queues, with the admin queue" "$(attribute "$NQN" queue_count)" 5
	wait_for ns 1
	wait_for ns 2
}

# Keyed SGLs are what RDMA is made of.
identify()
{
	id_ctrl
	jq -e '(.sgls / 4 | floor) % 2 == 1' /tmp/id
	id_ns
}

connect_ipv6()
{
	[ "$PEER" = weft ] || skip "only asked of our target"
	ADDRESS=$ADDRESS6 PORT=$PORT2 connect_more_queues
}

ext4_small()
{
	file_system 2 mkfs.ext4 6 fsck.ext4 -f -n
}

# From what fits into a capsule to several of the largest transfers.
fio_small()
{
	fio --ioengine=libaio --direct=1 --iodepth=16 --randrepeat=0 --end_fsync=1 \
		--verify=crc32c --verify_fatal=1 --size=6M --rw=randwrite --bsrange=4k-1m \
		--name=memory --filename="$(ns 1)" \
		--name=file --filename="$(ns 2)" --bs=4k --size=2M \
		--name=mix --filename="$(ns 2)" --offset=8M --rw=randrw --bs=16k --size=2M
}

# Four seconds of writes that are read back and compared, with something in their midst.
under_load() # COMMAND…
{
	local load

	fio --name=load --filename="$(ns 2)" --ioengine=libaio --direct=1 --iodepth=8 --rw=randwrite \
		--bs=16k --size=8M --rate=2m --verify=crc32c --verify_fatal=1 >/tmp/load 2>&1 &
	load=$!
	sleep 1
	"$@"
	wait $load || { cat /tmp/load; return 1; }
	wait_for live "$NQN"
}

reset_twice()
{
	nvme reset "$(ctrl)"
	sleep 0.5
	nvme reset "$(ctrl)"
	same queues "$(attribute "$NQN" queue_count)" 5
}

# --- the link

# Soft RoCE in one guest has no link to lose: see link_deaf. Soft iWARP is just stalled.
link_can_be_cut()
{
	[ "$PLACE-$PROVIDER" != one-rxe ]
}

# Between two guests, for longer than a host waits for an answer to its keep-alive.
cut_off() # SECONDS
{
	case $PLACE in
	one)	link_down 2 ;;
	two)	link_deaf "$1" ;;
	esac
}

# In one guest the host's device is the same: the kernel gives up its controllers with it.
replug()
{
	connect_four
	ask replug
	case $PLACE in
	one)	wait_for gone live "$NQN"
		wait_for connect "$NQN" --nr-write-queues=2 ;;
	two)	wait_for live "$NQN" ;;
	esac
	four_queues
	roundtrip 2
	disconnect "$NQN"
}

# --- what is held

resources_first()
{
	ask resources | tee /tmp/resources-first
}

resources_are_same()
{
	ask resources >/tmp/resources
	cmp -s /tmp/resources /tmp/resources-first
}

resources_same()
{
	wait_for resources_are_same || { diff /tmp/resources-first /tmp/resources; return 1; }
	cat /tmp/resources
}
