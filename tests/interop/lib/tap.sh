# shellcheck shell=bash
# tap.sh - sourced: the results of an interop test, in TAP with the plan at the end.

tap_count=0 tap_failed=0

result() # "ok"|"not ok" NAME [FILE]: a case; of the last lines of FILE its reason
{
	tap_count=$((tap_count + 1))
	echo "$1 $tap_count - $2"
	[ "$1" != ok ] || return 0
	tap_failed=1
	[ ! -s "${3:-}" ] || tail -n 15 "$3" | tr -d '\r' | cut -c 1-300 | sed 's/^/#   /'
}

# A guest's lines carry no numbers.
results() # PREFIX FILE
{
	local line

	while IFS= read -r line; do
		case $line in
		"ok - "*)	result ok "$1: ${line#ok - }" ;;
		"not ok - "*)	result "not ok" "$1: ${line#not ok - }" ;;
		*)		echo "$line" ;;
		esac
	done <"$2"
}

tap_end()
{
	echo "1..$tap_count"
	exit $tap_failed
}

skip_all() # REASON
{
	echo "1..0 # SKIP $*"
	exit 0
}

bail_out() # REASON
{
	echo "Bail out! $*"
	exit 1
}
