# shellcheck shell=bash
# rdma-link.sh - sourced: the guest's RDMA device, soft RoCE (rxe) or soft iWARP (siw), on eth0.

device=${PROVIDER}0

link_prepare()
{
	case $PROVIDER in
	rxe)	modprobe rdma_rxe ;;
	siw)	modprobe siw ;;
	esac
	modprobe -a ib_uverbs rdma_ucm nvme-fabrics nvme-rdma
	sysctl -q net.ipv6.conf.eth0.keep_addr_on_down=1
	ip -6 addr add "$OWN6/64" dev eth0 nodad
	modprobe -a sch_ingress cls_matchall act_gact
	tc qdisc add dev eth0 ingress
	rdma link add spare type "$PROVIDER" netdev lo
	link_add
}

link_active()
{
	[ "$(cut -d : -f 1 "/sys/class/infiniband/$device/ports/1/state" 2>/dev/null)" = 4 ]
}

# The addresses become the device's a moment after it is there.
link_add()
{
	rdma link add "$device" type "$PROVIDER" netdev eth0
	wait_for link_active
	sleep 0.5
}

# Neither driver takes a device away from a program: this ends when the last one has let it go. It
# does so only if there is another, the spare: librdmacm never closes the last device that it knows.
link_remove()
{
	local remover

	rdma link delete "$device" &
	remover=$!
	wait_for gone kill -0 $remover || { echo "a program holds on to $device"; return 1; }
	wait $remover
}

link_replug()
{
	link_remove
	sleep 1
	link_add
}

link_down() # SECONDS
{
	ip link set eth0 down
	sleep "$1"
	ip link set eth0 up
}

# Nothing that comes is let in. Nothing that goes is refused: soft RoCE gives up a queue pair for good
# when one packet of it is, be it the one that all connections are made over (GSI). To attach a qdisc,
# even one for what comes in, refuses packets for a moment: link_prepare has done that.
link_deaf() # SECONDS
{
	tc filter add dev eth0 ingress matchall action drop
	sleep "$1"
	tc filter del dev eth0 ingress
}

# What programs hold of the device, a line each; what the kernel holds has no pid.
link_resources()
{
	local kind

	for kind in pd cq qp mr srq cm_id; do
		echo "$kind $(rdma resource show $kind | grep -c ' pid ')"
	done
}

# The machine's programs, and of their libraries those that the guest has none of.
unpack_programs()
{
	mkdir -p /usr/local/bin
	cp -r /share/bin/. /share/extra/. /usr/local/bin/
	cp -r /share/lib/. /usr/lib/x86_64-linux-gnu/
}
