#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh ONEHOP WORKDIR [RELEASE...]
#
# What the edits of `onehop unlock` do, checked without a card: the object files of a driver that they go
# through are compiled, stock and edited, linked into a program (harness.c) and called, and so are the functions of
# nvidia-uvm that decide about managed memory (managed.c). Where they come from:
# Debian's source package, and, with ONEHOP_DRIVER_TREES=DIR (folders named after their releases, whole
# trees), the first and last release of each kind, or each RELEASE named.
#
# Needs gcc, make and binutils; about 600 MiB below WORKDIR while it runs. Prints a line a check and, last,
# "N passed, N failed, N skipped"; exit status 0 if nothing failed.

set -euo pipefail

# First and last of each kind that src/unlock/eras.c knows.
RELEASES="535.43.02 535.288.01 545.23.06 560.35.03 565.57.01 570.211.01 575.51.02 575.64.05 580.65.06
	580.142 590.44.01 595.45.04"
STUBS='(kbusGetBar1P2PDmaInfo|kbusCreateP2PMappingForBar1P2P|kbusRemoveP2PMappingForBar1P2P|kbusHasPcieBar1P2PMapping|kbusIsPcieBar1P2PMappingSupported)_[0-9a-f]{6}'

[ $# -ge 2 ] || { sed -n '/^# run.sh /,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
onehop=$(realpath "$1")
mkdir -p "$2"
work=$(cd "$2" && pwd)
shift 2
[ -x "$onehop" ] || { echo "run.sh: no program $onehop" >&2; exit 2; }
releases=("$@")
# shellcheck disable=SC2206 # words
[ $# != 0 ] || releases=($RELEASES)
[ ! -d /usr/lib/ccache ] || PATH=/usr/lib/ccache:$PATH

rm -rf "$work/tree" "$work/results"
mkdir -p "$work/results"
trap 'rm -rf "$work/tree" "$work"/harness.*' EXIT

# line ok|FAIL|skip TEXT
line() {
	echo "$1 - $2" | tee -a "$work/results/lines"
}

# expect TEXT GOT WANT
expect() {
	if [ "$2" = "$3" ]; then line ok "$1"; else line FAIL "$1: but $2"; fi
}

# stubs OBJECT: how many of the five functions still have one that only says no
stubs() {
	nm "$1" | grep -Ec " [tT] $STUBS\$" || true
}

# half RELEASE stock|patched: compile, run, and look for the stubs
half() {
	local release=$1 half=$2 name=$work/results/$1.$2 table="$work/harness.$2.d/g_kern_bus_nvoc.o" status=0 want=5 found
	if ! "$here/build.sh" "$work/tree" "$work/harness.$half" >"$name.build" 2>&1; then
		line FAIL "$release $half: it does not compile"
		tail -n 20 "$name.build" | sed 's/^/# /'
		return 1
	fi
	"$work/harness.$half" "$half" "$name.others" "$name.peers" >"$name.out" || status=$?
	# its lines, with the release in front, but without its count
	sed -n "s/^\(ok\|FAIL\) - /&$release $half: /p; /^#/p" "$name.out" | tee -a "$work/results/lines"
	grep -q '^[0-9]* passed, ' "$name.out" || line FAIL "$release $half: the harness ended with $status"
	[ "$half" = stock ] || want=0
	found=$(stubs "$table")
	expect "$release $half: $want of 5 functions have a stub that only says no" "$found" "$want"
	managed "$release" "$half"
	status=0
	"$onehop" unlock --probe "$work/harness.$half" >"$name.probe" 2>&1 || status=$?
	expect "$release $half: the probe ends with $((want > 0))" "$status" "$((want > 0))"
}

# managed RELEASE stock|patched: what nvidia-uvm does with managed memory of peers
managed() {
	local name=$work/results/$1.$2.managed status=0
	if ! "$here/managed.sh" "$work/tree" "$work/harness.managed" >"$name.build" 2>&1; then
		line FAIL "$1 $2: the functions for managed memory do not compile"
		head -n 20 "$name.build" | sed 's/^/# /'
		return
	fi
	"$work/harness.managed" "$2" >"$name.out" || status=$?
	sed -n "s/^\(ok\|FAIL\) - /&$1 $2: /p; /^#/p" "$name.out" | tee -a "$work/results/lines"
	grep -q '^[0-9]* passed, ' "$name.out" || line FAIL "$1 $2: managed ended with $status"
}

# copy TREE: its parts that are compiled or edited
copy() {
	local part
	rm -rf "$work/tree"
	mkdir -p "$work/tree/src"
	for part in kernel-open nv-compiler.sh utils.mk version.mk src/common src/nvidia; do
		[ ! -e "$1/$part" ] || cp -r "$1/$part" "$work/tree/$part"
	done
	rm -rf "$work/tree/src/nvidia/_out"
}

# release NAME TREE
release() {
	local name=$1 start=$SECONDS
	if [ ! -f "$2/src/nvidia/srcs.mk" ]; then
		line skip "$name: there is no whole tree of it"
		return
	fi
	copy "$2"
	half "$name" stock || return 0
	if ! "$onehop" unlock --tree "$work/tree" --apply >"$work/results/$name.apply" 2>&1; then
		line FAIL "$name: onehop unlock --apply: $(tail -n 1 "$work/results/$name.apply")"
		return
	fi
	half "$name" patched || return 0
	if [ -s "$work/results/$name.stock.others" ] && cmp -s "$work/results/$name.stock.others" "$work/results/$name.patched.others"; then
		line ok "$name: $(wc -l <"$work/results/$name.stock.others") entries that are not for BAR1 are the same, stock and patched"
	else
		line FAIL "$name: entries that are not for BAR1 differ"
		diff "$work/results/$name".{stock,patched}.others | head -n 20 | sed 's/^/# /' || true
	fi
	echo "# $name: $((SECONDS - start)) s"
}

# Where a release makes entries for BAR1 itself, ours are the same as its.
compare_peers() {
	local differ
	differ=$(cat "$work"/results/*.peers | sort -u | cut -d: -f1 | uniq -d)
	if [ -n "$differ" ]; then
		line FAIL "releases disagree on entries for BAR1"
		head -n 20 <<<"$differ" | sed 's/^/# /'
	else
		line ok "$(cat "$work"/results/*.peers | sort -u | wc -l) entries for BAR1 are the same in all $(find "$work/results" -name '*.patched.peers' | wc -l) releases"
	fi
}

if [ $# = 0 ]; then
	status=0
	tree=$("$here/../sources.sh" "$work/sources" 2>"$work/results/sources") || status=$?
	if [ "$status" = 0 ]; then
		release "$(basename "$tree") (Debian)" "$tree"
	else
		line skip "Debian's source package: $(tail -n 1 "$work/results/sources")"
	fi
fi
if [ -n "${ONEHOP_DRIVER_TREES:-}" ]; then
	for name in "${releases[@]}"; do
		release "$name" "$ONEHOP_DRIVER_TREES/$name"
	done
else
	line skip "other releases: ONEHOP_DRIVER_TREES is not set"
fi
[ -z "$(find "$work/results" -name '*.peers')" ] || compare_peers

count() { grep -c "^$1 - " "$work/results/lines" || true; }
failed=$(count FAIL)
echo "$(count ok) passed, $failed failed, $(count skip) skipped"
[ "$failed" = 0 ]
