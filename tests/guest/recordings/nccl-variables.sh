# SPDX-License-Identifier: Apache-2.0
# machine: switch2
# note: NCCL variables in the environment that switch peer-to-peer off, mean something
# note: else than their author thought, or nothing at all.
export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_IGNORE_DISABLED_P2P=1 NCCL_IB_DISABLE=1
export NCCL_P2P_LEVEL=4 NCCL_BUFFSIZE=8M NCCL_P2P_DISABEL=1
