/* SPDX-License-Identifier: Apache-2.0 */
/* A process that calls libibverbs and CUDA for onehop, and that can be killed when they hang. */
#pragma once

#include "rdma/link.h"
#include "rdma/loopback.h"

#include <sys/types.h>

#define RDMA_WORKER_COMMAND "rdma-worker" /* the socket is file descriptor 3 */

struct rdma_worker {
	pid_t pid;      /* 0: none runs */
	int socket;     /* -1: none */
	double until_s; /* of clock_s: how long it may be silent */
	double since_s; /* its last sign */
};

#define RDMA_WORKER_NONE                                                                           \
	(struct rdma_worker)                                                                       \
	{                                                                                          \
		.socket = -1                                                                       \
	}

struct port_listing {
	struct rdma_failure failure; /* of the library */
	size_t n;
	struct nic_port ports[PORTS_MAX];
};

/*
 * Asks a worker, started if none runs, for all ports. 0, or a negative errno with a sentence if the
 * worker failed. `program`: the program that has the worker command; NULL: this one.
 */
int rdma_worker_list(struct rdma_worker *w, const char *program, struct port_listing *ret);
/*
 * Gives the worker a job; its socket becomes readable with the answer, and with signs of life
 * before.
 */
int rdma_worker_begin(struct rdma_worker *w, const char *program, const struct loopback_job *job);
/*
 * Takes the answer. A worker that died is in the result as a failure; the next job starts another.
 * False: it was a sign of life, and until_s has moved.
 */
bool rdma_worker_finish(struct rdma_worker *w, struct loopback_result *ret);
/* Kills the worker because its job hangs, or has to end; the result then says so. */
void rdma_worker_give_up(struct rdma_worker *w, struct loopback_result *ret);
/* The same for an action of a connection to another host; the worker keeps the connection. */
int rdma_worker_begin_link(struct rdma_worker *w, const char *program, const struct link_order *o);
bool rdma_worker_finish_link(struct rdma_worker *w, struct link_answer *ret);
void rdma_worker_give_up_link(struct rdma_worker *w, struct link_answer *ret);
void rdma_worker_end(struct rdma_worker *w); /* also if none runs */

/* The worker command: serves the socket until it closes. 0 or a negative errno. */
int rdma_serve(int fd);
