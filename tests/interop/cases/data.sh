# shellcheck shell=bash
# data.sh - cases: data through read, write, cp and bench, and what the guest finds of it.
# shellcheck disable=SC2154

mib=1048576

reads_guests()
{
	local nsid

	for nsid in 1 2 3; do
		same "sum of namespace $nsid" "$(guest fill $nsid $((2 * mib)) $((5 * mib)))" \
			"$(w read "$(uri $nsid)" --offset 2M --length 5M | md5sum | cut -d ' ' -f 1)"
	done
}

writes_for_guest()
{
	local nsid

	for nsid in 1 2 3; do
		random "$work/data" $((3 * mib))
		w write "$(uri $nsid)" --offset 1M -i "$work/data"
		same "sum of namespace $nsid" "$(guest sum $nsid $mib $((3 * mib)))" \
			"$(sum_of "$work/data")"
	done
}

# There and back again; the guest has the same.
roundtrip() # NSID OFFSET BYTES WORD=VALUE…
{
	local nsid=$1 offset=$2 bytes=$3

	shift 3
	random "$work/data" "$bytes"
	w write "$(uri "$nsid" "$@")" --offset "$offset" -i "$work/data"
	w read "$(uri "$nsid" "$@")" --offset "$offset" --length "$bytes" --force -o "$work/back"
	cmp "$work/data" "$work/back"
	same "sum in the guest" "$(guest sum "$nsid" "$offset" "$bytes")" "$(sum_of "$work/data")"
}

roundtrips()
{
	local nsid

	for nsid in 1 2 3; do
		roundtrip $nsid $((nsid * 65536)) $((512 * 1024)) hdgst=1
		roundtrip $nsid $((nsid * 65536)) $((512 * 1024)) ddgst=1
		roundtrip $nsid $((nsid * mib)) $mib hdgst=1 ddgst=1 queues=4
		roundtrip $nsid $((nsid * mib)) $mib depth=1 queues=1
	done
}

places()
{
	roundtrip 1 0 512
	roundtrip 1 $((size - 512)) 512
	roundtrip 1 1536 $((512 * 77)) hdgst=1 ddgst=1
	roundtrip 3 $((small - 4096)) 4096
	refused 'end|beyond|range|size' read "$(uri 3)" --offset "$small" --length 4096 -o "$work/none"
	refused 'end|beyond|range|size|room' write "$(uri 3)" --offset "$small" -i "$work/data"
}

copy_to() # NSID WORD=VALUE…
{
	local nsid=$1

	shift
	random "$work/data" $((64 * mib))
	w cp "$work/data" "$(uri "$nsid" "$@")"
	same "sum in the guest" "$(guest sum "$nsid" 0 $((64 * mib)))" "$(sum_of "$work/data")"
	[ "$nsid" != 1 ] || head -c $((64 * mib)) "$work/disk.img" | cmp - "$work/data"
	w cp --force "$(uri "$nsid" "$@")" "$work/back"
	cmp -n $((64 * mib)) "$work/data" "$work/back"
	same "bytes of the copy" "$(stat -c %s "$work/back")" "$size"
	rm "$work/data" "$work/back"
}

copy_between()
{
	guest fill 3 0 "$small"
	w cp "$(uri 3)" "$(uri 2 queues=2)"
	same "sum of namespace 2" "$(guest sum 2 0 "$small")" "$(guest sum 3 0 "$small")"
}

# The size that WEFT_BIG says; the guest's disk is a file of ours, so its sum costs no emulation.
copy_big()
{
	dd if=/dev/urandom of="$work/data" bs=1M count=$((disk_size / mib))
	timeout 1400 "$weft" cp "$work/data" "$(uri 1 ddgst=1)"
	guest sync
	same "sum of the disk" "$(sum_of "$work/disk.img")" "$(sum_of "$work/data")"
	rm "$work/data"
	timeout 1400 "$weft" cp --force "$(uri 1)" "$work/back"
	same "sum of the copy" "$(sum_of "$work/back")" "$(sum_of "$work/disk.img")"
	rm "$work/back"
}

bench_reads()
{
	w bench "$(uri 3)" --rw randread --time 2 --depth 16 --queues 4 --json >"$work/bench"
	jq -e . "$work/bench" >/dev/null
}

bench_verifies()
{
	w bench "$(uri 1)" --rw randrw --write-ok --verify --time 3 --depth 32 --queues 8 --size 8M
}

bench_verifies_digests()
{
	w bench "$(uri 2 hdgst=1 ddgst=1)" --rw randrw --write-ok --verify --time 3 --depth 8 \
		--jobs 3 --queues 2 --bs 16K --size 24M
}
