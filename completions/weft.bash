# bash completion for weft(1)

_weft_methods="status subsystem-add subsystem-remove namespace-add namespace-resize
	namespace-remove host-allow host-refuse listener-add listener-remove save methods"

_weft_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_weft_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

_weft_serve() {
	case $prev in
	-c | --config | --control) _weft_files ;;
	--engine) _weft_words "auto uring epoll" ;;
	--listen) _weft_words "nvme+tcp://" && compopt -o nospace ;;
	--ns) _weft_words "mem: null: file: block:" && compopt -o nospace ;;
	--nqn | --allow | --cpus) ;;
	*)
		_weft_words "-c --config --listen --ns --nqn --allow --allow-any-host --control
			--engine --cpus --poll --verbose --help"
		;;
	esac
}

_weft_ctl() {
	local word

	case $prev in
	--control)
		_weft_files
		return
		;;
	esac
	for word in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
		case " ${_weft_methods//[$'\n\t']/ } " in
		*" $word "*) return ;;
		esac
	done
	_weft_words "--control --json --help $_weft_methods"
}

_weft() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_weft_words "serve ctl version help --help"
		return
	fi
	case ${COMP_WORDS[1]} in
	serve) _weft_serve ;;
	ctl) _weft_ctl ;;
	help) _weft_words "serve ctl version" ;;
	esac
}

complete -F _weft weft
