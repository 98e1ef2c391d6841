#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# prepare.sh WORKDIR: get and build what boot.sh needs, once, into WORKDIR:
#
#   vmlinux        Debian's stock kernel, unpacked
#   base.cpio      initramfs: busybox, kmod, pciutils, jq, some modules, init
#   p2pdev.so      the forged devices of p2pdev.c, for LD_PRELOAD into QEMU
#   modules/       stand-ins for NVIDIA's kernel modules
#
# A second call does only what is missing or out of date.  Needs Debian 12 and,
# to install packages, root.  Exit status 77: all but p2pdev.so is there, so
# only machines without forged devices can be booted.  Without the kernel's
# headers there is no modules/.

set -euo pipefail
shopt -s inherit_errexit

PACKAGES="qemu-system-x86 seabios busybox-static dash cpio kmod pciutils jq xz-utils
    python3-minimal iproute2 dpkg-dev gcc libc6-dev pkg-config libglib2.0-dev"
PROGRAMS="dash kmod lspci setpci jq rdma"
MODULES="pci-stub vfio-pci nvme e1000e msr cpuid virtio_pci virtio_blk virtio_net
    crc32_generic rdma_rxe aer_inject crc32c_generic ext4
    sch_netem sch_prio sch_tbf cls_u32 dummy"

die() { echo "prepare.sh: $*" >&2; exit 1; }
say() { echo "prepare.sh: $*" >&2; }

