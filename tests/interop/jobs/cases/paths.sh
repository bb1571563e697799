# shellcheck shell=bash
# paths.sh - the paths of the kernel's native multipath, as sysfs shows them. Namespace N is in group N;
# node N has the port ids 2N-1 and 2N.

ports="1 2 3 4"

disk() # NSID
{
	namespace "$NQN" "$1"
}

service() # PORTID
{
	echo $((PORT + $1 - 1))
}

node_of() # PORTID
{
	echo $((($1 + 1) / 2))
}

# The controller that came through a port, by the address in sysfs. What is asked again and again here
# starts no program: in emulation that takes long.
through() # PORTID
{
	local at address

	for at in /sys/class/nvme/nvme*; do
		read -r address <"$at/address" || continue
		case $address, in
		*trsvcid="$(service "$1")",*)	echo "${at##*/}"
						return ;;
		esac
	done
	return 1
}

# The kernel's own device for a path, hidden behind the disk's.
path() # NSID PORTID: its folder in sysfs
{
	local at nsid

	for at in /sys/class/nvme/"$(through "$2")"/nvme*c*n*; do
		if read -r nsid <"$at/nsid" && [ "$nsid" = "$1" ]; then
			echo "$at"
			return
		fi
	done
	return 1
}

state() # NSID PORTID
{
	local at shown

	at=$(path "$1" "$2") && read -r shown <"$at/ana_state" && echo "$shown"
}

shows() # NSID PORTID STATE
{
	[ "$(state "$1" "$2")" = "$3" ]
}

# One node serves a group: its ports can be used, unless a rule says otherwise, the others' cannot.
served() # GROUP NODE
{
	local portid shown

	for portid in $ports; do
		shown=$(state "$1" "$portid")
		if [ "$(node_of "$portid")" = "$2" ]; then
			[ "$shown" = optimized ] || [ "$shown" = non-optimized ] || return 1
		else
			[ "$shown" = inaccessible ] || return 1
		fi
	done
}

server() # GROUP: the node that serves it
{
	if served "$1" 1; then
		echo 1
	elif served "$1" 2; then
		echo 2
	else
		return 1
	fi
}

all_live()
{
	local portid state

	for portid in $ports; do
		read -r state <"/sys/class/nvme/$(through "$portid")/state" || return 1
		[ "$state" = live ] || return 1
	done
}

ana() # GROUP PORTID STATE …: of ports of one node, all in one change
{
	local list='' comma='' node

	node=$(node_of "$2")
	while [ $# -gt 0 ]; do
		list+="$comma{\"group\": $1, \"portid\": $2, \"state\": \"$3\"}"
		comma=', '
		shift 3
	done
	ctl "$node" ana-set nqn="$NQN" "rules=[$list]"
}

move() # GROUP NODE: and the kernel learns of it by an event; it is not asked to look
{
	ctl "$2" move group="$1" node="$2"
	wait_for served "$1" "$2"
}
