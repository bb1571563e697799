#compdef weft
# zsh completion for weft(1)

local -a methods=(status subsystem-add subsystem-remove namespace-add namespace-resize
	namespace-remove ana-set drain undrain move host-allow host-refuse listener-add listener-remove
	save methods)

local -a features=(arbitration power-mgmt temp-thresh err-recovery volatile-wc num-queues
	write-atomic async-event timestamp kato hctm host-behavior iocs-profile sw-progress host-id
	resv-mask resv-persist write-protect)

local -a resv_types=(write-exclusive exclusive-access write-exclusive-reg-only exclusive-access-reg-only
	write-exclusive-all-regs exclusive-access-all-regs)

_weft_spec() {
	if compset -P '(file|block):'; then
		_files
	else
		compadd -S '' mem: null: file: block:
	fi
}

_weft_param() {
	local -A keys=(
		subsystem-add 'nqn= serial= model= state= cluster= allow_any_host= hosts= namespaces= ana='
		subsystem-remove 'nqn='
		namespace-add 'nqn= nsid= backend= block= uuid= ro= ana_group='
		namespace-resize 'nqn= nsid= size= shrink='
		namespace-remove 'nqn= nsid='
		ana-set 'nqn= rules= replace='
		drain 'nqn='
		undrain 'nqn='
		move 'nqn= group= node='
		host-allow 'nqn= host='
		host-refuse 'nqn= host='
		listener-add 'listen='
		listener-remove 'listen='
		save 'path= force='
	)
	local word

	if compset -P 'path='; then
		_files
	elif compset -P 'backend='; then
		_weft_spec
	else
		for word in $words; do
			(( $+keys[$word] )) && compadd -S '' ${=keys[$word]}
		done
	fi
}

local -a host=(
	'--hostnqn[name to connect with]:NQN:'
	'--hostid[host identifier]:UUID:'
	'--hdgst[checksums over headers]'
	'--ddgst[checksums over data]'
	'--timeout[for a connection to come about]:time:'
	'(-h --help)'{-h,--help}'[show help]'
)

_weft_end() {
	_alternative 'uris:URI:(nvme+tcp\:// nvme+rdma\://)' 'files:file:_files'
}

if (( CURRENT == 2 )); then
	compadd serve ctl discover ls id log feature resv read write compare zero trim cp raw bench mount version help
	return
fi

case $words[2] in
serve)
	shift words
	(( CURRENT-- ))
	_arguments \
		'(-c --config)'{-c,--config}'[configuration file]:file:_files' \
		'*--listen[address to listen on]:URI:(nvme+tcp\:// nvme+rdma\://)' \
		'*--ns[namespace to export]:SPEC:_weft_spec' \
		'--nqn[subsystem name]:NQN:' \
		'*--allow[host that may connect]:host NQN:' \
		'--allow-any-host[let every host connect]' \
		'--control[control socket]:path:_files' \
		'--engine[event engine]:engine:(auto uring epoll)' \
		'--cpus[CPUs to run on]:list:' \
		'--poll[never sleep]' \
		'--takeover[take the place of a running target]' \
		'--drop-rdma[with --takeover: end RDMA connections]' \
		'--detach[serve in the background]' \
		'--log-file[where the log feature resv goes]:file:_files' \
		'--pidfile[has the pid while hosts are served]:file:_files' \
		'--check[look for mistakes in the file]' \
		'(-v --verbose)'{-v,--verbose}'[log more]' \
		'(-h --help)'{-h,--help}'[show help]'
	;;
ctl)
	shift words
	(( CURRENT-- ))
	_arguments \
		'--control[control socket]:path:_files' \
		'--json[JSON also on a terminal]' \
		'--timeout[for an answer]:time:' \
		'(-h --help)'{-h,--help}'[show help]' \
		"1:method:($methods)" \
		'*:parameter:_weft_param'
	;;
discover)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--no-referrals[do not follow referrals]' \
		'--watch[print the log again whenever it changes]' \
		'--json[as JSON]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
ls)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--ns[only this namespace]:number:' \
		'--json[as JSON]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
id)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--ns[namespace]:number:' \
		'--hex[the pages as they are]' \
		'--json[as JSON]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
log)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--json[as JSON]' \
		'--hex[a hexdump]' \
		'(-b --raw-binary)'{-b,--raw-binary}'[the bytes]' \
		'--length[bytes of a page by its number]:number:' \
		'--offset[first byte of a page by its number]:number:' \
		'--group-id[endurance group]:number:' \
		'--ns[namespace]:number:' \
		'1:page:(supported error smart firmware changed-ns effects endurance ana features reservation)' \
		'2:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
feature)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--select[which value]:which:(current default saved supported)' \
		'--cdw11[of features that need one]:number:' \
		'--data-len[of a feature resv without a name]:number:' \
		'(-b --raw-binary)'{-b,--raw-binary}'[the data]' \
		'--save[also for after a reset]' \
		'(-i --input)'{-i,--input}'[its data]:file:_files' \
		'--json[as JSON]' \
		'--ns[namespace]:number:' \
		'1:what:(get set)' \
		"2:feature:($features)" \
		'*:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
resv)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--crkey[key of this host]:number:' \
		'--nrkey[new key of this host]:number:' \
		'--prkey[key of another host]:number:' \
		"--rtype[type of the reservation]:type:($resv_types)" \
		'--iekey[the key need not be known]' \
		'--cptpl[persistence]:what:(set clear)' \
		'--json[as JSON]' \
		'--ns[namespace]:number:' \
		'1:action:(report register unregister replace acquire preempt preempt-abort release clear)' \
		'2:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
