#!/bin/bash
# multipath.sh - the kernel's native multipath on two ports of a target whose ANA states change.

# shellcheck source=tests/interop/jobs/lib.sh
. /share/lib.sh
# shellcheck source=tests/interop/jobs/cases/multipath.sh
. /share/cases/multipath.sh

modprobe -a nvme-tcp nvme-fabrics
case_limit=120

check "native multipath is on" native
check "two ports, one disk for each namespace" connect_ports
check "nvme ana-log has what the target says" ana_log
check "optimized, non-optimized, inaccessible, change: sysfs follows the events" states
check "I/O takes the path that is optimized" takes_the_best
check "I/O waits while no path is accessible, and goes on" waits
check "100 changes under fio verify" changes_under_fio
check "persistent loss: the other path does it; a new controller has the group again" loss
check "fio verify at the end" fio_verify
check "the kernel complained of nothing but ANA" quiet
nvme disconnect -n "$NQN"
say "# the job took $SECONDS s"
