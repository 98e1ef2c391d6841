#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The NCCL shim in an unmodified PyTorch, and in nccl-tests where they are given. On one GPU everything is passed on; on
# more, calls must be taken over. Each part ends with a line "shim PART: N passed, N failed, N skipped, N s".
#
#	tests/gpu/shim.sh BUILD [PART...]
#
# BUILD      the build folder, with plugins/nccl/libonehop-nccl.so and tests/shim
# PART       table   every function of the real library is known
#            train   DDP and FSDP, without the shim and twice with it; DDP with the shim turned off
#            cost    what passing on costs: turned off, and in communicators that take over, next to NCCL's time for 8 bytes
#            ops     random traffic in two communicators, also in graphs, for SECONDS_OF_OPS
#            graphs  two graphs next to calls outside of them
#            tests   nccl-tests: all operations, types and reductions, in threads, in graphs, in place
#            none given: all
# NCCL_TESTS  a folder with the programs of nccl-tests; not set: they are skipped
# PYTHON      python3 that has torch
# GPUS        how many to use; not set: all, at most 4
# SHIM_MODE   all (everything that libonehop can do) or on (what is known to be faster); not set: all
# SECONDS_OF_OPS   how long random traffic lasts, and at most 20 of them graphs; 60
# PROGRAMS    which of nccl-tests: "reduce_scatter sendrecv"; not set: all
# LIMIT       seconds for all parts: what is not begun by then is skipped, and what runs is ended; not set: none

set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: $0 BUILD [PART...]}" && pwd)
shift
all_parts=(table train cost ops graphs tests)
python=${PYTHON:-python3}
mode=${SHIM_MODE:-all}
seconds=${SECONDS_OF_OPS:-60}
limit=${LIMIT:-100000}
shim=$build/plugins/nccl/libonehop-nccl.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

for part in "$@"; do
	[[ " ${all_parts[*]} " == *" $part "* ]] || { echo "$0: the parts are ${all_parts[*]}, not $part" >&2; exit 2; }
done

result() {
	local right=$1
	shift
	if [ "$right" = 0 ]; then echo "PASS $*"; passed=$((passed + 1)); else echo "FAIL $*"; failed=$((failed + 1)); fi
}

skip() {
	echo "SKIP $*"
	skipped=$((skipped + 1))
}

# within N COMMAND...: at most N seconds, and at most what is left
within() {
	local left=$((limit - SECONDS))
	timeout -k 5 $((left < $1 ? (left > 1 ? left : 1) : $1)) "${@:2}"
}

# late WHAT: whether there is no time for it, which is said
late() {
	[ $((limit - SECONDS)) -gt 10 ] && return 1
	skip "$1: no time left"
}

