# shellcheck shell=bash
# requests.sh - sourced: a guest that does what the machine asks for, until "end".
#
#   do.N     a request in the share, one word a line
#   did.N    its status in the first line, then its output

# The handler gets the request's words, in a shell of its own that ends with the first failure.
requests_serve() # HANDLER
{
	local request

	while :; do
		for request in /share/do.*; do
			[ -e "$request" ] || continue
			requests_answer "$1" "$request" || return 0
		done
		sleep 0.1
	done
}

requests_answer() # HANDLER FILE: 1 when it was the last
{
	local words n=${2##*/do.}

	mapfile -t words <"$2"
	rm "$2"
	if [ "${words[0]}" = end ]; then
		: >/tmp/output
	else
		(set -eu -o pipefail; "$1" "${words[@]}") >/tmp/output 2>&1
	fi
	{ echo $?; cat /tmp/output; } >"/share/new-did.$n"
	mv "/share/new-did.$n" "/share/did.$n"
	echo "[$SECONDS s] ${words[*]}"
	[ "${words[0]}" != end ]
}
