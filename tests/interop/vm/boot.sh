#!/bin/bash
# boot.sh - boot the guest, run SHARE/JOB in it as root, exit with the job's status.
#
# usage: boot.sh [-c cpus] [-m MiB] [-t seconds] [-a address/len] [-u mtu] [-n netdev]
#                [-p processor] [-q "qemu words"] GUEST SHARE JOB
#
# GUEST is the folder that setup.sh printed; SHARE is /share in the guest, writable from both sides.
# 124: the time was up. 125: the guest died before its job ended; in emulation that happens about
# once in 70 boots, so a caller tries once more, with everything fresh, before believing it. One that
# dies before its job begins is booted again here.
# The default network is QEMU's own: the guest reaches this machine's loopback at 10.0.2.2.
# WEFT_VM_ACCEL=kvm uses KVM where it works.
set -u

cpus=2 memory=1024 limit=300 address=10.0.2.15/24 mtu=1500 net=user,id=n0 extra=
processor=Nehalem
while getopts c:m:t:a:u:n:p:q: option; do
	case $option in
	c) cpus=$OPTARG ;;
	m) memory=$OPTARG ;;
	t) limit=$OPTARG ;;
	a) address=$OPTARG ;;
	u) mtu=$OPTARG ;;
	n) net=$OPTARG ;;
	p) processor=$OPTARG ;;
	q) extra=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# = 3 ] || { echo "usage: boot.sh [options] GUEST SHARE JOB" >&2; exit 2; }
guest=$1 share=$2 job=$3

case ${WEFT_VM_ACCEL:-tcg} in
kvm)	accel=(-accel kvm -cpu host) ;;
*)	accel=(-accel "tcg,thread=multi" -cpu "$processor") ;;
esac

# shellcheck source=tests/interop/vm/kernel.sh
. "$(dirname "$0")/kernel.sh"
kernel_words+=" net.ifnames=0"
folder=security_model=none
# Guests on one network differ in their addresses, and so in these.
mac=52:54:00:$(echo "$address" | md5sum | sed 's/\(..\)\(..\)\(..\).*/\1:\2:\3/')

cp "$(dirname "$0")/guest-init.sh" "$share/"

boot()
{
	rm -f "$share/status" "$share/begun"
	# shellcheck disable=SC2086
	timeout --foreground "$limit" qemu-system-x86_64 "${accel[@]}" -M q35 -smp "$cpus" -m "$memory" \
		-nodefaults -no-reboot -display none -serial stdio \
		-kernel "$guest/vmlinux" -initrd "$guest/init.cpio" \
		-append "$kernel_words job=$job ip=$address mtu=$mtu" \
		-virtfs "local,path=$guest/root,mount_tag=root,$folder,readonly=on,multidevs=remap" \
		-virtfs "local,path=$guest/modules,mount_tag=modules,$folder,readonly=on" \
		-virtfs "local,path=$share,mount_tag=share,$folder" \
		-netdev "$net" -device "virtio-net-pci,netdev=n0,mac=$mac,romfile=" \
		-device virtio-rng-pci \
		$extra </dev/null &
	qemu=$!
	wait $qemu
	status=$?
}

trap 'kill $qemu 2>/dev/null' TERM INT
boot
# Nothing has happened that a second boot could spoil.
for _ in 1 2; do
	if [ -e "$share/begun" ] || [ $status -ge 124 ]; then
		break
	fi
	echo "boot.sh: the guest died before its job began; once more"
	boot
done

if [ -s "$share/status" ]; then
	status=$(cat "$share/status")
elif [ $status != 124 ]; then
	status=125
fi
exit "$status"
