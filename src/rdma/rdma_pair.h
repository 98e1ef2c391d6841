/* SPDX-License-Identifier: Apache-2.0 */
/* A NIC's port and a GPU: what is expected of the pair, and the result. */
#pragma once

#include "rdma/loopback.h"

#define RDMA_WHY 256

/* Known before anything is registered. */
enum rdma_foresight { RDMA_UNFORESEEN, RDMA_CAN, RDMA_CANNOT };

/* One access path to the memory (dma-buf or peer memory), with messages of one size. */
struct rdma_run {
	enum region_way way;
	struct rdma_size size;
	unsigned queues; /* queue pairs in each direction; 0: one */
	unsigned depth;  /* messages in flight in each; 0: 128 */
	enum rdma_foresight foresight;
	char why[RDMA_WHY]; /* reason, a sentence; "" */
	bool ran;           /* else impossible, or the run was stopped before */
	struct loopback_result result;
};

struct rdma_pair {
	size_t port;                  /* index in the listing */
	int gpu;                      /* index of the device; -1: the host's memory */
	char class[8];                /* of the path, "PIX"; "" */
	double write_gbps, read_gbps; /* expected, 0: unknown */
	char limit[96];               /* what limits them */
	struct rdma_run *runs;
	size_t run_n;
};

/* What was measured between a port and a GPU, or the host. */
struct rdma_counts {
	size_t pairs, working; /* of those tried: at least one path carried right data */
	size_t checked, wrong; /* directions */
	size_t failed;         /* directions that ended with an error, wrong data not counted */
	size_t measured;       /* values */
	size_t rated,
		slow; /* rates of the largest messages, whose expected rate is known; those that fall short */
	size_t impossible, not_run; /* paths known to be impossible; stopped before */
};

struct figures;
struct rdma_counts rdma_count(const struct rdma_pair *pairs, size_t n);
/* What is expected of a measurement, GB/s; 0: unknown. */
double rdma_expected(const struct rdma_pair *p, enum rdma_measure m);
/* The same of a way with these rates, 0: unknown. */
double rdma_expected_of(double write_gbps, double read_gbps, enum rdma_measure m);
/* Whether no run of the pair has larger messages: small ones are never at the rate of the link. */
bool rdma_is_largest(const struct rdma_pair *p, const struct rdma_run *r);
/* The name of a measurement as a metric. */
const char *rdma_metric(enum rdma_measure m);
const char *rdma_verified_metric(enum rdma_measure m); /* of its check; NULL: it has none */
/*
 * Rows of all measurements and checks; `ports` are those of the listing. The figures have their
 * GPUs already.
 */
void rdma_add_figures(struct figures *f, const struct nic_port *ports,
		      const struct rdma_pair *pairs, size_t n);
