# shellcheck shell=bash
# traffic.sh - sourced: keep what goes over the wire, and have tshark's NVMe/TCP dissector judge it.
# Needs interface and port, which machine_network sets.
# shellcheck disable=SC2154

tcpdump=''

capture_start() # FILE
{
	local tries=50

	command -v tcpdump >/dev/null || return 0
	tcpdump -U -B 65536 -Z root -i "$interface" -w "$1" "tcp port $port" 2>"$1.log" &
	tcpdump=$!
	until grep -q listening "$1.log" || [ $((tries -= 1)) = 0 ]; do
		sleep 0.1
	done
}

capture_stop()
{
	[ -n "$tcpdump" ] || return 0
	sleep 1		# for what the kernel still holds
	kill -INT "$tcpdump" 2>/dev/null
	wait "$tcpdump" 2>/dev/null
	tcpdump=''
}

dissect() # FILE tshark's words…
{
	local file=$1

	shift
	tshark -n -r "$file" -d "tcp.port==$port,nvme-tcp" -o nvme-tcp.check_hdgst:TRUE \
		-o nvme-tcp.check_ddgst:TRUE "$@" 2>/dev/null
}

none() # NAME FILE FILTER: no packet may match
{
	dissect "$2" -Y "$3" >"$2.found"
	if [ -s "$2.found" ]; then
		result "not ok" "$1" "$2.found"
	else
		result ok "$1"
	fi
}

traffic_check() # NAME FILE
{
	local packets digests

	if ! command -v tshark >/dev/null || [ ! -s "$2" ]; then
		result ok "$1 # SKIP no capture: it takes tcpdump, tshark and the right to capture"
		return
	fi
	packets=$(dissect "$2" -Y nvme-tcp | wc -l)
	digests=$(dissect "$2" -Y 'nvme-tcp.ddgst.status == 1' | wc -l)
	echo "# $1: $packets packets with NVMe/TCP, $digests of them with a data digest"
	if [ "$packets" -lt 100 ]; then
		result "not ok" "$1: captured" "$2.log"
		return
	fi
	none "$1: nothing malformed" "$2" '_ws.malformed || _ws.short'
	none "$1: no expert finds an error" "$2" '_ws.expert.severity == error'
	none "$1: no digest is wrong" "$2" \
		'nvme-tcp.hdgst.status == 0 || nvme-tcp.ddgst.status == 0'
	none "$1: nobody terminates a connection" "$2" 'nvme-tcp.c2htermreq || nvme-tcp.h2ctermreq'
}
