/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks in groups of equal size, whose GPUs reach the others over a link that they share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GROUPS_RANKS_MAX 16

struct groups {
	unsigned n, size; /* ranks in each; n 0: there are none */
	uint8_t of[GROUPS_RANKS_MAX];
};

/*
 * In levels: groups among which chunks are divided, so that each one's sum does not go to all
 * others. Two send as little each way, in a stage less.
 */
static inline unsigned groups_shares(const struct groups *g)
{
	return g->n > 2 ? g->n : 1;
}

/* How often what one rank has sent is reduced or passed on. */
static inline unsigned groups_stages(const struct groups *g)
{
	return g->n > 2 ? 3 : 2;
}

/* How near two GPUs are to each other; what is nearer is also near. */
enum nearness {
	NEAR_UNKNOWN, /* so no groups can be made */
	NEAR_FAR,
	NEAR_SOCKET,
	NEAR_SWITCH, /* below one root port */
	NEAR_NVLINK,
};

/* What two GPUs have in common on the way between them. */
enum shared {
	SHARED_UNKNOWN,
	SHARED_NOTHING,
	SHARED_NODE, /* a host bridge or a NUMA node */
	SHARED_ROOT_PORT,
	SHARED_NVLINK,
};

/* socket, other: of the two, -1: unknown. */
enum nearness nearness_of(enum shared s, int socket, int other);

/*
 * Of n ranks: those that NVLink joins or, if that gives no groups, those below one switch, or else
 * those on one socket. near: n squared, of which the lower rank's row counts. None, if their sizes
 * differ, all are in one, or each is alone.
 */
void groups_make(unsigned n, const enum nearness *near, struct groups *ret);

/* The same of any sizes, for what they share, on sockets before switches: size is 0. */
void groups_share(unsigned n, const enum nearness *near, struct groups *ret);

/*
 * A bit for each rank of its group; and for the ranks that have the same place in the other groups.
 */
uint32_t groups_mates(const struct groups *g, unsigned ranks, unsigned rank);
uint32_t groups_counterparts(const struct groups *g, unsigned ranks, unsigned rank);
/* The place of a rank in its group. */
unsigned groups_place(const struct groups *g, unsigned rank);

/*
 * How near the GPU of rank `me` is to each one, by what the kernel shows of their PCI addresses,
 * "0000:41:00.0". sysfs: "/sys".
 */
void groups_near(unsigned n, const char (*pci)[16], unsigned me, const char *sysfs,
		 enum nearness *ret);
