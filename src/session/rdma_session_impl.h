/* SPDX-License-Identifier: Apache-2.0 */
/* For the files session/rdma_*.c only. */
#pragma once

#include "session/paths_of.h"
#include "session/rdma_session.h"

/*
 * Measurements, ways, sizes and pace; before the devices are chosen. 0 or -EINVAL with a sentence.
 */
int rdma_choose_work(struct rdma_session *s);
/* Of a listing: --gid. 0 or -EINVAL with a sentence. */
int rdma_force_gid(struct rdma_session *s);
/* Which ports are used, and which pairs; with the ports listed. The same. */
int rdma_choose_pairs(struct rdma_session *s);
/* Whether a port of the listing is used, or why not: s->skips. */
void rdma_judge_port(struct rdma_session *s, size_t port);
/*
 * The state and the addresses of the ports, which change while a listener waits. Ports that are new
 * are not added.
 */
void rdma_look_again(struct rdma_session *s);
/* Where a person says what to expect, that instead of what is known of paths. */
void rdma_expect_told(const struct rdma_session *s, double *write_gbps, double *read_gbps,
		      char *limit, size_t size);
/* Class, expected rates and what limits them, and for each way whether it can work. */
void rdma_foresee(struct rdma_session *s, struct rdma_pair *p);

/* The place of a device, a port or the host in s->paths. */
static inline unsigned rdma_place_of_port(const struct rdma_session *s, size_t port)
{
	return (unsigned)(s->devices.request.n + port);
}

static inline unsigned rdma_place_of_gpu(const struct rdma_session *s, int gpu)
{
	return gpu >= 0 ? (unsigned)gpu : (unsigned)(s->devices.request.n + s->listing->n);
}

/* The pair of a port and its nearest GPU; NULL: there is none. */
const struct rdma_pair *rdma_nearest_gpu(const struct rdma_session *s, size_t port);
/* To open that device in a worker. */
void rdma_request_gpu(const struct rdma_session *s, int gpu, struct device_request *ret);
/* Queue pairs of a figure: 0, where it is one. */
static inline unsigned rdma_many_queues(const struct rdma_session *s)
{
	return s->o->queues > 1 ? (unsigned)s->o->queues : 0;
}

/* Messages in flight of a figure: 0, where it is the usual number. */
static inline unsigned rdma_other_depth(unsigned depth)
{
	return depth == RDMA_DEPTH ? 0 : depth;
}

/* The endpoint of a port's NIC in the topology; PATHS_NOWHERE: none. */
size_t rdma_endpoint(const struct rdma_session *s, size_t port);
