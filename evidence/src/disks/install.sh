#!/bin/sh
# Installs the tools of the file systems that the campaign uses, as root, on Debian.
set -eu
export DEBIAN_FRONTEND=noninteractive
get() {
    timeout 300 apt-get -q -o DPkg::Lock::Timeout=60 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 "$@"
}
install() { get -y install --no-install-recommends btrfs-progs e2fsprogs xfsprogs; }
[ "$(id -u)" = 0 ] || { echo "packages are installed by root only" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "this is not a Debian system" >&2; exit 1; }
install || { get update && install; }
