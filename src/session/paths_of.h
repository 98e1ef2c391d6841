/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/ needs to know of a machine's GPUs, from the machine's topology. */
#pragma once

#include "bench/paths.h"
#include "topology/topology.h"

/*
 * Device k of the paths is GPU gpus[k] (index in machine.gpus). Links are numbered from 0 in the
 * order in which they are met. What the tree does not show is one link that all pairs concerned
 * share, so that an isolated figure is not disturbed by what nobody could see. 0, -EINVAL (no such
 * GPU, or too many) or -ENOMEM; the caller frees with paths_free.
 */
int paths_of(const struct topology *t, const size_t *gpus, size_t gpu_n, struct paths **ret);
