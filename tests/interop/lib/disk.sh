# shellcheck shell=bash
# disk.sh - sourced: a disk that a PC boots from, made of the guest that setup.sh built.
#
#   0      boot sector, partition table
#   1 MiB  FAT: SYSLINUX, the kernel, an initramfs with what it takes to mount the root
#  64 MiB  ext4: the guest's root, with jobs/JOB as /boot-job.sh, which becomes its process 1
#
# Needs guest, the guest's folder, work, one of our own, and interop, tests/interop.
# No root, nothing is mounted.
# shellcheck disable=SC2154

disk_packages=(e2fsprogs fdisk mtools syslinux syslinux-common kmod cpio xz-utils)
disk_fat=$((1 << 20)) disk_root=$((64 << 20))
# shellcheck source=tests/interop/vm/kernel.sh
. "$interop/vm/kernel.sh"

# The kernel that the guest's modules are of, as a loader wants it; setup.sh has kept it unpacked only.
disk_kernel() # FILE
{
	local version kept

	version=$(cat "$guest/version")
	kept=$guest/../vmlinuz-$version
	if [ ! -e "$kept" ]; then
		(
			cd "$work" &&
			apt-get download -qq -o APT::Sandbox::User=root "linux-image-$version" &&
			dpkg --fsys-tarfile linux-image-*.deb |
				tar -xOf - "./boot/vmlinuz-$version" >"$kept.new" &&
			mv "$kept.new" "$kept" && rm linux-image-*.deb
		) || return 1
	fi
	cp "$kept" "$1"
}

disk_initramfs() # FILE
{
	local folder=$work/initramfs version module file name

	version=$(cat "$guest/version")
	mkdir -p "$folder/lib/modules" "$work/kernel/lib"
	ln -s "$guest/modules" "$work/kernel/lib/modules"
	for module in virtio_pci virtio_blk ext4 crc32c_generic; do
		modprobe -d "$work/kernel" -S "$version" --show-depends "$module" |
			awk '$1 == "insmod" { print $2 }'
	done | awk '!seen[$0]++' | while read -r file; do
		name=$(basename "${file%.xz}")
		xz -dc "$file" >"$folder/lib/modules/$name"
		echo "$name" >>"$folder/boot-modules"
	done
	install -m 755 "$interop/vm/guest-disk.sh" "$folder/init"
	# What comes later replaces what is in the other guest's.
	(cd "$folder" && find . | cpio -o -H newc -R 0:0 --quiet) | cat "$guest/init.cpio" - >"$1"
}

disk_loader() # DISK
{
	local fat="$1@@$disk_fat"

	cat >"$work/syslinux.cfg" <<-END
	serial 0
	default linux
	label linux
	  kernel vmlinuz
	  append initrd=initrd $kernel_words
	END
	mformat -i "$fat" -T $(((disk_root - disk_fat) / 512)) :: &&
		mcopy -i "$fat" "$work/vmlinuz" "$work/initrd" "$work/syslinux.cfg" :: &&
		syslinux --offset $disk_fat --install "$1" &&
		dd if=/usr/lib/syslinux/mbr/mbr.bin of="$1" conv=notrunc status=none
}

disk_make() # DISK BYTES JOB
{
	truncate -s "$2" "$1" &&
		sfdisk -q "$1" <<-END &&
		label: dos
		start=$((disk_fat / 512)), size=$(((disk_root - disk_fat) / 512)), type=e, bootable
		start=$((disk_root / 512)), type=83
		END
		disk_kernel "$work/vmlinuz" && disk_initramfs "$work/initrd" && disk_loader "$1" &&
		mke2fs -q -F -t ext4 -d "$guest/root" -E "offset=$disk_root" "$1" \
			$((($2 - disk_root) >> 10))k &&
		debugfs -w -R "write $interop/jobs/$3 boot-job.sh" "$1?offset=$disk_root"
}
