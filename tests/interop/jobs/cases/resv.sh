# shellcheck shell=bash
# resv.sh - three hosts in one guest, and how they ask for reservations of namespace 1: with nvme-cli, or
# with pr, which is the ioctls that Linux has for every block device. Host N has the key N.

via=1	# the node that they ask
tool=cli

host_id() # HOST
{
	echo "2f4d5a3c-7f6e-4b1a-8a52-0d9f1c3b5e1$1"
}

connect_host() # HOST NODE
{
	HOSTID=$(host_id "$1") HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:$(host_id "$1") \
		PORT=$((PORT + 2 * ($2 - 1))) connect "$NQN" --nr-io-queues=1 --keep-alive-tmo=30
	wait_for disk "$1" "$2"
}

disk() # HOST NODE: namespace 1 as that host has it through that node
{
	local at hostid address nsid ns

	for at in /sys/class/nvme/nvme*; do
		read -r hostid <"$at/hostid" && read -r address <"$at/address" || continue
		[ "$hostid" = "$(host_id "$1")" ] || continue
		case $address, in
		*trsvcid=$((PORT + 2 * ($2 - 1))),*) ;;
		*)	continue ;;
		esac
		for ns in "$at"/nvme*n*; do
			read -r nsid <"$ns/nsid" && [ "$nsid" = 1 ] && [ -b "/dev/${ns##*/}" ] || continue
			echo "/dev/${ns##*/}"
			return
		done
	done
	return 1
}

connect_hosts()
{
	local host

	for host in 1 2 3; do
		connect_host $host 1
		connect_host $host 2
	done
	same "whether multipath is off" "$(cat /sys/module/nvme_core/parameters/multipath)" N
}

# --- one action

by_cli() # ACTION DEVICE OWN VICTIM TYPE
{
	case $1 in
	register)	nvme resv-register "$2" --nrkey="$3" --rrega=0 ;;
	replace)	nvme resv-register "$2" --crkey="$3" --nrkey="$3" --rrega=2 ;;
	unregister)	nvme resv-register "$2" --crkey="$3" --rrega=1 ;;
	acquire)	nvme resv-acquire "$2" --crkey="$3" --rtype="$5" --racqa=0 ;;
	preempt)	nvme resv-acquire "$2" --crkey="$3" --prkey="$4" --rtype="$5" --racqa=1 ;;
	abort)		nvme resv-acquire "$2" --crkey="$3" --prkey="$4" --rtype="$5" --racqa=2 ;;
	release)	nvme resv-release "$2" --crkey="$3" --rtype="$5" --rrela=0 ;;
	clear)		nvme resv-release "$2" --crkey="$3" --rrela=1 ;;
	esac
}

by_ioctl() # ACTION DEVICE OWN VICTIM TYPE
{
	case $1 in
	register)	/share/pr "$2" register 0 "$3" ;;
	replace)	/share/pr "$2" register "$3" "$3" ;;
	unregister)	/share/pr "$2" register "$3" 0 ;;
	acquire)	/share/pr "$2" reserve "$3" "$5" ;;
	preempt|abort)	/share/pr "$2" "$1" "$3" "$4" "$5" ;;
	release)	/share/pr "$2" release "$3" "$5" ;;
	clear)		/share/pr "$2" clear "$3" ;;
	esac
}

outcome() # COMMAND…: ok, conflict, or invalid for any other answer
{
	if "$@" >/tmp/outcome 2>&1; then
		echo ok
	elif grep -qi 'reservation.conflict' /tmp/outcome; then
		echo conflict
	else
		echo invalid
	fi
}

# ACTION is a word of the table: of the type that is held or of the other one of its kind, with the key
# that is meant.
act() # ACTION HOST TYPE
{
	local action=${1%%[-:]*} victim=0 type=$3

	case $1 in
	*-other)	type=$((($3 - 1 ^ 1) + 1)) ;;
	*:*)		victim=${1#*:} ;;
	esac
	outcome "by_$tool" "$action" "$(disk "$2" $via)" "$2" "$victim" "$type"
}

# TYPE/KEYS/HOLDERS, as the controller reports it to a host that has no part in it.
reported()
{
	nvme resv-report "$(disk 3 $via)" --eds -o json >/tmp/report || return
	jq -r '"\(.rtype)/" + ([.regctlext[].rkey | tostring] | sort | add // "") + "/" +
		([.regctlext[] | select(.rcsts % 2 == 1) | .rkey | tostring] | sort | add // "")' \
		/tmp/report
}

move() # NODE: the group of namespace 1
{
	ctl "$1" move group=1 node="$1"
	via=$1
}

# Whatever the case before has left.
afresh() # CASE…
{
	move 1
	wipe
	"$@"
}

wipe()
{
	same "register 1" "$(act register 1 1)" ok
	same "clear" "$(act clear 1 1)" ok
}

# From whatever is there to where every row begins.
begin() # TYPE
{
	wipe
	same "register 1" "$(act register 1 "$1")" ok
	same "register 2" "$(act register 2 "$1")" ok
	same "acquire" "$(act acquire 1 "$1")" ok
}
