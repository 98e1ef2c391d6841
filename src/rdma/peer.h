/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP connection between two onehops: lines out and in, nothing that waits. */
#pragma once

#include "base/strbuf.h"
#include "rdma/peer_text.h"

#define PEER_TCP_PORT    "18600"
#define PEER_ADDRESS_MAX 64

struct peer {
	int fd;                         /* -1: none */
	char address[PEER_ADDRESS_MAX]; /* "10.0.0.7" */
	char in[4096];
	size_t in_n;
	bool spoke; /* a line of its protocol has come */
	bool ended; /* it has closed the connection */
	struct strbuf out;
	uint64_t heard_us, sent_us;
};

#define PEER_NONE                                                                                  \
	(struct peer)                                                                              \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* What is expected there. */
struct peer_service {
	const char *tcp_port; /* where an address names none */
	const char *started;  /* the command that starts it, for a message */
};
extern const struct peer_service peer_onehop;

/* HOST, HOST:PORT, [IPv6]:PORT or an IPv6 address. 0 or a negative errno with a sentence. */
int peer_connect(const char *to, const struct peer_service *s, uint64_t limit_us, struct peer *ret);
/*
 * Listens on this address only; *ret_fd is the caller's, and does not block. ret_at:
 * "127.0.0.1:18600", of port 0 the one that the kernel chose.
 */
#define PEER_PLACE_MAX (PEER_ADDRESS_MAX + 8)
int peer_listen(const char *at, const struct peer_service *s, int *ret_fd,
		char ret_at[static PEER_PLACE_MAX]);
/* 1: there is one; 0: none waits. */
int peer_accept(int listener, struct peer *ret);
void peer_close(struct peer *p); /* also one that is closed */

void peer_send(struct peer *p, const struct peer_message *m);
/* A word with a text only. */
void peer_say(struct peer *p, enum peer_word w, const char *text);
/*
 * Sends and receives what can be; sends that it is alive, where nothing else was to be said. 0, or
 * a negative errno with a sentence: the connection broke (-ECONNRESET), or the peer has been silent
 * for too long (-ETIMEDOUT).
 */
int peer_pump(struct peer *p);
/*
 * The next line: 1, 0 (none is there), or a negative errno with a sentence: it is not of the
 * protocol (-EPROTO, which names a perftest), or the peer has closed the connection (-ECONNRESET).
 */
int peer_next(struct peer *p, struct peer_message *ret);
/* When peer_pump is due at the latest, ms from now; and poll's events. */
int peer_due_ms(const struct peer *p);
short peer_events(const struct peer *p);
