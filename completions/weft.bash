# bash completion for weft(1)
#
# ":" and "=" end a word for readline, not for us: words are those of the line, and what readline
# has already taken of the last one is cut off what is offered.

_weft_methods="status subsystem-add subsystem-remove namespace-add namespace-resize
	namespace-remove ana-set drain undrain move host-allow host-refuse listener-add listener-remove
	save methods"

_weft_features="arbitration power-mgmt temp-thresh err-recovery volatile-wc num-queues
	write-atomic async-event timestamp kato hctm host-behavior iocs-profile sw-progress host-id
	resv-mask resv-persist write-protect"

_weft_resv_types="write-exclusive exclusive-access write-exclusive-reg-only exclusive-access-reg-only
	write-exclusive-all-regs exclusive-access-all-regs"

# Offers the words that begin with $part, each behind $head.
_weft_words() {
	mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "$part")
}

_weft_open_words() { # words that go on
	compopt -o nospace 2>/dev/null
	_weft_words "$1"
}

_weft_uris() {
	_weft_open_words "nvme+tcp:// nvme+rdma://"
}

_weft_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -P "$head" -f -- "$part")
}

_weft_spec() {
	case $part in
	file:* | block:*)
		head+=${part%%:*}: part=${part#*:}
		_weft_files
		;;
	*) _weft_open_words "mem: null: file: block:" ;;
	esac
}

_weft_serve() {
	case $prev in
	-c | --config | --control | --log-file | --pidfile) _weft_files ;;
	--engine) _weft_words "auto uring epoll" ;;
	--listen) _weft_uris ;;
	--ns) _weft_spec ;;
	--nqn | --allow | --cpus) ;;
	*)
		_weft_words "-c --config --listen --ns --nqn --allow --allow-any-host --control
			--engine --cpus --poll --takeover --drop-rdma --detach --log-file --pidfile
			--check -v --verbose -h --help"
		;;
	esac
}

_weft_keys() {
	case $1 in
	subsystem-add) echo "nqn= serial= model= state= cluster= allow_any_host= hosts= namespaces= ana=" ;;
	subsystem-remove) echo "nqn=" ;;
	namespace-add) echo "nqn= nsid= backend= block= uuid= ro= ana_group=" ;;
	namespace-resize) echo "nqn= nsid= size= shrink=" ;;
	namespace-remove) echo "nqn= nsid=" ;;
	ana-set) echo "nqn= rules= replace=" ;;
	drain | undrain) echo "nqn=" ;;
	move) echo "nqn= group= node=" ;;
	host-allow | host-refuse) echo "nqn= host=" ;;
	listener-add | listener-remove) echo "listen=" ;;
	save) echo "path= force=" ;;
	esac
}

_weft_param() {
	case $part in
	*=*)
		head=${part%%=*}= part=${part#*=}
		case $head in
		path=) _weft_files ;;
		backend=) _weft_spec ;;
		host=) _weft_words "any" ;;
		listen=) _weft_uris ;;
		block=) _weft_words "512 4096" ;;
		ro= | shrink= | replace= | allow_any_host=) _weft_words "true false" ;;
		esac
		;;
	*) _weft_open_words "$(_weft_keys "$1")" ;;
	esac
}

_weft_ctl() {
	local word

	case $prev in
	--control)
		_weft_files
		return
		;;
	--timeout) return ;;
	esac
	for word in "${words[@]:2:${#words[@]}-3}"; do
		case " ${_weft_methods//[$'\n\t']/ } " in
		*" $word "*)
			_weft_param "$word"
			return
			;;
		esac
	done
	_weft_words "--control --json --timeout -h --help $_weft_methods"
}

_weft_mount() {
	case $prev in
	--queues | --mode | --hostnqn | --hostid | --timeout) return ;;
	esac
	case $part in
	-*)
		_weft_words "-f --foreground -r --read-only --queues --allow-other --mode --hostnqn
			--hostid --hdgst --ddgst --timeout -h --help"
		;;
	nvme* | "") _weft_uris ;;
	*) _weft_files ;;
	esac
}

_weft_bench() {
	case $prev in
	--rw) _weft_words "read write rw randread randwrite randrw" ;;
	--plot) _weft_files ;;
	--mix | --bs | --depth | --jobs | --queues | --cpus | --time | --warmup | --rate) ;;
	--offset | --size | --flush-every | --seed | --interval) ;;
	--ns | --hostnqn | --hostid | --timeout) ;;
	*)
		case $part in
		-*)
			_weft_words "--rw --mix --write-ok --bs --depth --jobs --queues --cpus --time --warmup
				--rate --offset --size --flush-every --verify --strict --seed --interval --plot
				--json --ns --hostnqn --hostid --hdgst --ddgst --timeout -h --help"
			;;
		*) _weft_uris ;;
		esac
		;;
	esac
}

