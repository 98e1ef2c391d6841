#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Collective operations on all GPUs of a machine: checked, then every operation timed next to NCCL's in alternating samples. Under 9
# minutes on 1, 2 or 4 GPUs.
#
#	tests/gpu/collective.sh FOLDER
#
# FOLDER holds the program "collective" (build/tests/gpu/collective). With one GPU two ranks are on it: results and what an operation costs
# beside the link; NCCL cannot do that. NCCL is found as any program finds it, or with LD_LIBRARY_PATH.
# shellcheck source=tests/gpu/collective_steps.sh
. "$(dirname "$0")/collective_steps.sh"
program=$(cd "${1:?usage: $0 FOLDER}" && pwd)/collective

if [ "$gpus" -gt 1 ]; then
	step 90 "$program" "$gpus" check
	step 40 "$program" "$gpus" check no-p2p 64
	step 60 "$program" "$gpus" check mixed 64
	step 150 "$program" "$gpus" table 1024
	NCCL_P2P_DISABLE=1 step 70 "$program" "$gpus" table no-p2p 64
	NCCL_P2P_DISABLE=1 NCCL_BUFFSIZE=1048576 step 70 "$program" "$gpus" table no-p2p 64
	step 60 "$program" "$gpus" tune
	step 30 "$program" "$gpus" send-recv 256
	step 30 "$program" "$gpus" reduce 256
else
	step 90 "$program" same 2 check 64
	step 40 "$program" same 2 check no-p2p 16
	step 60 "$program" same 4 check levels 16
	step 60 "$program" same 4 check mixed 16
	step 60 "$program" same 8 check mixed-pairs 16
	step 60 "$program" same 2 table 64
	step 40 "$program" same 2 table no-p2p 16
	step 60 "$program" same 2 tune 64
fi
exit $((failed != 0))
