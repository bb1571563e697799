#!/bin/bash
# setup.sh - build the guest that the interop tests boot, once, and print the folder it is in.
#
#   vmlinux     Debian's 6.12 kernel, uncompressed: boots through PVH, with nothing to unpack
#   modules/    the modules of that kernel, and soft iWARP, which Debian does not build
#   root/       a trixie userland, extracted and never configured: nvme-cli 2.x, fio, mkfs, verbs
#   init.cpio   an initramfs with just what mounts the root over 9p
#
# The guest lives outside the checkout, in $WEFT_VM_CACHE, under a name made from what built it: a
# change to this script or to guest-first.sh builds another. It is built aside and renamed when
# whole, so what has the name is complete. A minute or two the first time. Exit status 77, and the
# reason in the last line on stderr, where it cannot be done.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${WEFT_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft-vm}

machine_packages=(
	qemu-system-x86 mmdebstrap fakeroot python3-minimal kmod busybox-static cpio zstd xz-utils
	gcc make binutils
)
guest_packages=(
	bash coreutils util-linux mount hostname grep sed gawk findutils diffutils procps
	busybox-static kmod udev iproute2 nvme-cli fio e2fsprogs xfsprogs jq
	ibverbs-providers ibverbs-utils rdmacm-utils
)
boot_modules=(virtio_pci virtio_net 9pnet_virtio 9p overlay virtio_rng)

# shellcheck source=tests/interop/vm/packages.sh
. "$here/packages.sh"

skip()
{
	echo "$*" >&2
	exit 77
}

newest_kernel()
{
	apt-cache search --names-only '^linux-image-6\.12\.[0-9]+\+deb12-amd64$' |
		awk '{ print $1 }' | sort -V | tail -1
}

# The ELF image inside a bzImage is one of its zstd frames.
unpack_vmlinux() # BZIMAGE VMLINUX
{
	python3 - "$@" <<-'PY'
	import re, subprocess, sys
	image = open(sys.argv[1], 'rb').read()
	for at in re.finditer(re.escape(b'\x28\xb5\x2f\xfd'), image):
	    frame = image[at.start():]
	    elf = subprocess.run(['zstd', '-dc'], input=frame, capture_output=True).stdout
	    if elf[:4] == b'\x7fELF':
	        open(sys.argv[2], 'wb').write(elf)
	        sys.exit(0)
	sys.exit('no kernel in ' + sys.argv[1])
	PY
}

unpack() # FOLDER PACKAGE…: what is in them
{
	local folder=$1 package

	shift
	apt-get download -qq -o APT::Sandbox::User=root "$@" >&2 || skip "could not download $*"
	for package in ./*.deb; do
		dpkg -x "$package" "$folder"
	done
	rm ./*.deb
}

build_kernel()
{
	local image version

	image=$(newest_kernel)
	if [ -z "$image" ]; then
		packages_apt update || skip "apt-get update failed, and apt's lists have no kernel"
		image=$(newest_kernel)
	fi
	[ -n "$image" ] || skip "apt knows no kernel 6.12; Debian 12's security updates have it"
	version=${image#linux-image-}

	unpack kernel "$image"
	build_siw "$version"
	depmod -b kernel "$version"
	unpack_vmlinux "kernel/boot/vmlinuz-$version" vmlinux
	build_initramfs "$version"
	mv kernel/lib/modules modules
	rm -r kernel
	echo "$version" >version
}

# Soft iWARP: out of the source of the same kernel, against its headers.
build_siw() # VERSION
{
	local bare=${1%-amd64} headers=siw/usr/src/linux-headers-$1
	local source=linux-source-${1%.[0-9]*+*}

	unpack siw "linux-headers-$1" "linux-headers-$bare-common" "linux-kbuild-$bare" "$source"
	tar -C siw -xJf "siw/usr/src/$source.tar.xz" "$source/drivers/infiniband/sw/siw"
	sed -i "s#^include /usr/src#include $PWD/siw/usr/src#" "$headers/Makefile"
	make -C "$headers" M="$PWD/siw/$source/drivers/infiniband/sw/siw" CONFIG_RDMA_SIW=m \
		PAHOLE=true CONFIG_DEBUG_INFO_BTF_MODULES= modules >&2
	mkdir "kernel/lib/modules/$1/extra"
	strip -g -o "kernel/lib/modules/$1/extra/siw.ko" \
		"siw/$source/drivers/infiniband/sw/siw/siw.ko"
	rm -r siw
}

build_initramfs() # VERSION
{
	local module file name

	mkdir -p initramfs/{bin,proc,sys,dev,new,lower,upper,lib/modules}
	cp /bin/busybox initramfs/bin/
	for name in sh mount mkdir insmod switch_root cat poweroff; do
		ln -s busybox "initramfs/bin/$name"
	done
	for module in "${boot_modules[@]}"; do
		modprobe -d "$PWD/kernel" -S "$1" --show-depends "$module" 2>/dev/null |
			awk '$1 == "insmod" { print $2 }'
	done | awk '!seen[$0]++' | while read -r file; do
		name=$(basename "${file%.xz}")
		case $file in
		*.xz)	xz -dc "$file" >"initramfs/lib/modules/$name" ;;
		*)	cp "$file" "initramfs/lib/modules/$name" ;;
		esac
		echo "$name" >>initramfs/boot-modules
	done
	install -m 755 "$here/guest-first.sh" initramfs/init
	(cd initramfs && find . | cpio -o -H newc -R 0:0 --quiet) >init.cpio
	rm -r initramfs
}

# The guest's userland is newer than Debian 12's; it comes from the mirror this machine uses.
build_userland()
{
	local mirror include format="\$(REPO_URI)"

	mirror=$(apt-get indextargets --format "$format" 'Created-By: Packages' 'Label: Debian' |
		sed -n 1p)
	[ -n "$mirror" ] || skip "apt has no Debian mirror to take the guest's packages from"
	include=$(IFS=,; echo "${guest_packages[*]}")

	fakeroot mmdebstrap --quiet --mode=chrootless --variant=extract --architectures=amd64 \
		--aptopt='APT::Install-Recommends "false"' \
		--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
		--include="$include" trixie root "deb $mirror trixie main" >&2 ||
		skip "mmdebstrap could not fetch the guest's packages"
	(
		cd root
		rm -rf var/cache/apt var/lib/apt usr/share/{man,doc,locale,info,i18n}
		rm -rf usr/lib/*/gconv
		# The files are ours: set-user-id would turn the guest's root into us.
		find . -perm /6000 -exec chmod ug-s {} +
		echo root:x:0:0:root:/root:/bin/bash >etc/passwd
		echo root:x:0: >etc/group
		mkdir -p proc sys dev run tmp mnt share modules
		ln -sf gawk usr/bin/awk
		[ -e usr/bin/sh ] || ln -s bash usr/bin/sh
		[ -e usr/bin/which ] || ln -s which.debianutils usr/bin/which
	)
}

key=$(cat "$here/setup.sh" "$here/guest-first.sh" | sha256sum | cut -c 1-16)
guest=$cache/$key
mkdir -p "$cache"

wanted=$(packages_install "${machine_packages[@]}") ||
	skip "packages are missing, and installing them takes root: apt-get install $wanted"

exec 9>"$cache/lock"
flock 9
if [ ! -d "$guest" ]; then
	echo "building the guest $guest (about two minutes, once)" >&2
	rm -rf "$cache"/*.building
	mkdir "$guest.building"
	cd "$guest.building"
	build_userland
	build_kernel
	mv -T "$guest.building" "$guest"
fi
touch "$guest"
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
echo "$guest"
