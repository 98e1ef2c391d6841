#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [-j JOBS] WORKDIR [ONEHOP [CHECK...]]
#
# Boot one guest for each script in checks/ (or each CHECK named, without .sh)
# and count its checks; JOBS guests at a time (2).  ONEHOP is the program to
# test; without it, or with -, only the test bed tests itself.  Lines starting
# with "# machine:", "# iommu:" and "# cmdline:" in a script say what to boot;
# "# modules: yes" puts the stand-in modules at /modules, "# rdma: yes" the
# library of soft RoCE where libibverbs looks for it, "# programs: NAME..." more
# programs of the host, "# limit: SECONDS" instead of 240, "# hosts: 2" boots two
# guests on one cable, with HOST=1 and HOST=2.
#
# Exit status 0 if nothing failed.  What was skipped is counted, not passed.

set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '/^# run.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }

jobs=2
while getopts j: option; do
    case $option in
    j) jobs=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
work=$1 onehop=${2:--}
shift $(($# < 2 ? $# : 2))
[ "$onehop" = - ] || [ -x "$onehop" ] || { echo "run.sh: no program $onehop" >&2; exit 2; }

status=0
"$here/prepare.sh" "$work" || status=$?
[ "$status" = 0 ] || [ "$status" = 77 ] || exit 1

names=("$@")
if [ ${#names[@]} = 0 ]; then
    for script in "$here"/checks/*.sh; do
        names+=("$(basename "$script" .sh)")
    done
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# header SCRIPT FIELD DEFAULT
header() {
    local value
    value=$(sed -n "s/^# $2: *//p" "$1")
    echo "${value:-$3}"
}

# guest NAME: boot, and print its lines once it is done
guest() {
    local name=$1 script=$here/checks/$1.sh lines=$results/$1 start=$SECONDS status=0 copy=()
    [ "$onehop" = - ] || copy=(-f "$onehop:/bin/onehop")
    if [ "$(header "$script" modules no)" = yes ]; then
        if [ ! -e "$work/modules/done" ]; then
            echo "skip - $name: guest: no stand-in modules" | tee "$lines.out"
            return
        fi
        copy+=(-f "$work/modules:/modules")
    fi
    if [ "$(header "$script" rdma no)" = yes ]; then
        local library
        library=$(find /usr/lib -name 'librxe-rdmav*.so' 2>/dev/null | head -n 1)
        if [ -z "$library" ] || [ ! -e /etc/libibverbs.d/rxe.driver ]; then
            echo "skip - $name: guest: no ibverbs-providers here" | tee "$lines.out"
            return
        fi
        copy+=(-f "$library:$library" -f /etc/libibverbs.d/rxe.driver:/etc/libibverbs.d/rxe.driver)
    fi
    local program
    for program in $(header "$script" programs ''); do
        if ! program=$(command -v "$program"); then
            echo "skip - $name: guest: not all of '$(header "$script" programs '')' are here" | tee "$lines.out"
            return
        fi
        copy+=(-f "$program")
    done
    boot() {
        "$here/boot.sh" "$work" "$(header "$script" machine '')" -t "$(header "$script" limit 240)" -i "$(header "$script" iommu none)" \
            -c "$(header "$script" cmdline '')" ${copy[@]+"${copy[@]}"} "$@" "$script"
    }
    if [ "$(header "$script" hosts 1)" = 2 ]; then
        boot -e HOST=1 -n "on:$lines.cable" >"$lines.host1" 2>"$lines.host1.err" &
        local first=$!
        while [ ! -S "$lines.cable" ] && kill -0 $first 2>/dev/null; do sleep 0.1; done
        boot -e HOST=2 -n "off:$lines.cable" >"$lines" 2>"$lines.err" || status=$?
        wait $first || status=$?
        cat "$lines.host1" >>"$lines"
        cat "$lines.host1.err" >>"$lines.err"
    else
        boot >"$lines" 2>"$lines.err" || status=$?
    fi
    case $status in
    0) [ -s "$lines" ] || echo "FAIL - guest: no checks" >>"$lines" ;;
    77) echo "skip - guest: no forged devices in this QEMU" >>"$lines" ;;
    *) echo "FAIL - guest: exit status $status" >>"$lines" ;;
    esac
    {
        sed "s/^\(ok\|FAIL\|skip\) - /&$name: /" "$lines"
        sed "s/^/# /" "$lines.err"
        echo "# $name: $((SECONDS - start)) s"
    } >"$lines.out"
    cat "$lines.out"
}

for name in "${names[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n || true
    done
    guest "$name" &
done
wait

count() { cat "$results"/*.out | grep -c "^$1 - " || true; }
failed=$(count FAIL)
echo "$(count ok) passed, $failed failed, $(count skip) skipped"
[ "$failed" = 0 ]