nccl=$("$python" -c 'import importlib.util, os
paths = [os.path.join(p, "lib", "libnccl.so.2") for n in ("nvidia.nccl",) for p in (importlib.util.find_spec(n).submodule_search_locations if importlib.util.find_spec(n) else [])]
print(next((p for p in paths if os.path.exists(p)), ""))')
gpus=${GPUS:-$("$python" -c 'import torch; print(min(4, torch.cuda.device_count()))')}
export LD_LIBRARY_PATH=${nccl:+$(dirname "$nccl"):}${LD_LIBRARY_PATH:-}
echo "$("$python" -c 'import torch; print("torch", torch.__version__, "NCCL", ".".join(map(str, torch.cuda.nccl.version())), torch.cuda.get_device_name(0))'), $gpus GPUs, ONEHOP_SHIM=$mode, libnccl: ${nccl:-not in a wheel}"

# ---- what the logs say ----

# with MODE COMMAND...: the shim is loaded, its lines are in $work/log.*
with() {
	local how=$1
	shift
	rm -f "$work"/log.*
	ONEHOP_SHIM=$how LD_PRELOAD=$shim NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$work/log.%h.%p "$@"
}

lines() {
	cat "$work"/log.* 2>/dev/null | grep 'onehop:'
}

# How many calls were taken over, and passed on by communicators that take over, by all ranks.
taken() {
	lines | sed -n 's/.* took over \([0-9]*\) call.*/\1/p' | awk '{n += $1} END {print n + 0}'
}

counts() {
	lines | sed -n 's/.* took over \([0-9]*\) calls\{0,1\}, passed on \([0-9]*\).*/\1 \2/p' | awk '
		{t += $1; p += $2; if (NR == 1 || $1 < low) low = $1; if ($1 > high) high = $1}
		END {printf "took over %d calls and passed on %d, in %d rank%s of communicators (%d to %d taken over in each)", t, p, NR, NR == 1 ? "" : "s", low, high}'
}

# check_taken WHAT: calls were taken over, and by every rank as many; with one GPU none.
check_taken() {
	lines | sed 's/.*onehop: comm 0x[0-9a-f]* //; s/.*onehop: //' | sort | uniq -c | sed 's/^/# /' | head -20
	if [ "$gpus" = 1 ]; then
		[ "$(taken)" = 0 ]; result $? "$1: with one GPU nothing is taken over"
	else
		[ "$(taken)" -gt 0 ]; result $? "$1: $(counts)"
	fi
}

torch_run() {
	within $((seconds + 120)) "$python" -m torch.distributed.run --standalone --nproc-per-node "$gpus" "$here/shim_train.py" "$@" </dev/null
}

# ---- the parts ----

part_table() {
	local unknown
	if [ -z "$nccl" ] || ! command -v nm >/dev/null; then
		skip "functions of the real library (no wheel or no nm)"
		return
	fi
	unknown=$(comm -23 <(nm -D --defined-only "$nccl" | awk '{print $3}' | grep '^nccl[A-Z]' | grep -v 'Internal$' | sort -u) \
		<(sed -n 's/^\(take\|pass\) .* \(\w*\)(.*/nccl\2/p' "$here/../../plugins/nccl/functions.txt" | sort -u))
	[ -z "$unknown" ]; result $? "every function of $nccl is in functions.txt ${unknown//$'\n'/ }"
}

part_train() {
	local kind run ddp
	torch_run ddp >"$work/without.ddp" 2>"$work/err" &
	ddp=$!
	torch_run fsdp >"$work/without.fsdp" 2>"$work/err.fsdp"
	result $? "fsdp without the shim"
	wait $ddp
	result $? "ddp without the shim"
	for kind in ddp fsdp; do
		for run in 1 2; do
			with "$mode" torch_run $kind >"$work/with$run" 2>"$work/err$run"
			result $? "$kind with the shim, run $run"
			[ -s "$work/with$run" ] || tail -5 "$work/err$run" | sed 's/^/# /'
			check_taken "$kind, run $run"
		done
		cmp -s "$work/with1" "$work/with2"; result $? "$kind: losses are the same from run to run"
		"$python" - "$work/without.$kind" "$work/with1" <<'PY'
import sys
a, b = ([float.fromhex(l.split()[2]) for l in open(p) if l.startswith("loss")] for p in sys.argv[1:])
if len(a) != 40 or len(b) != 40:
    sys.exit(f"{len(a)} and {len(b)} losses")
print(f"# losses {a[0]:.6f} to {a[-1]:.6f}; the greatest difference is {max(abs(x - y) / abs(x) for x, y in zip(a, b)):.1e} of one")
sys.exit(not all(abs(x - y) <= 1e-5 * abs(x) for x, y in zip(a, b)))
PY
		result $? "$kind: losses are NCCL's within 1e-5"
		[ "$(grep -vc '^loss' "$work/with1")" = 0 ]; result $? "$kind: nothing else is on the standard output"
	done
	with off torch_run ddp >"$work/off" 2>"$work/err"
	result $? "ddp with ONEHOP_SHIM=off"
	[ "$(taken)" = 0 ] && cmp -s "$work/off" "$work/without.ddp"; result $? "off: nothing is taken over, and losses are NCCL's"
}

# below_1_percent WHAT: of the last line of $work/cost
below_1_percent() {
	sed 's/^/# /' "$work/cost"
	awk -v FS='ratio ' '/ratio/ {split($2, r, /[ ,]/)} END {exit !(r[1] > 0 && r[1] < 1.01)}' "$work/cost"
	result $? "$1 costs below 1 % of NCCL's time for 8 bytes"
}

# Both without NCCL's log of each call, in one process, in turn.
part_cost() {
	local how
	LD_PRELOAD=$shim ONEHOP_SHIM=off "$build/tests/shim/shim_cost" "$build/tests/shim/libnccl.so.2.30.7.so" 501 >"$work/cost"
	result $? "a call to a stand-in, off: $(cat "$work/cost")"
	LD_PRELOAD=$shim "$build/tests/shim/shim_cost" "$build/tests/shim/libnccl.so.2.30.7.so" 501 >"$work/cost"
	result $? "a call to a stand-in, on, no communicator: $(cat "$work/cost")"
	if [ "$gpus" = 1 ] || [ -z "$nccl" ]; then
		skip "next to NCCL (two GPUs and libnccl are needed)"
		return
	fi
	for how in off on; do
		with $how within 60 "$build/tests/shim/shim_cost_comm" cuda "$nccl" 1001 >"$work/cost" 2>"$work/err" </dev/null
		result $? "8 bytes to NCCL with ONEHOP_SHIM=$how"
		lines | sed 's/^.*onehop: /# /'
		below_1_percent "a call that is passed on with ONEHOP_SHIM=$how"
	done
	lines | grep -q 'took over [1-9][0-9]* calls*, passed on [0-9]\{5,\}'
	result $? "the communicators of the last run take over other calls"
}

part_ops() {
	SECONDS_OF_OPS=$seconds with "$mode" torch_run ops >"$work/ops" 2>"$work/err"
	result $? "random traffic in two communicators, eager and in a graph, $seconds s: $(cat "$work/ops")"
	[ -s "$work/ops" ] || tail -5 "$work/err" | sed 's/^/# /'
	grep -q 'memory 0$' "$work/ops"; result $? "memory is the same to the byte after the first quarter"
	check_taken ops
}

part_graphs() {
	SECONDS_OF_OPS=$((seconds < 20 ? seconds : 20)) with "$mode" torch_run graphs >"$work/graphs" 2>"$work/err"
	result $? "two graphs next to calls outside of them: $(cat "$work/graphs")"
	check_taken graphs
}

# tests_once LOG PROGRAM WAY...: from 8 B to 8 MiB
tests_once() {
	within 100 "$NCCL_TESTS/$2_perf" -b 8 -e 8M -f 16 -c 1 -n 3 -w 1 -d all -o all "${@:3}" >"$1" 2>&1 </dev/null
}

tests_summary() {
	echo "$(grep -c '^ *[0-9]' "$1") rows, $(sed -n 's/^# *\(Out of bounds values\) *: */\1 /p' "$1")"
}

# tests_run TAKEN PROGRAM WAY...: TAKEN: whether calls must be taken over (some), or none can be (none)
tests_run() {
	local expected=$1 n status start=$SECONDS
	shift
	[[ " ${PROGRAMS:-$1} " == *" $1 "* ]] || return
	late "$1_perf ${*:2}" && return
	with "$mode" tests_once "$work/tests" "$@"
	status=$?
	if [ $status = 124 ] && late "$1_perf ${*:2}, after $(tests_summary "$work/tests")"; then
		return
	fi
	if [ $status != 0 ] && [ $status != 124 ] && ! tests_once "$work/alone" "$@" && [ "$(tests_summary "$work/alone")" = "$(tests_summary "$work/tests")" ]; then
		skip "$1_perf ${*:2}: NCCL fails in the same way without the shim: $(grep -h 'failure\|error' "$work/alone" | head -1)"
		return
	fi
	grep -q 'Out of bounds values *: 0 OK' "$work/tests" && [ $status = 0 ]
	result $? "$1_perf ${*:2}: $(tests_summary "$work/tests"); $(counts); $((SECONDS - start)) s"
	[ $status = 0 ] || tail -5 "$work/tests" | sed 's/^/# /'
	n=$(taken)
	case $expected in
	some) [ "$n" -gt 0 ] || result 1 "$1_perf ${*:2}: nothing was taken over" ;;
	*) [ "$n" = 0 ] || result 1 "$1_perf ${*:2}: $n calls were taken over" ;;
	esac
}

