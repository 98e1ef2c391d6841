#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The NCCL shim in an unmodified PyTorch, and in nccl-tests where they are given. On one GPU everything is passed on; on
# more, calls must be taken over. Under 10 minutes.
#
#	tests/gpu/shim.sh BUILD
#
# BUILD      the build folder, with plugins/nccl/libonehop-nccl.so and tests/shim
# NCCL_TESTS  a folder with the programs of nccl-tests; not set: they are skipped
# PYTHON      python3 that has torch
# GPUS        how many to use; not set: all, at most 4
# SHIM_MODE   all (everything that libonehop can do) or on (what is known to be faster); not set: all
# SECONDS_OF_OPS   how long random traffic lasts; 60

set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: $0 BUILD}" && pwd)
python=${PYTHON:-python3}
mode=${SHIM_MODE:-all}
shim=$build/plugins/nccl/libonehop-nccl.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

result() {
	local right=$1
	shift
	if [ "$right" = 0 ]; then echo "PASS $*"; passed=$((passed + 1)); else echo "FAIL $*"; failed=$((failed + 1)); fi
}

skip() {
	echo "SKIP $*"
	skipped=$((skipped + 1))
}

nccl=$("$python" -c 'import importlib.util, os
paths = [os.path.join(p, "lib", "libnccl.so.2") for n in ("nvidia.nccl",) for p in (importlib.util.find_spec(n).submodule_search_locations if importlib.util.find_spec(n) else [])]
print(next((p for p in paths if os.path.exists(p)), ""))')
gpus=${GPUS:-$("$python" -c 'import torch; print(min(4, torch.cuda.device_count()))')}
echo "$("$python" -c 'import torch; print("torch", torch.__version__, "NCCL", ".".join(map(str, torch.cuda.nccl.version())), torch.cuda.get_device_name(0))'), $gpus GPUs, libnccl: ${nccl:-not in a wheel}"

# with MODE COMMAND...: the shim is loaded, its lines are in $work/log.*
with() {
	local how=$1
	shift
	rm -f "$work"/log.*
	ONEHOP_SHIM=$how LD_PRELOAD=$shim NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$work/log.%h.%p "$@"
}

torch_run() {
	"$python" -m torch.distributed.run --standalone --nproc-per-node "$gpus" "$here/shim_train.py" "$@"
}

# What the logs say was taken over.
taken() {
	cat "$work"/log.* 2>/dev/null | grep -c 'NCCL INFO onehop: .*takes over [A-Z]'
}

check_taken() {
	local n
	n=$(taken)
	grep -h 'onehop:' "$work"/log.* 2>/dev/null | sed 's/^/# /' | head -20
	if [ "$gpus" = 1 ]; then
		[ "$n" = 0 ]; result $? "$1: with one GPU nothing is taken over"
	else
		[ "$n" -gt 0 ]; result $? "$1: $n kinds of calls were taken over"
	fi
}

# ---- the table of functions, next to the real library ----

if [ -n "$nccl" ] && command -v nm >/dev/null; then
	unknown=$(comm -23 <(nm -D --defined-only "$nccl" | awk '{print $3}' | grep '^nccl[A-Z]' | grep -v 'Internal$' | sort -u) \
		<(sed -n 's/^\(take\|pass\) .* \(\w*\)(.*/nccl\2/p' "$here/../../plugins/nccl/functions.txt" | sort -u))
	[ -z "$unknown" ]; result $? "every function of $nccl is in functions.txt ${unknown//$'\n'/ }"
else
	skip "functions of the real library (no wheel or no nm)"
fi

# ---- training ----

for kind in ddp fsdp; do
	torch_run $kind >"$work/without.$kind" 2>"$work/err" </dev/null
	result $? "$kind without the shim"
	for run in 1 2; do
		with "$mode" torch_run $kind >"$work/with$run" 2>"$work/err$run" </dev/null
		result $? "$kind with the shim, run $run"
		[ -s "$work/with$run" ] || tail -5 "$work/err$run" | sed 's/^/# /'
	done
	check_taken $kind
	cmp -s "$work/with1" "$work/with2"; result $? "$kind: losses are the same from run to run"
	"$python" - "$work/without.$kind" "$work/with1" <<'PY'
import sys
a, b = ([float.fromhex(l.split()[2]) for l in open(p) if l.startswith("loss")] for p in sys.argv[1:])
sys.exit(not (len(a) == len(b) == 40 and all(abs(x - y) <= 1e-5 * abs(x) for x, y in zip(a, b))))
PY
	result $? "$kind: losses are NCCL's within 1e-5"
	[ "$(grep -vc '^loss' "$work/with1")" = 0 ]; result $? "$kind: nothing else is on the standard output"
done

# ---- off, and what passing on costs ----

with off torch_run ddp >"$work/off" 2>"$work/err" </dev/null
result $? "ddp with ONEHOP_SHIM=off"
[ "$(taken)" = 0 ] && cmp -s "$work/off" "$work/without.ddp"; result $? "off: nothing is taken over, and losses are NCCL's"

# Both without NCCL's log, which costs time by itself.
for pair in 1 2 3 4 5; do
	a=$(torch_run small 2>/dev/null | awk '/^small/ {print $2}')
	b=$(ONEHOP_SHIM=off LD_PRELOAD=$shim torch_run small 2>/dev/null | awk '/^small/ {print $2}')
	echo "# pair $pair: all-reduce of 8 bytes: $a us without, $b us with ONEHOP_SHIM=off"
done
if [ -x "$build/tests/shim/shim_cost" ]; then
	LD_PRELOAD=$shim "$build/tests/shim/shim_cost" "$build/tests/shim/libnccl.so.2.30.7.so" 501 | sed 's/^/# /'
fi

# ---- traffic of all kinds ----

with "$mode" torch_run ops >"$work/ops" 2>"$work/err" </dev/null
result $? "random traffic in two communicators, eager and in a graph"
sed 's/^/# /' "$work/ops"
check_taken ops

with "$mode" torch_run graphs >"$work/graphs" 2>"$work/err" </dev/null
result $? "two graphs next to calls outside of them"
sed 's/^/# /' "$work/graphs"
check_taken graphs

# ---- nccl-tests ----

if [ -n "${NCCL_TESTS:-}" ]; then
	for program in all_reduce all_gather reduce_scatter broadcast reduce; do
		for g in 1 2 4; do
			[ "$g" -le "$gpus" ] || continue
			for way in "-g $g" "-t $g -g 1" "-g $g -G 5"; do
				# shellcheck disable=SC2086
				with "$mode" timeout 100 "$NCCL_TESTS/${program}_perf" -b 8 -e 4M -f 4 -c 1 -n 5 -d all -o all $way \
					>"$work/tests" 2>&1 </dev/null
				result $? "${program}_perf $way: $(grep -h 'Out of bounds\|Avg bus' "$work/tests" | tr -s '#\n ' ' ')"
			done
			[ "$g" = 1 ] || check_taken "${program}_perf -g $g"
		done
	done
else
	skip 'nccl-tests (NCCL_TESTS is not set)'
fi

printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ]
