#!/bin/sh
# Packs what the machine boots into: the kernel's modules, busybox, the guest program, and the tools that
# are used once to make the medium.
#
# Usage: initramfs.sh KERNEL GUEST MUTANT OUT    (KERNEL: an unpacked kernel package; MUTANT: the guest
# program that breaks rules on request)
set -eu

kernel=$1 guest=$2 mutant=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# In the order of their dependencies; a name that a kernel has built in is not there.
modules="qemu_fw_cfg crc16 crc32c_generic crc32c-intel mbcache jbd2 ext4 libnvdimm nd_btt nd_pmem device_dax dax_pmem"
# The driver that finds the medium is loaded when the machine has its order.
later=nfit

mkdir -p "$tree"/bin "$tree"/dev "$tree"/proc "$tree"/sys "$tree"/mnt "$tree"/modules
for name in $modules $later; do
    found=$(find "$kernel/lib/modules" -name "$name.ko*" | head -n 1)
    case $found in
        *.xz) xz -dc "$found" >"$tree/modules/$name.ko" ;;
        *.ko) cp "$found" "$tree/modules/$name.ko" ;;
        "") continue ;;
        *) echo "initramfs.sh: $found is packed in an unknown way" >&2; exit 1 ;;
    esac
    [ "$name" = $later ] || echo "$name" >>"$tree/modules/order"
done

cp "$(command -v busybox)" "$tree/bin/busybox"
for name in sh mount umount mkdir insmod sleep cat poweroff; do ln -s busybox "$tree/bin/$name"; done
strip -o "$tree/bin/rig-guest" "$guest"
strip -o "$tree/bin/rig-mutant" "$mutant"
for tool in ndctl mke2fs; do
    path=$(command -v $tool || echo /sbin/$tool)
    cp "$path" "$tree/bin/$tool"
    ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$tree$(dirname "$library")"
        cp -L "$library" "$tree$library"
    done
done
[ -d /etc/ndctl.conf.d ] && mkdir -p "$tree/etc" && cp -r /etc/ndctl.conf.d "$tree/etc/"
cp "$here/init" "$tree/init"
(cd "$tree" && find . | cpio --quiet -o -H newc -R 0:0) >"$out"
