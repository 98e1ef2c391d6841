/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/queue_pair.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOP_LIMIT 64
#define RNR_TIMER 12 /* 0.64 ms */
#define TIMEOUT   14 /* 67 ms a try */
/* 0.5 s in all. 7 means forever on soft RoCE (perftest's and NCCL's value) */
#define RETRIES      6
#define RNR_RETRIES  6
#define READS_WANTED 16
#define FIRST_PACKET 0x1000
#define INLINE_MOST  220 /* perftest's; larger messages are fetched from their memory */

/* ---- the NIC ---- */

static struct verbs_context *open_by_name(const struct verbs *v, const char *name,
					  struct rdma_failure *f)
{
	int n = 0;
	struct verbs_device **list = v->get_device_list(&n);
	struct verbs_context *c = NULL;
	int at = 0;

	while (list && at < n && strcmp(list[at]->name, name) != 0)
		at++;
	errno = ENODEV;
	if (list && at < n)
		c = v->open_device(list[at]);
	if (!c)
		nic_not_opened(name, list && at < n ? list[at]->dev_name : "", f);
	if (list)
		v->free_device_list(list);
	return c;
}

static unsigned clip_reads(const struct verbs_device_attr *a)
{
	int n = a->max_qp_rd_atom < a->max_qp_init_rd_atom ? a->max_qp_rd_atom
							   : a->max_qp_init_rd_atom;

	return n < 1 ? 1 : n > READS_WANTED ? READS_WANTED : (unsigned)n;
}

int nic_open(const struct verbs *v, struct pulse *pulse, const char *device, unsigned port,
	     struct nic *ret, struct rdma_failure *f)
{
	struct verbs_device_attr a = {0};
	struct rdma_failure why;

	*ret = (struct nic){.v = v, .pulse = pulse, .context = open_by_name(v, device, f)};
	if (!ret->context)
		return -EIO;
	/* So that reading events never blocks. */
	fcntl(ret->context->async_fd, F_SETFL, fcntl(ret->context->async_fd, F_GETFL) | O_NONBLOCK);
	if (v->query_device(ret->context, &a) != 0)
		return rdma_fail(f, RDMA_STEP_OPEN, errno, "ibv_query_device of %s fails", device);
	ret->reads_max = clip_reads(&a);
	ret->port.number = port;
	snprintf(ret->port.device, sizeof(ret->port.device), "%s", device);
	port_read(v, ret->context, &ret->port);
	if (!port_is_usable(&ret->port, &why))
		return rdma_fail(f, why.step, why.code, "%s", why.text);
	ret->pd = v->alloc_pd(ret->context);
	if (!ret->pd)
		return rdma_fail(f, RDMA_STEP_QUEUE, errno, "ibv_alloc_pd of %s fails: %s", device,
				 strerror(errno));
	return 0;
}

void nic_close(struct nic *n)
{
	if (n->pd)
		n->v->dealloc_pd(n->pd);
	if (n->context)
		n->v->close_device(n->context);
	*n = (struct nic){0};
}

int nic_open_queue(const struct nic *n, unsigned entries, struct verbs_cq **ret,
		   struct rdma_failure *f)
{
	*ret = n->v->create_cq(n->context, (int)entries, NULL, NULL, 0);
	if (!*ret)
		return rdma_fail(f, RDMA_STEP_QUEUE, errno, "ibv_create_cq fails: %s",
				 strerror(errno));
	return 0;
}

void nic_await_event(const struct nic *n, int limit_ms)
{
	struct pollfd fd = {.fd = n->context ? n->context->async_fd : -1, .events = POLLIN};

	poll(&fd, 1, limit_ms);
}

void nic_add_events(const struct nic *n, struct rdma_failure *f)
{
	struct verbs_async_event e;
	size_t used = strlen(f->text);

	if (!n->context)
		return;
	while (used < sizeof(f->text) - 1 && n->v->get_async_event(n->context, &e) == 0) {
		snprintf(f->text + used, sizeof(f->text) - used, "; the NIC reports: %s",
			 n->v->event_type_str(e.event_type));
		if (e.event_type == VERBS_EVENT_PORT_ERR)
			f->about |= RDMA_ABOUT_LINK;
		n->v->ack_async_event(&e);
		used = strlen(f->text);
	}
}

/* ---- queue pairs ---- */

