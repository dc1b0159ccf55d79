#!/bin/sh
# Installs what the rig needs, as root, on Debian 12: QEMU from its backports, the tools that make a
# namespace and a file system, and, unpacked only, the kernels to boot.
#
# Usage: install.sh FOLDER    (kernels go to FOLDER/6.1 and FOLDER/6.12)
set -eu

folder=$1
here=$(cd "$(dirname "$0")" && pwd)
export DEBIAN_FRONTEND=noninteractive

[ "$(id -u)" = 0 ] || { echo "install.sh: packages are installed by root only" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "install.sh: this is not a Debian system" >&2; exit 1; }
. /etc/os-release
suite=$VERSION_CODENAME
backports=$suite-backports

# The backports lie where the release itself lies: the same source with another suite.
if ! apt-cache policy | grep -q "n=$backports"; then
    list=/etc/apt/sources.list.d/indelible-rig-backports
    deb822=$(grep -lsE "^Suites:.*\b$suite\b" /etc/apt/sources.list.d/*.sources | head -n 1) || true
    if [ -n "$deb822" ]; then
        # The stanza of the release, comments left out.
        grep -v '^#' "$deb822" |
            awk -v RS= -v suite="$suite" '$0 ~ "(^|\n)Suites:[^\n]*[ \t]" suite "([ \t\n]|$)" { print; exit }' |
            sed "s/^Suites:.*/Suites: $backports/" >"$list.sources"
    else
        grep -hE "^deb .* $suite " /etc/apt/sources.list | head -n 1 |
            sed "s/ $suite / $backports /" >"$list.list"
    fi
    apt-get -q update
fi

apt-get -qy install --no-install-recommends -t "$backports" qemu-system-x86
apt-get -qy install --no-install-recommends busybox-static cpio e2fsprogs gcc libc6-dev ndctl xz-utils zstd

# $1: version to look for, $2: suite to take it from.
kernel() {
    [ -s "$folder/$1/vmlinux" ] && return
    package=$(apt-cache show "linux-image-amd64/$2" | sed -n 's/^Depends: \(linux-image-[^ ,]*\).*/\1/p' | head -n 1)
    case $package in
        linux-image-"$1".*) ;;
        *) echo "install.sh: $2 has $package, not a kernel $1" >&2; exit 1 ;;
    esac
    rm -rf "$folder/$1" && mkdir -p "$folder/$1"
    (cd "$folder/$1" && apt-get -q -o APT::Sandbox::User=root download "$package" && dpkg -x ./*.deb . && rm ./*.deb)
    "$here/vmlinux.sh" "$folder/$1"/boot/vmlinuz-* >"$folder/$1/vmlinux"
}
kernel 6.1 "$suite"
kernel 6.12 "$backports"
