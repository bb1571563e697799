# shellcheck shell=bash
# cases.sh - sourced: cases that run on this machine, and requests to a guest that serves.
#
#   do.N     a request in the share, one word a line; renamed into place when whole
#   did.N    its status in the first line, then its output; likewise
#
# Needs work, share and logs, folders.

case_limit=200 requests=0

# check NAME FUNCTION…: one case. The function runs under set -e; a case that hangs fails.
check()
{
	local name=$1 log=$work/case.log pid tenths status

	shift
	set -m
	(set -eux -o pipefail; "$@") >"$log" 2>&1 </dev/null &
	pid=$!
	set +m
	for ((tenths = case_limit * 10; tenths > 0; tenths--)); do
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	if [ "$tenths" = 0 ]; then
		kill -9 -- -$pid
		echo "timed out after $case_limit s" >>"$log"
	fi
	wait $pid
	status=$?
	grep -v '^++' "$log" >"$work/case.short"
	if [ $status = 0 ]; then
		result ok "$name"
	else
		result "not ok" "$name" "$work/case.short"
		cp "$log" "$logs/case-$tap_count.log"
	fi
}

# guest WORD…: have the guest do something. Prints what it printed, returns its status.
guest()
{
	local - n status tries=600

	set +x
	n=$BASHPID.$((requests += 1))
	printf '%s\n' "$@" >"$share/new.$n"
	mv "$share/new.$n" "$share/do.$n"
	until [ -e "$share/did.$n" ]; do
		kill -0 "$booted" 2>/dev/null || { echo "the guest is gone: $*"; return 1; }
		[ $((tries -= 1)) -gt 0 ] || { echo "the guest does not answer: $*"; return 1; }
		sleep 0.1
	done
	{ read -r status; cat; } <"$share/did.$n"
	rm "$share/did.$n"
	return "$status"
}

same() # WHAT GOT EXPECTED
{
	local -

	set +x
	[ "$2" = "$3" ] || { echo "$1: got '$2', expected '$3'"; return 1; }
}

sum_of() # FILE
{
	md5sum <"$1" | cut -d ' ' -f 1
}

random() # FILE BYTES
{
	head -c "$2" /dev/urandom >"$1"
}
