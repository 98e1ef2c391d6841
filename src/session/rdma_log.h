/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel log's lines about GPUs, PCI, IOMMU and RDMA that came during a run: they often say why
 * something failed.
 */
#pragma once

#include "session/log_tail.h"

#define RDMA_LOG_MAX 12 /* lines that are kept; a flood is the same line again and again */

struct rdma_log {
	bool opened;
	struct log_tail tail;
	char *lines[RDMA_LOG_MAX];
	size_t n, more; /* that are not kept */
};

/* What is in the log from here on is old. */
void rdma_log_open(struct rdma_log *l);
/* Adds what has come since. */
void rdma_log_read(struct rdma_log *l);
/* The same from a machine that was read, for tests. */
void rdma_log_take(struct rdma_log *l, const struct machine *m);
void rdma_log_done(struct rdma_log *l); /* also of one that was never opened */
