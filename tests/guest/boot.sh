#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# boot.sh WORKDIR MACHINE [option...] SCRIPT
#
# Boot MACHINE (a name in machines/, or an argument file), run SCRIPT in it with
# sh as root, and switch it off.  Standard output is SCRIPT's (output and
# error); the exit status is SCRIPT's; 124: time ran out; 125: it did not boot or
# SCRIPT did not end (the kernel console then goes to standard error).
#
#   -i none|intel|amd   IOMMU (none)
#   -c CMDLINE          more kernel command line
#   -f PATH[:GUEST]     copy a file or folder into the guest: programs, with
#                       their libraries, to /bin/, the rest to /host/ (or GUEST)
#   -o DIR              what SCRIPT leaves in /out comes back in DIR
#   -l FILE             keep the kernel console in FILE
#   -t SECONDS          time limit (120)
#   -e VAR=VALUE        environment variable for SCRIPT
#   -n on|off:SOCKET    a network card whose cable is this socket; the guest with
#                       "on" makes the socket and has to be booted first
#
# Exit status 77: MACHINE has forged devices and WORKDIR has no p2pdev.so.

set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
die() { echo "boot.sh: $*" >&2; exit 125; }
usage() { sed -n '/^# boot.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 125; }

[ $# -ge 2 ] || usage
work=$1 machine=$2
shift 2
iommu=none cmdline='' outdir='' console='' limit=120 files=() env=()
cable=()
while getopts i:c:f:o:l:t:e:n: option; do
    case $option in
    i) iommu=$OPTARG ;;
    c) cmdline=$OPTARG ;;
    f) files+=("$OPTARG") ;;
    o) outdir=$OPTARG ;;
    l) console=$OPTARG ;;
    t) limit=$OPTARG ;;
    e) env+=("$OPTARG") ;;
    n) # two guests on one cable need two addresses
        mac=52:54:00:00:00:0$([ "${OPTARG%%:*}" = on ] && echo 1 || echo 2)
        cable=(-netdev "stream,id=cable,server=${OPTARG%%:*},addr.type=unix,addr.path=${OPTARG#*:}"
            -device "virtio-net-pci,netdev=cable,mac=$mac") ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# = 1 ] || usage
script=$1

[ -f "$machine" ] || machine=$here/machines/$machine.args
[ -f "$machine" ] || die "no such machine: $machine"
[ -f "$work/base.cpio" ] || die "please run prepare.sh $work first"
read -r -d '' -a args < <(sed 's/#.*//' "$machine") || true

case $iommu in
none) iommu_args=() ;;
intel) iommu_args=(-device "intel-iommu,intremap=on,device-iotlb=on") ;;
amd) iommu_args=(-device amd-iommu) ;;
*) usage ;;
esac

# Processors of that make: what the kernel does may depend on it.  An argument
# file can have a -cpu of its own, which wins.
case $iommu in
amd) cpu=vendor=AuthenticAMD,family=25,model=17,stepping=1,model-id=EPYC-9354 ;;
*) cpu=vendor=GenuineIntel,family=6,model=143,stepping=8,model-id=Xeon-8480 ;;
esac

preload=()
case " ${args[*]} " in
*" p2p-"*)
    if [ ! -f "$work/p2pdev.so" ]; then
        echo "boot.sh: $machine needs p2pdev.so, which could not be built" >&2
        exit 77
    fi
    # by env, so that only QEMU itself gets the library
    preload=(env "LD_PRELOAD=$(cd "$work" && pwd)/p2pdev.so")
    ;;
esac

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# ---- the job: a second archive behind the base initramfs ----

root=$tmp/root
mkdir -p "$root/job" "$root/bin" "$root/host"
{
    for setting in ${env[@]+"${env[@]}"}; do
        printf 'export %s=%q\n' "${setting%%=*}" "${setting#*=}"
    done
    cat "$script"
} >"$root/job/script"
for file in ${files[@]+"${files[@]}"}; do
    path=${file%%:*} dest=''
    [ "$path" = "$file" ] || dest=${file#*:}
    [ -e "$path" ] || die "no such file: $path"
    elf=$([ -f "$path" ] && head -c 4 "$path" | tr -d '\0') || true
    [ "$elf" = $'\177ELF' ] && "$here/copylibs.sh" "$path" "$root"
    if [ -z "$dest" ]; then
        dest=/host/$(basename "$path")
        [ "$elf" = $'\177ELF' ] && [ -x "$path" ] && dest=/bin/$(basename "$path")
    fi
    mkdir -p "$root$(dirname "$dest")"
    cp -rL "$path" "$root$dest"
done
(cd "$root" && find . | cpio -o -H newc --quiet --owner +0:+0) | cat "$work/base.cpio" - >"$tmp/initrd"

# ---- run ----

# No KVM: it may be there and not able to run a kernel.
status=0
timeout -k 5 "$limit" ${preload[@]+"${preload[@]}"} qemu-system-x86_64 \
    -accel tcg,thread=multi -machine q35,kernel-irqchip=split -cpu "max,$cpu" \
    -nodefaults -no-user-config -display none -no-reboot \
    -chardev "file,id=console,path=$tmp/console" -serial chardev:console \
    -chardev stdio,id=stdio,signal=on -serial chardev:stdio \
    -chardev "file,id=out,path=$tmp/out" -serial chardev:out \
    -kernel "$work/vmlinux" -initrd "$tmp/initrd" \
    -append "console=ttyS0 quiet panic=-1 no_timer_check $cmdline" \
    ${iommu_args[@]+"${iommu_args[@]}"} ${cable[@]+"${cable[@]}"} "${args[@]}" </dev/null 2>"$tmp/qemu.err" || status=$?

[ -z "$console" ] || cp "$tmp/console" "$console"
if [ "$status" = 124 ] || [ "$status" = 137 ]; then
    tail -n 20 "$tmp/console" >&2
    echo "boot.sh: $(basename "$machine"): not finished after $limit s" >&2
    exit 124
fi
result=$(tr -d '\r' <"$tmp/console" | sed -n 's/^.*guest-status \([0-9]*\)$/\1/p' | tail -n 1)
if [ "$status" != 0 ] || [ -z "$result" ]; then
    cat "$tmp/qemu.err" >&2
    tail -n 40 "$tmp/console" >&2 || true
    die "$(basename "$machine"): QEMU's exit status $status, the script's: ${result:-none}"
fi
if [ -n "$outdir" ]; then
    mkdir -p "$outdir"
    [ ! -s "$tmp/out" ] || tar -xz -C "$outdir" -f "$tmp/out" || die "damaged archive from the guest"
fi
exit "$result"
