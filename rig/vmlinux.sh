#!/bin/sh
# Prints the kernel that a bzImage carries: emulation would take a second to unpack it at every boot.
# Offsets are of the x86 boot protocol. Usage: vmlinux.sh BZIMAGE
set -eu

# $1: offset, $2: length of a little-endian number.
number() { od -An -t "u$2" -j "$1" -N "$2" "$image" | tr -d ' '; }

image=$1
payload=$((($(number 497 1) + 1) * 512 + $(number 584 4)))
length=$(($(number 588 4) - 4)) # the length of the result follows
magic=$(od -An -t x1 -j $payload -N 4 "$image" | tr -d ' ')
case $magic in
    28b52ffd) unpack="zstd -dcq" ;;
    fd377a58) unpack="xz -dcq" ;;
    *) echo "vmlinux.sh: $image is packed in an unknown way ($magic)" >&2; exit 1 ;;
esac
tail -c +$((payload + 1)) "$image" | head -c $length | $unpack
