#!/bin/bash
# multipath.sh - the kernel's native multipath on two targets that are one subsystem: four paths to each
# namespace, of which those through the node that serves it can be used.

# shellcheck source=tests/interop/jobs/lib.sh
. /share/lib.sh
# shellcheck source=tests/interop/jobs/cases/paths.sh
. /share/cases/paths.sh
# shellcheck source=tests/interop/jobs/cases/ana.sh
. /share/cases/ana.sh
# shellcheck source=tests/interop/jobs/cases/losses.sh
. /share/cases/losses.sh

# All that the kernel says: its own buffer may be too small for so many losses.
dmesg --follow >/tmp/said &
modprobe -a nvme-tcp nvme-fabrics
case_limit=200

check "native multipath is on" native
check "both targets are discovered" discover_both
check "four ports, one disk for each namespace" connect_ports
check "groups spread over both nodes: sysfs shows who serves what" spread
check "nvme ana-log has what the target says" ana_log
check "optimized, non-optimized, inaccessible, change: sysfs follows the events" states
check "I/O takes the path that is optimized" takes_the_best
check "I/O waits while no path is accessible, and goes on" waits
check "persistent loss: the other port does it; a new controller has the group again" loss
check "a new process takes over each node: groups stay, no path is lost" takeovers
check "the kernel complained of nothing but ANA" quiet
case_limit=$UNDER_FIO
check "fio verify through $LOSSES path losses and $CHANGES ANA changes" under_fio
case_limit=200
check "no error reached an application" no_error
check "the same data through both nodes and in their files" same_data
say "# kernel: $(count_said 'starting error recovery') error recoveries," \
	"$(count_said 'Successfully reconnected') reconnects," \
	"$(count_said 'no usable path - requeuing') lines of I/O that waited for a path"
cp /tmp/said /share/dmesg
nvme disconnect -n "$NQN"
say "# the job took $SECONDS s"
