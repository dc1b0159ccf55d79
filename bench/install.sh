#!/bin/sh
# Installs the peers that are C libraries, and gocryptfs, as root, on Debian 12 or later. Those that are Rust crates, or come
# with one, are built with the benchmarks. A peer that is not there is named as missing by the run.
set -eu
export DEBIAN_FRONTEND=noninteractive

[ "$(id -u)" = 0 ] || { echo "install.sh: packages are installed by root only" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "install.sh: this is not a Debian system" >&2; exit 1; }

apt-get -q update
# The libraries of RocksDB and SQLCipher carry their versions in their names.
rocksdb=$(apt-cache search --names-only '^librocksdb[0-9]' | cut -d' ' -f1 | sort -V | tail -n 1)
sqlcipher=$(apt-cache search --names-only '^libsqlcipher[0-9]' | cut -d' ' -f1 | sort -V | tail -n 1)
apt-get -qy install --no-install-recommends libpmemobj1 "$rocksdb" gocryptfs fuse3 "$sqlcipher"
