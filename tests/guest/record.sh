#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# record.sh WORKDIR ONEHOP [NAME...]
#
# Boot a guest for each script in recordings/ (or each NAME), let ONEHOP record
# it there, and put the recording into tests/machines/guest-NAME/.  A script
# prepares the guest; its header names what to boot, as in checks/, and
#
#   # modules: yes   modules/ has to be built first, needs the network
#   # user: yes      recorded by a user without rights
#   # note: TEXT     what the machine is for; several lines
#
# Not part of the tests: for a new machine, or after onehop reads more.

set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
machines=$(cd "$here/../machines" && pwd)
[ $# -ge 2 ] || { sed -n '/^# record.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
work=$1 onehop=$2
shift 2
"$here/prepare.sh" "$work"

names=("$@")
if [ ${#names[@]} = 0 ]; then
    for script in "$here"/recordings/*.sh; do
        names+=("$(basename "$script" .sh)")
    done
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# header SCRIPT FIELD DEFAULT
header() {
    local value
    value=$(sed -n "s/^# $2: *//p" "$1")
    echo "${value:-$3}"
}

# note NAME SCRIPT: origin, command line, purpose
note() {
    local machine cmdline iommu
    machine=$(header "$2" machine '') iommu=$(header "$2" iommu none) cmdline=$(header "$2" cmdline '')
    echo "origin: guest (QEMU 7.2, Debian's kernel 6.1, forged PCI functions; tests/guest/machines/$machine.args)"
    header "$2" note ''
    echo "Made by tests/guest/record.sh from recordings/$1.sh; IOMMU: $iommu${cmdline:+; kernel command line: $cmdline}."
}

record() {
    local name=$1 script=$here/recordings/$1.sh dest=$machines/guest-$1 files=(-f "$onehop:/bin/onehop") run=''
    if [ "$(header "$script" modules no)" = yes ]; then
        "$here/modules/build.sh" "$work"
        files+=(-f "$work/modules:/modules")
    fi
    if [ "$(header "$script" user no)" = yes ]; then
        run="su -s /bin/sh user -c 'onehop record /out/recording/'"
    else
        run='onehop record /out/recording/'
    fi
    {
        cat "$script"
        echo 'chmod 777 /out'
        echo "$run"
    } >"$tmp/script"
    rm -rf "$tmp/out"
    "$here/boot.sh" "$work" "$(header "$script" machine '')" -i "$(header "$script" iommu none)" \
        -c "$(header "$script" cmdline '')" -o "$tmp/out" "${files[@]}" "$tmp/script" >"$tmp/log" 2>&1 || {
        cat "$tmp/log" >&2
        return 1
    }
    rm -rf "$dest"
    mkdir -p "$dest"
    cp "$tmp/out/recording"/* "$dest/"
    chmod 644 "$dest"/*
    note "$name" "$script" >"$dest/note.txt"
    echo "$dest: $(du -sk "$dest" | cut -f1) KiB"
}

for name in "${names[@]}"; do
    record "$name"
done
