#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh WORKDIR ONEHOP [STATES]
#
# Power cuts: rounds.sh runs ONEHOP in a guest whose disk keeps a log of each write, and replay.py
# then rebuilds STATES (600) of the disks that a power cut could have left, and reads each as Linux
# does and as GRUB does.  With a few of them a second guest is started, where next.sh goes on.
# WORKDIR is prepare.sh's; its folder crash/ keeps the disk and its log.
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing
# failed; 77: nothing could be checked.

set -euo pipefail
shopt -s inherit_errexit

PACKAGES="grub-common e2fsprogs python3-minimal"
SIZE=64 # MiB; a megabyte follows for the marks
KEEP=6  # states that the second guest gets

here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { sed -n '/^# run.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
onehop=$2 states=${3:-600}
[ -x "$onehop" ] || { echo "run.sh: no program $onehop" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin

nothing() {
    echo "skip - power cuts: $*"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}

# Read-only tools for the host; nothing that touches this machine's boot loader is run.
install_packages() {
    local missing=() p
    for p in $PACKAGES; do
        dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] || return 0
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
        install "${missing[@]}" >"$work/apt-crash.log" 2>&1 ||
        echo "run.sh: apt-get install ${missing[*]} failed, see $work/apt-crash.log" >&2
}

# The tree that the guest puts on the disk: what a Debian host with GRUB has where onehop looks.
# Its programs do what the real ones do to files, in a tenth of the time.
make_tree() {
    local tree=$1 i
    mkdir -p "$tree"/{boot/grub,etc/default/grub.d,etc/modprobe.d,etc/security/limits.d,etc/systemd/system} \
        "$tree"/{usr/sbin,var/lib,tmp,root,run}
    cp "$here"/tree/* "$tree/usr/sbin/"
    chmod 755 "$tree"/usr/sbin/*
    cat >"$tree/etc/default/grub" <<'END'
# What a person wrote; read by grub-mkconfig.
GRUB_DEFAULT=0
GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="console=ttyS0"
END
    echo 'GRUB_CMDLINE_LINUX_DEFAULT="quiet nvme_core.io_timeout=60"' >"$tree/etc/default/grub.d/50-image.cfg"
    echo 'options kvm ignore_msrs=1' >"$tree/etc/modprobe.d/kvm.conf"
    printf 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n' >"$tree/etc/os-release"
    echo 'root:x:0:0:root:/root:/bin/sh' >"$tree/etc/passwd"
    echo 'root:x:0:' >"$tree/etc/group"
    cp "$work/kernel/boot/config-"* "$tree/boot/"
    for i in vmlinuz initrd.img; do
        echo "stands in for $i" >"$tree/boot/$i-$(cat "$work/kernel/version")"
    done
}

# guest SCRIPT [DISK-ARGUMENT...]: with its lines to standard output; the machine has these disks too
guest() {
    local script=$1 name start=$SECONDS status=0
    shift
    name=$(basename "$script" .sh)
    { cat "$here/../machines/switch2.args" && printf '%s\n' "$@"; } >"$dir/$name.args"
    "$here/../boot.sh" "$work" "$dir/$name.args" -i intel -t 300 -l "$dir/$name.console" -o "$dir/out" \
        -c "BOOT_IMAGE=/boot/vmlinuz-$(cat "$work/kernel/version")" -e "MIB=$SIZE" -f "$onehop:/bin/onehop" \
        -f "$(command -v dd):/bin/dd-direct" -f "$here/tree.sh" -f "$dir/tree:/host/tree" -f "$dir/first:/host/first" "$script" \
        >"$dir/lines.new" 2>&1 || status=$?
    [ "$status" = 0 ] || echo "FAIL - guest: status $status" >>"$dir/lines.new"
    sed "s/^\(ok\|FAIL\|skip\) - /&$name: /" "$dir/lines.new" | tee -a "$dir/lines"
    echo "# $name: $((SECONDS - start)) s"
    return "$status"
}

# Each write is logged before it is made.
logging_disk() {
    echo "-blockdev node-name=file,driver=file,filename=$dir/disk.img"
    echo "-blockdev node-name=log,driver=file,filename=$dir/log"
    echo "-blockdev node-name=logged,driver=blklogwrites,file=file,log=log,log-sector-size=512"
    echo "-device virtio-blk-pci,drive=logged,bus=pcie.0,addr=8"
}

# The states that replay.py kept.
state_disks() {
    local image n=0
    for image in "$dir"/states/*.img; do
        echo "-drive if=none,id=state$n,format=raw,file=$image"
        echo "-device virtio-blk-pci,drive=state$n,serial=$(basename "$image" .img),bus=pcie.0,addr=$((n + 8))"
        n=$((n + 1))
    done
}

all() {
    local start status=0
    guest "$here/rounds.sh" "$(logging_disk)" || return
    start=$SECONDS
    cp -r "$dir/out/trees/0/." "$dir/first/"
    python3 "$here/replay.py" --dir "$dir" --mib "$SIZE" --onehop "$onehop" --states "$states" --keep "$KEEP" \
        >"$dir/lines.new" || status=$?
    tee -a "$dir/lines" <"$dir/lines.new"
    echo "# replay: $((SECONDS - start)) s"
    [ "$status" = 0 ] || grep -q '^FAIL' "$dir/lines.new" || echo "FAIL - replay: status $status" | tee -a "$dir/lines"
    guest "$here/next.sh" "$(state_disks)"
}

status=0
"$here/../prepare.sh" "$1" || status=$?
[ "$status" != 77 ] || nothing "no forged devices in this QEMU, so onehop has nothing to fix"
[ "$status" = 0 ] || exit 1
work=$(cd "$1" && pwd)
install_packages
for tool in python3 mke2fs e2fsck debugfs grub-fstest; do
    command -v "$tool" >/dev/null || nothing "no $tool"
done

dir=$work/crash
rm -rf "$dir"
mkdir -p "$dir"
make_tree "$dir/tree"
truncate -s $((SIZE + 1))M "$dir/disk.img"
mke2fs -q -F -t ext4 -b 4096 "$dir/disk.img" $((SIZE * 256))
cp --sparse=always "$dir/disk.img" "$dir/base.img"
: >"$dir/log"
mkdir "$dir/first" "$dir/states"
: >"$dir/lines"
all || true

count() { grep -c "^$1 - " "$dir/lines" || true; }
failed=$(count FAIL)
echo "$(count ok) passed, $failed failed, $(count skip) skipped"
[ "$failed" = 0 ]
