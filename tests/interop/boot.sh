#!/bin/bash
# boot.sh - a Debian guest boots from a namespace, from the boot sector on: QEMU has nothing else.
#
#   guest, virtio disk ─▶ QEMU, NBD client ─▶ nbdkit weft ─▶ NVMe/TCP ─▶ weft serve, a file
#
# A disk is made and copied into the namespace. The guest boots and writes; the target is killed and comes
# back; the guest boots again, the same happens under it, and it finds what it wrote; so do we, in the
# namespace. Prints TAP. What everyone said stays in build/test-logs/boot/.
#
# environment: WEFT (build/weft)
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
weft=${WEFT:-$root/build/weft}
plugin=$(dirname "$weft")/plugins/nbdkit/nbdkit-weft-plugin.so
logs=$root/build/test-logs/boot
limit=240		# seconds for one boot
size=$((640 << 20))
port=$((20000 + RANDOM % 10000))
nqn=nqn.2026-11.io.weft:boot

# shellcheck source=tests/interop/lib/tap.sh
. "$here/lib/tap.sh"
# shellcheck source=tests/interop/lib/machine.sh
. "$here/lib/machine.sh"
# shellcheck source=tests/interop/lib/disk.sh
. "$here/lib/disk.sh"

target='' nbdkit='' qemu=''

ready() # PID COMMAND…: until it succeeds, while the process lives
{
	local pid=$1 tries=600

	shift
	until "$@" >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null && [ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.1
	done
}

stop() # PID SIGNAL
{
	[ -n "$1" ] || return 0
	kill -"$2" "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}

target_start()
{
	"$weft" serve --listen "nvme+tcp://127.0.0.1:$port" --control "$work/control" --nqn "$nqn" \
		--ns "file:$work/namespace.img,size=$size,block=512" \
		>>"$logs/target.log" 2>&1 </dev/null &
	target=$!
	ready $target "$weft" ctl --control "$work/control" status
}

nbdkit_start()
{
	nbdkit -f -U "$work/nbd" "$plugin" "uri=nvme+tcp://127.0.0.1:$port/$nqn" nsid=1 \
		>>"$logs/nbdkit.log" 2>&1 </dev/null &
	nbdkit=$!
	ready $nbdkit test -S "$work/nbd"
}

guest_boot() # CONSOLE [COMMAND]: what happens once it has begun to boot
{
	timeout --foreground "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu Nehalem \
		-M q35 -smp 2 -m 512 -nodefaults -no-reboot -display none -serial stdio \
		-blockdev "driver=nbd,node-name=d0,server.type=unix,server.path=$work/nbd,discard=unmap" \
		-device virtio-blk-pci,drive=d0 -device virtio-rng-pci >"$1" 2>&1 </dev/null &
	qemu=$!
	[ -z "${2:-}" ] || { ready $qemu grep -q SYSLINUX "$1" && "$2"; }
	wait $qemu
	qemu=''
}

# --- cases

check() # NAME LOG COMMAND…
{
	local name=$1 log=$2

	shift 2
	if "$@" >>"$log" 2>&1; then
		result ok "$name"
	else
		result "not ok" "$name" "$log"
	fi
}

# In emulation a guest dies about once in 70 boots.
boots() # NUMBER WORDS [COMMAND]
{
	local console=$logs/console-$1.log

	guest_boot "$console" "${3:-}"
	if ! grep -q '^boot-job:' "$console"; then
		echo "# boot $1: the guest died; once more"
		cp "$console" "$logs/console-$1-died.log"
		guest_boot "$console"
	fi
	grep -q "^boot-job: $2 on /dev/vda2 ext4" "$console"
}

copied()
{
	qemu-img convert -n -f raw -O raw "$work/disk.img" "nbd+unix:///?socket=$work/nbd" &&
		qemu-img compare -f raw -F raw "$work/disk.img" "nbd+unix:///?socket=$work/nbd"
}

found_afterwards()
{
	qemu-img convert -f raw -O raw "nbd+unix:///?socket=$work/nbd" "$work/after.img" &&
		e2fsck -fn "$work/after.img?offset=$disk_root" &&
		[ "$(debugfs -R 'cat /root/written' "$work/after.img?offset=$disk_root")" = "$(cat "$guest/version")" ]
}

restarted()
{
	stop "$target" KILL
	target_start
}

cleanup()
{
	stop "$qemu" KILL
	stop "$nbdkit" KILL
	stop "$target" KILL
	rm -rf "$work"
}

[ -e "$plugin" ] || skip_all "the nbdkit plugin is not built (nbdkit-plugin-dev)"
rm -rf "$logs"
mkdir -p "$logs"
missing=$(packages_install nbdkit qemu-utils "${disk_packages[@]}" 2>"$logs/packages.log") ||
	skip_all "packages are missing: apt-get install $missing"
machine_prepare
guest=$WEFT_INTEROP_GUEST
work=$(mktemp -d)
trap cleanup EXIT
trap 'exit 130' INT TERM

disk_make "$work/disk.img" "$size" boot.sh >"$logs/disk.log" 2>&1 ||
	bail_out "the guest's disk could not be made; see $logs/disk.log"
target_start || bail_out "the target does not start; see $logs/target.log"
nbdkit_start || bail_out "nbdkit does not start; see $logs/nbdkit.log"
check "qemu-img copies the guest's disk into the namespace, and finds it the same" \
	"$logs/qemu-img.log" copied
check "the guest boots from the namespace and writes" "$logs/console-1.log" boots 1 "wrote files"
check "the target is killed and comes back" "$logs/target.log" restarted
check "the guest boots again, the target is killed under it, it finds what it wrote" \
	"$logs/console-2.log" boots 2 "found the files" restarted
check "its file system is clean and its file is there afterwards" "$logs/after.log" found_afterwards
tap_end
