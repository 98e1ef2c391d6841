/* SPDX-License-Identifier: Apache-2.0 */
/* How the n processes of a run find each other and exchange small blobs and file descriptors. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RENDEZVOUS_KEY_MAX  63
#define RENDEZVOUS_BLOB_MAX 4096
#define RENDEZVOUS_RANK_MAX 4096

/*
 * All name the same key, address and n, and ranks 0 .. n-1. Rank 0 listens; nobody else needs to be
 * started before or after it.
 */
struct rendezvous_request {
	const char *key; /* 1 to 63 bytes; distinguishes runs, is not a secret */
	/*
	 * NULL: one host, and one network namespace; processes of another user are refused.
	 * "host:port", "[IPv6]:port": rank 0's, for several hosts. Who reaches the port and knows
	 * the key is let in. Rank 0 listens on just that address when it is a number, on all of its
	 * host when it is a name (a host's own name often means 127.0.1.1 to itself).
	 */
	const char *address;
	int rank, n;
	uint64_t limit_us; /* for this and for every later call of its own */
	uint64_t later_us; /* another limit for later calls; 0: the same */
};

struct rendezvous;

/*
 * Waits until all n are there. Errors of all calls: -ETIMEDOUT (names a rank that is missing),
 * -EADDRINUSE, -EACCES (another user's process), -EEXIST (a rank is there twice: the second
 * one knows at once, the others only if a rank is missing in the end), -ECONNRESET (a process went
 * away), -EPROTO (they disagree on n or a size), -EINVAL.
 */
int rendezvous_join(const struct rendezvous_request *r, struct rendezvous **ret);
void rendezvous_leave(struct rendezvous *r);

/*
 * Everyone's `size` bytes (at most 4 KiB), in the order of ranks, to everyone: n * size in `all`.
 */
int rendezvous_gather(struct rendezvous *r, const void *mine, size_t size, void *all);
/* Rank 0's `size` bytes (at most 4 KiB) to everyone. */
int rendezvous_broadcast(struct rendezvous *r, void *data, size_t size);
/*
 * Everyone's file descriptor, or -1 for none, to everyone: n of them, the caller closes them; that
 * of the own rank is a copy as well. One host only: -ENOTSUP.
 */
int rendezvous_gather_fd(struct rendezvous *r, int mine, int *all);
