#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which way to run an all-reduce is the fastest at each size, and how the one that is chosen compares with NCCL. Under 4 minutes
# on 2 GPUs.
#
#	tests/gpu/collective_tune.sh FOLDER
#
# FOLDER holds the program "collective" (build/tests/gpu/collective). NVLink multicast stays off in NCCL too.
set -u
export LC_ALL=C NCCL_NVLS_ENABLE=0
program=$(cd "${1:?usage: $0 FOLDER}" && pwd)/collective
gpus=$(nvidia-smi -L | wc -l)
failed=0

# step LIMIT ARGUMENT...: seconds, and what to run
step() {
	local limit=$1 start=$EPOCHREALTIME status=0
	shift
	echo
	echo "== collective $*"
	timeout "$limit" "$program" "$@" || status=$?
	[ $status -eq 0 ] || failed=$((failed + 1))
	awk -v a="$start" -v b="$EPOCHREALTIME" -v s=$status 'BEGIN { printf "exit %d, %.1f s\n", s, b - a }'
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
step 70 "$gpus" tune
step 50 "$gpus" time
NCCL_P2P_DISABLE=1 step 30 "$gpus" time no-p2p 128
step 30 "$gpus" tune no-p2p 128
step 60 "$gpus" check
exit $((failed != 0))
