# shellcheck shell=bash
# target.sh - sourced: the words that linux-target.sh answers, each a function do_WORD.

tree=/sys/kernel/config/nvmet
store=/run/nvmet

# --- building

port() # NUMBER PORT
{
	mkdir "$tree/ports/$1"
	echo tcp >"$tree/ports/$1/addr_trtype"
	echo ipv4 >"$tree/ports/$1/addr_adrfam"
	echo 0.0.0.0 >"$tree/ports/$1/addr_traddr"
	echo "$2" >"$tree/ports/$1/addr_trsvcid"
}

referral() # FROM-PORT PORT
{
	local at=$tree/ports/$1/referrals/other

	mkdir "$at"
	echo tcp >"$at/addr_trtype"
	echo ipv4 >"$at/addr_adrfam"
	echo "$ADDRESS" >"$at/addr_traddr"
	echo "$2" >"$at/addr_trsvcid"
	echo 1 >"$at/enable"
}

subsystem() # NQN
{
	mkdir "$tree/subsystems/$1"
	echo 1 >"$tree/subsystems/$1/attr_allow_any_host"
}

export_() # PORT NQN
{
	ln -s "$tree/subsystems/$2" "$tree/ports/$1/subsystems/$2"
}

namespace() # NSID PATH
{
	local at=$tree/subsystems/$NQN/namespaces/$1

	mkdir "$at"
	echo -n "$2" >"$at/device_path"
	[ -b "$2" ] || echo 1 >"$at/buffered_io"
	echo 1 >"$at/enable"
}

memory_disk() # BYTES
{
	local at=/sys/kernel/config/nullb/nullb0

	modprobe null_blk nr_devices=0
	mkdir $at
	echo 1 >$at/memory_backed
	echo 4096 >$at/blocksize
	echo $(($1 >> 20)) >$at/size
	echo 1 >$at/power
	echo /dev/nullb0
}

file() # NAME BYTES
{
	truncate -s "$2" "$store/$1"
	echo "$store/$1"
}

path() # NSID
{
	cat "$tree/subsystems/$NQN/namespaces/$1/device_path"
}

# --- words

do_serve()
{
	mkdir -p $store
	modprobe -a nvmet-tcp virtio_blk
	port 1 "$PORT"
	port 2 "$PORT2"
	subsystem "$NQN"
	subsystem "$SECOND"
	namespace 1 /dev/vda
	namespace 2 "$(file two "$SIZE")"
	namespace 3 "$(memory_disk "$SMALL")"
	export_ 1 "$NQN"
	export_ 2 "$SECOND"
	referral 1 "$PORT2"
}

do_uuid() # NSID
{
	cat "$tree/subsystems/$NQN/namespaces/$1/device_uuid"
}

# The sum of what is there: past the page cache of a block device, which nvmet goes past too.
do_sum() # NSID OFFSET BYTES
{
	local path flags=skip_bytes,count_bytes

	path=$(path "$1")
	[ ! -b "$path" ] || blockdev --flushbufs "$path"
	dd if="$path" bs=1M iflag=$flags skip="$2" count="$3" status=none | md5sum | cut -d ' ' -f 1
}

do_fill() # NSID OFFSET BYTES: with random bytes; prints their sum
{
	local path

	path=$(path "$1")
	dd if=/dev/urandom of="$path" bs=1M iflag=count_bytes,fullblock oflag=seek_bytes seek="$2" \
		count="$3" conv=notrunc,fsync status=none
	do_sum "$@"
}

do_sync()
{
	blockdev --flushbufs /dev/vda
}

do_namespace_add() # NSID BYTES
{
	namespace "$1" "$(file "$1" "$2")"
}

do_namespace_resize() # NSID BYTES
{
	truncate -s "$2" "$(path "$1")"
	echo 1 >"$tree/subsystems/$NQN/namespaces/$1/revalidate_size"
}

do_namespace_remove() # NSID
{
	echo 0 >"$tree/subsystems/$NQN/namespaces/$1/enable"
	rmdir "$tree/subsystems/$NQN/namespaces/$1"
}

do_subsystem_add() # NQN
{
	subsystem "$1"
	export_ 1 "$1"
}

do_subsystem_remove() # NQN
{
	rm "$tree/ports/1/subsystems/$1"
	rmdir "$tree/subsystems/$1"
}

do_restrict() # [HOSTNQN]: nobody, or this one
{
	echo 0 >"$tree/subsystems/$NQN/attr_allow_any_host"
	[ $# != 0 ] || return 0
	mkdir "$tree/hosts/$1"
	ln -s "$tree/hosts/$1" "$tree/subsystems/$NQN/allowed_hosts/$1"
}

do_unrestrict()
{
	rm -f "$tree/subsystems/$NQN/allowed_hosts"/*
	rmdir "$tree"/hosts/*
	echo 1 >"$tree/subsystems/$NQN/attr_allow_any_host"
}

do_restart() # SECONDS
{
	rm "$tree/ports/1/subsystems/$NQN"
	sleep "$1"
	export_ 1 "$NQN"
}

do_cut() # SECONDS
{
	ip link set eth0 down
	sleep "$1"
	ip link set eth0 up
}

# What the kernel should not have to say; with "hosts", also of a host that breaks the rules.
do_complaints() # [hosts]
{
	local words='BUG:|WARNING:|Oops|blocked for more than'

	[ $# = 0 ] || words+='|nvmet.*(error|invalid|bad|fail|unhandled|unexpected|expired)'
	! dmesg | grep -E "$words" | grep -v 'connect request for invalid subsystem'
}
