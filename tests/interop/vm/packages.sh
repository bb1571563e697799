# shellcheck shell=bash
# packages.sh - sourced: install Debian packages where we may, name the missing where we may not.

# packages_install PACKAGE…: 0 when all are there; otherwise prints the missing ones, returns 1.
packages_install()
{
	local package missing=()

	if ! command -v dpkg-query apt-get >/dev/null; then
		echo "$*"
		return 1
	fi
	for package; do
		packages_have "$package" || missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] || return 0

	packages_apt install "${missing[@]}" && return 0
	packages_apt update && packages_apt install "${missing[@]}" && return 0
	echo "${missing[*]}"
	return 1
}

packages_have() # PACKAGE
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# As root, or where sudo asks no password.
packages_apt()
{
	local as_root=()

	[ "$(id -u)" = 0 ] || as_root=(sudo -n)
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
		--no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" \
		</dev/null >&2
}
