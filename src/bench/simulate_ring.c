// SPDX-License-Identifier: Apache-2.0
/* NCCL's ring over PCIe or through the host's memory, as a plan of the model. */
#include "bench/simulate_impl.h"

#include <math.h>

/*
 * One thread starts the operation on all GPUs in turn: NCCL 2.28 takes 9.8 us for 8 bytes on 2 H200
 * and 19.1 on 4, whatever the links do meanwhile.
 */
#define LAUNCH_US 4.8

/*
 * The two protocols: to start, for each hop of the ring, and the share of a link's rate, by the
 * kind of path.
 *
 * LL: without P2P, in a graph, 8 bytes take 9.4 us on 2 H200 (2 hops) and 14.8 on 4 (6 hops); 128
 * KiB take 22.0 and 30.6 us there, so what is beyond the start went at 0.19 and 0.23 of the 54.3
 * GB/s of a GPU's link. Simple: start and hop are constants of NCCL's own tuning
 * (src/graph/tuning.cc, PCI); the rate through the host's memory is the 27.8 GB/s that the same
 * ring reaches on 2 H200, of 54.3; that between GPUs is that of stores (simulate.c).
 */
static const struct protocol {
	double start_us, hop_us;
	double share[MODEL_PATH_N];
} protocols[] = {
	{6.7, 1.35, {[MODEL_PCIE] = 0.21, [MODEL_HOST] = 0.21}},
	{8.4, 5.7, {[MODEL_PCIE] = 0.96, [MODEL_HOST] = 0.51}},
};

/* A ring passes the data on hop by hop; each link carries the share of it that busbw counts. */
static const struct ring {
	enum nccl_op op;
	unsigned rounds; /* of n - 1 hops */
	bool parts; /* each link carries (n - 1) / n of the data in each round, else all of it */
} rings[] = {
	{NCCL_ALL_REDUCE, 2, true}, {NCCL_ALL_GATHER, 1, true}, {NCCL_REDUCE_SCATTER, 1, true},
	{NCCL_BROADCAST, 1, false}, {NCCL_REDUCE, 1, false},
};

static double ring_us(const struct simulation *s, struct traffic *t, double bytes, double share)
{
	const unsigned n = s->paths->device_n;

	for (unsigned i = 0; i < n; i++) {
		const unsigned next = (i + 1) % n;

		if (simulated_direct(s, i, next)) {
			traffic_to_peer(t, i, next, bytes, share);
		} else {
			traffic_to_host(t, i, true, bytes, share);
			traffic_to_host(t, next, false, bytes, share);
		}
	}
	return traffic_end(t);
}

static double fastest_us(const struct simulation *s, struct traffic *t, double bytes, unsigned hops)
{
	const enum model_path path = model_path(s);
	double best = INFINITY;

	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		const struct protocol *p = &protocols[i];
		const double us =
			p->start_us + hops * p->hop_us + ring_us(s, t, bytes, p->share[path]);

		best = us < best ? us : best;
	}
	return best;
}

/* NULL: it has none. */
static const struct ring *ring_of(enum nccl_op op)
{
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		if (rings[i].op == op)
			return &rings[i];
	return NULL;
}

enum simulated_ring simulated_ring(const struct simulation *s)
{
	if (!ring_of(s->plan.op))
		return RING_NO_OPERATION;
	if (simulated_paths(s).mixed)
		return RING_MIXED;
	return model_path(s) == MODEL_NVLINK ? RING_NVLINK : RING_MODELLED;
}

double simulate_ring_us(const struct simulation *s, struct traffic *t, double bytes)
{
	const struct ring *ring = ring_of(s->plan.op);
	const unsigned n = s->paths->device_n;
	const double launches = s->plan.graph ? 0 : n * LAUNCH_US;
	double us;

	if (simulated_ring(s) != RING_MODELLED)
		return 0;
	us = fastest_us(s, t, bytes * ring->rounds * (ring->parts ? n - 1. : n) / n,
			ring->rounds * (n - 1));
	return us > launches ? us : launches;
}
