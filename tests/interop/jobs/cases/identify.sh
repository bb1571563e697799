# shellcheck shell=bash
# identify.sh - cases: what the controller says of itself.

ours_only() { [ "$PEER" = weft ] || skip "only asked of our target"; }

id_ctrl()
{
	nvme id-ctrl "$(ctrl)" -o json | tee /tmp/id
	same subnqn "$(jq -r .subnqn /tmp/id)" "$NQN"
	same cntlid "$(jq .cntlid /tmp/id)" "$(attribute "$NQN" cntlid)"
	jq -e '.sn != "" and .mn != "" and .fr != ""' /tmp/id
	jq -e '.ver >= 65536 and .cntrltype == 1 and .kas > 0 and .nn >= 2' /tmp/id
	jq -e '.ioccsz >= 4 and .iorcsz == 1 and .sqes == 102 and .cqes == 68' /tmp/id
	jq -e '(.oaes / 256 | floor) % 2 == 1' /tmp/id		# namespace attribute notices
	nvme id-ctrl "$(ctrl)" -H >/dev/null
}

id_ns()
{
	local nsid size

	for nsid in 1 2; do
		nvme id-ns "$(ctrl)" -n $nsid -o json | tee /tmp/id
		size=$(($(blockdev --getsize64 "$(ns $nsid)") / $(block $nsid)))
		same nsze "$(jq .nsze /tmp/id)" $size
		same ncap "$(jq .ncap /tmp/id)" $size
		same "block size" "$(jq '.lbafs[.flbas % 16].ds | exp2' /tmp/id)" "$(block $nsid)"
		jq -e '.nuse <= .nsze' /tmp/id
	done
	[ "$PEER" != weft ] || fails nvme id-ns "$(ctrl)" -n 0xfffffffe
}

ns_descs()
{
	local nsid uuid before=

	for nsid in 1 2; do
		nvme ns-descs "$(ctrl)" -n $nsid -o json | tee /tmp/descs
		uuid=$(jq -r '.. | .uuid? // empty' /tmp/descs)
		same uuid "$uuid" "$(cat "/sys/block/$(basename "$(ns $nsid)")/uuid")"
		jq -e '[.. | .csi? // empty | tostring] == ["0"]' /tmp/descs
		[ "$uuid" != "$before" ]
		before=$uuid
	done
}

list_ns()
{
	same active "$(active)" "[1,2]"
	same "active from 2 on" "$(active -n 2)" "[2]"
}

active() # [nvme list-ns's words…]
{
	nvme list-ns "$(ctrl)" "$@" -o json | jq -c '[.nsid_list[].nsid]'
}

id_more()
{
	ours_only
	nvme nvm-id-ns "$(ctrl)" -n 1			# CNS 05h
	nvme nvm-id-ctrl "$(ctrl)"			# 06h
	nvme cmdset-ind-id-ns "$(ctrl)" -n 1		# 08h
	nvme list-ns "$(ctrl)" --all			# 10h
	nvme list-ctrl "$(ctrl)" -n 1			# 12h
	nvme list-ctrl "$(ctrl)"			# 13h
	nvme id-iocs "$(ctrl)"				# 1Ch
}

list_all()
{
	nvme list -o json | tee /tmp/list
	jq -e --arg dev "$(ns 1)" --argjson size "$MEM_SIZE" '
		.Devices[] | select(.DevicePath == $dev) | .PhysicalSize == $size' /tmp/list
	nvme list-subsys -o json | tee /tmp/subsys
	jq -e --arg nqn "$NQN" --arg at "traddr=$ADDRESS," '
		[.. | objects | select(.NQN? == $nqn)][0].Paths[0]
		| .Transport == "tcp" and .State == "live" and (.Address | contains($at))
		' /tmp/subsys
}

logs()
{
	nvme smart-log "$(ctrl)" -o json | tee /tmp/smart
	jq -e '.critical_warning == 0' /tmp/smart
	nvme fw-log "$(ctrl)"
	nvme changed-ns-list-log "$(ctrl)"
	nvme effects-log "$(ctrl)" -H >/dev/null
	fails nvme get-log "$(ctrl)" --log-id=0xbe --log-len=512
}

error_log()
{
	nvme error-log "$(ctrl)" -e 1
	[ "$PEER" != weft ] || nvme get-feature "$(ctrl)" -f 0x01
}

logs_more()
{
	ours_only
	nvme supported-log-pages "$(ctrl)"
	nvme fid-support-effects-log "$(ctrl)"
}

log_offset()
{
	ours_only
	nvme get-log "$(ctrl)" --log-id=5 --log-len=4096 -b >/tmp/whole
	nvme get-log "$(ctrl)" --log-id=5 --log-len=2048 --lpo=1024 -b >/tmp/part
	cmp /tmp/part <(tail -c +1025 /tmp/whole | head -c 2048)
}

features()
{
	local fid queues list="0x07 0x0b 0x0f"

	[ "$PEER" != weft ] || list+=" 0x02 0x04 0x05 0x06 0x0a 0x0e 0x16"
	for fid in $list; do
		nvme get-feature "$(ctrl)" -f "$fid"
	done
	queues=$(nvme get-feature "$(ctrl)" -f 7 | sed -n 's/.*value: *//Ip')
	[ $((queues & 0xffff)) -ge 1 ]		# counted from zero
	fails nvme get-feature "$(ctrl)" -f 0x7f
	fails nvme set-feature "$(ctrl)" -f 0x7f -V 1
}

set_features()
{
	ours_only
	printf '\0\0\0\0\0\001\0\0' >/tmp/time
	nvme set-feature "$(ctrl)" -f 0x0e --data=/tmp/time -l 8
	nvme get-feature "$(ctrl)" -f 0x0e -l 8
	nvme set-feature "$(ctrl)" -f 0x06 -V 0
	roundtrip 1
	nvme set-feature "$(ctrl)" -f 0x06 -V 1
}

registers()
{
	nvme show-regs "$(ctrl)" | tee /tmp/regs
	grep -qE '^cap +: 0x[0-9a-f]*[1-9a-f]' /tmp/regs
	grep -qE '^csts +: 0x0*1$' /tmp/regs
}
