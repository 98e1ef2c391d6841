#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh TREE OUT: compile those object files of the driver in TREE that peer-to-peer through BAR1
# goes through, as its own make compiles them, and link OUT from them and the harness.

set -euo pipefail

tree=$(cd "$1" && pwd) out=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
objects=$tree/src/nvidia/_out/Linux_x86_64
work=$out.d
cd "$tree/src/nvidia"

# declares PATTERN HEADER: it is there, and has it
declares() {
	[ -f "generated/$2" ] && grep -Eq -- "$1" "generated/$2"
}

# ---- the objects ----

# The page-table formats of all chips, what BAR1 is made of, and what these need.
wanted() {
	sed -n 's/^ *SRCS += //p' srcs.mk | grep -E \
		-e '/gpu/mmu/arch/[a-z]*/kern_gmmu_[a-z0-9_]*\.c$' -e '/(gmmu_fmt|mmu_fmt|kern_gmmu)\.c$' \
		-e '/kern_bus_(gp100|tu102|gh100)\.c$' -e '/kern_bus\.c$' -e '/g_(kern_bus|kern_gmmu|chips2halspec)_nvoc\.c$' \
		-e '/(nv_gpu_ops|p2p_caps|mem_desc|dma)\.c$' -e '/mem_mgr_tu102(_base)?\.c$'
}

names=()
while read -r source; do
	names+=("$(basename "$source" .c)")
done < <(wanted | sort -u)
[ ${#names[@]} -gt 15 ] || { echo "build.sh: few sources in $PWD/srcs.mk: ${names[*]}" >&2; exit 1; }
targets=("${names[@]/%/.o}")
# The harness calls static functions too: they have to stay functions, with all their parameters.
make -s -j"$(nproc)" EXTRA_CFLAGS="-fno-inline-functions-called-once -fno-ipa-cp -fno-ipa-sra" "${targets[@]/#/_out/Linux_x86_64/}" >&2

rm -rf "$work"
mkdir -p "$work"
cp "${targets[@]/#/$objects/}" "$work/"
objcopy --globalize-symbol=nvGpuOpsBuildExternalAllocPtes --globalize-symbol=nvGpuOpsBuildExternalAllocPhysAddrs \
	"$work/nv_gpu_ops.o"
# What the harness has instead: see world.c.
for object in "$work"/*.o; do
	objcopy --weaken "$object"
done

# ---- what differs between releases ----

forms=()
if declares 'isBar1P2PSupported' ../src/kernel/rmapi/nv_gpu_ops.c; then
	era=580
elif declares 'PCIEP2P_TYPE_BAR1' ../interface/nvrm_registry.h; then
	era=575
elif declares 'kbusIsStaticBar1Supported_TU102\(' g_kern_bus_nvoc.h; then
	era=565
elif declares 'kbusIsBar1P2PCapable_GH100\(' g_kern_bus_nvoc.h; then
	era=545
else
	era=535
fi
forms+=("DRIVER_ERA=$era")
# form PATTERN HEADER DEFINE...: where HEADER has PATTERN
form() {
	local pattern=$1 header=$2
	shift 2
	! declares "$pattern" "$header" || forms+=("$@")
}
form 'children\.named' g_gpu_nvoc.h CHILDREN_NAMED
form '^NvBool kbusIsStaticBar1Supported_TU102\(' g_kern_bus_nvoc.h STATIC_BAR1_BOOL
form 'kbusMapFbAperture_GM107\(.*NvU64 \*pAperOffset' g_kern_bus_nvoc.h MAP_FB_OFFSETS
form 'pVAS->__nvoc_vtable->__vaspaceGetHeap__' g_vaspace_nvoc.h HEAP_IN_VTABLE=1
form 'pVAS->__nvoc_metadata_ptr->vtable\.__vaspaceGetHeap__' g_vaspace_nvoc.h HEAP_IN_VTABLE=2
form '\*__gpuGetPhysAddrWidth__\)' g_gpu_nvoc.h WIDTH_SLOT
form '\*__memmgrIsKind__\)' g_mem_mgr_nvoc.h IS_KIND_SLOT
form '\*__memmgrGetHwPteKindFromSwPteKind__\)' g_mem_mgr_nvoc.h HW_KIND_SLOT
form '\*__kmemsysNeedInvalidateGpuCacheOnMap__\)' g_kern_mem_sys_nvoc.h NEED_INVALIDATE_SLOT
form '\*__kfifoGetUserdSizeAlign__\)' g_kernel_fifo_nvoc.h USERD_SLOT
form '\*__kbusCreateP2PMappingForMailbox__\)' g_kern_bus_nvoc.h MAILBOX_SLOT
form '\*__kbifIsC2CP2PSupported__\)' g_kernel_bif_nvoc.h C2C_SLOT
form '// GB202' g_chips2halspec_nvoc.c HAVE_GB202
form 'pP2PAtomicsCap' ../inc/kernel/platform/p2p/p2p_caps.h CAPS_ATOMICS

# ---- the harness ----

# The flags of the driver's own make, less those for a kernel.
line=$(make -n -W src/kernel/rmapi/nv_gpu_ops.c _out/Linux_x86_64/nv_gpu_ops.o |
	sed -n 's/.*cc \(.*\) -c src\/kernel\/rmapi\/nv_gpu_ops\.c.*/\1/p')
command=()
eval "command=($line)" # it is quoted for a shell
flags=()
for flag in "${command[@]}"; do
	case $flag in
	-m*|-fno-pic|-fcf-protection*|-fno-jump-tables|-Wundef|-W*) ;;
	*) flags+=("$flag") ;;
	esac
done
[ ${#flags[@]} -gt 50 ] || { echo "build.sh: make -n did not tell how objects are compiled" >&2; exit 1; }
for source in world harness; do
	gcc "${flags[@]}" -O1 -g -fno-pie -fno-builtin -Wall -Wextra -Wno-unused-parameter "${forms[@]/#/-D}" -I"$here" \
		-c "$here/$source.c" -o "$work/$source.main.o"
done
gcc -no-pie -o "$out" "$work"/*.o -Wl,--gc-sections -Wl,--unresolved-symbols=ignore-all -Wl,-z,noexecstack 2>"$work/link.log" ||
	{ cat "$work/link.log" >&2; exit 1; }
