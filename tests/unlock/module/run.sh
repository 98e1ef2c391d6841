#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh ONEHOP WORKDIR
#
# A kernel takes the module that `onehop unlock` makes as it takes the stock one: nvidia.ko is built whole,
# from the sources of Debian's package and for Debian's kernel, once as they are and once edited, and both
# are loaded in a guest that has no card. WORKDIR is that of ../../guest/prepare.sh, which is called; about
# 500 MiB more are needed there while it runs.
#
# Needs root to install the kernel's headers. Prints a line a check and, last, "N passed, N failed,
# N skipped". Exit status 77: the sources or headers cannot be had.

set -euo pipefail

MODULES_NOT_NEEDED="nvidia-uvm nvidia-vgpu-vfio nvidia-modeset nvidia-drm nvidia-peermem"

[ $# = 2 ] || { sed -n '/^# run.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
onehop=$(realpath "$1")
[ -x "$onehop" ] || { echo "run.sh: no program $onehop" >&2; exit 2; }
guest=$here/../../guest
status=0
"$guest/prepare.sh" "$2" || status=$?
[ "$status" = 0 ] || [ "$status" = 77 ] || exit 1 # 77: no forged devices; none are used here
base=$(cd "$2" && pwd)
work=$base/unlock
kernel=$(cat "$base/kernel/version")
[ ! -d /usr/lib/ccache ] || PATH=/usr/lib/ccache:$PATH

rm -rf "$work/tree" "$work/results"
mkdir -p "$work/results"
trap 'rm -rf "$work/tree"' EXIT

# line ok|FAIL|skip TEXT
line() {
	echo "$1 - $2" | tee -a "$work/results/lines"
}

# expect TEXT GOT WANT
expect() {
	if [ "$2" = "$3" ]; then line ok "$1"; else line FAIL "$1: '$2', not '$3'"; fi
}

skip_all() { echo "run.sh: $*"; exit 77; }

# ---- building ----

get_headers() {
	[ ! -e "/lib/modules/$kernel/build/Makefile" ] || return 0
	local apt=(apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 install "linux-headers-$kernel" make)
	export DEBIAN_FRONTEND=noninteractive
	"${apt[@]}" >"$work/results/apt" 2>&1 ||
		{ apt-get -qq update && "${apt[@]}"; } >>"$work/results/apt" 2>&1 ||
		skip_all "the headers of $kernel cannot be had: $(tail -n 1 "$work/results/apt")"
}

core() {
	make -s -C "$work/tree/src/nvidia" -j"$(nproc)" NV_VERBOSE= >"$work/results/core" 2>&1
	ln -sf ../../src/nvidia/_out/Linux_x86_64/nv-kernel.o "$work/tree/kernel-open/nvidia/nv-kernel.o_binary"
}

kernel_side() {
	make -s -C "$work/tree/kernel-open" -j"$(nproc)" "KERNEL_UNAME=$kernel" \
		"NV_EXCLUDE_KERNEL_MODULES=$MODULES_NOT_NEEDED" modules >"$work/results/kernel-side" 2>&1
}

# Stock sources may not compile for a newer kernel. That one call of it gets the argument it lacks, so that
# there is something to compare with.
stock_kernel_side() {
	local file=$work/tree/kernel-open/nvidia/nv-pci.c
	if kernel_side; then
		echo "# stock $release compiles for $kernel as it is"
		return
	fi
	grep -q "too few arguments to function .pci_resize_resource" "$work/results/kernel-side" || return 1
	echo "# stock $release does not compile for $kernel, whose pci_resize_resource has an argument more;" \
		"that call alone was edited by hand"
	cp -p "$file" "$work/results/nv-pci.c"
	sed -i 's/pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size)/pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size, 0)/' "$file"
	kernel_side
	cp "$work/results/nv-pci.c" "$file"
}

# keep NAME: the module that was built, without debug information, as packages have it
keep() {
	mkdir -p "$work/results/$1"
	cp "$work/tree/kernel-open/nvidia.ko" "$work/results/$1/nvidia.ko"
	strip --strip-debug "$work/results/$1/nvidia.ko"
}

build() {
	core || { line FAIL "stock: the core does not compile"; return 1; }
	stock_kernel_side || { line FAIL "stock: the module does not compile"; return 1; }
	keep stock
	"$onehop" unlock --tree "$work/tree" --apply >"$work/results/apply" 2>&1 ||
		{ line FAIL "onehop unlock --apply: $(tail -n 1 "$work/results/apply")"; return 1; }
	core || { line FAIL "edited: the core does not compile"; return 1; }
	kernel_side || { line FAIL "edited: the module does not compile"; return 1; }
	keep edited
	line ok "both compile for $kernel"
}

# ---- looking ----

# undefined FILE: the symbols that the module wants from others, with their versions
undefined() {
	modprobe --dump-modversions "$1" 2>/dev/null | sort || nm -u "$1" | sort
}

# look NAME MARK PROBE: what the module says of itself
look() {
	local module=$work/results/$1/nvidia.ko got=0
	expect "$1: it is for $kernel" "$(modinfo -F vermagic "$module" | cut -d' ' -f1)" "$kernel"
	expect "$1: its mark is '$2'" "$(modinfo -F onehop "$module")" "$2"
	"$onehop" unlock --probe "$module" >"$work/results/$1/probe" 2>&1 || got=$?
	expect "$1: the probe ends with $3" "$got" "$3"
}

# ---- loading ----

# dependencies: files of the modules that nvidia.ko wants, in the order of loading
dependencies() {
	local name
	for name in $(modinfo -F depends "$work/results/stock/nvidia.ko" | tr ',' ' '); do
		modprobe -d "$base/kernel" -S "$kernel" --show-depends --ignore-install "$name"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++'
}

load() {
	local script=$work/results/script number=0 file copies=() status=0
	echo '. /lib.sh' >"$script"
	while read -r file; do
		number=$((number + 1))
		copies+=(-f "$file:/needed/$number.${file##*/}")
		echo "insmod /needed/$number.${file##*/}" >>"$script"
	done < <(dependencies)
	cat "$here/guest.sh" >>"$script"
	"$guest/boot.sh" "$base" nogpu -t 400 ${copies[@]+"${copies[@]}"} -f "$work/results/stock/nvidia.ko:/modules/stock.ko" \
		-f "$work/results/edited/nvidia.ko:/modules/edited.ko" "$script" >"$work/results/guest" 2>&1 || status=$?
	tee -a "$work/results/lines" <"$work/results/guest"
	[ "$status" = 0 ] || line FAIL "the guest ended with $status"
}

# ---- all ----

get_headers
tree=$("$here/../sources.sh" "$work/sources" 2>"$work/results/sources") || {
	status=$?
	tail -n 1 "$work/results/sources"
	exit "$status"
}
release=$(basename "$tree")
cp -r "$tree" "$work/tree"
start=$SECONDS
if build; then
	echo "# built in $((SECONDS - start)) s"
	look stock '' 1
	look edited 'unlock 2' 0
	expect "both want the same symbols of the kernel, in the same versions" \
		"$(undefined "$work/results/edited/nvidia.ko" | md5sum)" "$(undefined "$work/results/stock/nvidia.ko" | md5sum)"
	start=$SECONDS
	load
	echo "# loaded in $((SECONDS - start)) s"
else
	tail -n 20 "$work/results/core" "$work/results/kernel-side" 2>/dev/null | sed 's/^/# /'
fi

count() { grep -c "^$1 - " "$work/results/lines" || true; }
failed=$(count FAIL)
echo "$(count ok) passed, $failed failed, $(count skip) skipped"
[ "$failed" = 0 ]
