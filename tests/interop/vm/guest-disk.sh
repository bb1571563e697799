#!/bin/sh
# guest-disk.sh - the initramfs's init of a guest that boots from a disk: the root is on /dev/vda2.
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do
	insmod "/lib/modules/$module" 2>/dev/null
done </boot-modules

if ! mount -t ext4 -o rw /dev/vda2 /new; then
	echo "the guest finds no root on its disk"
	poweroff -f
fi
for at in proc sys dev; do
	mount --move "/$at" "/new/$at"
done
exec switch_root /new /bin/bash /boot-job.sh
