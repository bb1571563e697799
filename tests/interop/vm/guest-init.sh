#!/bin/bash
# guest-init.sh - process 1 of the guest: make a usable machine, run the job that the kernel's
# command line names, leave its status in the share, power off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root

word() # NAME: its value on the kernel's command line
{
	sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

for at in /run /tmp /dev/shm; do
	mkdir -p $at
	mount -t tmpfs tmpfs $at
done
mkdir -p /dev/pts /usr/lib/modules
mount -t devpts devpts /dev/pts
ln -sf /proc/self/fd /dev/fd
mount --bind /modules /usr/lib/modules
mount -t debugfs debugfs /sys/kernel/debug
modprobe configfs && mount -t configfs configfs /sys/kernel/config

hostname guest
ip link set lo up
if [ -e /sys/class/net/eth0 ]; then
	ip link set eth0 mtu "$(word mtu)" up
	ip addr add "$(word ip)" dev eth0
fi

touch /share/begun
bash "/share/$(word job)"
echo $? >/share/status
sync
busybox poweroff -f
