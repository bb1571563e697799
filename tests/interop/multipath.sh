#!/bin/bash
# multipath.sh - Linux's native multipath on two targets of ours that are one subsystem, while paths are
# lost and ANA states change.
#
#   machine, in a network namespace                             guest
#   node 1: 192.168.77.1:4420, 4421  ◀──┬── tap0 ──▶ eth0       nvme-tcp, four times: two disks of
#   node 2: 192.168.77.1:4422, 4423  ◀──┘                       four paths each; fio, sysfs
#   this script                      ◀── share ────▶            jobs/multipath.sh: requests, results
#
# Prints TAP. What the guest and the targets said stays in build/test-logs/multipath/.
#
# usage: multipath.sh
# environment: WEFT (build/weft), WEFT_ENGINE (auto), WEFT_VM_NET (tap or user); how often, under fio:
#              WEFT_LOSSES (12) paths are lost, WEFT_CHANGES (40) ANA states change
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
weft=${WEFT:-$root/build/weft}
logs=$root/build/test-logs/multipath
losses=${WEFT_LOSSES:-12} changes=${WEFT_CHANGES:-40}
under_fio=$((60 + losses * 20 + changes * 3))		# seconds, at most
limit=$((500 + under_fio))				# for the guest

hostid=2f4d5a3c-7f6e-4b1a-8a52-0d9f1c3b5e01

# shellcheck source=tests/interop/lib/tap.sh
. "$here/lib/tap.sh"
# shellcheck source=tests/interop/lib/machine.sh
. "$here/lib/machine.sh"
# shellcheck source=tests/interop/lib/cluster.sh
. "$here/lib/cluster.sh"

case ${1:-} in
--inside)	cluster_run multipath "$2" "LOSSES=$losses CHANGES=$changes UNDER_FIO=$under_fio" \
			"HOSTID=$hostid HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:$hostid" ;;
"")		[ -x "$weft" ] || bail_out "$weft is not there: make build" ;;
*)		echo "usage: multipath.sh" >&2
		exit 2 ;;
esac
rm -rf "$logs"
machine_prepare
machine_enter
