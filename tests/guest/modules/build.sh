#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh WORKDIR: build the stand-in modules for the guest's kernel into WORKDIR/modules.

set -euo pipefail
shopt -s inherit_errexit

[ $# = 1 ] || { echo "usage: build.sh WORKDIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(cd "$1" && pwd)
version=$(cat "$work/kernel/version")
dest=$work/modules

newest=$(find "$here" -type f -newer "$dest/done" 2>/dev/null || echo none)
[ -n "$newest" ] || exit 0

if [ ! -e "/lib/modules/$version/build/Makefile" ]; then
    apt=(apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300)
    export DEBIAN_FRONTEND=noninteractive
    "${apt[@]}" install "linux-headers-$version" make >&2 ||
        { apt-get -qq update && "${apt[@]}" install "linux-headers-$version" make; } >&2
fi

# kbuild FOLDER FLAGS SYMBOLS MODULE...: modules of the sources here; SYMBOLS: the folder, built
# before, whose exported symbols they use, or -
kbuild() {
    local dir=$tmp/$1 flags=$2 symbols=$tmp/$3/Module.symvers
    shift 3
    [ -e "$symbols" ] || symbols=
    mkdir -p "$dir"
    cp "$here"/*.[ch] "$dir/"
    cp "$dir/peermem.c" "$dir/nvidia-peermem.c"
    mv "$dir/peermem.c" "$dir/nv_peer_mem.c"
    printf 'obj-m += %s.o\n' "$@" >"$dir/Kbuild"
    echo "ccflags-y += $flags" >>"$dir/Kbuild"
    make -s -C "/lib/modules/$version/build" "M=$dir" "KBUILD_EXTRA_SYMBOLS=$symbols" modules >&2
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
kbuild base '' - nvidia peer_api standin_rdma
kbuild api '' base nvidia-peermem nv_peer_mem
kbuild bare '-DWITHOUT_API' - nvidia-peermem
# One member more gives the interface's symbols another version.
kbuild otherbase '-DOTHER_OFED' - nvidia peer_api
kbuild other '-DOTHER_OFED' otherbase nvidia-peermem

rm -rf "$dest"
mkdir -p "$dest"/{api,bare,other}
cp "$tmp"/base/*.ko "$tmp/api/nv_peer_mem.ko" "$dest/"
for variant in api bare other; do
    cp "$tmp/$variant/nvidia-peermem.ko" "$dest/$variant/"
done
strip --strip-debug "$dest"/*.ko "$dest"/*/*.ko
: >"$dest/done"
