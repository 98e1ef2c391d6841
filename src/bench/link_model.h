/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's links, and how long transfers take that use them at the same time. */
#pragma once

#include "bench/paths.h"

#include <stdbool.h>

/*
 * A link carries as much as the best path over it is expected to. What several paths carry together
 * over a link between sockets has not been measured, so it counts as one path's.
 */
struct link_model {
	const struct paths *paths;
	double *gbps; /* of each link */
	size_t link_n;
};

/* The paths must outlive it. 0 or -ENOMEM; the caller frees with link_model_done. */
int link_model_make(const struct paths *p, struct link_model *ret);
void link_model_done(struct link_model *m);

/* Transfers that start together. */
struct traffic {
	const struct link_model *model;
	double *us;     /* for which each link is busy */
	double longest; /* of the transfers alone, us */
};

int traffic_make(const struct link_model *m, struct traffic *ret);
void traffic_done(struct traffic *t);

/* `share`: how much of a link's rate such transfers reach; above 0. */
void traffic_to_peer(struct traffic *t, unsigned from, unsigned to, double bytes, double share);
/* Between a device and the host's memory; `up`: to the memory. */
void traffic_to_host(struct traffic *t, unsigned device, bool up, double bytes, double share);
/* How long all of them take together, us; forgets them. */
double traffic_end(struct traffic *t);
