# shellcheck shell=bash
# resv-cases.sh - cases: what three hosts may do with a reserved namespace, and with its data. Host 1 holds
# the reservation, host 2 is registered, host 3 is not.
# shellcheck disable=SC2154

# What, by whom; the outcome and what is left, with types 1 to 4 and with 5 and 6, where every registrant
# is a holder. T is the type.

table='
register	1  ok        T/12/1   ok        T/12/12
replace		2  ok        T/12/1   ok        T/12/12
acquire		1  ok        T/12/1   ok        T/12/12
acquire		2  conflict  T/12/1   ok        T/12/12
acquire		3  conflict  T/12/1   conflict  T/12/12
acquire-other	1  conflict  T/12/1   conflict  T/12/12
acquire-other	2  conflict  T/12/1   conflict  T/12/12
release-other	1  invalid   T/12/1   invalid   T/12/12
release		3  conflict  T/12/1   conflict  T/12/12
clear		3  conflict  T/12/1   conflict  T/12/12
unregister	3  conflict  T/12/1   conflict  T/12/12
preempt:1	3  conflict  T/12/1   conflict  T/12/12
abort:1		3  conflict  T/12/1   conflict  T/12/12
preempt:0	2  invalid   T/12/1   ok        T/2/2
release		2  ok        T/12/1   ok        0/12/
release		1  ok        0/12/    ok        0/12/
unregister	2  ok        T/1/1    ok        T/1/1
unregister	1  ok        0/2/     ok        T/2/2
preempt:1	2  ok        T/2/2    ok        T/2/2
preempt:2	1  ok        T/1/1    ok        T/1/1
abort:1		2  ok        T/2/2    ok        T/2/2
abort:2		1  ok        T/1/1    ok        T/1/1
clear		2  ok        0//      ok        0//
clear		1  ok        0//      ok        0//
'

actions() # TYPE
{
	local what by few few_left all all_left want left now='' first=$1/12/1

	[ "$1" -lt 5 ] || first=$1/12/12
	while read -r what by few few_left all all_left; do
		[ -n "$what" ] || continue
		want=$few left=${few_left/T/$1}
		[ "$1" -lt 5 ] || want=$all left=${all_left/T/$1}
		[ "$now" = "$first" ] || begin "$1"
		same "$what by $by" "$(act "$what" "$by" "$1")" "$want"
		same "what $what by $by leaves" "$(reported)" "$left"
		now=$left
	done <<<"$table"
}

# --- who may read and write

reads() # HOST
{
	dd if="$(disk "$1" $via)" of=/dev/null bs=4096 count=1 iflag=direct
}

writes() # HOST
{
	dd if=/dev/urandom of="$(disk "$1" $via)" bs=4096 count=1 oflag=direct
}

# The kernel's word for a conflict is EBADE; any other failure is not what was asked.
may() # HOST: "rw", "r" or ""
{
	local allowed='' word

	for word in reads writes; do
		if $word "$1" 2>/tmp/may; then
			allowed+=${word:0:1}
		elif ! grep -q 'Invalid exchange' /tmp/may; then
			allowed+="($(tail -n 1 /tmp/may))"
		fi
	done
	echo "$allowed"
}

allowed() # TYPE: to hosts 1, 2, 3
{
	case $1 in
	1)	echo "rw r r" ;;
	2)	echo "rw - -" ;;
	3|5)	echo "rw rw r" ;;
	4|6)	echo "rw rw -" ;;
	esac
}

check_access() # TYPE
{
	local host word

	for host in 1 2 3; do
		word=$(allowed "$1" | cut -d ' ' -f $host)
		same "host $host, node $via, type $1" "$(may $host)" "${word#-}"
	done
}

# Set through one node, it holds through the other; released through that, it is gone for both.
access() # TYPE
{
	begin "$1"
	check_access "$1"
	move 2
	check_access "$1"
	same "clear" "$(act clear 2 "$1")" ok
	same "after that, host 3, node 2" "$(may 3)" rw
	move 1
	same "after that, host 3, node 1" "$(may 3)" rw
}

# --- notifications, and what is left after a loss of power

# The first notification that host 1 gets.
notified()
{
	local lost

	begin 1
	same preempt "$(act preempt:1 2 1)" ok
	lost=$(disk 1 1)
	nvme resv-notif-log "${lost%n*}" -o json | tee /tmp/notified
	jq -e '.rn_log_type == 1 and .NSID == 1' /tmp/notified	# Registration Preempted
}

all_live()
{
	! grep -qv live /sys/class/nvme/nvme*/state
}

power_loss()
{
	ask kill 1
	ask kill 2
	wait_for gone all_live
	ask start 1
	ask start 2
	wait_for all_live
}

# The kernel's own register asks for it to persist; nvme-cli does by --cptpl.
persists()
{
	tool=ioctl begin 2
	power_loss
	same "what is left" "$(reported)" 2/12/1
	check_access 2
	move 2
	check_access 2
}

forgotten()
{
	nvme resv-register "$(disk 1 1)" --nrkey=1 --rrega=0 --cptpl=2
	same acquire "$(act acquire 1 1)" ok
	power_loss
	same "what is left" "$(reported)" 0//
}
