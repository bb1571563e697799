#!/bin/sh
# guest-first.sh - the initramfs's init: the root over 9p, a tmpfs over that, then guest-init.sh.
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do
	insmod "/lib/modules/$module" 2>/dev/null
done </boot-modules

over=trans=virtio,version=9p2000.L,msize=512000
if ! mount -t 9p -o "ro,$over,cache=loose" root /lower; then
	echo "the guest finds no root over 9p"
	poweroff -f
fi
mount -t tmpfs -o size=90% tmpfs /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /new
mount -t 9p -o "$over,cache=none" share /new/share
mount -t 9p -o "ro,$over,cache=loose" modules /new/modules

for at in proc sys dev; do
	mount --move "/$at" "/new/$at"
done
exec switch_root /new /bin/bash /share/guest-init.sh
