#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which way to run an all-reduce is the fastest at each size, and how the one that is chosen compares with NCCL. Under 4 minutes.
#
#	tests/gpu/collective_tune.sh FOLDER [BEFORE]
#
# FOLDER holds the program "collective" (build/tests/gpu/collective), BEFORE one of an earlier version. With one GPU, all ranks are on it: that
# shows what a small operation costs beside the link.
# shellcheck source=tests/gpu/collective_steps.sh
. "$(dirname "$0")/collective_steps.sh"
now=$(cd "${1:?usage: $0 FOLDER [BEFORE]}" && pwd)/collective
before=${2:+$(cd "$2" && pwd)/collective}

if [ "$gpus" -gt 1 ]; then
	step 70 "$now" "$gpus" tune
	step 50 "$now" "$gpus" time
	NCCL_P2P_DISABLE=1 step 30 "$now" "$gpus" time no-p2p 128
	step 30 "$now" "$gpus" tune no-p2p 128
	step 60 "$now" "$gpus" check
else
	for program in $before "$now" $before "$now"; do
		step 30 "$program" same 2 tune 8
	done
	step 30 "$now" same 4 tune 2
	step 30 "$now" same 2 tune no-p2p 2
	step 60 "$now" same 2 check
fi
exit $((failed != 0))
