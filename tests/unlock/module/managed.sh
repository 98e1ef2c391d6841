#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# managed.sh ONEHOP WORKDIR KERNEL [RELEASE...]
#
# nvidia-uvm.ko, which has the gate for managed memory, is compiled whole for a kernel whose headers are installed, from
# edited sources: the last release of each kind below ONEHOP_DRIVER_TREES, or each RELEASE. The core is left out (an
# empty object stands for it), so nvidia.ko of the same build is good for nothing but its symbols.
#
# Prints a line a check and, last, "N passed, N failed". Exit status 77: there is nothing to compile, or for.

set -euo pipefail

RELEASES="535.288.01 560.35.03 570.211.01 575.64.05 580.142 595.45.04"
MODULES_NOT_NEEDED="nvidia-vgpu-vfio nvidia-modeset nvidia-drm nvidia-peermem"

[ $# -ge 3 ] || { sed -n '/^# managed.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
onehop=$(realpath "$1") kernel=$3
mkdir -p "$2"
work=$(cd "$2" && pwd)
shift 3
[ -n "${ONEHOP_DRIVER_TREES:-}" ] || { echo "managed.sh: ONEHOP_DRIVER_TREES is not set"; exit 77; }
[ -e "/lib/modules/$kernel/build/Makefile" ] || { echo "managed.sh: no headers of $kernel"; exit 77; }
releases=("$@")
# shellcheck disable=SC2206 # words
[ $# != 0 ] || releases=($RELEASES)
[ ! -d /usr/lib/ccache ] || PATH=/usr/lib/ccache:$PATH
tree=$work/tree
trap 'rm -rf "$tree"' EXIT
passed=0 failed=0

# expect TEXT GOT WANT
expect() {
	if [ "$2" = "$3" ]; then
		echo "ok - $1"
		passed=$((passed + 1))
	else
		echo "FAIL - $1: '$2', not '$3'"
		failed=$((failed + 1))
	fi
}

copy() {
	local part
	rm -rf "$tree"
	mkdir -p "$tree/src"
	for part in kernel-open nv-compiler.sh utils.mk version.mk src/common src/nvidia; do
		[ ! -e "$1/$part" ] || cp -r "$1/$part" "$tree/$part"
	done
}

# What the core would bring is unresolved in nvidia.ko; of nvidia-uvm.ko nothing may be.
compile() {
	: | gcc -x c -c - -o "$tree/kernel-open/nvidia/nv-kernel.o_binary"
	make -s -C "$tree/kernel-open" -j"$(nproc)" "KERNEL_UNAME=$kernel" KBUILD_MODPOST_WARN=1 KCFLAGS=-g0 \
		"NV_EXCLUDE_KERNEL_MODULES=$MODULES_NOT_NEEDED" modules >"$work/$1.log" 2>&1
}

for release in "${releases[@]}"; do
	module=$tree/kernel-open/nvidia-uvm.ko status=0
	copy "$ONEHOP_DRIVER_TREES/$release"
	"$onehop" unlock --tree "$tree" --apply >"$work/$release.apply" 2>&1 ||
		{ expect "$release: it is edited" "$(tail -n 1 "$work/$release.apply")" ''; continue; }
	compile "$release" || status=$?
	expect "$release: make ends with 0 for $kernel" "$status" 0
	[ -e "$module" ] || { grep -m 3 'error:' "$work/$release.log" | sed 's/^/# /'; continue; }
	expect "$release: no symbol of nvidia-uvm.ko is unresolved" "$(grep -c 'undefined.*nvidia-uvm\|nvidia-uvm.*undefined' "$work/$release.log" || true)" 0
	expect "$release: it is for $kernel" "$(modinfo -F vermagic "$module" | cut -d' ' -f1)" "$kernel"
	expect "$release: its mark" "$(modinfo -F onehop "$module")" 'managed 1'
	status=0
	"$onehop" unlock --probe "$module" >"$work/$release.probe" 2>&1 || status=$?
	expect "$release: the probe ends with 0" "$status" 0
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
