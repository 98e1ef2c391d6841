#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh WORKDIR ONEHOP
#
# A Debian with systemd and GRUB on a disk, in a machine with forged GPUs: ONEHOP fixes, the machine
# is started again through GRUB, the fix is undone, the machine is started once more.  One boot for
# each script in stages/, in the order of their names.  WORKDIR is prepare.sh's; the installed system
# is kept in its folder system/.  6 minutes the first time, then 3.  Needs root (for mmdebstrap).
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
LIMIT=400 # seconds a boot

here=$(cd "$(dirname "$0")" && pwd)
[ $# = 2 ] || { sed -n '/^# run.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
onehop=$2
[ -x "$onehop" ] || { echo "run.sh: no program $onehop" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin

say() { echo "# $*"; }
nothing() {
    echo "skip - system: $*"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}

install_packages() {
    local missing=() p
    for p in $PACKAGES; do
        dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
        install "${missing[@]}" >"$work/apt-system.log" 2>&1 || nothing "no packages ${missing[*]}"
}

# ---- the system ----

# From the same archives as this machine's own packages.
make_root() {
    local packages list
    read -r -d '' -a list <<<"$SYSTEM" || true
    packages=$(IFS=, && echo "${list[*]}")
    [ "$(cat "$dir/root.packages" 2>/dev/null)" != "$packages" ] || return 0
    say "making the system"
    rm -rf "$dir/root" "$dir/installed.img"
    # shellcheck disable=SC2016 # apt expands these
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | sort -u >"$dir/sources.list"
    mmdebstrap --variant=minbase --format=directory --include="$packages" '' "$dir/root" \
        "$dir/sources.list" >"$dir/mmdebstrap.log" 2>&1 ||
        nothing "mmdebstrap failed, see $dir/mmdebstrap.log"
    echo "$packages" >"$dir/root.packages"
}

# What an administrator would have written, and a unit that runs a stage at each boot.
configure_root() {
    local root=$dir/root
    echo 'LABEL=root / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"
    echo forged >"$root/etc/hostname"
    # no_timer_check: an emulated machine on a busy host may take too long for that check. The
    # blacklist: real drivers must not take the forged devices from the stand-ins.
    cat >"$root/etc/default/grub" <<'END'
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="console=ttyS0 no_timer_check panic=-1 modprobe.blacklist=mlx5_core,nouveau"
GRUB_TERMINAL=console
END
    install -m 755 "$here/stage" "$root/usr/local/sbin/stage"
    install -m 644 "$here/stage.service" "$root/etc/systemd/system/stage.service"
    ln -sf ../stage.service "$root/etc/systemd/system/multi-user.target.wants/stage.service"
    # A login prompt would hang the line up.
    ln -sf /dev/null "$root/etc/systemd/system/serial-getty@ttyS0.service"
}

make_disk() {
    local image=$1 offset=$((4096 * 512))
    rm -f "$image"
    truncate -s ${SIZE}M "$image"
    printf 'label: gpt\nstart=2048, size=2048, type=21686148-6449-6E6F-744E-656564454649\nstart=4096, type=linux\n' |
        sfdisk -q "$image"
    mke2fs -q -F -b 4096 -t ext4 -L root -E offset=$offset -d "$dir/root" "$image" \
        $(((SIZE * 1024 * 1024 - offset - 1024 * 1024) / 4096))
}

# ---- boots ----

# boot DISK STAGE [option of QEMU...]: its lines to standard output; status 0 if it came to its end
boot() {
    local disk=$1 stage=$2 name job=$dir/job status=0 args start=$SECONDS
    shift 2
    name=$(basename "$stage" .sh)
    rm -rf "$job" "$job.tar"
    mkdir -p "$job"
    cat "$here/../lib.sh" "$here/common.sh" >"$job/lib.sh"
    cp "$onehop" "$job/onehop"
    cp "$stage" "$job/run"
    [ ! -d "$modules" ] || cp -r "$modules" "$job/"
    tar -cf "$job.tar" -C "$job" .
    truncate -s %1M "$job.tar"
    read -r -d '' -a args < <(sed 's/#.*//' "$here/../machines/switch2.args") || true
    # No KVM: it may be there and not able to run a kernel.
    timeout -k 5 "$LIMIT" env "LD_PRELOAD=$work/p2pdev.so" qemu-system-x86_64 \
        -accel tcg,thread=multi -machine q35,kernel-irqchip=split \
        -cpu max,vendor=GenuineIntel,family=6,model=143,stepping=8,model-id=Xeon-8480 \
        -nodefaults -no-user-config -display none -no-reboot \
        -chardev "file,id=console,path=$dir/$name.console" -serial chardev:console \
        -chardev "file,id=lines,path=$dir/$name.lines" -serial chardev:lines \
        -device intel-iommu,intremap=on,device-iotlb=on "${args[@]}" \
        -drive "if=none,id=root,format=raw,file=$disk" -device virtio-blk-pci,drive=root,bus=pcie.0,addr=8,bootindex=1 \
        -drive "if=none,id=job,format=raw,readonly=on,file=$job.tar" \
        -device virtio-blk-pci,drive=job,bus=pcie.0,addr=9 "$@" </dev/null 2>"$dir/$name.qemu" || status=$?
    tr -d '\r' <"$dir/$name.lines" | sed "s/^\(ok\|FAIL\|skip\) - /&$name: /; /^stage-end\$/d"
    say "$name: $((SECONDS - start)) s"
    [ "$status" = 0 ] && grep -q '^stage-end' "$dir/$name.lines" && return 0
    tail -n 20 "$dir/$name.console" "$dir/$name.qemu" | sed 's/^/# /'
    echo "FAIL - $name: the boot did not come to its end (status of QEMU: $status)"
    return 1
}

# The boot loader can only be installed from within; this boot is by QEMU's.
install_system() {
    local newest
    newest=$(find "$here/run.sh" "$here/stage" "$here/stage.service" "$here/install.sh" "$dir/root.packages" \
        -newer "$dir/installed.img" 2>/dev/null || echo none)
    [ -n "$newest" ] || return 0
    say "installing it on a disk"
    configure_root
    make_disk "$dir/new.img"
    boot "$dir/new.img" "$here/install.sh" -kernel "$dir/root/vmlinuz" -initrd "$dir/root/initrd.img" \
        -append "console=ttyS0 root=LABEL=root rw quiet no_timer_check panic=-1" >"$dir/install.log" || true
    if grep -q '^FAIL' "$dir/install.log"; then
        cat "$dir/install.log"
        return 1
    fi
    mv "$dir/new.img" "$dir/installed.img"
}

status=0
"$here/../prepare.sh" "$1" || status=$?
[ "$status" != 77 ] || nothing "no forged devices in this QEMU, so onehop has nothing to fix"
[ "$status" = 0 ] || exit 1
work=$(cd "$1" && pwd)
dir=$work/system modules=$work/modules
mkdir -p "$dir"
[ "$(id -u)" = 0 ] || nothing "needs root"
install_packages
make_root
lines=$dir/lines
: >"$lines"
if install_system; then
    cp --sparse=always "$dir/installed.img" "$dir/disk.img"
    for stage in "$here"/stages/*.sh; do
        boot "$dir/disk.img" "$stage" | tee -a "$lines" || break
    done
else
    echo "FAIL - install: see above" | tee -a "$lines"
fi

count() { grep -c "^$1 - " "$lines" || true; }
failed=$(count FAIL)
echo "$(count ok) passed, $failed failed, $(count skip) skipped"
[ "$failed" = 0 ]
