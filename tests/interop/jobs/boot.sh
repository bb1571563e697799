#!/bin/bash
# boot.sh - process 1 of a guest whose root is a namespace: work on it, and power off. The first
# time it leaves files there, the second time it looks for them. The last line on the console that
# begins with "boot-job:" tells what came of it.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root

first()
{
	dd if=/dev/urandom of=/root/data bs=1M count=16 status=none
	cp -r /usr/lib/udev /root/copy
	(cd /root && find data copy -type f -exec sha256sum {} + >sums)
	rm -r /root/copy/rules.d
	sync
	grep -v ' copy/rules.d/' /root/sums >/root/sums.left
	uname -r >/root/written
}

second()
{
	[ "$(cat /root/written)" = "$(uname -r)" ]
	[ ! -e /root/copy/rules.d ]
	(cd /root && sha256sum --quiet -c sums.left)
	fstrim -v /
}

set -e
root=$(awk '$2 == "/" { print $1 " " $3 }' /proc/mounts | tail -n 1)
if [ ! -e /root/written ]; then
	first
	what="wrote files on $root"
else
	second
	what="found the files on $root"
fi
sync
mount -o remount,ro /
echo "boot-job: $what"
busybox poweroff -f
