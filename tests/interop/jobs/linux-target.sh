#!/bin/bash
# linux-target.sh - the kernel's target in the guest: does what the machine asks for, until "end".
#
#   port 1   $PORT    $NQN: namespace 1 a disk of the machine, 2 a file, 3 memory
#   port 2   $PORT2   $SECOND, which port 1's discovery service refers to
set -u
# shellcheck source=/dev/null
. /share/settings
# shellcheck source=tests/interop/jobs/target.sh
. /share/target.sh
# shellcheck source=tests/interop/jobs/requests.sh
. /share/requests.sh

word() # WORD…
{
	"do_$1" "${@:2}"
}

requests_serve word