part_tests() {
	local program way ways=()
	if [ -z "${NCCL_TESTS:-}" ]; then
		skip 'nccl-tests (NCCL_TESTS is not set)'
		return
	fi
	case $gpus in
	1) ;;
	2) ways=("-g 2" "-t 2 -g 1" "-g 2 -G 3") ;;
	*) ways=("-g $gpus" "-t $gpus -g 1" "-g $gpus -G 3") ;;
	esac
	# Each program in one way before any of them in the next one. Of broadcast and alltoall there are fewest kinds.
	for way in "${ways[@]}"; do
		for program in broadcast alltoall all_gather reduce_scatter reduce all_reduce; do
			# shellcheck disable=SC2086 # options
			tests_run some $program $way
		done
		[ "$way" = "${ways[0]}" ] || continue
		for program in sendrecv gather scatter alltoallv hypercube; do
			# shellcheck disable=SC2086 # options
			[ ! -x "$NCCL_TESTS/${program}_perf" ] || tests_run none $program $way
		done
	done
	# Registered buffers, several calls in a group, the legacy stream.
	for way in "-R 1" "-m 4" "-y 1"; do
		# shellcheck disable=SC2086 # options
		[ "$gpus" = 1 ] || tests_run some all_reduce -g "$gpus" $way
	done
	for program in all_reduce all_gather reduce_scatter broadcast reduce alltoall; do
		tests_run none $program -g 1
	done
}

[ $# -gt 0 ] || set -- "${all_parts[@]}"
all_passed=0 all_failed=0 all_skipped=0
for part in "$@"; do
	passed=0 failed=0 skipped=0 start=$SECONDS
	late "$part" || "part_$part"
	echo "shim $part: $passed passed, $failed failed, $skipped skipped, $((SECONDS - start)) s"
	all_passed=$((all_passed + passed)) all_failed=$((all_failed + failed)) all_skipped=$((all_skipped + skipped))
done
printf '\n%d passed, %d failed, %d skipped\n' $all_passed $all_failed $all_skipped
[ $all_failed -eq 0 ]
