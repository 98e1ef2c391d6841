#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# copylibs.sh PROGRAM ROOT: copy the shared libraries of PROGRAM to ROOT, at
# their own paths.  A static program has none.

set -eu
program=$1 root=$2

libs=$(ldd "$program" 2>/dev/null) || exit 0
case $libs in
*"not found"*)
    echo "$program: missing libraries: $libs" >&2
    exit 1
    ;;
esac
echo "$libs" | grep -o '/[^ ]*' | while read -r lib; do
    mkdir -p "$root${lib%/*}"
    cp -nL "$lib" "$root$lib"
done
