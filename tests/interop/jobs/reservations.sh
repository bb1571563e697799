#!/bin/bash
# reservations.sh - three hosts in one guest, each connected to both nodes. Without native multipath, so
# that each connection is a disk of its own.

# shellcheck source=tests/interop/jobs/lib.sh
. /share/lib.sh
# shellcheck source=tests/interop/jobs/cases/resv.sh
. /share/cases/resv.sh
# shellcheck source=tests/interop/jobs/cases/resv-cases.sh
. /share/cases/resv-cases.sh

modprobe nvme_core multipath=N
modprobe -a nvme-tcp nvme-fabrics

check "three hosts are connected to two nodes" connect_hosts
check "the host that was preempted is told" afresh notified
case_limit=300
for tool in cli ioctl; do
	for type in $TYPES; do
		check "type $type: every action of holder, registrant and other, by $tool" afresh actions "$type"
	done
done
case_limit=200
for type in $TYPES; do
	check "type $type: who may read and write, through either node" afresh access "$type"
done
check "it persists where that was asked for: both nodes are killed" afresh persists
check "it does not where it was not" afresh forgotten
say "# the job took $SECONDS s"
