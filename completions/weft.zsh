#compdef weft
# zsh completion for weft(1)

local -a methods=(status subsystem-add subsystem-remove namespace-add namespace-resize
	namespace-remove host-allow host-refuse listener-add listener-remove save methods)

if (( CURRENT == 2 )); then
	compadd serve ctl version help
	return
fi

case $words[2] in
serve)
	shift words
	(( CURRENT-- ))
	_arguments \
		'(-c --config)'{-c,--config}'[configuration file]:file:_files' \
		'*--listen[address to listen on]:URI:(nvme+tcp\://)' \
		'*--ns[namespace to export]:SPEC:(mem\: null\: file\: block\:)' \
		'--nqn[subsystem name]:NQN:' \
		'*--allow[host that may connect]:host NQN:' \
		'--allow-any-host[let every host connect]' \
		'--control[control socket]:path:_files' \
		'--engine[event engine]:engine:(auto uring epoll)' \
		'--cpus[CPUs to run on]:list:' \
		'--poll[never sleep]' \
		'--verbose[log more]' \
		'--help[show help]'
	;;
ctl)
	shift words
	(( CURRENT-- ))
	_arguments \
		'--control[control socket]:path:_files' \
		'--help[show help]' \
		"1:method:($methods)"
	;;
help)
	compadd serve ctl version
	;;
esac
