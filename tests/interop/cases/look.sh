# shellcheck shell=bash
# look.sh - cases: what discover, ls and id show of the kernel's target.
# shellcheck disable=SC2154

service()
{
	echo "nvme+tcp://$address:$port"
}

uri() # NSID [WORD=VALUE…]
{
	uri_of "$(service)/$nqn" "$hostnqn" "$hostid" "$@"
}

discovers()
{
	w discover "$(service)" --json >"$work/log"
	jq . "$work/log"
	jq -e --arg nqn "$nqn" --arg port "$port" \
		'[.. | objects | select(.subnqn? == $nqn and .service == $port)] | length == 1' "$work/log"
	jq -e --arg nqn "$second" --arg port "$port2" \
		'[.. | objects | select(.subnqn? == $nqn and .service == $port)] | length == 1' "$work/log"
}

discovers_text()
{
	w discover "$(service)" >"$work/log"
	cat "$work/log"
	grep -F "$nqn" "$work/log"
	same "lines of more than 100 columns" "$(grep -c '.\{101\}' "$work/log")" 0
}

lists()
{
	w ls "$(service)/$nqn" --json >"$work/tree"
	jq . "$work/tree"
	sizes | diff - <(printf '%s\n' "1 $disk_size 512" "2 $size 4096" "3 $small 4096")
	# Behind QEMU's own network the log has the guest's address, which leads nowhere from here.
	[ "$address" = 127.0.0.1 ] || w ls "$(service)"
}

sizes()
{
	jq -r '.. | objects | select(has("block_size")) | "\(.nsid) \(.size) \(.block_size)"' "$work/tree"
}

identifies()
{
	w id "$(uri 1)" >"$work/id"
	cat "$work/id"
	grep -F "$nqn" "$work/id"
	grep -F "Linux" "$work/id"
	w id "$(uri 1)" --json | jq -e .
}

identifies_namespaces()
{
	local nsid

	for nsid in 1 2 3; do
		w id "$(uri $nsid)" | tee "$work/id"
		grep -F "$(guest uuid $nsid)" "$work/id"
	done
}

host_refused()
{
	guest restrict
	refused '0x184' id "$(uri 1)"
	refused '0x184' read "$(uri 1)" --offset 0 --length 4096 -o "$work/none"
	guest restrict "$hostnqn"
	w id "$(uri 1)" >/dev/null
	guest unrestrict
}

subsystem_absent()
{
	refused '0x182' id "$(service)/nqn.2026-11.io.weft:nowhere"
	refused '0x182' read "$(service)/nqn.2026-11.io.weft:nowhere?nsid=1" --offset 0 --length 512 \
		-o "$work/none"
	refused 'namespace' read "$(uri 77)" --offset 0 --length 512 -o "$work/none"
}

port_absent()
{
	refused 'refused' id "nvme+tcp://$address:1/$nqn"
}

quiet() # [hosts]
{
	guest complaints "$@"
}
