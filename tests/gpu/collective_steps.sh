# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What the scripts that run the program "collective" share. NVLink multicast stays off in NCCL too.
set -u
export LC_ALL=C NCCL_NVLS_ENABLE=0
gpus=$(nvidia-smi -L | wc -l)
failed=0

# step LIMIT PROGRAM ARGUMENT...: seconds, and what to run
step() {
	local limit=$1 start=$EPOCHREALTIME status=0
	shift
	echo
	echo "== $*"
	timeout "$limit" "$@" || status=$?
	[ $status -eq 0 ] || failed=$((failed + 1))
	awk -v a="$start" -v b="$EPOCHREALTIME" -v s=$status 'BEGIN { printf "exit %d, %.1f s\n", s, b - a }'
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
