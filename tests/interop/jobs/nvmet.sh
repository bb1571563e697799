#!/bin/bash
# nvmet.sh - the kernel's own target in the guest, behind the words that a job asks of the machine.
# With it in our target's place the jobs prove themselves: a case that fails here is a wrong case.
set -eu
# shellcheck source=/dev/null
. /share/settings

type=${TRTYPE:-tcp}
tree=/sys/kernel/config/nvmet
door=$tree/ports/1
store=/run/nvmet

value() # NAME WORD…: of NAME=VALUE among the words
{
	local name=$1 word

	shift
	for word; do
		case $word in "$name="*) echo "${word#*=}" ;; esac
	done
}

subsystem() # NQN ANY
{
	mkdir "$tree/subsystems/$1"
	echo "$2" >"$tree/subsystems/$1/attr_allow_any_host"
	echo Weft >"$tree/subsystems/$1/attr_model"
}

namespace() # NQN NSID SIZE BLOCK
{
	local at=$tree/subsystems/$1/namespaces/$2 file=$store/${1##*:}.$2

	truncate -s "$3" "$file"
	mkdir "$at"
	losetup --find --show --sector-size "$4" "$file" >"$file.dev"
	tr -d '\n' <"$file.dev" >"$at/device_path"
	echo 1 >"$at/enable"
}

export_() # NQN
{
	ln -s "$tree/subsystems/$1" "$door/subsystems/$1"
}

allow() # NQN HOST
{
	mkdir -p "$tree/hosts/$2"
	ln -s "$tree/hosts/$2" "$tree/subsystems/$1/allowed_hosts/$2"
}

serve()
{
	mkdir -p $store
	modprobe -a "nvmet-$type" loop
	mkdir $door
	echo "$type" >$door/addr_trtype
	echo ipv4 >$door/addr_adrfam
	echo "$ADDRESS" >$door/addr_traddr
	echo "$PORT" >$door/addr_trsvcid
	subsystem "$NQN" 1
	namespace "$NQN" 1 "$MEM_SIZE" "$MEM_BLOCK"
	namespace "$NQN" 2 "$FILE_SIZE" "$FILE_BLOCK"
	export_ "$NQN"
}

ctl_namespace_add()
{
	local nqn nsid=3 at

	nqn=$(value nqn "$@")
	at=$tree/subsystems/$nqn/namespaces/$nsid
	namespace "$nqn" $nsid "$(value backend "$@" | sed 's/.*://')" 512
	jq -n --argjson nsid $nsid --rawfile uuid "$at/device_uuid" \
		'{ nsid: $nsid, uuid: ($uuid | rtrimstr("\n")) }'
}

ctl_namespace_resize()
{
	local nqn nsid file

	nqn=$(value nqn "$@") nsid=$(value nsid "$@")
	file=$store/${nqn##*:}.$nsid
	truncate -s "$(value size "$@")" "$file"
	losetup --set-capacity "$(cat "$file.dev")"
	echo 1 >"$tree/subsystems/$nqn/namespaces/$nsid/revalidate_size"
}

ctl_namespace_remove()
{
	local at

	at=$tree/subsystems/$(value nqn "$@")/namespaces/$(value nsid "$@")
	rmdir "$at"
}

ctl_subsystem_add() # JSON
{
	local nqn host

	nqn=$(jq -r .nqn <<<"$1")
	subsystem "$nqn" 0
	for host in $(jq -r '.hosts[]' <<<"$1"); do
		allow "$nqn" "$host"
	done
	namespace "$nqn" 1 "$(jq -r '.namespaces[0].backend' <<<"$1" | sed 's/.*://')" 512
	export_ "$nqn"
}

ctl_subsystem_remove()
{
	local nqn

	nqn=$(value nqn "$@")
	rm "$door/subsystems/$nqn" "$tree/subsystems/$nqn/allowed_hosts"/*
	rmdir "$tree/subsystems/$nqn/namespaces/1" "$tree/subsystems/$nqn"
}

ctl_host_allow()
{
	allow "$(value nqn "$@")" "$(value host "$@")"
}

ctl_host_refuse()
{
	rm "$tree/subsystems/$(value nqn "$@")/allowed_hosts/$(value host "$@")"
}

# nvmet names no controllers; one stands for every connection that is up.
ctl_status()
{
	"connections_$type" | jq -Rn '{ subsystems: [{ controllers: [inputs] }] }'
}

connections_tcp()
{
	ss -Htn state established "sport = :$PORT"
}

connections_rdma()
{
	rdma resource show cm_id | grep '\[nvmet_rdma\]' | grep -v LISTEN || true
}

verb=$1
shift
case $verb in
serve)		serve ;;
kill)		rm $door/subsystems/* ;;
start)		export_ "$NQN" ;;
stop)		rm $door/subsystems/*
		rmdir $door ;;
capture*)	;;
ctl)		verb=ctl_${1//-/_}
		shift
		"$verb" "$@" ;;
*)		echo "nvmet.sh: no such word: $verb" >&2
		exit 2 ;;
esac
