#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# copylibs.sh PROGRAM ROOT: copy the shared libraries of PROGRAM to ROOT, at
# their own paths, and those that it names to open them by itself, where this
# machine has them.  A static program has none.

set -eu
program=$1 root=$2

libs=$(ldd "$program" 2>/dev/null) || exit 0
case $libs in
*"not found"*)
    echo "$program: missing libraries: $libs" >&2
    exit 1
    ;;
esac
opened=$(grep -aoE 'lib[a-z-]+[.]so[.][0-9]+' "$program" | grep -vx 'libnccl[.]so[.].*' | sort -u | while read -r name; do
    path=$(ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }')
    [ -z "$path" ] || { echo "$path"; ldd "$path"; }
done)
printf '%s\n' "$libs" "$opened" | grep -o '/[^ ]*' | sort -u | while read -r lib; do
    mkdir -p "$root${lib%/*}"
    cp -nL "$lib" "$root$lib"
done
