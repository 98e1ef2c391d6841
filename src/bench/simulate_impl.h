/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans of the model share: the paths, and the parameters of the links. */
#pragma once

#include "bench/link_model.h"
#include "bench/simulate.h"

/* The kind of a path decides how long flags take, and how much of the rate kernels reach. */
enum model_path { MODEL_NVLINK, MODEL_PCIE, MODEL_HOST, MODEL_PATH_N };

bool simulated_direct(const struct simulation *s, unsigned from, unsigned to);

/* The slowest kind among the paths of the run. */
enum model_path model_path(const struct simulation *s);

/* NCCL's ring, us; 0: it is not modelled for this operation or these paths (simulate_ring.c). */
double simulate_ring_us(const struct simulation *s, struct traffic *t, double bytes);
