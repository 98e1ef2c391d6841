#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# cut.sh WORKDIR ONEHOP [STATES]
#
# Power cuts on FAT, which has no journal: cut-rounds.sh runs ONEHOP in a guest whose boot partition
# logs each write, and cut-replay.py rebuilds STATES (all) of the partitions that a power cut could have
# left.  Each is read as firmware does (mtools), and again after fsck.fat -a, as at the next start of
# Linux: each entry has to be there, whole, under its own name or that of the copy which is kept. Trials, which add an
# entry of their own, are among the rounds.
# WORKDIR is prepare.sh's.
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing
# failed; 77: nothing could be checked.

set -euo pipefail
shopt -s inherit_errexit

PACKAGES="dosfstools mtools python3-minimal"
SIZE=36 # MiB, the least for FAT32; a megabyte follows for the marks
ID=0123456789abcdef0123456789abcdef

here=$(cd "$(dirname "$0")" && pwd)
guest=${here%/*}
[ $# -ge 2 ] || { sed -n '/^# cut.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
onehop=$2 states=${3:-100000}
[ -x "$onehop" ] || { echo "cut.sh: no program $onehop" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin
# shellcheck disable=SC2034 # disk.sh's
what="power cuts on FAT"

# shellcheck source=tests/guest/disk.sh
. "$guest/disk.sh"

# entry FILE TITLE WORDS
entry() {
    printf 'title      %s\nversion    6.1.0\nmachine-id %s\nsort-key   debian\noptions    %s\nlinux      /linux\n' "$2" "$ID" "$3" >"$1"
}

# What the guest has where onehop looks, and the boot partition.
make_tree() {
    local tree=$1 esp=$2 entries=$2/loader/entries n
    mkdir -p "$tree"/{boot,etc/kernel,usr/bin,usr/sbin,var/lib,tmp,root,run} "$entries"
    echo "$ID" >"$tree/etc/machine-id"
    : >"$tree/usr/sbin/kernel-install"
    printf 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n' >"$tree/etc/os-release"
    echo 'root=/dev/vda2 ro quiet' >"$tree/etc/kernel/cmdline"
    echo 'timeout 3' >"$esp/loader/loader.conf"
    echo "stands in for a kernel" >"$esp/linux"
    for n in 1 2 3; do
        entry "$entries/000$n-is-removed-before-and-leaves-a-hole-in-the-folder.conf" gone root=none
    done
    entry "$entries/$ID-6.1.0-56-amd64.conf" "Debian" "root=/dev/vda2 ro quiet"
    entry "$entries/$ID-6.1.0-57-amd64+3.conf" "Debian" "root=/dev/vda2 ro quiet"
    entry "$entries/other.conf" "Another system" "root=/dev/vda9"
    sed -i '/machine-id/d' "$entries/other.conf"
}

status=0
"$guest/prepare.sh" "$1" || status=$?
[ "$status" != 77 ] || nothing "no forged devices in this QEMU, so onehop has nothing to fix"
[ "$status" = 0 ] || exit 1
work=$(cd "$1" && pwd)
install_packages
dir=$work/cut
rm -rf "$dir"
mkdir -p "$dir/modules"
make_tree "$dir/tree" "$dir/esp"
find "$work/kernel/lib/modules" \( -name 'fat.ko' -o -name vfat.ko -o -name nls_cp437.ko -o -name nls_ascii.ko \) -exec cp {} "$dir/modules/" \;
truncate -s $((SIZE + 1))M "$dir/disk.img"
mkfs.vfat -F 32 "$dir/disk.img" $((SIZE * 1024)) >/dev/null 2>&1
cp --sparse=always "$dir/disk.img" "$dir/base.img"
: >"$dir/log"
{
    cat "$guest/machines/switch2.args"
    echo "-blockdev node-name=file,driver=file,filename=$dir/disk.img"
    echo "-blockdev node-name=log,driver=file,filename=$dir/log"
    echo "-blockdev node-name=logged,driver=blklogwrites,file=file,log=log,log-sector-size=512"
    echo "-device virtio-blk-pci,drive=logged,bus=pcie.0,addr=8"
} >"$dir/cut.args"
lines=$dir/lines
"$guest/boot.sh" "$work" "$dir/cut.args" -i intel -t 300 -l "$dir/console" -o "$dir/out" -e "MIB=$SIZE" -e "ID=$ID" \
    -f "$onehop:/bin/onehop" -f "$(command -v dd):/bin/dd-direct" -f "$guest/crash/tree.sh" \
    -f "$dir/tree:/host/tree" -f "$dir/esp:/host/esp" -f "$dir/modules:/host/modules" "$here/cut-rounds.sh" >"$lines" 2>&1 ||
    echo "FAIL - guest: status $?" >>"$lines"
cat "$lines"
if ! grep -q '^FAIL' "$lines"; then
    python3 "$here/cut-replay.py" --dir "$dir" --mib "$SIZE" --onehop "$onehop" --states "$states" >"$dir/replay" ||
        grep -q '^FAIL' "$dir/replay" || echo "FAIL - replay" >>"$dir/replay"
    tee -a "$lines" <"$dir/replay"
fi
count_lines "$lines"
