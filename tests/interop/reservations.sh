#!/bin/bash
# reservations.sh - three hosts of one Linux guest on two targets of ours that are one subsystem: who may
# do what with a reserved namespace, asked for with nvme-cli and with the kernel's ioctls.
#
# Prints TAP. What the guest and the targets said stays in build/test-logs/reservations/.
#
# usage: reservations.sh
# environment: WEFT (build/weft), WEFT_ENGINE (auto), WEFT_VM_NET (tap or user), WEFT_RESV_TYPES
#              ("1 4 5"; there are 1 to 6)
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
weft=${WEFT:-$root/build/weft}
logs=$root/build/test-logs/reservations
types=${WEFT_RESV_TYPES:-1 4 5}
limit=1400		# seconds for the guest

# shellcheck source=tests/interop/lib/tap.sh
. "$here/lib/tap.sh"
# shellcheck source=tests/interop/lib/machine.sh
. "$here/lib/machine.sh"
# shellcheck source=tests/interop/lib/cluster.sh
. "$here/lib/cluster.sh"

case ${1:-} in
--inside)	cluster_run reservations "$2" "TYPES=\"$types\"" ;;
"")		[ -x "$weft" ] || bail_out "$weft is not there: make build" ;;
*)		echo "usage: reservations.sh" >&2
		exit 2 ;;
esac
rm -rf "$logs"
machine_prepare
cc -Wall -Werror -O -o "$logs/pr" "$here/pr.c" || bail_out "pr.c does not compile"
machine_enter