int queue_pair_open(const struct nic *n, struct verbs_cq *cq, unsigned depth, unsigned inline_bytes,
		    struct queue_pair *ret, struct rdma_failure *f)
{
	struct verbs_qp_init_attr a = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = VERBS_QPT_RC,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = QUEUE_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = inline_bytes <= INLINE_MOST ? inline_bytes : 0},
	};

	*ret = (struct queue_pair){.qp = n->v->create_qp(n->pd, &a)};
	if (!ret->qp && a.cap.max_inline_data) {
		a.cap.max_inline_data = 0;
		ret->qp = n->v->create_qp(n->pd, &a);
	}
	if (!ret->qp)
		return rdma_fail(f, RDMA_STEP_QUEUE, errno, "ibv_create_qp with %u sends fails: %s",
				 depth, strerror(errno));
	ret->inline_max = a.cap.max_inline_data;
	ret->address = (struct queue_address){
		.number = ret->qp->qp_num,
		.packet = FIRST_PACKET,
		.lid = n->port.lid,
		.gid = n->port.gid.entry.gid,
		.mtu = n->port.mtu,
		.reads_max = n->reads_max,
	};
	return 0;
}

/* The attributes of each state, in the order of a queue pair's transitions. */
static const struct {
	enum rdma_step step;
	int state;
	int mask;
} states[] = {
	{RDMA_STEP_INIT, VERBS_QPS_INIT,
	 VERBS_QP_PKEY_INDEX | VERBS_QP_PORT | VERBS_QP_ACCESS_FLAGS},
	{RDMA_STEP_RTR, VERBS_QPS_RTR,
	 VERBS_QP_AV | VERBS_QP_PATH_MTU | VERBS_QP_DEST_QPN | VERBS_QP_RQ_PSN |
		 VERBS_QP_MAX_DEST_RD_ATOMIC | VERBS_QP_MIN_RNR_TIMER},
	{RDMA_STEP_RTS, VERBS_QPS_RTS,
	 VERBS_QP_SQ_PSN | VERBS_QP_TIMEOUT | VERBS_QP_RETRY_CNT | VERBS_QP_RNR_RETRY |
		 VERBS_QP_MAX_RD_ATOMIC},
};

static int mtu_code(unsigned bytes)
{
	int code = 1;

	while (code < 5 && 128u << (code + 1) <= bytes)
		code++;
	return code;
}

/* Within an InfiniBand subnet switches use the LID; everything else needs the address. */
static struct verbs_ah_attr path_to(const struct nic *n, const struct queue_address *peer)
{
	const struct verbs_gid_entry *own = &n->port.gid.entry;
	bool near = n->port.link_layer == VERBS_LINK_INFINIBAND &&
		    own->gid.aligned[0] == peer->gid.aligned[0];

	return (struct verbs_ah_attr){
		.is_global = !near,
		.dlid = (uint16_t)(n->port.link_layer == VERBS_LINK_INFINIBAND ? peer->lid : 0),
		.port_num = (uint8_t)n->port.number,
		.grh = {.dgid = peer->gid,
			.sgid_index = (uint8_t)own->gid_index,
			.hop_limit = HOP_LIMIT},
	};
}

int queue_pair_connect(const struct nic *n, const struct queue_pair *q,
		       const struct queue_address *peer, struct rdma_failure *f)
{
	unsigned mtu = peer->mtu && peer->mtu < n->port.mtu ? peer->mtu : n->port.mtu;
	/*
	 * Either end issues as many as the other serves, and serves as many as it has itself said.
	 */
	unsigned reads = peer->reads_max < n->reads_max ? peer->reads_max : n->reads_max;
	struct verbs_qp_attr a = {
		.port_num = (uint8_t)n->port.number,
		.qp_access_flags = VERBS_LOCAL_WRITE | VERBS_REMOTE_WRITE | VERBS_REMOTE_READ,
		.ah_attr = path_to(n, peer),
		.path_mtu = mtu_code(mtu),
		.dest_qp_num = peer->number,
		.rq_psn = peer->packet,
		.sq_psn = q->address.packet,
		.max_dest_rd_atomic = (uint8_t)reads,
		.max_rd_atomic = (uint8_t)reads,
		.min_rnr_timer = RNR_TIMER,
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_RETRIES,
	};

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		int r;

		a.qp_state = states[i].state;
		r = n->v->modify_qp(q->qp, &a, VERBS_QP_STATE | states[i].mask);
		if (r)
			return rdma_fail(f, states[i].step, r,
					 "ibv_modify_qp answers error %d (%s)", r, strerror(r));
	}
	return 0;
}

void queue_pair_close(const struct nic *n, struct queue_pair *q)
{
	if (q->qp)
		n->v->destroy_qp(q->qp);
	*q = (struct queue_pair){0};
}
