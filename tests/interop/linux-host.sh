#!/bin/bash
# linux-host.sh - a real Linux kernel as the host of our target, once per engine.
#
#   machine, in a network namespace                   guest
#   weft serve 192.168.77.1:4420  ◀── tap0 ──▶ eth0   nvme-tcp, nvme-cli, file systems, fio
#   this script                   ◀── share ─▶        jobs/linux-host.sh: requests, results
#
# Prints TAP. What the guest, the target and the wire said stays in build/test-logs/linux-host/.
#
# usage: linux-host.sh [--self-check]   with the kernel's own target in ours's place, in the guest:
#                                       what fails there is a wrong case
# environment: WEFT (build/weft), WEFT_ENGINES ("uring epoll"), WEFT_VM_NET (tap or user), WEFT_TAKEOVERS (5)
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
weft=${WEFT:-$root/build/weft}
engines=${WEFT_ENGINES:-uring epoll}
logs=$root/build/test-logs/linux-host
limit=600		# seconds for one guest

nqn=nqn.2026-11.io.weft:interop
mem_size=$((48 << 20)) mem_block=512
file_size=$((320 << 20)) file_block=4096

# shellcheck source=tests/interop/lib/tap.sh
. "$here/lib/tap.sh"
# shellcheck source=tests/interop/lib/machine.sh
. "$here/lib/machine.sh"
# shellcheck source=tests/interop/lib/traffic.sh
. "$here/lib/traffic.sh"

# --- the target

first=yes target='' target_status=''

target_spawn() # [weft serve's words…]
{
	"$weft" serve --listen "nvme+tcp://$listen:$port" --control "$work/control" \
		--engine "$engine" --nqn "$nqn" --ns "mem:$mem_size,block=$mem_block" \
		--ns "file:$work/disk.img,size=$file_size,block=$file_block" \
		--allow-any-host "$@" >>"$logs/$engine/target.log" 2>&1 </dev/null &
	target=$!
}

target_start()
{
	local tries=100

	target_spawn
	until ctl status >/dev/null 2>&1; do
		if ! kill -0 "$target" 2>/dev/null || [ $((tries -= 1)) = 0 ]; then
			target_stop KILL
			return 1
		fi
		sleep 0.1
	done
}

target_stop() # SIGNAL
{
	local tries=100

	[ -n "$target" ] || return 0
	kill -"$1" "$target" 2>/dev/null
	while kill -0 "$target" 2>/dev/null && [ $((tries -= 1)) -gt 0 ]; do
		sleep 0.1
	done
	kill -KILL "$target" 2>/dev/null
	wait "$target" 2>/dev/null
	target_status=$?
	target=''
}

# A target that died before it was killed must not pass for killed.
target_kill()
{
	target_stop KILL
	[ "$target_status" = 137 ] || { echo "it had ended with status $target_status"; return 1; }
}

# A new process in its place, with its connections.
target_takeover()
{
	local old=$target

	target_spawn --takeover
	wait "$old" || { echo "the old process ended with status $?"; return 1; }
	ctl status | grep "\"pid\": $target,"
}

ctl()
{
	timeout 60 "$weft" ctl --control "$work/control" "$@"
}

# Called by guest_run with the words of the job's request.
answer()
{
	local verb=$1

	shift
	echo "asked: $verb $*" >>"$logs/$engine/asked.log"
	case $verb in
	ctl)		ctl "$@" ;;
	kill)		target_kill ;;
	start)		target_start ;;
	takeover)	target_takeover ;;
	capture)	capture_start "$logs/$engine/$1.pcap" ;;
	capture-end)	capture_stop ;;
	*)		echo "no such request: $verb"
			return 2 ;;
	esac
}

# --- one engine

settings()
{
	[ "$peer" = weft ] || reach=127.0.0.1 listen=127.0.0.1
	cat <<-END
	PEER=$peer FIRST=$first ADDRESS=$reach TRADDR=$listen PORT=$port NQN=$nqn
	MEM_SIZE=$mem_size MEM_BLOCK=$mem_block FILE_SIZE=$file_size FILE_BLOCK=$file_block
	TAKEOVERS=${WEFT_TAKEOVERS:-5}
	HOSTID=2f4d5a3c-7f6e-4b1a-8a52-0d9f1c3b5e01
	HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:2f4d5a3c-7f6e-4b1a-8a52-0d9f1c3b5e01
	END
}

# A fresh share, disk, target and guest. 126: the target did not start.
attempt()
{
	local status

	share=$work/share
	rm -rf "$share" "$work/disk.img"
	mkdir "$share"
	cp -r "$here"/jobs/* "$share/"
	settings >"$share/settings"
	[ "$peer" != weft ] || target_start || return 126
	guest_run linux-host.sh "$logs/$engine"
	status=$?
	capture_stop
	return $status
}

engine_run()
{
	local status part console=$logs/$engine/console.log

	rm -rf "${logs:?}/$engine"
	mkdir -p "$logs/$engine"
	attempt
	status=$?
	if [ $status = 125 ]; then
		echo "# $engine: the guest died; once more (see $logs/$engine/console-died.log)"
		mv "$console" "$logs/$engine/console-died.log"
		target_stop KILL
		attempt
		status=$?
	fi
	if [ $status = 126 ]; then
		engine_absent
		return
	fi
	first=no
	results "$engine" "$share/results"
	if [ $status = 0 ]; then
		result ok "$engine: the guest finishes"
	else	# 124: not in its time
		result "not ok" "$engine: the guest finishes, status $status" "$console"
	fi
	[ "$peer" = weft ] || return
	target_ends
	for part in first second; do
		traffic_check "$engine: traffic, $part part" "$logs/$engine/$part.pcap"
	done
}

# A target that died on the way has no status of its own to give.
target_ends()
{
	target_stop TERM
	if [ "$target_status" = 0 ]; then
		result ok "$engine: the target ends on SIGTERM"
	else
		result "not ok" "$engine: the target ends on SIGTERM, status $target_status" \
			"$logs/$engine/target.log"
	fi
}

# Containers often forbid io_uring; that is no failure of the target.
engine_absent()
{
	local log=$logs/$engine/target.log

	if [ "$engine" = uring ] && grep -qi io_uring "$log"; then
		result ok "$engine: the target starts # SKIP $(tail -n 1 "$log")"
	else
		result "not ok" "$engine: the target starts" "$log"
	fi
}

cleanup()
{
	target_stop KILL
	capture_stop
	guest_stop
	rm -rf "$work"
}

main() # tap|user
{
	machine_network "$1"
	work=$(mktemp -d)
	trap cleanup EXIT
	trap 'exit 130' INT TERM
	for engine in $engines; do
		engine_run
	done
	tap_end
}

case ${1:-} in
--inside)	peer=$3
		[ "$peer" = weft ] || engines=$peer
		main "$2" ;;
--self-check)	peer=nvmet ;;
"")		peer=weft
		[ -x "$weft" ] || bail_out "$weft is not there: make build" ;;
*)		echo "usage: linux-host.sh [--self-check]" >&2
		exit 2 ;;
esac
machine_prepare
machine_enter "$peer"
