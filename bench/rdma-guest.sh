#!/bin/bash
# rdma-guest.sh - runs in the guest for bench/rdma: a target and a load, one of them under a tool that
# counts, for a short and for a longer while. What the longer one took more is what its I/Os cost.

# shellcheck source=tests/interop/jobs/lib.sh
. /share/lib.sh
# shellcheck source=tests/interop/jobs/rdma-link.sh
. /share/rdma-link.sh

address=10.0.2.15
nqn=nqn.2026-11.io.weft:bench
export VALGRIND_LIB=/share/valgrind

counting() # KIND FILE: the words before a command that is counted
{
	case $1 in
	instructions)	echo "valgrind --tool=callgrind -q --fair-sched=yes --callgrind-out-file=$2" ;;
	calls)		echo "strace -f -c -o $2" ;;
	esac
}

total() # KIND FILE
{
	case $1 in
	instructions)	awk '/^(summary|totals):/ { n = $2 } END { print n }' "$2" ;;
	calls)		awk '$NF == "total" { print $4 }' "$2" ;;
	esac
}

serve() # WORDS…: before weft
{
	"$@" weft serve --engine epoll --nqn $nqn --cpus 0 --control /run/control --allow-any-host \
		--listen nvme+rdma://$address:4420 --listen nvme+tcp://$address:4420 \
		--ns mem:32M,block=4096 >>/share/target.log 2>&1 &
	target=$!
	wait_for 60 weft ctl --control /run/control status >/dev/null
}

# Under strace, weft is its child.
stop()
{
	kill "$(weft ctl --control /run/control status --json | jq .pid)"
	wait "$target"
}

load() # TRANSPORT RW SECONDS WORDS…: prints how many I/Os there were
{
	"${@:4}" weft bench "nvme+$1://$address:4420/$nqn" --rw "$2" --write-ok --depth 32 --time "$3" \
		--json >/run/bench.json 2>>/share/load.log &&
		jq '(.read.ios // 0) + (.write.ios // 0)' /run/bench.json
}

# shellcheck disable=SC2046
measure() # TRANSPORT RW END KIND SECONDS
{
	local ios file=/run/counted

	rm -f $file
	case $3 in
	target)	serve $(counting "$4" $file)
		ios=$(load "$1" "$2" "$5")
		stop ;;
	host)	serve
		ios=$(load "$1" "$2" "$5" $(counting "$4" $file))
		stop ;;
	esac
	cp $file "/share/$4.$1.$2.$3.$5"
	echo "$1 $2 $3 $4 $(total "$4" $file) $ios" | tee -a /share/results
	jq -c "{\"$1\": \"$2\", counters, steady}" /run/bench.json >>/share/steady
}

unpack_programs
link_prepare
# A provider that is not there need not be loaded, which takes minutes under a tool.
find /etc/libibverbs.d -name "*.driver" ! -name rxe.driver -delete
: >/share/results
echo "kernel $(uname -sr)" >/share/kernel
for transport in rdma tcp; do
	for rw in randread randwrite; do
		for end in target host; do
			for kind in instructions calls; do
				measure $transport $rw $end $kind 3
				measure $transport $rw $end $kind 9
			done
		done
	done
done
