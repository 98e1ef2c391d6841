#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh WORKDIR ONEHOP
#
# The kernel as oracle: one with CONFIG_PCI_P2PDMA, whose NVMe target refuses to use another drive's
# memory while a switch redirects what passes between the two.  It has to refuse before ONEHOP's fix,
# to accept after it, and to refuse again after undo.  WORKDIR is prepare.sh's; the kernel is built
# in its folder oracle/ (once for each version of the source and of kernel.config; 6 to 20 minutes).
# ONEHOP may be -: then only the kernel is asked.
#
# One line a check; the last line is "N passed, N failed, N skipped".  Exit status 0: nothing
# failed; 77: nothing could be checked.

set -euo pipefail
shopt -s inherit_errexit

SOURCE=linux-source-6.1
PACKAGES="flex bison bc make gcc libc6-dev libelf-dev xz-utils"

here=$(cd "$(dirname "$0")" && pwd)
[ $# = 2 ] || { sed -n '/^# run.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
onehop=$2
[ "$onehop" = - ] || [ -x "$onehop" ] || { echo "run.sh: no program $onehop" >&2; exit 2; }

say() { echo "# $*"; }
nothing() {
    echo "skip - oracle: $*"
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
        install "${missing[@]}" >"$dir/apt.log" 2>&1 || nothing "no packages ${missing[*]}"
}

build_kernel() {
    local version key tree=$dir/source
    version=$(apt-cache policy $SOURCE | sed -n 's/^ *Candidate: //p')
    key="$version $(md5sum <"$here/kernel.config")"
    [ "$(cat "$dir/key" 2>/dev/null)" != "$key" ] || return 0
    say "building Linux, $SOURCE $version"
    rm -rf "$tree" "$dir/vmlinux" "$dir/key"
    mkdir -p "$tree"
    (cd "$dir" && apt-get -qq download "$SOURCE=$version" >download.log 2>&1) || nothing "no package $SOURCE"
    dpkg-deb --fsys-tarfile "$dir/$SOURCE"_*.deb | tar -xO "./usr/src/$SOURCE.tar.xz" |
        tar -xJ -C "$tree" --strip-components=1
    rm -f "$dir/$SOURCE"_*.deb
    {
        make -C "$tree" tinyconfig &&
            (cd "$tree" && scripts/kconfig/merge_config.sh -m .config "$here/kernel.config") &&
            make -C "$tree" olddefconfig && missing_options "$tree/.config" &&
            nice -n 19 make -C "$tree" -j "$(nproc)" vmlinux
    } >"$dir/build.log" 2>&1 || { tail -n 20 "$dir/build.log"; return 1; }
    strip -o "$dir/vmlinux" "$tree/vmlinux"
    rm -rf "$tree"
    echo "$key" >"$dir/key"
}

# missing_options CONFIG: fails, naming them, if an option was not taken
missing_options() {
    local option status=0
    while read -r option; do
        grep -qx "$option" "$1" || { echo "not taken: $option"; status=1; }
    done < <(grep '^CONFIG_' "$here/kernel.config")
    return $status
}

status=0
"$here/../prepare.sh" "$1" || status=$?
[ "$status" != 77 ] || nothing "no forged devices in this QEMU"
[ "$status" = 0 ] || exit 1
work=$(cd "$1" && pwd)
dir=$work/oracle
mkdir -p "$dir"
install_packages
if ! build_kernel; then
    echo "FAIL - oracle: the kernel was not built, see $dir/build.log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi

# For boot.sh a folder with this kernel in it is a folder as prepare.sh makes it.
ln -sf ../base.cpio ../p2pdev.so "$dir/"
copy=()
[ "$onehop" = - ] || copy=(-f "$onehop:/bin/onehop")
status=0
"$here/../boot.sh" "$dir" "$here/switch-nvme.args" -i intel -c intel_iommu=on -l "$dir/console" \
    ${copy[@]+"${copy[@]}"} "$here/ask.sh" >"$dir/lines" 2>"$dir/errors" || status=$?
[ "$status" = 0 ] || echo "FAIL - guest: status $status" >>"$dir/lines"
cat "$dir/lines"
sed 's/^/# /' "$dir/errors"

count() { grep -c "^$1 - " "$dir/lines" || true; }
failed=$(count FAIL)
echo "$(count ok) passed, $failed failed, $(count skip) skipped"
[ "$failed" = 0 ]
