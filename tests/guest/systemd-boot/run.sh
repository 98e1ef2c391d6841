#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh WORKDIR ONEHOP [STAGE...]
#
# A Debian with systemd-boot on a FAT boot partition, in a machine with forged GPUs and UEFI firmware: ONEHOP
# fixes, a kernel is added by the real kernel-install, the fix is undone; a rescue boot; then trial boots.  One boot
# for each script in stages/ (or for those that are named).  WORKDIR is prepare.sh's; the installed
# system is kept in its folder systemd-boot/.  Needs root.
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing
# failed; 77: nothing could be checked.

set -euo pipefail
shopt -s inherit_errexit

PACKAGES="mmdebstrap e2fsprogs fdisk tar ovmf dosfstools mtools"
# Of the guest: what a small server has, the boot loader, and onehop's libraries.
SYSTEM="systemd systemd-sysv systemd-boot udev kmod dbus login initramfs-tools linux-image-amd64 pciutils
    libpci3 libjansson4 libarchive13 libelf1 jq dosfstools"
SIZE=2500 # MiB, of which the boot partition has
ESP=400
LIMIT=900 # seconds a boot
ID=0123456789abcdef0123456789abcdef
FIRMWARE=/usr/share/OVMF

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
# For disk.sh.
export LIMIT
machine=switch2
platform=(-machine "q35,kernel-irqchip=split"
    -cpu "max,vendor=GenuineIntel,family=6,model=143,stepping=8,model-id=Xeon-8480"
    -device "intel-iommu,intremap=on,device-iotlb=on"
    # Room for the large BARs: the firmware gives up without it.
    -fw_cfg "name=opt/ovmf/X-PciMmio64Mb,string=1048576")
what=systemd-boot

# shellcheck source=tests/guest/disk.sh
. "$guest/disk.sh"

make_system() {
    local list
    read -r -d '' -a list <<<"$SYSTEM" || true
    [ "$(cat "$dir/root.packages" 2>/dev/null)" != "${list[*]}" ] || return 0
    say "making the system"
    rm -rf "$dir/root" "$dir/installed.img"
    make_root "$dir/root" main "${list[@]}"
    echo "${list[*]}" >"$dir/root.packages"
}

# kernel_install VERSION: as the package of a kernel does
kernel_install() {
    # shellcheck disable=SC2016 # the inner shell's
    unshare -m sh -ec 'mount --bind /dev "$1/dev"; mount -t proc proc "$1/proc"
        # What it names need not exist there.
        unset TMPDIR; chroot "$1" kernel-install add "$2" "/boot/vmlinuz-$2" "/boot/initrd.img-$2"' sh "$dir/root" "$1"
}

# The boot partition as an installer leaves it. What its command line came from is gone, as on machines
# where it was that of the installer.
install_loader() {
    local root=$dir/root efi=$dir/root/efi version
    version=$(basename "$root"/boot/vmlinuz-*) version=${version#vmlinuz-}
    rm -rf "$efi"
    mkdir -p "$efi/EFI/BOOT" "$efi/EFI/systemd" "$efi/loader/entries" "$efi/$ID" "$root/etc/kernel"
    cp "$root/usr/lib/systemd/boot/efi/systemd-bootx64.efi" "$efi/EFI/systemd/"
    cp "$root/usr/lib/systemd/boot/efi/systemd-bootx64.efi" "$efi/EFI/BOOT/BOOTX64.EFI"
    echo type1 >"$efi/loader/entries.srel"
    echo "timeout 0" >"$efi/loader/loader.conf"
    echo "$ID" >"$root/etc/machine-id"
    echo "root=LABEL=root rw quiet console=ttyS0 no_timer_check panic=-1" >"$root/etc/kernel/cmdline"
    kernel_install "$version" >"$dir/install.log" 2>&1 || return 1
    rm "$root/etc/kernel/cmdline"
    # Here /efi is no file system of its own yet.
    sed -i 's, /efi/, /,' "$efi/loader/entries"/*.conf
    # What a person wrote: a rescue entry, and one of another system.
    sed 's/^title.*/title Rescue/; /^options/s/quiet/onehop.rescue/' "$efi/loader/entries/$ID-$version.conf" \
        >"$efi/loader/entries/rescue.conf"
    printf 'title Another system\nlinux /other\noptions root=LABEL=other\n' >"$efi/loader/entries/other.conf"
    echo 'LABEL=ESP /efi vfat umask=0077 0 2' >>"$root/etc/fstab"
}

# The boot partition, then the root.
make_efi_disk() {
    local image=$1 offset=$(((1 + ESP) * 1024 * 1024))
    rm -f "$image" "$dir/esp.img"
    truncate -s "${ESP}M" "$dir/esp.img"
    mkfs.vfat -F 32 -n ESP "$dir/esp.img" >/dev/null
    mcopy -i "$dir/esp.img" -s "$dir/root/efi"/* ::/
    rm -rf "$dir/root/efi"
    mkdir "$dir/root/efi"
    truncate -s "${SIZE}M" "$image"
    printf 'label: gpt\nstart=2048, size=%d, type=uefi\nstart=%d, type=linux\n' $((ESP * 2048)) $((offset / 512)) |
        sfdisk -q "$image"
    dd if="$dir/esp.img" of="$image" bs=1M seek=1 conv=notrunc,sparse status=none
    mke2fs -q -F -b 4096 -t ext4 -L root -E offset=$offset -d "$dir/root" "$image" \
        $(((SIZE * 1024 * 1024 - offset - 1024 * 1024) / 4096))
}

install_system() {
    local newest
    newest=$(find "$here/run.sh" "$guest/system/stage" "$guest/disk.sh" "$dir/root.packages" \
        -newer "$dir/installed.img" 2>/dev/null || echo none)
    [ -n "$newest" ] || return 0
    say "installing it on a disk"
    configure_root "$dir/root"
    install_loader || { cat "$dir/install.log"; return 1; }
    make_efi_disk "$dir/new.img" || return 1
    mv "$dir/new.img" "$dir/installed.img"
}

status=0
"$guest/prepare.sh" "$1" || status=$?
[ "$status" != 77 ] || nothing "no forged devices in this QEMU, so onehop has nothing to fix"
[ "$status" = 0 ] || exit 1
work=$(cd "$1" && pwd)
dir=$work/systemd-boot
mkdir -p "$dir"
[ "$(id -u)" = 0 ] || nothing "needs root"
install_packages
[ -f "$FIRMWARE/OVMF_VARS.fd" ] || nothing "no UEFI firmware"
make_system
# The stages' own words come last, and count.
common=$dir/common.sh
cat "$guest/system/common.sh" "$here/common.sh" >"$common"
lines=$dir/lines
: >"$lines"
if install_system; then
    cp --sparse=always "$dir/installed.img" "$dir/disk.img"
    cp "$FIRMWARE/OVMF_VARS.fd" "$dir/vars.fd"
    for stage in "${stages[@]}"; do
        boot "$dir/disk.img" "$stage" -drive "if=pflash,format=raw,readonly=on,file=$FIRMWARE/OVMF_CODE.fd" \
            -drive "if=pflash,format=raw,file=$dir/vars.fd" | tee -a "$lines" || break
    done
else
    echo "FAIL - install: see above" | tee -a "$lines"
fi

count_lines "$lines"
