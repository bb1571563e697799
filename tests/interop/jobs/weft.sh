# shellcheck shell=bash
# weft.sh - sourced, on this machine and in guests: our host's commands, each within its time.
#
# Needs weft, the program; work, a folder; and same(), of either side's library.
# shellcheck disable=SC2154

w() # weft's words
{
	timeout -k 5 150 "$weft" "$@"
}

refused() # PATTERN weft's words…: exit status 1, and a last line that says why
{
	local pattern=$1 status=0

	shift
	w "$@" 2>"$work/refused" || status=$?
	cat "$work/refused"
	same status $status 1
	tail -n 1 "$work/refused" | grep -Ei "$pattern"
}

uri_of() # SERVICE/NQN HOSTNQN HOSTID NSID [WORD=VALUE…]
{
	local word words="nsid=$4&hostnqn=$2&hostid=$3"

	for word in "${@:5}"; do
		words+="&$word"
	done
	echo "$1?$words"
}
