#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# onehop tune on all GPUs of a machine, and what bench collective gains by its table: before (estimates) and after
# (measured times). Under 4 minutes on 4 GPUs.
#
#	tests/gpu/tune.sh FOLDER
#
# FOLDER holds the program "onehop", and where it was built elsewhere the shared libraries that it needs. The table and
# the figures go to $OUT (default: a new folder), and nothing to the user's own state folder. With one GPU tune has
# nothing to choose and says so; the other steps then use simulated devices, whose times mean nothing. Ends with
# "N passed, N failed, N skipped".
# shellcheck source=tests/gpu/lib.sh
. "$(dirname "$0")/lib.sh"
export NCCL_NVLS_ENABLE=0 XDG_STATE_HOME=$work/state
mkdir -p "$out"
gpus=$(nvidia-smi -L | wc -l)
devices=() table=tune.txt

# timed NAME LIMIT COMMAND...: what it printed goes to $out/NAME
timed() {
	local name=$1 limit=$2 start=$EPOCHREALTIME got=0
	shift 2
	timeout "$limit" "$@" >"$out/$name" 2>"$work/err" || got=$?
	seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
	if [ $got -eq 0 ]; then
		pass "$name, $seconds s"
	else
		fail "$name: exit $got after $seconds s"
		tail -n 3 "$work/err"
	fi
	cat "$out/$name"
}

# bench NAME OPTION...: the figures of all operations
bench() {
	local name=$1 op
	shift
	for op in all-reduce all-gather reduce-scatter broadcast reduce all-to-all; do
		timed "$name-$op" 90 "${onehop[@]}" bench collective "${devices[@]}" --op $op -b 16 -f 4 -v \
			--p2p-off --budget 4 -G 5 -n 20 "$@"
	done
}

section "$gpus GPUs"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
if [ "$gpus" -lt 2 ]; then
	if "${onehop[@]}" tune >"$work/said" 2>&1 || ! grep -q 'at least 2 devices' "$work/said"; then
		fail "one GPU is not refused: $(cat "$work/said")"
	else
		pass "$(cat "$work/said")"
	fi
	devices=(--device host:2) table=tune-simulated.txt
	large=(-e 64K)
else
	large=(-e 64M)
fi

section "before: estimates"
bench before "${large[@]}"
section "onehop tune"
timed tune 60 "${onehop[@]}" tune "${devices[@]}" -v
[ "$gpus" -lt 2 ] || echo "tune took $seconds s; 4 GPUs should take less than 10"
cp "$XDG_STATE_HOME/onehop/$table" "$out/" 2>/dev/null || fail 'tune left no table'
section "after: measured times"
bench after "${large[@]}"
if grep -q '^choice *by times measured' "$out/after-all-reduce"; then
	pass 'bench collective chooses by the table'
else
	fail 'bench collective does not use the table'
fi

# Where the choice has changed: time before and after, us.
section "what the table changed (operation, bytes, algorithm and us before, algorithm and us after)"
for op in all-reduce all-gather reduce-scatter broadcast reduce all-to-all; do
	awk -v op=$op '$1 ~ /^[0-9]+$/ && NF >= 10 {
		arm[FILENAME, $1]++
		key = $1 " " arm[FILENAME, $1]
		if (NR == FNR) { way[key] = $10; us[key] = $6 }
		else if (way[key] != $10) {
			split(key, part, " ")
			printf "%-14s %9s %s  %s %.2f -> %s %.2f  (%.2fx)\n", op, $1, part[2] == 1 ? "first run" : "without P2P",
				way[key], us[key], $10, $6, us[key] / $6
		}
	}' "$out/before-$op" "$out/after-$op"
done
counts
