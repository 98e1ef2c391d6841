/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the rendezvous share. */
#pragma once

#include "device/rendezvous.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why rank 0 gave up: it tells those that had come. */
struct farewell {
	/*
	 * -ETIMEDOUT: the rank did not come; -EPROTO: it did, and expected a total of `other`;
	 * -EEXIST: it did not come, and two processes claimed to be rank `other`. Of one that had
	 * come: -ETIMEDOUT, -ECONNRESET.
	 */
	int32_t result;
	uint32_t rank, other;
	uint32_t came; /* not 0: all had come, and the rank was lost later */
};

struct rendezvous {
	char key[RENDEZVOUS_KEY_MAX + 1];
	char shown[RENDEZVOUS_KEY_MAX + 1]; /* the key, for messages */
	int rank, n;
	bool one_host;
	uint32_t round; /* how many exchanges there were */
	uint64_t limit_us;
	struct farewell farewell;
	int *sockets; /* of rank 0: n, by rank; of others: the first, to rank 0; -1: none */
};

/* Fills r->sockets; or those that came, and r->farewell, if rank 0 gives up. */
int rendezvous_meet(struct rendezvous *r, const char *address, uint64_t deadline_us);
/* A rank that had come is lost: -ETIMEDOUT or -ECONNRESET. */
int rendezvous_lost(const struct rendezvous *r, int rank, int err);
/* The sentence for it; returns its result. */
int rendezvous_say(const struct rendezvous *r, const struct farewell *f);

/*
 * Where `name` is on this host, for processes of this user: at most RENDEZVOUS_KEY_MAX + 16 bytes.
 */
struct socket_place;
void rendezvous_unix_place(const char *name, struct socket_place *ret);

/* All of it, over a stream: 0 or a negative errno without a sentence. */
int send_all(int fd, const void *data, size_t size, uint64_t deadline_us);
int receive_all(int fd, void *data, size_t size, uint64_t deadline_us);
/* Closes what is open and leaves -1. */
void close_fd(int *fd);
