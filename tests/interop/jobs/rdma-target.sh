#!/bin/bash
# rdma-target.sh WORD… - a target over RDMA in the guest behind the words that a job asks: ours, or
# the kernel's, which nvmet.sh looks after. "serve weft" or "serve nvmet" says which.
set -eu
# shellcheck source=tests/interop/jobs/lib.sh
. /share/lib.sh
# shellcheck source=tests/interop/jobs/rdma-link.sh
. /share/rdma-link.sh

run=/run/weft
disk=/run/disk.img

weft_ctl()
{
	timeout 60 weft ctl --control $run/control "$@"
}

weft_run()
{
	weft serve --nqn "$NQN" --engine "$ENGINE" --control $run/control --allow-any-host \
		--listen "nvme+rdma://$ADDRESS:$PORT" --listen "nvme+rdma://[::]:$PORT2" \
		--ns "mem:$MEM_SIZE,block=$MEM_BLOCK" \
		--ns "file:$disk,size=$FILE_SIZE,block=$FILE_BLOCK" &
	echo $! >$run/pid
	wait $! && echo 0 >$run/ended || echo $? >$run/ended
}

# In a process group of its own: it does not end with the case that asks for it.
weft_start()
{
	mkdir -p $run
	rm -f $run/ended
	set -m
	weft_run </dev/null >>/share/target.log 2>&1 &
	set +m
	wait_for weft_ctl status || { tail -n 5 /share/target.log; return 1; }
}

weft_stop() # SIGNAL STATUS
{
	kill "-$1" "$(cat $run/pid)" || true
	wait_for test -s $run/ended
	same "the target's status" "$(cat $run/ended)" "$2"
}

weft_word()
{
	case $1 in
	start)	weft_start ;;
	stop)	weft_stop TERM 0 ;;
	kill)	weft_stop KILL 137 ;;
	ctl)	weft_ctl "${@:2}" ;;
	store)	echo $disk ;;
	*)	echo "no such word: $1"
		return 2 ;;
	esac
}

nvmet_word()
{
	case $1 in
	store)	echo "/run/nvmet/${NQN##*:}.2" ;;
	*)	bash /share/nvmet.sh "$@" ;;
	esac
}

target()
{
	"$(cat /run/target)_word" "$@"
}

# Of namespace 2, as the target's own file has it.
sum() # OFFSET BYTES
{
	dd if="$(target store)" bs=64K iflag=skip_bytes,count_bytes skip="$1" count="$2" status=none |
		md5sum | cut -d ' ' -f 1
}

# Our target listens again by itself; the kernel's is told to.
replug()
{
	link_replug
	[ "$(cat /run/target)" = weft ] || { target kill; target start; }
}

complaints()
{
	! dmesg | grep -E 'BUG:|WARNING:|Oops|blocked for more than'
}

serve() # weft|nvmet
{
	echo "$1" >/run/target
	case $1 in
	weft)	rm -f $disk
		weft_start ;;
	nvmet)	target serve ;;
	esac
}

case $1 in
serve)		serve "$2" ;;
resources)	link_resources ;;
replug)		replug ;;
sum)		sum "$2" "$3" ;;
complaints)	complaints ;;
*)		target "$@" ;;
esac
