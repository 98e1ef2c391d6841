#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# onehop bench nccl beside nccl-tests' all_reduce_perf, in turns, with the same libnccl.
#
#	tests/gpu/nccl_compare.sh FOLDER PEERS [GPUS]
#
# FOLDER holds the program "onehop" (and perhaps shared libraries that it needs), PEERS nccl-tests'
# "all_reduce_perf". Runs A B A B ... A, A being nccl-tests, for about a minute (SECONDS_MAX), and
# prints for each size and placement the times and the ratio B/A, where A is the geometric mean of
# the run before and the one after; from 6 rounds on low and high are the 95 % interval of the
# median. NVLink multicast stays off. The last run checks the data.
set -u
export LC_ALL=C NCCL_NVLS_ENABLE=0
unset NCCL_DEBUG

folder=$(cd "${1:?usage: nccl_compare.sh FOLDER PEERS [GPUS]}" && pwd)
peer=$(cd "${2:?usage: nccl_compare.sh FOLDER PEERS [GPUS]}" && pwd)/all_reduce_perf
gpus=${3:-$(nvidia-smi -L | wc -l)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seconds_max=${SECONDS_MAX:-70}
# The same batches on both sides: one of 200 operations for each time.
ranges=("-b 8 -e 512K -f 4 -n 200 -w 5" "-b 2M -e 128M -f 4 -n 50 -w 5")

library=$(ldd "$peer" | awk '$1 == "libnccl.so.2" { print $3 }')
[ -e "$library" ] || { echo "nccl_compare.sh: $peer finds no libnccl.so.2" >&2; exit 3; }

onehop() {
	LD_LIBRARY_PATH=$folder:${LD_LIBRARY_PATH:-} "$folder/onehop" bench nccl --nccl "$library" -g "$gpus" "$@"
}

# rows FILE: "size place time" a line, of a table of nccl-tests
rows() {
	awk '$1 ~ /^[0-9]+$/ && NF >= 13 { print $1, "out", $6; print $1, "in", $10 }' "$1"
}

# run_a NAME, run_b NAME: all ranges into $work/NAME
run_a() {
	local range
	for range in "${ranges[@]}"; do
		# shellcheck disable=SC2086 # options
		"$peer" $range -g "$gpus" -c 0 >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
		rows "$work/out"
	done >"$work/$1"
}

run_b() {
	local range
	for range in "${ranges[@]}"; do
		# shellcheck disable=SC2086 # options
		onehop $range --once --no-verify --format nccl-tests >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
		rows "$work/out"
	done >"$work/$1"
}

nvidia-smi -L | sed 's/ (UUID.*//'
echo "libnccl: $library ($(readlink -f "$library")); $gpus GPUs; NCCL_NVLS_ENABLE=0"
printf 'both: %s\n' "${ranges[@]}"

start=$SECONDS round=0
run_a a0
pair=0
while [ $((SECONDS - start + pair)) -lt "$seconds_max" ]; do
	before=$SECONDS
	run_b "b$round"
	round=$((round + 1))
	run_a "a$round"
	pair=$((SECONDS - before))
done
echo "$round rounds in $((SECONDS - start)) s"

for i in $(seq 0 $((round - 1))); do
	paste -d' ' "$work/a$i" "$work/b$i" "$work/a$((i + 1))" | awk '{ print $1, $2, $3, $6, $9 }'
done >"$work/all"

awk '
function sort(v, n,    i, k, t) {
	for (i = 2; i <= n; i++)
		for (k = i; k > 1 && v[k - 1] > v[k]; k--) { t = v[k]; v[k] = v[k - 1]; v[k - 1] = t }
}
function median(v, n) { return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
# Largest k for which the k-th least and the k-th greatest enclose the median in 95 % of all cases.
function rank(n,    k, p, term) {
	term = p = 0.5 ^ n
	for (k = 0; p <= 0.025; ) { k++; term = term * (n - k + 1) / k; p += term }
	return k
}
{
	key = $1 " " $2
	if (!(key in n)) order[++keys] = key
	i = ++n[key]
	a[key, i] = $3; b[key, i] = $4; c[key, i] = $5
}
END {
	printf "%11s %5s %10s %10s %10s %8s %8s %8s\n", "size (B)", "place", "A us", "B us", "A us", "B/A", "low", "high"
	for (j = 1; j <= keys; j++) {
		key = order[j]; m = n[key]
		for (i = 1; i <= m; i++) {
			va[i] = a[key, i]; vb[i] = b[key, i]; vc[i] = c[key, i]
			ratio[i] = b[key, i] / sqrt(a[key, i] * c[key, i])
		}
		sort(va, m); sort(vb, m); sort(vc, m); sort(ratio, m)
		k = rank(m); if (k < 1) k = 1
		split(key, word, " ")
		low = ratio[k]; high = ratio[m + 1 - k]
		says = low > 1 ? " slower" : high < 1 ? " faster" : ""
		printf "%11s %5s %10.2f %10.2f %10.2f %8.3f %8.3f %8.3f%s\n", word[1], word[2], median(va, m),
			median(vb, m), median(vc, m), median(ratio, m), low, high, says
		inside += says == ""
	}
	printf "1.00 is within the interval in %d of %d rows (%d rounds%s)\n", inside, keys, m,
		m < 6 ? "; with fewer than 6 it is the least and the greatest" : ""
}' "$work/all"

echo
echo 'the data, checked on the GPUs that own them:'
onehop -b 8 -e 128M -f 16 -n 5 --once
