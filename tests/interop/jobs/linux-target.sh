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

respond() # FILE
{
	local words n=${1##*/do.}

	mapfile -t words <"$1"
	rm "$1"
	(set -eu -o pipefail; "do_${words[0]}" "${words[@]:1}") >/tmp/output 2>&1
	{ echo $?; cat /tmp/output; } >"/share/new-did.$n"
	mv "/share/new-did.$n" "/share/did.$n"
	echo "[$SECONDS s] ${words[*]}"
	[ "${words[0]}" != end ]
}

while :; do
	for request in /share/do.*; do
		[ -e "$request" ] || continue
		respond "$request" || exit 0
	done
	sleep 0.1
done
