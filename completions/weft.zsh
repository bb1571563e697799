#compdef weft
# zsh completion for weft(1)

local -a methods=(status subsystem-add subsystem-remove namespace-add namespace-resize
	namespace-remove host-allow host-refuse listener-add listener-remove save methods)

_weft_spec() {
	if compset -P '(file|block):'; then
		_files
	else
		compadd -S '' mem: null: file: block:
	fi
}

_weft_param() {
	local -A keys=(
		subsystem-add 'nqn= serial= model= allow_any_host= hosts= namespaces='
		subsystem-remove 'nqn='
		namespace-add 'nqn= nsid= backend= block= uuid= ro='
		namespace-resize 'nqn= nsid= size= shrink='
		namespace-remove 'nqn= nsid='
		host-allow 'nqn= host='
		host-refuse 'nqn= host='
		listener-add 'listen='
		listener-remove 'listen='
		save 'path='
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

if (( CURRENT == 2 )); then
	compadd serve ctl bench mount version help
	return
fi

case $words[2] in
serve)
	shift words
	(( CURRENT-- ))
	_arguments \
		'(-c --config)'{-c,--config}'[configuration file]:file:_files' \
		'*--listen[address to listen on]:URI:(nvme+tcp\://)' \
		'*--ns[namespace to export]:SPEC:_weft_spec' \
		'--nqn[subsystem name]:NQN:' \
		'*--allow[host that may connect]:host NQN:' \
		'--allow-any-host[let every host connect]' \
		'--control[control socket]:path:_files' \
		'--engine[event engine]:engine:(auto uring epoll)' \
		'--cpus[CPUs to run on]:list:' \
		'--poll[never sleep]' \
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
		'(-h --help)'{-h,--help}'[show help]' \
		"1:method:($methods)" \
		'*:parameter:_weft_param'
	;;
bench)
	shift words
	(( CURRENT-- ))
	_arguments \
		'--rw[kind of load]:mode:(read write rw randread randwrite randrw)' \
		'--mix[percent of reads]:percent:' \
		'--write-ok[the data may be overwritten]' \
		'--bs[bytes of an I/O]:size:' \
		'--depth[I/Os in flight per job]:number:' \
		'--jobs[threads]:number:' \
		'--queues[I/O queues per job]:number:' \
		'--time[how long]:time:' \
		'--warmup[load before that]:time:' \
		'--rate[I/Os per second]:IOPS:' \
		'--offset[where the region begins]:size:' \
		'--size[how long the region is]:size:' \
		'--flush-every[writes between flushes]:number:' \
		'--verify[check the data]' \
		'--seed[for offsets and data]:number:' \
		'--interval[step of the time series]:time:' \
		'--plot[draw it]:file:_files' \
		'--json[everything, as JSON]' \
		'(-h --help)'{-h,--help}'[show help]' \
		'1:URI:(nvme+tcp\://)'
	;;
mount)
	shift words
	(( CURRENT-- ))
	_arguments \
		'(-f --foreground)'{-f,--foreground}'[stay in the foreground]' \
		'(-r --read-only)'{-r,--read-only}'[nobody may write]' \
		'--queues[I/Os at once]:number:' \
		'--allow-other[let other users in]' \
		'--hostnqn[name to connect with]:NQN:' \
		'--hostid[host identifier]:UUID:' \
		'--hdgst[checksums over headers]' \
		'--ddgst[checksums over data]' \
		'--timeout[for a connection to come about]:time:' \
		'(-h --help)'{-h,--help}'[show help]' \
		'1:URI:(nvme+tcp\://)' \
		'2:directory:_files -/'
	;;
version)
	compadd -- --json --help
	;;
help)
	compadd serve ctl bench mount version
	;;
esac
