#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prolog= of slurm.conf: a node whose GPUs do not reach each other gets no job. Slurm drains a node whose prolog
# fails, and requeues and holds the job; so what could not be judged does not fail here. Slurm sets no PATH.
#
# To also insist on direct access between the GPUs of the job, add: --require direct --gpus "$SLURM_JOB_GPUS"

[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0
exec "${ONEHOP:-/usr/bin/onehop}" check --for slurm-prolog --deadline 10 --fail-on error
