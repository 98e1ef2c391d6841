#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# onehop test's patterns of use on a machine with 2 or more NVIDIA GPUs: all are right there, and in time.
#
#	tests/gpu/patterns.sh FOLDER [SECONDS]
#
# FOLDER holds "onehop" with the shared libraries that it needs. SECONDS: of sustained load, 20 by default. No setting
# of a GPU is changed. Ends with "N passed, N failed, N skipped".
# shellcheck source=tests/gpu/lib.sh
. "$(dirname "$0")/lib.sh"
export NCCL_NVLS_ENABLE=0 XDG_STATE_HOME=$work/state
seconds=${2:-20}

# right NAME ARGUMENT...: onehop test with them ends well; what it printed is in $work/said
right() {
	local name=$1 got=0
	shift
	onehop test "$@" >"$work/said" 2>&1 || got=$?
	if [ $got -eq 0 ]; then
		pass "$name"
	else
		fail "$name: status $got:"
		cat "$work/said"
	fi
}

# has NAME PATTERN: the last run printed it
has() {
	if grep -Eq -- "$2" "$work/said"; then pass "$1"; else fail "$1: no \"$2\""; fi
}

section 'the default run'
nvidia-smi -L
right 'every pair is right' -v
cat "$work/said"
has 'in all patterns' 'in all patterns of use'

section 'three times, for the time it takes'
for _ in 1 2 3; do
	right 'again'
	tail -2 "$work/said"
done

section 'JSON'
right 'JSON' --json
cp "$work/said" "$work/json"
for pattern in pull graph flags reread remap; do
	has "$pattern is in it" "\"pattern\": ?\"$pattern\""
done
grep -E '"(test_s|start_s|pattern|rounds|ms|copy_gbps)"' "$work/json" | paste -sd' ' | tr -s ' ' | cut -c1-6000

section "for $seconds s, and all of the last memory"
right 'for long' --long "$seconds" -v
cat "$work/said"
has 'the last memory' '^  last  *ok'
has 'sustained' '^  sustained  *ok'

section 'atomics, for information'
right 'atomics' --atomics -v
grep -A 8 '^Atomic' "$work/said"
grep 'memory by IPC' "$work/said"

section 'memory of other kinds, for information'
right 'host memory' --host-memory -v
has 'host memory is right or not offered' '^  host-memory  *ok|host memory .* not offered'
right 'compressible memory' --compressible -v
has 'compressible memory is right or not offered' '^  compressible  *ok|compressed, not offered'
grep -A 8 -E 'for information$|not offered' "$work/said"

section 'nothing is left'
if pgrep -x onehop >/dev/null; then fail 'a process is left'; else pass 'no process is left'; fi
onehop check | tail -4

counts
