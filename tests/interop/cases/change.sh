# shellcheck shell=bash
# change.sh - cases: what changes on the kernel's target while our host is connected.
# shellcheck disable=SC2154

third=$nqn-third

eventually() # COMMAND…: within ten seconds
{
	local - tries=100

	set +x
	until "$@" >/dev/null 2>&1; do
		[ $((tries -= 1)) -gt 0 ] || { echo "waited in vain for: $*"; return 1; }
		sleep 0.1
	done
}

discovery_changes()
{
	local watch status=0

	timeout 30 "$weft" discover "$(service)" --watch --json >"$work/watch" 2>&1 &
	watch=$!
	eventually grep -F "$nqn" "$work/watch"
	guest subsystem_add "$third"
	eventually grep -F "$third" "$work/watch" || status=1
	guest subsystem_remove "$third"
	kill $watch
	wait $watch || true
	cat "$work/watch"
	return $status
}

has_size() # NSID BYTES
{
	w ls "$(service)/$nqn" --json >"$work/tree"
	sizes | grep "^$1 $2 "
}

namespace_added()
{
	guest namespace_add 9 $((16 << 20))
	has_size 9 $((16 << 20))
	roundtrip 9 4096 65536
}

namespace_resized()
{
	guest namespace_resize 9 $((24 << 20))
	has_size 9 $((24 << 20))
	roundtrip 9 $((20 << 20)) 65536
}

# The load ends with an error that says so; it does not hang, and does not die.
namespace_removed()
{
	local load status=0

	timeout -k 5 40 "$weft" bench "$(uri 9)" --rw randread --time 15 >"$work/load" 2>&1 &
	load=$!
	sleep 2
	guest namespace_remove 9
	wait $load || status=$?
	cat "$work/load"
	same status $status 1
	tail -n 1 "$work/load" | grep -Ei 'namespace|0xb|0x300'
	refused 'namespace' id "$(uri 9)" --ns 9
}

# A load that checks every byte, while the guest does something to the target.
under_load() # guest's words…
{
	local load status=0

	timeout -k 5 55 "$weft" bench "$(uri 2 kato=2s io_timeout=5s abort_timeout=1s)" --rw randrw \
		--write-ok --verify --time 12 --depth 16 --queues 4 --size 8M >"$work/load" 2>&1 &
	load=$!
	sleep 3
	guest "$@"
	wait $load || status=$?
	cat "$work/load"
	same status $status 0
}

restarted()
{
	under_load restart 2
}

cut_off()
{
	under_load cut 4
}
