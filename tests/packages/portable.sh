#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# portable.sh WORKDIR [SYSTEM...]
#
# `make portable` in the oldest system whose archive can be had and has all that is needed (Debian 11, glibc 2.31), with Debian
# 12's Meson; `make reader` here. Both are then run in Debian 11 and in these systems (folders, such as run.sh's
# WORKDIR/packages-trixie/clean), and the reader in an empty folder too. Needs root.
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing failed; 77: nothing could be
# checked.

# shellcheck source=tests/packages/begin.sh
. "$(dirname "$0")/begin.sh" 1 "$@"
PACKAGES="mmdebstrap git make binutils"
SYSTEM="apt gcc libc6-dev make binutils ninja-build python3 pkg-config clang-13 libjansson-dev libarchive-dev libelf-dev
    nettle-dev zlib1g-dev libbz2-dev liblzma-dev libzstd-dev pci.ids"
MIRROR=http://deb.debian.org/debian
SUITE=bullseye
OLDEST=2.31 # its glibc

what=portable
dir=$work/portable

make_system() {
    local list
    read -r -d '' -a list <<<"$SYSTEM" || true
    [ ! -e "$dir/made" ] || return 0
    rm -rf "$dir/root"
    echo "deb $MIRROR $SUITE main" >"$dir/root.list"
    bootstrap "$dir/root" /usr/share/keyrings/debian-archive-keyring.gpg "${list[@]}"
    touch "$dir/root/etc/resolv.conf"
    # Pure Python; Debian 11's is older than what meson.build needs.
    (cd "$dir/root/root" && apt-get -qq download meson) || nothing "no package of Meson"
    within "$dir/root" sh -euc 'apt-get -qq update && apt-get -qq -y --no-install-recommends install /root/meson_*.deb
        ln -sf clang-13 /usr/bin/clang' >"$dir/meson.log" 2>&1 || nothing "no Meson, see $dir/meson.log"
    touch "$dir/made"
}

# needs PROGRAM: only what every system with glibc has
needs_only_libc() {
    ! objdump -p "$1" | grep NEEDED | grep -vE ' (lib(c|m|dl|pthread|rt)\.so\.[0-9]+|ld-linux.*)$'
}

# newest_glibc PROGRAM: the newest version of a symbol that it needs
newest_glibc() { objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1; }

# runs ROOT PROGRAM NAME BUILD: there, with what it says of itself
runs() {
    cp "$2" "$1/tmp/onehop"
    rm -rf "$1/tmp/machine"
    cp -r "$top/tests/machines/rtx4090x8-before" "$1/tmp/machine"
    check "$3: runs" within "$1" sh -euc "/tmp/onehop --version | grep -q '($4'
        for command in 'check -q --from /tmp/machine' 'topo --from /tmp/machine'; do /tmp/onehop \$command >/tmp/said || [ \$? = 1 ]; done
        /tmp/onehop check -q --from /tmp/machine | grep -q 'BAR1 (256 MiB)'
        /tmp/onehop record /tmp/recording.tar.zst && /tmp/onehop check -q --from /tmp/recording.tar.zst || [ \$? = 3 ]"
    rm -rf "$1"/tmp/{onehop,machine,recording.tar.zst,said}
}

# alone PROGRAM: in a folder with nothing else, as in a rescue shell
alone() {
    rm -rf "$dir/empty"
    mkdir -p "$dir/empty"
    cp "$1" "$dir/empty/onehop"
    cp -r "$top/tests/machines/rtx4090x8-before" "$dir/empty/machine"
    chroot "$dir/empty" /onehop check --from /machine || [ $? = 1 ]
}

checks() {
    local root name
    make_system
    rm -rf "$dir/root/root/onehop" "$dir/source"
    mkdir -p "$dir/root/root/onehop" "$dir/source"
    git -C "$top" archive HEAD | tee >(tar -x -C "$dir/source") | tar -x -C "$dir/root/root/onehop"
    check "portable: built in Debian 11" within "$dir/root" make -C /root/onehop portable
    cp "$dir/root/root/onehop/build-portable/onehop" "$dir/onehop-portable"
    check "portable: needs the C library alone" needs_only_libc "$dir/onehop-portable"
    check "portable: glibc $(newest_glibc "$dir/onehop-portable") is enough" \
        test "$(printf '%s\n' "$(newest_glibc "$dir/onehop-portable")" $OLDEST | sort -V | tail -n 1)" = $OLDEST
    check "reader: built here" make -C "$dir/source" reader
    cp "$dir/source/build-reader/onehop" "$dir/onehop-reader"
    check "reader: needs no library" sh -c "! objdump -p '$dir/onehop-reader' | grep NEEDED"
    check "reader: runs where there is nothing else" alone "$dir/onehop-reader"
    for root in "$dir/root" "$@"; do
        name=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$root/etc/os-release")
        runs "$root" "$dir/onehop-portable" "portable, $name" 'portable build'
        runs "$root" "$dir/onehop-reader" "reader, $name" reader:
    done
}

[ "$(id -u)" = 0 ] || nothing "needs root"
mkdir -p "$dir"
install_packages
checks "${arguments[@]}" | tee "$dir/lines"
count_lines "$dir/lines"
