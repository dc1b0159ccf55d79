#!/bin/sh
# Installs what the rig needs, as root, on Debian 12: QEMU from its backports, the tools that make a
# namespace and a file system, and, unpacked only, the kernels to boot. Installed packages stay as they are.
#
# Usage: install.sh FOLDER    (kernels go to FOLDER/6.1 and FOLDER/6.12)
set -eu

folder=$1
here=$(cd "$(dirname "$0")" && pwd)
export DEBIAN_FRONTEND=noninteractive
say() { echo "install.sh: $*" >&2; }

# A mirror that does not answer must not hold up everything that comes after the rig.
if [ -z "${RIG_INSTALL_BOUNDED:-}" ]; then
    RIG_INSTALL_BOUNDED=1 timeout 900 "$0" "$@" && exit 0
    status=$?
    [ $status != 124 ] || say "not done in 15 minutes"
    exit $status
fi

[ "$(id -u)" = 0 ] || { say "packages are installed by root only"; exit 1; }
command -v apt-get >/dev/null || { say "this is not a Debian system"; exit 1; }
. /etc/os-release
suite=${VERSION_CODENAME:-none}
[ "$suite" = bookworm ] || { say "kernel 6.1 is Debian 12's, and this is ${PRETTY_NAME:-another system}"; exit 1; }
backports=$suite-backports

# Another process may hold the lock, and a mirror may fail for a moment.
get() {
    apt-get -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 \
        -o Acquire::https::Timeout=30 -o APT::Sandbox::User=root "$@"
}
update() { get update || { sleep 10 && get update; }; }
# Packages on the lists may be gone from the mirror by now: then the lists are fetched anew.
install() { get -y install --no-install-recommends "$@" || { update && get -y install --no-install-recommends "$@"; }; }

# The backports lie where the release itself lies: the same source with another suite.
if ! apt-cache policy | grep -q "n=$backports,"; then
    list=/etc/apt/sources.list.d/indelible-rig-backports
    deb822=$(grep -lsE "^Suites:.*\b$suite\b" /etc/apt/sources.list.d/*.sources | grep -v "^$list" | head -n 1) || true
    if [ -n "$deb822" ]; then
        # The stanza of the release, comments left out.
        grep -v '^#' "$deb822" |
            awk -v RS= -v suite="$suite" '$0 ~ "(^|\n)Suites:[^\n]*[ \t]" suite "([ \t\n]|$)" { print; exit }' |
            sed "s/^Suites:.*/Suites: $backports/" >"$list.sources"
    else
        line=$(grep -hE "^deb .* $suite " /etc/apt/sources.list | head -n 1) || true
        [ -n "$line" ] || { say "no source of packages has $suite"; exit 1; }
        echo "$line" | sed "s/ $suite / $backports /" >"$list.list"
    fi
    update
fi

install -t "$backports" qemu-system-x86
install binutils busybox-static cpio e2fsprogs gcc libc6-dev ndctl xz-utils zstd

# $1: version to look for, $2: suite to take it from.
kernel() {
    [ ! -s "$folder/$1/vmlinux" ] || return 0
    package=$(apt-cache show "linux-image-amd64/$2" | sed -n 's/^Depends: \(linux-image-[^ ,]*\).*/\1/p' | head -n 1)
    case $package in
        linux-image-"$1".*) ;;
        *) say "$2 has $package, not a kernel $1"; exit 1 ;;
    esac
    rm -rf "$folder/$1" && mkdir -p "$folder/$1"
    (cd "$folder/$1" && get download "$package" && dpkg -x ./*.deb . && rm ./*.deb)
    # Under its name only when it is whole.
    "$here/vmlinux.sh" "$folder/$1"/boot/vmlinuz-* >"$folder/$1/vmlinux.part"
    mv "$folder/$1/vmlinux.part" "$folder/$1/vmlinux"
}
kernel 6.1 "$suite"
kernel 6.12 "$backports"
