#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh WORKDIR ONEHOP
#
# A Debian with the driver's own DKMS package. In it, as in a chroot where an image is prepared,
# ONEHOP brings an edited driver into the system: with real DKMS, compiler and headers. Then it is
# booted, with forged GPUs: the driver is loaded, and everything is taken back, without a compiler.
# One more boot shows the stock driver. WORKDIR is prepare.sh's; the system before is kept in its
# folder unlock/. 25 minutes the first time on 2 processors, then 12. Needs root, and 20 GB.
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing
# failed; 77: nothing could be checked.

set -euo pipefail
shopt -s inherit_errexit

PACKAGES="mmdebstrap e2fsprogs fdisk tar"
# Of the guest: a small server, GRUB for a BIOS, onehop's libraries, and what DKMS wants.
SYSTEM="systemd systemd-sysv udev kmod dbus login initramfs-tools grub-pc-bin grub2-common grub-common
    pciutils libpci3 libjansson4 libarchive13 libelf1 jq zstd
    dkms build-essential patch openssl linux-headers-amd64"
DRIVER=nvidia-open-kernel-dkms
SOURCES=nvidia-open-gpu-kernel-modules
# What it needs, of its own version, where the archive has a newer one too.
OF_SAME_VERSION="nvidia-open-kernel-support firmware-nvidia-gsp nvidia-alternative nvidia-legacy-check"
SIZE=6000  # MiB
LIMIT=1500 # seconds a boot

guest=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 2 ] || { sed -n '/^# run.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
onehop=$(realpath "$2")
[ -x "$onehop" ] || { echo "run.sh: no program $onehop" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin
machine=workstation4
platform=(-machine q35)
common=$guest/unlock/common.sh what=unlock
# shellcheck source=tests/guest/disk.sh
. "$guest/disk.sh"
# shellcheck source=tests/guest/unlock/within.sh
. "$guest/unlock/within.sh"

# add_driver FOLDER: the package, with what it builds by itself for each kernel; and its sources.
# The package is left half installed where the build for one of the kernels fails. The kernel is the
# oldest of the archive, for which the driver was made; the newest may have changed what its sources use.
add_driver() {
    local root=$1 kernel version p list=()
    sed -n 's/^deb \(.*\) main contrib .*/deb-src \1 contrib/p' "$root.list" >"$root/etc/apt/sources.list.d/sources.list"
    touch "$root/etc/resolv.conf"
    within "$root" apt-get -qq update
    kernel=$(kernels_of "$root" 'linux-image-6[0-9.]+-[0-9]+-amd64' | head -n 1)
    kernel=${kernel#linux-image-} version=$(version_of "$root" $DRIVER)
    for p in $OF_SAME_VERSION; do
        list+=("$p=$version")
    done
    # What boots this disk, and little more: an emulated machine makes it again.
    mkdir -p "$root/etc/initramfs-tools/conf.d"
    echo MODULES=list >"$root/etc/initramfs-tools/conf.d/modules"
    printf 'virtio_pci\nvirtio_blk\next4\ncrc32c\n' >"$root/etc/initramfs-tools/modules"
    within "$root" apt-get -y --no-install-recommends install "linux-image-$kernel" "linux-headers-$kernel"
    within "$root" apt-get -y --no-install-recommends install $DRIVER "${list[@]}" || true
    within "$root" sh -euc "mkdir -p /usr/src/sources && cd /usr/src/sources &&
        apt-get source --tar-only --download-only $SOURCES=$version"
    mkdir "$root/usr/src/driver"
    tar -xf "$root"/usr/src/sources/*.orig.tar.* -C "$root/usr/src/driver" --strip-components=1
    rm -r "$root/usr/src/sources"
    within "$root" apt-get clean
    [ -d "$root/lib/modules/$kernel" ] && [ -n "$(within "$root" dkms status)" ]
}

make_system() {
    local list
    read -r -d '' -a list <<<"$SYSTEM" || true
    [ "$(cat "$dir/root.packages" 2>/dev/null)" != "${list[*]}" ] || return 0
    say "making the system"
    rm -rf "$dir/root"
    make_root "$dir/root" "main contrib non-free non-free-firmware" "${list[@]}"
    say "the driver's package builds its modules"
    add_driver "$dir/root" >"$dir/driver.log" 2>&1 || nothing "no DKMS package, see $dir/driver.log"
    echo "${list[*]}" >"$dir/root.packages"
}

status=0
"$guest/prepare.sh" "$1" || status=$?
[ "$status" != 77 ] || nothing "no forged devices in this QEMU"
[ "$status" = 0 ] || exit 1
work=$(cd "$1" && pwd)
dir=$work/unlock
mkdir -p "$dir"
[ "$(id -u)" = 0 ] || nothing "needs root"
install_packages
make_system
lines=$dir/lines
: >"$lines"
rm -rf "$dir/edited"
cp -a "$dir/root" "$dir/edited"
configure_root "$dir/edited"
if chroot_stage "$dir/edited" "$guest/unlock/stages/1-image.sh" | tee -a "$lines"; then
    say "putting it on a disk"
    make_disk "$dir/edited" "$dir/disk.img"
    kernel=$(basename "$(readlink -f "$dir/edited/vmlinuz")" | sed 's/^vmlinuz-//')
    # The boot loader can only be installed from within; this boot is by QEMU's.
    if boot "$dir/disk.img" "$guest/unlock/stages/2-edited.sh" -kernel "$dir/edited/boot/vmlinuz-$kernel" \
        -initrd "$dir/edited/boot/initrd.img-$kernel" \
        -append "console=ttyS0 root=LABEL=root rw quiet no_timer_check panic=-1 modprobe.blacklist=nouveau" |
        tee -a "$lines"; then
        boot "$dir/disk.img" "$guest/unlock/stages/3-stock.sh" | tee -a "$lines" || true
    fi
fi
rm -rf "$dir/edited"
count_lines "$lines"
