# shellcheck shell=bash
# rdma-weft.sh - cases: our host's commands over RDMA.

mib=1048576

service()
{
	echo "nvme+rdma://$ADDRESS:$PORT"
}

uri() # NSID [WORD=VALUE…]
{
	uri_of "$(service)/$NQN" "$HOSTNQN" "$HOSTID" "$@"
}

host_discovers()
{
	w discover "$(service)" --json | tee /tmp/log
	jq -e --arg nqn "$NQN" --arg port "$PORT" --arg address "$ADDRESS" '
		[.. | objects | select(.subnqn? == $nqn and .service == $port and .address == $address)]
		| length == 1' /tmp/log
	w discover "$(service)" | grep -F "$NQN"
}

host_lists()
{
	w ls "$(service)/$NQN" --json | tee /tmp/tree
	jq -r '.. | objects | select(has("block_size")) | "\(.nsid) \(.size) \(.block_size)"' /tmp/tree |
		diff - <(printf '%s\n' "1 $MEM_SIZE $MEM_BLOCK" "2 $FILE_SIZE $FILE_BLOCK")
	w ls "$(service)"
}

host_identifies()
{
	w id "$(uri 1)" | tee /tmp/id
	grep -F "$NQN" /tmp/id
	grep -F "$device" /tmp/id
	case $PROVIDER in
	rxe)	grep -F 'RoCE v2' /tmp/id
		grep -i mtu /tmp/id | grep "$ACTIVE_MTU" ;;
	siw)	grep -F iWARP /tmp/id ;;
	esac
	w id "$(uri 1)" --json | jq -e .
}

# There and back again, at an odd place or a plain one; the target's file has the same.
host_roundtrip() # NSID OFFSET BYTES [WORD=VALUE…]
{
	local nsid=$1 offset=$2 bytes=$3

	shift 3
	random /tmp/data "$bytes"
	w write "$(uri "$nsid" "$@")" --offset "$offset" -i /tmp/data
	w read "$(uri "$nsid" "$@")" --offset "$offset" --length "$bytes" --force -o /tmp/back
	cmp /tmp/data /tmp/back
	[ "$nsid" != 2 ] ||
		same "sum at the target" "$(ask sum "$offset" "$bytes")" \
			"$(md5sum </tmp/data | cut -d ' ' -f 1)"
}

host_roundtrips()
{
	host_roundtrip 1 1536 $((MEM_BLOCK * 77))
	host_roundtrip 2 65536 $((5 * mib)) queues=4
	host_roundtrip 2 $((3 * mib)) 65536 depth=1 queues=1
}

host_ipv6()
{
	ADDRESS="[$ADDRESS6]" PORT=$PORT2 host_roundtrip 1 4096 65536
}

host_copies()
{
	random /tmp/data $((12 * mib))
	w cp --verify /tmp/data "$(uri 2)"
	same "sum at the target" "$(ask sum 0 $((12 * mib)))" "$(md5sum </tmp/data | cut -d ' ' -f 1)"
	w cp --force "$(uri 2)" /tmp/back
	cmp -n $((12 * mib)) /tmp/data /tmp/back
	rm /tmp/data /tmp/back
}

host_bench()
{
	w bench "$(uri 1)" --rw randrw --write-ok --verify --time 2 --depth 32 --queues 4 --size 4M
	w bench "$(uri 2)" --rw randrw --write-ok --verify --time 2 --depth 4 --bs 256K --size 8M
}

host_refused()
{
	refused '0x182' id "$(service)/nqn.2026-11.io.weft:nowhere"
	refused 'namespace' read "$(uri 77)" --offset 0 --length 512 -o /tmp/none
	refused 'refused|reject|listen|timed out' id "nvme+rdma://$ADDRESS:1/$NQN" --timeout 5s
	refused 'rdma|device|route|address' id "nvme+rdma://127.0.0.1:$PORT/$NQN" --timeout 5s
}

host_has_queues() # NUMBER, with the admin queue
{
	[ "$(rdma resource show cm_id | grep -c "dst-addr $ADDRESS:$PORT")" -ge "$1" ]
}

# A load that checks every byte, with something in its midst; it ends when all its queues are there again.
host_under_load() # COMMAND…
{
	local load status=0

	weft bench "$(uri 2 kato=2s io_timeout=5s abort_timeout=1s)" --rw randrw --write-ok --verify \
		--time 140 --depth 16 --queues 4 --size 4M >/tmp/load 2>&1 &
	load=$!
	wait_for host_has_queues 5
	sleep 1
	"$@"
	wait_for host_has_queues 5
	kill -INT $load
	wait $load || status=$?
	cat /tmp/load
	same status $status 0
}

# nvmet lets go of a device's queues, then the connection manager of its ids. Who connects in between,
# as our host does at once, gets a queue that nothing ends: the device never goes (Linux 6.12).
nvmet_shares_the_device()
{
	[ "$PLACE-$PEER" = one-nvmet ]
}
