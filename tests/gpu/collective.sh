#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Collective operations on all GPUs of a machine: checked, then all-reduce timed next to NCCL's. Under 5 minutes on 2 GPUs.
#
#	tests/gpu/collective.sh FOLDER
#
# FOLDER holds the program "collective" (build/tests/gpu/collective).
# shellcheck source=tests/gpu/collective_steps.sh
. "$(dirname "$0")/collective_steps.sh"
program=$(cd "${1:?usage: $0 FOLDER}" && pwd)/collective

step 70 "$program" "$gpus" check
step 40 "$program" "$gpus" check no-p2p
step 60 "$program" "$gpus" time
step 50 "$program" "$gpus" tune
NCCL_P2P_DISABLE=1 step 40 "$program" "$gpus" time no-p2p 128
step 30 "$program" "$gpus" tune no-p2p 128
exit $((failed != 0))
