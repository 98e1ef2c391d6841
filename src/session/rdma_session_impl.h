/* SPDX-License-Identifier: Apache-2.0 */
/* For rdma_session.c, rdma_choice.c and rdma_foresee.c only. */
#pragma once

#include "session/paths_of.h"
#include "session/rdma_session.h"

/* Measurements, ways, sizes and pace; before the devices are chosen. 0 or -EINVAL with a sentence. */
int rdma_choose_work(struct rdma_session *s);
/* Which ports are used, and which pairs; with the ports listed. The same. */
int rdma_choose_pairs(struct rdma_session *s);
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

/* The endpoint of a port's NIC in the topology; PATHS_NOWHERE: none. */
size_t rdma_endpoint(const struct rdma_session *s, size_t port);
