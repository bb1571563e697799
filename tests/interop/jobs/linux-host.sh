#!/bin/bash
# linux-host.sh - the kernel's NVMe/TCP host on a target, in the order of a host's life: what one
# case connects the next ones use. Namespace 1 is memory, namespace 2 a file on the machine.

# shellcheck source=tests/interop/jobs/lib.sh
. /share/lib.sh
# shellcheck source=tests/interop/jobs/cases/connect.sh
. /share/cases/connect.sh
# shellcheck source=tests/interop/jobs/cases/identify.sh
. /share/cases/identify.sh
# shellcheck source=tests/interop/jobs/cases/io.sh
. /share/cases/io.sh
# shellcheck source=tests/interop/jobs/cases/change.sh
. /share/cases/change.sh

# What a command means is the same whatever moves its bytes: tried with the first engine only.
once() # NAME FUNCTION…
{
	[ "$FIRST" = no ] || check "$@"
}

modprobe -a nvme-tcp nvme-fabrics
[ "$PEER" = weft ] || bash /share/nvmet.sh serve || exit 1

# Small enough for its traffic to be captured and dissected. Two things that tshark 4.0 trips over
# by itself, whoever the target is, are read outside of that: it takes the last bytes of an error
# log entry from beyond it, and has no field for a completion of Get Features (Arbitration).
ask capture first
check "discover lists the subsystem" discover
once "discover lists the discovery subsystem" discover_itself
check "connect with two I/O queues" connect_queues
once "capacity and block size are the configured ones" sizes
once "id-ctrl" id_ctrl
once "id-ns" id_ns
once "ns-descs" ns_descs
once "list-ns" list_ns
once "identify beyond the everyday structures" id_more
once "list and list-subsys" list_all
once "smart, firmware, changed-namespace and effects logs" logs
once "supported-log-pages and fid-support-effects" logs_more
once "a log read at an offset" log_offset
once "get-feature" features
once "set-feature" set_features
once "show-regs" registers
check "write and read back" roundtrips
once "I/O beyond the end is refused" beyond_end
once "compare" compare
once "write-zeroes" write_zeroes
once "get-lba-status" lba_status
once "dataset management" dsm
once "flush" flush
once "verify" verify
once "copy" copy
once "ext4 on memory: copy, compare, fsck" ext4_memory
check "disconnect leaves no controller" disconnects
check "connect with header and data digests" connect_digests
check "disconnect leaves no controller, with digests" disconnects
once "connect without SQ flow control" connect_no_flow_control
once "connect with write and poll queues" connect_more_queues
once "two associations are two paths" connect_twice
ask capture-end

check "connect for load" connect_queues
once "error log and arbitration" error_log
check "discard and zero-out" discard
check "ext4 on a file: copy, compare, fsck" ext4_file
once "xfs on a file: copy, compare, repair" xfs_file
check "fio verify" fio_verify
once "an idle association lives by keep-alive" idle
disconnect "$NQN"
once "fio verify, with digests" fio_digests
check "the kernel complained of nothing" quiet

ask capture second
once "persistent discovery controller" discovery_persistent
once "a discovery change arrives by AEN" discovery_changes
once "the persistent discovery controller disconnects" discovery_ends
check "connect for changes" connect_queues
check "a namespace added appears by AEN" namespace_added
once "a namespace resized is seen by AEN" namespace_resized
check "a namespace removed under I/O disappears by AEN" namespace_removed
[ "$PEER" != weft ] || check "$TAKEOVERS takeovers under fio verify go unnoticed" takeovers
check "a reset controller comes back" reset
once "a host that is not allowed is refused" host_refused
once "a host is allowed, then refused" host_allowed
check "the target is killed and restarted: reconnect, data intact" restart
check "disconnect after the restart" disconnects
ask capture-end
say "# the job took $SECONDS s"
