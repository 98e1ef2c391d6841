#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh WORKDIR ONEHOP [STAGE...]
#
# A Debian with systemd and GRUB on a disk, in a machine with forged GPUs: ONEHOP fixes, the machine
# is started again through GRUB, the fix is undone, the machine is started once more.  One boot for
# each script in stages/ (or for those that are named), in the order of their names, in the machine
# that its header names.  WORKDIR is prepare.sh's; the installed system is kept in its folder
# system/.  10 minutes the first time, then 11.  Needs root (for mmdebstrap).
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing
# failed; 77: nothing could be checked.

set -euo pipefail
shopt -s inherit_errexit

PACKAGES="mmdebstrap e2fsprogs fdisk tar"
# Of the guest: what a small server has, GRUB for a BIOS, and onehop's libraries.
SYSTEM="systemd systemd-sysv udev kmod dbus login initramfs-tools linux-image-amd64 grub-pc-bin
    grub2-common grub-common pciutils libpci3 libjansson4 libarchive13 libelf1 jq"
SIZE=2500 # MiB
LIMIT=900 # seconds a boot; on a host that has nothing else to do, a tenth of it

here=$(cd "$(dirname "$0")" && pwd)
guest=${here%/*}
[ $# -ge 2 ] || { sed -n '/^# run.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
onehop=$2
stages=("$here"/stages/*.sh)
[ $# = 2 ] || stages=("${@:3}") stages=("${stages[@]/#/$here/stages/}") stages=("${stages[@]/%/.sh}")
for stage in "${stages[@]}"; do
    [ -f "$stage" ] || { echo "run.sh: no stage $stage" >&2; exit 2; }
done
[ -x "$onehop" ] || { echo "run.sh: no program $onehop" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin
machine=switch2
platform=(-machine "q35,kernel-irqchip=split"
    -cpu "max,vendor=GenuineIntel,family=6,model=143,stepping=8,model-id=Xeon-8480"
    -device "intel-iommu,intremap=on,device-iotlb=on")
common=$here/common.sh what=system

# shellcheck source=tests/guest/disk.sh
. "$guest/disk.sh"

# ---- the system ----

make_system() {
    local list
    read -r -d '' -a list <<<"$SYSTEM" || true
    [ "$(cat "$dir/root.packages" 2>/dev/null)" != "${list[*]}" ] || return 0
    say "making the system"
    rm -rf "$dir/root" "$dir/installed.img"
    make_root "$dir/root" main "${list[@]}"
    echo "${list[*]}" >"$dir/root.packages"
}

# The boot loader can only be installed from within; this boot is by QEMU's.
install_system() {
    local newest
    newest=$(find "$here/run.sh" "$here/stage" "$here/stage.service" "$here/install.sh" "$dir/root.packages" \
        -newer "$dir/installed.img" 2>/dev/null || echo none)
    [ -n "$newest" ] || return 0
    say "installing it on a disk"
    configure_root "$dir/root"
    make_disk "$dir/root" "$dir/new.img"
    boot "$dir/new.img" "$here/install.sh" -kernel "$dir/root/vmlinuz" -initrd "$dir/root/initrd.img" \
        -append "console=ttyS0 root=LABEL=root rw quiet no_timer_check panic=-1" >"$dir/install.log" || true
    if grep -q '^FAIL' "$dir/install.log"; then
        cat "$dir/install.log"
        return 1
    fi
    mv "$dir/new.img" "$dir/installed.img"
}

status=0
"$guest/prepare.sh" "$1" || status=$?
[ "$status" != 77 ] || nothing "no forged devices in this QEMU, so onehop has nothing to fix"
[ "$status" = 0 ] || exit 1
work=$(cd "$1" && pwd)
dir=$work/system
mkdir -p "$dir"
[ "$(id -u)" = 0 ] || nothing "needs root"
install_packages
make_system
rm -rf "$dir/extra"
mkdir "$dir/extra"
[ ! -d "$work/modules" ] || cp -r "$work/modules" "$dir/extra/"
lines=$dir/lines
: >"$lines"
if install_system; then
    cp --sparse=always "$dir/installed.img" "$dir/disk.img"
    for stage in "${stages[@]}"; do
        machine=$(sed -n 's/^# machine: //p' "$stage")
        boot "$dir/disk.img" "$stage" | tee -a "$lines" || break
    done
else
    echo "FAIL - install: see above" | tee -a "$lines"
fi

count_lines "$lines"
