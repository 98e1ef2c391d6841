#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# managed.sh TREE OUT: a program, OUT, of those functions of TREE's nvidia-uvm that decide whether managed memory
# uses a peer, and that write page-table entries and copy commands for it. They are taken out of its files as they
# are; what they call is in managed.c. Needs no kernel headers.

set -euo pipefail

uvm=$(cd "$1/kernel-open/nvidia-uvm" && pwd) out=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
work=$out.d
rm -rf "$work"
mkdir -p "$work"

# function FILE NAME: its definition; nothing if there is none
function_of() {
	[ -f "$uvm/$1" ] || return 0
	awk -v name="$2" '
		!inside && $0 ~ "^[A-Za-z].*[ *]" name "\\(" { inside = 1; text = "" }
		inside { text = text $0 "\n" }
		inside && /;$/ && text !~ /\n\{/ && text !~ /^[^\n]*\{/ { inside = 0 }
		inside && /^}/ { printf "%s\n", text; inside = 0 }' "$uvm/$1"
}
# needed FILE NAME: it has to be there
needed() {
	local text
	text=$(function_of "$@")
	[ -n "$text" ] || { echo "managed.sh: no function $2 in $uvm/$1" >&2; exit 1; }
	printf '%s\n\n' "$text"
}
has() {
	[ -n "$(function_of "$@")" ]
}
enumeration() {
	awk -v end="^} $2;" '/^typedef enum/ { text = "" } { text = text $0 "\n" } $0 ~ end { printf "%s", text; exit }' "$uvm/$1"
}
# Macros with their continuations.
macros() {
	awk -v name="$2" '/^#define/ && $0 ~ name { on = 1 } on { print } on && !/\\$/ { on = 0 }' "$uvm/$1"
}

{
	macros uvm_push_macros.h '^#define (HW|UVM_FLD|WRITE_HW|READ_HW)'
	macros uvm_hopper_mmu.c '^#define '
	enumeration uvm_hal_types.h uvm_aperture_t
	enumeration uvm_gpu.h uvm_gpu_link_type_t
	enumeration uvm_gpu.h uvm_gpu_peer_copy_mode_t
} >"$work/types.inc"
{
	function_of uvm_hal_types.h uvm_aperture_is_sys
	function_of uvm_hal_types.h uvm_aperture_is_peer
	needed uvm_hal_types.h UVM_APERTURE_PEER_ID
	needed uvm_hal_types.h UVM_APERTURE_PEER
	needed uvm_turing_mmu.c make_pte_turing
	function_of uvm_hopper_mmu.c pte_pcf
	needed uvm_hopper_mmu.c make_pte_hopper
	needed uvm_ampere_ce.c ce_aperture | sed 's/ce_aperture/ce_aperture_ampere/'
	needed uvm_hopper_ce.c ce_aperture | sed 's/ce_aperture/ce_aperture_hopper/'
	function_of uvm_turing_ce.c ce_aperture | sed 's/ce_aperture/ce_aperture_turing/'
	function_of uvm_gpu.c uvm_gpu_peer_caps_aperture
	function_of uvm_gpu.c parent_gpu_peer_aperture
	needed uvm_gpu.c uvm_gpu_peer_aperture
	function_of uvm_gpu.c uvm_parent_gpus_are_bar1_peers
	function_of uvm_gpu.c uvm_gpu_peer_phys_address
	# The edit's
	function_of uvm_gpu.c onehop_is_bar1_peer
	function_of uvm_gpu.c onehop_can_encode
	function_of uvm_gpu.c onehop_managed_p2p_unsupported
	needed uvm_mmu.c uvm_mmu_create_peer_identity_mappings
	needed uvm_va_space.c disable_peers
	needed uvm_va_space.c enable_peers
	! function_of uvm_map_external.c uvm_ext_gpu_map_destroy | grep -q "uvm_mmu_l2_invalidate(" ||
		needed uvm_map_external.c uvm_ext_gpu_map_destroy
} >"$work/functions.inc"

forms=()
! has uvm_gpu.c parent_gpu_peer_aperture || forms+=(-DPARENT_PEERS)
! has uvm_gpu.c uvm_gpu_peer_phys_address || forms+=(-DPHYS_ADDRESS)
! grep -q '^ *UVM_GPU_LINK_PCIE_BAR1,' "$work/types.inc" || forms+=(-DBAR1_LINK)
! grep -q '^ *UVM_APERTURE_SYS_NON_COHERENT,' "$work/types.inc" || forms+=(-DSYS_NON_COHERENT)
! has uvm_turing_ce.c ce_aperture || forms+=(-DTURING_CE)
! grep -q "uvm_mmu_l2_invalidate(" "$work/functions.inc" || forms+=(-DUNMAP_INVALIDATES)
! grep -q 'mmu_biggest_page_size(&gpu->address_space_tree)' "$work/functions.inc" || forms+=(-DBIGGEST_PAGE_1)

gcc -std=gnu11 -O1 -g -Wall -Werror -Wno-unused-function -Wno-unused-variable -Wno-unused-but-set-variable -Wno-unused-value \
	-Wno-unused-label -Wno-enum-compare "${forms[@]}" -I"$work" -I"$here" -idirafter "$uvm" \
	-idirafter "$uvm/../common/inc" -o "$out" "$here/managed.c"
