/* SPDX-License-Identifier: Apache-2.0 */
/* For rdma_hosts.c, rdma_hello.c, rdma_listen.c and rdma_client.c only. */
#pragma once

#include "session/rdma_hosts.h"
#include "session/rdma_session_impl.h"

#define HOSTS_LIMIT_US 3000000 /* without a completion, so that a run ends within 10 s */
#define HOSTS_OWNER_US 5000000 /* for filling and checking */
/* Actions of a worker that move no data for a user's time: registering, connecting, checking. */
#define HOSTS_ACTION_S 8.0

#define HOSTS_GPU_WINDOW (256ull << 20)

/* ---- the hello ---- */

#define HELLO_LIMIT_S 2.0

void hello_send(struct rdma_hosts *h);
/*
 * Takes a line of the other's hello: 1 that was the last, 0, or a negative errno with a sentence.
 */
int hello_take(struct rdma_hosts *h, const struct peer_message *m, bool first);

/* ---- words to and from structs ---- */

void put_queue(struct peer_message *m, const struct link_address *a);
/* 0 or -EPROTO with a sentence. */
int take_queue(const struct peer_message *m, struct link_address *ret);
/* In millionths. */
uint64_t put_value(double v);

/* ---- both sides ---- */

/* Takes the kernel log's new lines, where something failed. */
void hosts_read_log(struct rdma_hosts *h);
/* Forgets the last peer. */
void hosts_reset(struct rdma_hosts *h);
/* The index of a kind, which is added where it is new; HOSTS_KINDS: there is no room. */
size_t hosts_kind_at(struct rdma_hosts *h, enum region_way way, struct rdma_size size);
/*
 * What is known of a failure between two hosts besides: of which memory, and whether after the two
 * were reached.
 */
void hosts_mark(struct rdma_failure *f, enum region_way way, bool reached);
/* A pair's cell, which is made. */
struct rdma_cell *hosts_make_cell(const struct rdma_hosts *h, struct host_pair *p, size_t kind,
				  int m);
/* Memory that a port of this host offers: bits of enum region_way. */
unsigned hosts_ways(const struct rdma_hosts *h, size_t own);
/* Takes a way, and its GPU, into a job for this port. */
void hosts_take_way(const struct rdma_hosts *h, size_t own, enum region_way way,
		    struct link_job *j);
/* Room for the pairs, with both hosts' ports known. */
void hosts_pair_up(struct rdma_hosts *h);
bool hosts_uses(const struct rdma_hosts *h, size_t own);
/*
 * Whether memory is registered with relaxed ordering; a round trip's last byte has to arrive last.
 */
bool hosts_relax(const struct rdma_hosts *h, enum rdma_measure m);
/*
 * The figures of what was measured so far, also in the state folder, for a process that is killed.
 */
void hosts_keep(struct rdma_hosts *h);
