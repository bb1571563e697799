# shellcheck shell=bash
# lib.sh - for jobs in the guest: cases, requests to the machine, and finding what the kernel made.
#
# The machine and the guest talk through files in the share:
#   settings   what the machine tells the job (shell words)
#   results    the job's TAP lines, without numbers
#   ask.N      a request, one word a line; renamed into place when whole
#   answer.N   its status in the first line, then its output; likewise

# shellcheck source=/dev/null
. /share/settings
asked=0
case_limit=200	# more than two waits in vain
TRTYPE=${TRTYPE:-tcp}

say()
{
	echo "$*" | tee -a /share/results
}

# check NAME FUNCTION…: one case. The function runs under set -e; "skip REASON" in it skips. A case
# that hangs, as I/O on a dead target does, is left behind when its time is up; the job goes on.
check()
{
	local name=$1 log=/tmp/case.log pid status tenths

	shift
	set -m
	(set -eux -o pipefail; "$@") >$log 2>&1 </dev/null &
	pid=$!
	set +m
	for ((tenths = case_limit * 10; tenths > 0; tenths--)); do
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	if [ $tenths = 0 ]; then
		kill -9 -- -$pid
		echo "timed out after $case_limit s" >>$log
		status=124
	else
		wait $pid
		status=$?
	fi
	echo "[$SECONDS s]"
	case $status in
	0)	say "ok - $name" ;;
	77)	say "ok - $name # SKIP $(tail -n 1 $log)" ;;
	*)	say "not ok - $name"
		explain $log | tee -a /share/results ;;
	esac
}

# What a case did last, without the inner steps of its expansions.
explain()
{
	grep -v '^++' "$1" | tail -n 15 | cut -c 1-300 | sed 's/^/#   /'
	dmesg | tail -n 5 | sed 's/^/#   kernel: /'
}

skip()
{
	set +x
	echo "$*"
	exit 77
}

same() # WHAT GOT EXPECTED
{
	local -

	set +x
	[ "$2" = "$3" ] || { echo "$1: got '$2', expected '$3'"; return 1; }
}

fails() # COMMAND…: it must exit with a status of its own, no signal and no timeout
{
	local status=0

	"$@" || status=$?
	if [ $status = 0 ] || [ $status -ge 124 ]; then
		echo "status $status from: $*"
		return 1
	fi
}

wait_for() # COMMAND…: until it succeeds; the limit is for what hangs, not for what is slow
{
	local - end=$((SECONDS + 90))

	set +x
	while ! "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { echo "waited in vain for: $*"; return 1; }
		sleep 0.2
	done
}

gone() # COMMAND…: it fails now
{
	! "$@" >/dev/null 2>&1
}

# ask WORD…: have the target, or who looks after it, do something. Prints what it printed, returns
# its status.
ask()
{
	if [ "$PEER" = nvmet ]; then
		bash /share/nvmet.sh "$@"
	else
		ask_machine "$@"
	fi
}

ask_machine() # WORD…
{
	local - n status tries=900

	set +x
	n=$BASHPID.$((asked += 1))
	printf '%s\n' "$@" >/share/new.$n
	mv /share/new.$n /share/ask.$n
	until [ -e /share/answer.$n ]; do
		[ $((tries -= 1)) -gt 0 ] || { echo "the machine does not answer: $*"; return 1; }
		sleep 0.1
	done
	{ read -r status; cat; } </share/answer.$n
	return "$status"
}

ctl() # METHOD [weft ctl's words…]
{
	ask ctl "$@"
}

# --- what the kernel made

controllers() # NQN: the kernel's controllers for it, a line each
{
	local at

	for at in /sys/class/nvme/nvme*; do
		if [ "$(cat "$at/subsysnqn" 2>/dev/null)" = "$1" ]; then
			basename "$at"
		fi
	done
}

attribute() # NQN NAME: of its first controller
{
	cat "/sys/class/nvme/$(controllers "$1" | sed -n 1p)/$2"
}

live() # NQN
{
	[ "$(attribute "$1" state 2>/dev/null)" = live ]
}

namespace() # NQN NSID: its block device
{
	local at

	for at in /sys/block/nvme*n*; do
		[ "$(cat "$at/nsid" 2>/dev/null)" = "$2" ] || continue
		[ "$(cat "$at/device/subsysnqn" 2>/dev/null)" = "$1" ] || continue
		[ -b "/dev/${at##*/}" ] || continue
		echo "/dev/${at##*/}"
		return
	done
	return 1
}

connect() # NQN [nvme connect's words…]
{
	local nqn=$1

	shift
	nvme connect -t "$TRTYPE" -a "$ADDRESS" -s "$PORT" -n "$nqn" \
		--hostnqn="$HOSTNQN" --hostid="$HOSTID" --nr-io-queues=2 --keep-alive-tmo=10 \
		--reconnect-delay=1 --ctrl-loss-tmo=60 "$@"
}

disconnect() # NQN
{
	nvme disconnect -n "$1"
	wait_for gone live "$1"
}

random() # FILE BYTES
{
	head -c "$2" /dev/urandom >"$1"
}

forget_cache()
{
	echo 3 >/proc/sys/vm/drop_caches
}