[ $# = 1 ] || die "usage: prepare.sh WORKDIR"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)

# newer FILE SOURCE...: FILE exists and is newer than every SOURCE
newer() {
    local file=$1 source
    shift
    [ -e "$file" ] || return 1
    for source; do
        [ ! "$source" -nt "$file" ] || return 1
    done
}

# ---- packages ----

install_packages() {
    local missing=() p
    for p in $PACKAGES; do
        dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed ||
            missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || die "not root; please install: ${missing[*]}"
    say "installing ${missing[*]}"
    # As few index files as possible: an update only if the install fails.
    local apt="apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 install"
    DEBIAN_FRONTEND=noninteractive $apt "${missing[@]}" >"$work/apt.log" 2>&1 || {
        apt-get -qq update >>"$work/apt.log" 2>&1
        DEBIAN_FRONTEND=noninteractive $apt "${missing[@]}" >>"$work/apt.log" 2>&1
    } || die "apt-get install failed, see $work/apt.log"
}

# ---- kernel ----

# A bzImage holds an xz-compressed ELF image; its header says where.  Unpacked
# here, it need not be unpacked by an emulated processor at each boot.
unpack_kernel() {
    local image=$1 setup offset length
    setup=$(od -An -tu1 -j $((0x1f1)) -N1 "$image")
    offset=$(od -An -tu4 -j $((0x248)) -N4 "$image")
    length=$(od -An -tu4 -j $((0x24c)) -N4 "$image")
    # The last 4 bytes are the unpacked size, no part of the xz stream.
    { tail -c +$(((setup + 1) * 512 + offset + 1)) "$image" || true; } | head -c $((length - 4)) | xz -dc
}

get_kernel() {
    local dir=$work/kernel package
    [ -e "$work/vmlinux" ] && [ -e "$dir/version" ] && return 0
    say "getting the kernel"
    rm -rf "$dir"
    mkdir -p "$dir"
    package=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
    [ -n "$package" ] || { apt-get -qq update
        package=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: //p' | head -n 1); }
    (cd "$dir" && apt-get -qq download "$package" 2>download.log) ||
        die "cannot download $package, see $dir/download.log"
    dpkg-deb --fsys-tarfile "$dir/$package"_*.deb | tar -x -C "$dir" ./boot ./lib/modules
    rm -f "$dir"/*.deb
    depmod -b "$dir" "${package#linux-image-}"
    unpack_kernel "$dir/boot/vmlinuz-${package#linux-image-}" >"$work/vmlinux.new"
    mv "$work/vmlinux.new" "$work/vmlinux"
    echo "${package#linux-image-}" >"$dir/version"
}

# ---- initramfs ----

build_base() {
    newer "$work/base.cpio" "$here/prepare.sh" "$here/init" "$here/lib.sh" "$work/vmlinux" && return 0
    local root=$work/root version dest program path module
    version=$(cat "$work/kernel/version")
    say "building the initramfs"
    rm -rf "$root"
    mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,run,etc,root,home/user,host,out,usr/bin,usr/sbin,usr/share/misc,mnt,var}

    # busybox first; real programs replace its versions of themselves
    cp /bin/busybox "$root/bin/"
    for program in $(/bin/busybox --list); do
        [ "$program" = busybox ] || ln -sf busybox "$root/bin/$program"
    done
    for program in $PROGRAMS; do
        path=$(command -v "$program") || die "no $program here"
        rm -f "$root/bin/$program"
        cp -L "$path" "$root/bin/$program"
        "$here/copylibs.sh" "$path" "$root"
    done
    for program in modprobe insmod rmmod lsmod modinfo depmod; do
        ln -sf kmod "$root/bin/$program"
    done
    ln -sf dash "$root/bin/sh"      # busybox's shell would prefer its own applets
    cp -L /usr/share/misc/pci.ids "$root/usr/share/misc/"

    dest=$root/lib/modules/$version
    mkdir -p "$dest"
    cp "$work/kernel/lib/modules/$version"/modules.{builtin,builtin.modinfo,order} "$dest/"
    for module in $MODULES; do
        modprobe -d "$work/kernel" -S "$version" --show-depends --ignore-install "$module"
    done | sed -n "s,^insmod $work/kernel/lib/modules/$version/\([^ ]*\).*,\1,p" | sort -u |
        (cd "$work/kernel/lib/modules/$version" && xargs cp --parents -t "$dest")
    depmod -b "$root" "$version"

    printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n' >"$root/etc/passwd"
    printf 'root:x:0:\nuser:x:1000:\n' >"$root/etc/group"
    printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
    printf 'passwd: files\ngroup: files\nhosts: files\n' >"$root/etc/nsswitch.conf"
    install -m 755 "$here/init" "$root/init"
    install -m 644 "$here/lib.sh" "$root/lib.sh"
    (cd "$root" && find . | cpio -o -H newc --quiet --owner +0:+0) >"$work/base.cpio.new"
    mv "$work/base.cpio.new" "$work/base.cpio"
}

# ---- forged devices ----

# The headers of exactly the QEMU that is installed.  Its own configuration and
# build are not needed: a few macros by hand, and the generated QAPI headers.
get_headers() {
    local version=$1 dir=$2 tmp=$work/qemu-source apt macro
    [ "$(cat "$dir/version" 2>/dev/null)" = "$version" ] && return 0
    say "getting the source of QEMU $version"
    rm -rf "$tmp" "$dir"
    mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial" "$dir/generated/qapi"
    # Private lists: what the machine has for binary packages, as deb-src.
    # shellcheck disable=SC2016 # apt expands these
    apt-get indextargets --format 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | sort -u >"$tmp/sources.list"
    apt=(apt-get -qq -o "Dir::Etc::sourcelist=$tmp/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::Lists=$tmp/lists" -o "Dir::Cache=$tmp/cache")
    (cd "$tmp" && "${apt[@]}" update && "${apt[@]}" source --download-only "qemu=$version" &&
        dpkg-source --no-check -x qemu_*.dsc source) >"$work/qemu-source.log" 2>&1 || return 1
    cp -r "$tmp/source/include" "$dir/"
    (cd "$tmp/source" && python3 scripts/qapi-gen.py -b -o "$dir/generated/qapi" qapi/qapi-schema.json &&
        find "$dir/generated" ! -name '*.h' -type f -delete) || return 1
    : >"$dir/generated/config-poison.h"
    for macro in CONFIG_LINUX CONFIG_POSIX CONFIG_IOVEC CONFIG_INT128 CONFIG_ATOMIC64 \
        CONFIG_BYTESWAP_H CONFIG_SYSMACROS HAVE_SYSTEM_FUNCTION; do
        echo "#define $macro 1"
    done >"$dir/generated/config-host.h"
    rm -rf "$tmp"
    echo "$version" >"$dir/version"
}

build_shim() {
    local version dir so=$work/p2pdev.so
    version=$(dpkg-query -W -f '${source:Version}' qemu-system-x86)
    dir=$work/qemu-headers
    [ "$(cat "$dir/version" 2>/dev/null)" = "$version" ] && newer "$so" "$here/p2pdev.c" && return 0
    rm -f "$so"
    get_headers "$version" "$dir" || {
        echo "prepare.sh: no forged devices: the source of QEMU $version could not be had (see $work/qemu-source.log)" >&2
        return 77
    }
    say "building p2pdev.so"
    # shellcheck disable=SC2046 # several flags
    if ! gcc -std=gnu11 -O1 -fPIC -shared -Wall -D_GNU_SOURCE -I"$dir/generated" -I"$dir/generated/qapi" \
        -isystem "$dir/include" $(pkg-config --cflags glib-2.0) "$here/p2pdev.c" -o "$so.new" ||
        ! env LD_PRELOAD="$so.new" qemu-system-x86_64 -device p2p-dev,help >/dev/null; then
        echo "prepare.sh: no forged devices: p2pdev.c does not fit QEMU $version" >&2
        return 77
    fi
    mv "$so.new" "$so"
}

install_packages
get_kernel
build_base
"$here/modules/build.sh" "$work" 2>"$work/modules.log" || {
    rm -rf "$work/modules"
    say "no stand-in modules: see $work/modules.log"
}
status=0
build_shim || status=$?
exit $status
