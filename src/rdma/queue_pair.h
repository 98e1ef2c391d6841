/* SPDX-License-Identifier: Apache-2.0 */
/* An open NIC, and queue pairs of the reliable connected kind on it. */
#pragma once

#include "rdma/port.h"
#include "rdma/pulse.h"

/* An open port of a NIC. */
struct nic {
	const struct verbs *v;
	struct verbs_context *context;
	struct verbs_pd *pd;
	struct nic_port port;
	unsigned reads_max;  /* outstanding reads of a queue pair */
	struct pulse *pulse; /* NULL: none */
};

/* 0 or -EIO, and what failed. Call nic_close in either case. */
int nic_open(const struct verbs *v, struct pulse *pulse, const char *device, unsigned port,
	     struct nic *ret, struct rdma_failure *f);
void nic_close(struct nic *n);
/* A completion queue; the caller destroys it. */
int nic_open_queue(const struct nic *n, unsigned entries, struct verbs_cq **ret,
		   struct rdma_failure *f);
/*
 * Waits for an asynchronous event, at most limit_ms: the kernel reports the cause of a failed
 * completion from another thread.
 */
void nic_await_event(const struct nic *n, int limit_ms);
/*
 * Adds to a failure the asynchronous events that the NIC has reported: "port error", "device
 * fatal".
 */
void nic_add_events(const struct nic *n, struct rdma_failure *f);

/* What the other end needs to know. */
struct queue_address {
	uint32_t number, packet;
	unsigned lid;
	union verbs_gid gid;
	unsigned mtu; /* bytes, active */
	unsigned reads_max;
};

/* Room for receive requests. */
#define QUEUE_RECEIVES 16

struct queue_pair {
	struct verbs_qp *qp;
	struct queue_address address; /* its own */
	unsigned inline_max;
};

int queue_pair_open(const struct nic *n, struct verbs_cq *cq, unsigned depth, unsigned inline_bytes,
		    struct queue_pair *ret, struct rdma_failure *f);
/* INIT, RTR, RTS. */
int queue_pair_connect(const struct nic *n, const struct queue_pair *q,
		       const struct queue_address *peer, struct rdma_failure *f);
void queue_pair_close(const struct nic *n,
		      struct queue_pair *q); /* also for one that was not opened */
