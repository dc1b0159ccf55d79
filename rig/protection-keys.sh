#!/bin/sh
# Runs the tests of protection keys where there are such keys: in a machine that QEMU emulates. The processors of most
# machines at hand have none, and then these tests say NOT TESTED.
#
# Usage: protection-keys.sh KERNEL TESTS VIEWS    (KERNEL: a vmlinux or bzImage; TESTS and VIEWS: the unit tests' program of `indelible` and
# that of its test `views`, as `cargo test -p indelible --lib --test views --no-run` names them)
set -eu

kernel=$1 tests=$2 views=$3
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

mkdir -p "$tree"/root/bin "$tree"/root/dev "$tree"/root/proc "$tree"/root/tmp
cp "$(command -v busybox)" "$tree/root/bin/busybox"
for name in sh mount mkdir poweroff; do ln -s busybox "$tree/root/bin/$name"; done
strip -o "$tree/root/tests" "$tests"
strip -o "$tree/root/views" "$views"
{ ldd "$tests"; ldd "$views"; } | grep -o '/[^ ]*' | sort -u | while read -r library; do
    mkdir -p "$tree/root$(dirname "$library")"
    cp -L "$library" "$tree/root$library"
done
cat >"$tree/root/init" <<'INIT'
#!/bin/sh
mount -t proc none /proc
mount -t devtmpfs none /dev
mkdir -p /dev/shm
mount -t tmpfs none /dev/shm
/tests protection:: --test-threads=1
echo "the tests ended with status $?"
/views switched:: --test-threads=1
echo "the views ended with status $?"
poweroff -f
INIT
chmod +x "$tree/root/init"
(cd "$tree/root" && find . | cpio --quiet -o -H newc -R 0:0) >"$tree/initramfs.cpio"

timeout 600 qemu-system-x86_64 -machine q35 -accel tcg -cpu max,la57=off -smp 1 -m 512M -nodefaults -no-user-config \
    -display none -no-reboot -serial stdio -kernel "$kernel" -initrd "$tree/initramfs.cpio" \
    -append "console=ttyS0 quiet mitigations=off panic=-1" </dev/null | tr -d '\r' | tee "$tree/said"
if grep -q -e "NOT TESTED: protection keys" -e "NOT TESTED: contexts of one thread" "$tree/said"; then
    echo "protection-keys.sh: the emulated processor has no keys either" >&2
    exit 1
fi
grep -q "the tests ended with status 0" "$tree/said" && grep -q "the views ended with status 0" "$tree/said"
