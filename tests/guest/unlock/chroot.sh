#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# chroot.sh WORKDIR ONEHOP DISTRIBUTION
#
# Another distribution with its own package of the driver, of which distributions/DISTRIBUTION tells
# what there is to know. In it, as in a chroot where an image is prepared, ONEHOP brings an edited
# driver in, a newer kernel comes and goes, and all is taken back, without a compiler: with the
# distribution's DKMS, compiler, headers and driver. Nothing is booted. The system before is kept in
# WORKDIR/unlock-DISTRIBUTION, and copied for later runs. 25 minutes the first time on 2 processors,
# then 15. Needs root, 15 GB, and that distribution's archive.
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing
# failed; 77: nothing could be checked.

set -euo pipefail
shopt -s inherit_errexit

PACKAGES="mmdebstrap curl"
# In there: what builds a driver, and onehop's libraries.
SYSTEM="apt initramfs-tools kmod udev dkms build-essential patch openssl xz-utils zstd jq
    libpci3 libjansson4 libarchive13 libelf1"

guest=$(cd "$(dirname "$0")/.." && pwd)
facts=$guest/unlock/distributions/${3:-}
[ $# = 3 ] || facts=
[ -f "$facts" ] || { sed -n '/^# chroot.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
onehop=$(realpath "$2")
[ -x "$onehop" ] || { echo "chroot.sh: no program $onehop" >&2; exit 2; }
export PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$1"
work=$(cd "$1" && pwd)
what="unlock in $3"
dir=$work/unlock-$3
common=$guest/unlock/common.sh
# shellcheck source=tests/guest/disk.sh
. "$guest/disk.sh"
# shellcheck source=tests/guest/unlock/within.sh
. "$guest/unlock/within.sh"
# shellcheck source=tests/guest/unlock/archive.sh
. "$guest/unlock/archive.sh"
# MIRROR ... KEYRING_SHA256: see archive.sh
# KERNELS: regular expression of image packages, whose headers are called the same but for that word
# DRIVER: packages; the first is the one whose version counts, and "NAME=" is of that version too
# DKMS_NAME, MODULE: of the driver with DKMS, and of nvidia.ko there
# SOURCE: Debian's source package of that release, for where $ONEHOP_DRIVER_TREES/RELEASE is not there;
#   empty: none
# shellcheck source=tests/guest/unlock/distributions/trixie
. "$facts"

# headers IMAGE-PACKAGE
headers() { echo "${1/image/headers}"; }

# add_sources ROOT VERSION: of the driver's release, as root/driver
add_sources() {
    local root=$1 version=$2 tree
    tree=${ONEHOP_DRIVER_TREES:-}/${version%%-*}
    mkdir "$root/root/driver"
    if [ -f "$tree/version.mk" ]; then
        cp -rT "$tree" "$root/root/driver"
    elif [ -n "$SOURCE" ]; then
        mkdir "$root/root/source"
        within "$root" sh -euc "cd /root/source && apt-get source --tar-only --download-only $SOURCE=$version"
        tar -xf "$root"/root/source/*.orig.tar.* -C "$root/root/driver" --strip-components=1
        rm -r "$root/root/source"
    else
        echo "ONEHOP_DRIVER_TREES has no release ${tree##*/}" >&2
        return 1
    fi
}

# add_driver ROOT: the oldest kernel, the driver's package, which builds for it; and the newest kernel's
# packages, to be installed later
add_driver() {
    local root=$1 kernels image version p driver=()
    within "$root" apt-get -qq update
    mapfile -t kernels < <(kernels_of "$root" "$KERNELS")
    image=${kernels[0]} version=$(version_of "$root" "${DRIVER%% *}")
    for p in $DRIVER; do
        driver+=("${p/%=/=$version}")
    done
    within "$root" apt-get -y --no-install-recommends install "$image" "$(headers "$image")"
    within "$root" apt-get -y --no-install-recommends install "${driver[@]}"
    add_sources "$root" "$version"
    {
        echo "kernel=${image#linux-image-}"
        echo "dkms_name=$DKMS_NAME driver=$MODULE packages='${DRIVER//=/}'"
    } >"$root/root/names"
    image=${kernels[-1]}
    [ ${#kernels[@]} -gt 1 ] || return 0
    echo "later=${image#linux-image-} later_packages='$image $(headers "$image")'" >>"$root/root/names"
    within "$root" apt-get -y --no-install-recommends --download-only install "$image" "$(headers "$image")"
}

make_system() {
    local list root=$dir/root
    read -r -d '' -a list <<<"$SYSTEM $KEYRING" || true
    cmp -s "$facts" "$dir/facts" && return 0
    say "making the system"
    rm -rf "$root"
    archive >"$root.list"
    find_keyring
    bootstrap "$root" "$keyring" "${list[@]}"
    touch "$root/etc/resolv.conf"
    say "the driver's package builds its modules"
    # Waited for, it stops at what fails.
    add_driver "$root" >"$dir/driver.log" 2>&1 &
    wait $! || nothing "no driver's package or sources, see $dir/driver.log"
    cp "$facts" "$dir/facts"
}

[ "$(id -u)" = 0 ] || nothing "needs root"
mkdir -p "$dir"
install_packages
make_system
lines=$dir/lines
: >"$lines"
trial=$dir/trial
rm -rf "$trial"
cp -a "$dir/root" "$trial"
for stage in "$guest"/unlock/chroot/*.sh; do
    chroot_stage "$trial" "$stage" | tee -a "$lines" || break
done
rm -rf "$trial"
count_lines "$lines"
