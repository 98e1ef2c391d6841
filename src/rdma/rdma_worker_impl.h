/* SPDX-License-Identifier: Apache-2.0 */
/* The messages on a worker's socket; for rdma_worker.c and rdma_serve.c only. */
#pragma once

#include "rdma/rdma_worker.h"

enum rdma_order_kind { RDMA_ORDER_LIST, RDMA_ORDER_LOOPBACK, RDMA_ORDER_LINK };

/* Answered by a struct port_listing, loopback_result or link_answer. */
struct rdma_order {
	enum rdma_order_kind kind;
	union {
		struct loopback_job loopback;
		struct link_order link;
	};
};
