# shellcheck shell=bash
# cluster.sh - sourced: two targets of ours on this machine that are one subsystem, and a guest whose
# job uses them.
#
#   node 1   port ids 1, 2  ─┐                      ┌─ a.img   namespace 1, group 1
#   node 2   port ids 3, 4  ─┴─ state, the files ───┴─ b.img   namespace 2, group 2
#
# The port of id P is port + P - 1. Needs weft, the program; logs, a folder; here, where jobs/ is; limit, in
# seconds, for the guest. Beside tap.sh and machine.sh.
# shellcheck disable=SC2154

declare -A cluster_pid=()
nqn=nqn.2026-11.io.weft:cluster

cluster_configure() # NODE
{
	local first=$((2 * $1 - 1))

	cat <<-END
	listen:
	  - "nvme+tcp://$listen:$((port + first - 1))?portid=$first"
	  - "nvme+tcp://$listen:$((port + first))?portid=$((first + 1))"
	control: $work/control.$1
	subsystems:
	  - nqn: $nqn
	    allow_any_host: true
	    state: "file:$work/state"
	    cluster: { node: $1, of: 2 }
	    namespaces:
	      - { backend: "file:$work/a.img,size=32M", ana_group: 1 }
	      - { backend: "file:$work/b.img,size=32M", ana_group: 2 }
	END
}

cluster_ctl() # NODE weft ctl's words…
{
	timeout 60 "$weft" ctl --control "$work/control.$1" "${@:2}"
}

cluster_spawn() # NODE [weft serve's words…]
{
	cluster_configure "$1" >"$work/node$1.yaml"
	"$weft" serve -c "$work/node$1.yaml" --engine "${WEFT_ENGINE:-auto}" "${@:2}" \
		>>"$logs/node$1.log" 2>&1 </dev/null &
	cluster_pid[$1]=$!
}

cluster_serves() # NODE: the process that was started last does
{
	cluster_ctl "$1" status 2>/dev/null | grep -q "\"pid\": ${cluster_pid[$1]},"
}

cluster_wait() # NODE
{
	local tries=200

	until cluster_serves "$1"; do
		kill -0 "${cluster_pid[$1]}" 2>/dev/null && [ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.1
	done
}

cluster_start() # NODE
{
	cluster_spawn "$1"
	cluster_wait "$1"
}

# A target that died before it was ended must not pass for ended.
cluster_end() # NODE SIGNAL STATUS
{
	local status

	kill "-$2" "${cluster_pid[$1]}" 2>/dev/null
	wait "${cluster_pid[$1]}"
	status=$?
	unset "cluster_pid[$1]"
	[ $status = "$3" ] || { echo "node $1 ended with status $status"; return 1; }
}

cluster_takeover() # NODE
{
	local old=${cluster_pid[$1]}

	cluster_spawn "$1" --takeover
	wait "$old" && cluster_wait "$1"
}

# --- a guest

# Called by guest_run with the words of the job's request.
answer() # WORD NODE…
{
	echo "asked: $*" >>"$logs/asked.log"
	case $1 in
	ctl)		cluster_ctl "${@:2}" ;;
	start)		cluster_start "$2" ;;
	kill)		cluster_end "$2" KILL 137 ;;
	leave)		cluster_ctl "$2" drain && cluster_end "$2" TERM 0 ;;
	takeover)	cluster_takeover "$2" ;;
	sum)		md5sum <"$work/$2.img" ;;
	*)		echo "no such request: $1"
			return 2 ;;
	esac
}

cluster_ends()
{
	local node

	for node in "${!cluster_pid[@]}"; do
		if cluster_end "$node" TERM 0 >>"$logs/node$node.log" 2>&1; then
			result ok "node $node ends on SIGTERM"
		else
			result "not ok" "node $node ends on SIGTERM" "$logs/node$node.log"
		fi
	done
}

cluster_cleanup()
{
	[ ${#cluster_pid[@]} = 0 ] || kill -KILL "${cluster_pid[@]}" 2>/dev/null
	guest_stop
	rm -rf "$work"
}

cluster_share() # WORDS…: the job's settings
{
	share=$work/share
	mkdir "$share"
	cp -r "$here"/jobs/* "$share/"
	[ ! -e "$logs/pr" ] || cp "$logs/pr" "$share/"		# as reservations.sh builds it
	{
		echo "PEER=weft ADDRESS=$reach PORT=$port NQN=$nqn"
		printf '%s\n' "$@"
	} >"$share/settings"
}

cluster_run() # JOB tap|user SETTINGS…
{
	local node status

	machine_network "$2"
	work=$(mktemp -d)
	trap cluster_cleanup EXIT
	trap 'exit 130' INT TERM
	for node in 1 2; do
		cluster_start $node || bail_out "node $node does not start; see $logs/node$node.log"
	done
	cluster_share "${@:3}"
	guest_run "$1.sh" "$logs"
	status=$?
	[ ! -e "$share/dmesg" ] || cp "$share/dmesg" "$logs/"
	results "$1" "$share/results"
	result "$([ $status = 0 ] && echo ok || echo "not ok")" "the guest finishes, status $status" \
		"$logs/console.log"
	cluster_ends
	echo "# $(nproc) CPUs, load average $(cut -d ' ' -f 1 /proc/loadavg); it took $SECONDS s"
	tap_end
}
