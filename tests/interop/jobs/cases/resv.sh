# shellcheck shell=bash
# resv.sh - cases: reservations as nvme-cli asks for them.
# shellcheck disable=SC2154

reserved() # TYPE REGISTRANTS: what the report says
{
	nvme resv-report "$(ns 1)" --eds -o json | tee /tmp/report
	jq -e "(.rtype == $1) and (.regctl == $2)" /tmp/report
}

fails() # COMMAND…
{
	if "$@"; then
		echo "it succeeded: $*"
		return 1
	fi
}

reservations()
{
	local dev type

	dev=$(ns 1)
	fails nvme resv-acquire "$dev" --crkey=7 --rtype=1 --racqa=0
	nvme resv-register "$dev" --nrkey=7 --rrega=0
	for type in 1 2 3 4 5 6; do
		nvme resv-acquire "$dev" --crkey=7 --rtype=$type --racqa=0
		reserved $type 1
		roundtrip 1
		fails nvme resv-acquire "$dev" --crkey=8 --rtype=$type --racqa=0
		nvme resv-release "$dev" --crkey=7 --rtype=$type --rrela=0
		reserved 0 1
	done
	nvme resv-acquire "$dev" --crkey=7 --rtype=3 --racqa=0
	nvme resv-acquire "$dev" --crkey=7 --prkey=7 --rtype=4 --racqa=2
	reserved 4 1
	nvme resv-register "$dev" --crkey=7 --nrkey=9 --rrega=2
	nvme resv-release "$dev" --crkey=9 --rrela=1
	reserved 0 0
}
