/* SPDX-License-Identifier: Apache-2.0 */
/* Memory registered with a NIC: the host's, or a GPU's in one of two ways. */
#pragma once

#include "rdma/buffer.h"
#include "rdma/queue_pair.h"

enum region_way {
	REGION_HOST,      /* ordinary memory */
	REGION_DMABUF,    /* of a GPU, exported by its driver as a dma-buf */
	REGION_PEER,      /* of a GPU, by its address: nvidia-peermem translates it for the NIC */
	REGION_ON_DEMAND, /* ordinary memory that is not pinned: the NIC asks for pages (ODP) */
	REGION_WAY_N
};

/* Whether it is the host's memory, which the CPU can look into. */
static inline bool region_is_host(enum region_way w)
{
	return w == REGION_HOST || w == REGION_ON_DEMAND;
}

/* The same of a GPU's other side, which is the host's. */
static inline enum region_way region_of_host(enum region_way w)
{
	return region_is_host(w) ? w : REGION_HOST;
}

const char *region_way_word(enum region_way w); /* "host", "dma-buf", "peer-memory" */

struct region {
	struct verbs_mr *mr;
	uint64_t at; /* of the buffer's range, for work requests */
};

/*
 * Registers the whole buffer with its guards, so that a write outside the range is detected and not
 * refused.
 */
int region_open(const struct nic *n, const struct buffer *b, enum region_way way, bool relaxed,
		struct region *ret, struct rdma_failure *f);
void region_close(const struct nic *n, struct region *r);