# A command that takes a URI: $1 are its own options.
_weft_host() {
	case $prev in
	-i | -o | --input | --output) _weft_files ;;
	--hostnqn | --hostid | --timeout | --offset | --length | --to-offset | --group-id | --cdw11 | --data-len | --ns | --jobs | --depth | --bs) ;;
	*)
		case $part in
		-*) _weft_words "$1 --hostnqn --hostid --hdgst --ddgst --timeout -h --help" ;;
		*) _weft_uris ;;
		esac
		;;
	esac
}

# A command whose first word is one of $1, before a URI; $2 are its own options.
_weft_first() {
	if [ "${#words[@]}" -eq 3 ] && [[ $part != -* ]]; then
		_weft_words "$1"
	else
		_weft_host "$2"
	fi
}

_weft_feature() {
	case $prev in
	--select) _weft_words "current default saved supported" ;;
	get | set) _weft_words "$_weft_features" ;;
	*)
		_weft_first "get set" "--select --cdw11 --data-len -b --raw-binary --save -i --input --json
			--ns"
		;;
	esac
}

_weft_resv() {
	case $prev in
	--rtype) _weft_words "$_weft_resv_types" ;;
	--cptpl) _weft_words "set clear" ;;
	--crkey | --nrkey | --prkey) ;;
	*)
		_weft_first "report register unregister replace acquire preempt preempt-abort release clear" \
			"--crkey --nrkey --prkey --rtype --iekey --cptpl --json --ns"
		;;
	esac
}

_weft_raw() {
	case $prev in
	--input-file) _weft_files ;;
	--opcode | -n | --namespace-id | --ns | --cdw* | -l) ;;
	*)
		_weft_first "admin io" "--opcode -n --namespace-id --ns --cdw2 --cdw3 --cdw10 --cdw11 --cdw12 --cdw13 --cdw14
			--cdw15 -l --data-len -r --read -w --write -i --input-file -b --raw-binary -s --show-command
			--json"
		;;
	esac
}

_weft_cp() {
	local uri

	case $prev:$part in
	*:-* | --offset:* | --length:* | --to-offset:* | --hostnqn:* | --hostid:* | --timeout:* | --jobs:* | --depth:* | --bs:*)
		_weft_host "--offset --length --to-offset --verify --force --pad --no-sparse --jobs --depth
			--bs --json -q --quiet -v --verbose"
		;;
	*)
		_weft_files
		[ -z "$part" ] && return
		for uri in nvme+tcp:// nvme+rdma://; do
			[[ $uri == "$part"* ]] || continue
			compopt -o nospace 2>/dev/null
			COMPREPLY+=("$uri")
		done
		;;
	esac
}

_weft_complete() {
	case ${words[1]} in
	serve) _weft_serve ;;
	ctl) _weft_ctl ;;
	discover) _weft_host "--no-referrals --watch --json" ;;
	ls) _weft_host "--ns --json" ;;
	id) _weft_host "--ns --hex --json" ;;
	log)
		_weft_first "supported error smart firmware changed-ns effects endurance ana features reservation" \
			"--json --hex -b --raw-binary --length --offset --group-id --ns"
		;;
	feature) _weft_feature ;;
	resv) _weft_resv ;;
	compare) _weft_host "--ns --offset --length -i --input --pad --json -q --quiet" ;;
	zero) _weft_host "--ns --offset --length --all --deac --json -q --quiet" ;;
	trim) _weft_host "--ns --offset --length --all --json -q --quiet" ;;
	read) _weft_host "--ns --offset --length -o --output --force --hex --json -q --quiet" ;;
	write)
		_weft_host "--ns --offset --length -i --input --pad --fua --verify --json -q --quiet"
		;;
	cp) _weft_cp ;;
	raw) _weft_raw ;;
	bench) _weft_bench ;;
	mount) _weft_mount ;;
	version) _weft_words "--json -h --help" ;;
	help) _weft_words "serve ctl discover ls id log feature resv read write compare zero trim cp raw bench mount version" ;;
	esac
}

_weft() {
	local line=${COMP_LINE:0:COMP_POINT} words head="" part prev taken

	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	part=${words[-1]} prev=${words[-2]}
	COMPREPLY=()
	if [ "${#words[@]}" -eq 2 ]; then
		_weft_words "serve ctl discover ls id log feature resv read write compare zero trim cp raw bench mount version help -h --help -V --version"
		return
	fi
	if [[ $part == --*=* ]]; then
		prev=${part%%=*} head=$prev= part=${part#*=}
	fi
	taken=${words[-1]%"${words[-1]##*["$COMP_WORDBREAKS"]}"}
	_weft_complete
	COMPREPLY=("${COMPREPLY[@]#"$taken"}")
}

complete -F _weft weft