compare)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--ns[namespace]:number:' \
		'--offset[first byte]:size:' \
		'--length[bytes]:size:' \
		'(-i --input)'{-i,--input}'[with this file]:file:_files' \
		'--pad[the rest of the last block is zeroes]' \
		'--json[what was found, as JSON]' \
		'(-q --quiet)'{-q,--quiet}'[no progress, no summary]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
zero)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--ns[namespace]:number:' \
		'--offset[first byte]:size:' \
		'--length[bytes]:size:' \
		'--all[the whole namespace]' \
		'--deac[space may be given back]' \
		'--json[what was done, as JSON]' \
		'(-q --quiet)'{-q,--quiet}'[no progress, no summary]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
trim)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--ns[namespace]:number:' \
		'--offset[first byte]:size:' \
		'--length[bytes]:size:' \
		'--all[the whole namespace]' \
		'--json[what was done, as JSON]' \
		'(-q --quiet)'{-q,--quiet}'[no progress, no summary]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
read)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--ns[namespace]:number:' \
		'(-q --quiet)'{-q,--quiet}'[no progress, no summary]' \
		'--offset[first byte]:size:' \
		'--length[bytes]:size:' \
		'(-o --output)'{-o,--output}'[to this file]:file:_files' \
		'--force[replace the file]' \
		'--hex[a hexdump]' \
		'--json[what was done, as JSON]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
write)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--ns[namespace]:number:' \
		'--offset[first byte]:size:' \
		'--length[bytes]:size:' \
		'(-i --input)'{-i,--input}'[from this file]:file:_files' \
		'--pad[fill up the last block]' \
		'--fua[every command is durable]' \
		'--verify[read back and compare]' \
		'--json[what was done, as JSON]' \
		'(-q --quiet)'{-q,--quiet}'[no progress, no summary]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
cp)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--offset[first byte of FROM]:size:' \
		'--length[bytes]:size:' \
		'--to-offset[first byte of TO]:size:' \
		'--verify[read back and compare]' \
		'--force[replace a file]' \
		'--pad[fill up the last block]' \
		'--no-sparse[write zeroes]' \
		'--jobs[threads]:number:' \
		'--depth[pieces in flight]:number:' \
		'--bs[bytes of a piece]:size:' \
		'--json[what was done, as JSON]' \
		'(-q --quiet)'{-q,--quiet}'[no progress, no summary]' \
		'(-v --verbose)'{-v,--verbose}'[tell what is about to be done]' \
		'1:from:_weft_end' \
		'2:to:_weft_end'
	;;
raw)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--opcode[which command]:number:' \
		'(-n --namespace-id)'{-n,--namespace-id}'[namespace]:number:' \
		'--ns[namespace]:number:' \
		'--cdw2[dword 2]:number:' \
		'--cdw3[dword 3]:number:' \
		'--cdw10[dword 10]:number:' \
		'--cdw11[dword 11]:number:' \
		'--cdw12[dword 12]:number:' \
		'--cdw13[dword 13]:number:' \
		'--cdw14[dword 14]:number:' \
		'--cdw15[dword 15]:number:' \
		'(-l --data-len)'{-l,--data-len}'[bytes of data]:number:' \
		'(-r --read)'{-r,--read}'[data comes]' \
		'(-w --write)'{-w,--write}'[data goes]' \
		'(-i --input-file)'{-i,--input-file}'[data that goes]:file:_files' \
		'(-b --raw-binary)'{-b,--raw-binary}'[the data that came]' \
		'(-s --show-command)'{-s,--show-command}'[show the command]' \
		'--json[as JSON]' \
		'1:queue:(admin io)' \
		'2:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
bench)
	shift words
	(( CURRENT-- ))
	_arguments $host \
		'--ns[namespace]:number:' \
		'--rw[kind of load]:mode:(read write rw randread randwrite randrw)' \
		'--mix[percent of reads]:percent:' \
		'--write-ok[the data may be overwritten]' \
		'--bs[bytes of an I/O]:size:' \
		'--depth[I/Os in flight per job]:number:' \
		'--jobs[threads]:number:' \
		'--queues[I/O queues per job]:number:' \
		'--cpus[for the jobs, one each in turn]:list:' \
		'--time[how long]:time:' \
		'--warmup[load before that]:time:' \
		'--rate[I/Os per second]:IOPS:' \
		'--offset[where the region begins]:size:' \
		'--size[how long the region is]:size:' \
		'--flush-every[writes between flushes]:number:' \
		'--verify[check the data]' \
		'--strict[lose nothing, flushed or not]' \
		'--seed[for offsets and data]:number:' \
		'--interval[step of the time series]:time:' \
		'--plot[draw it]:file:_files' \
		'--json[everything, as JSON]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)'
	;;
mount)
	shift words
	(( CURRENT-- ))
	_arguments \
		'(-f --foreground)'{-f,--foreground}'[stay in the foreground]' \
		'(-r --read-only)'{-r,--read-only}'[nobody may write]' \
		'--queues[I/Os at once]:number:' \
		'--allow-other[let other users in]' \
		'--mode[of the files]:octal number:' \
		'--hostnqn[name to connect with]:NQN:' \
		'--hostid[host identifier]:UUID:' \
		'--hdgst[checksums over headers]' \
		'--ddgst[checksums over data]' \
		'--timeout[for a connection to come about]:time:' \
		'(-h --help)'{-h,--help}'[show help]' \
		'1:URI:(nvme+tcp\:// nvme+rdma\://)' \
		'2:directory:_files -/'
	;;
version)
	compadd -- --json --help
	;;
help)
	compadd serve ctl discover ls id log feature resv read write compare zero trim cp raw bench mount version
	;;
esac
