#!/bin/bash
# rdma-peer.sh - the guest beside the one that runs jobs/rdma.sh: the target is here, and does what
# is asked over there.
set -u
# shellcheck source=tests/interop/jobs/lib.sh
. /share/lib.sh
# shellcheck source=tests/interop/jobs/rdma-link.sh
. /share/rdma-link.sh
# shellcheck source=tests/interop/jobs/requests.sh
. /share/requests.sh

word() # WORD…
{
	bash /share/rdma-target.sh "$@"
}

unpack_programs
link_prepare || exit 1
requests_serve word
