#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sends and receives on all GPUs of a machine, as they are and with wide_pairs (include/onehop/onehop.h), each checked and then timed next to
# NCCL's in alternating samples, with P2P and without. About 4 minutes.
#
#	tests/gpu/pairs.sh FOLDER
#
# FOLDER holds the program "collective" (build/tests/gpu/collective). NCCL is found as any program finds it, or with LD_LIBRARY_PATH.
# shellcheck source=tests/gpu/collective_steps.sh
. "$(dirname "$0")/collective_steps.sh"
program=$(cd "${1:?usage: $0 FOLDER}" && pwd)/collective

ranks=("$gpus") limit=60
[ "$gpus" -gt 1 ] || ranks=(same 2)
for mode in pairs wide-pairs pairs wide-pairs; do
	step $limit "$program" "${ranks[@]}" $mode 256
	NCCL_P2P_DISABLE=1 step $limit "$program" "${ranks[@]}" $mode no-p2p 64
done
exit $((failed != 0))
