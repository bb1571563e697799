# shellcheck shell=bash
# ship.sh - sourced: programs of this machine for the guest, with the libraries that it lacks. The C
# library is the guest's: it is newer.

ship() # FOLDER PROGRAM [NAME]: into FOLDER, and the libraries into lib beside it
{
	mkdir -p "$1" "$1/../lib"
	cp "$2" "$1/${3:-}"
	ldd "$2" | awk '$3 ~ "^/" { print $1, $3 }' | ship_libraries "$1/../lib"
}

ship_libraries() # FOLDER
{
	local name path

	while read -r name path; do
		[ -e "$WEFT_INTEROP_GUEST/root/usr/lib/x86_64-linux-gnu/$name" ] ||
			cp -L "$path" "$1/$name"
	done
}
