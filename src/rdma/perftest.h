/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that ib_write_bw, ib_read_bw and ib_write_lat exchange over TCP, from perftest 5.70 on.
 * In each exchange the client sends first, and the server answers with as many bytes. No I/O.
 */
#pragma once

#include "rdma/peer_text.h"

#define PERFTEST_TCP_PORT "18515"
/*
 * What onehop says it is, Debian 12's release: later ones then leave out what came after it, a
 * struct that holds their device's attributes as libibverbs lays them out.
 */
#define PERFTEST_RELEASE "6.06"

#define PERFTEST_SIZES_BYTES                                                                       \
	8 /* of the buffer that small messages cycle through, and of a cache line */
#define PERFTEST_MTU_BYTES    2
#define PERFTEST_KEYS_BYTES   108 /* with an address (GID) */
#define PERFTEST_KEYS_NO_GID  59  /* InfiniBand without one */
#define PERFTEST_REPORT_BYTES 40  /* in five exchanges */
#define PERFTEST_REPORT_PART  ((size_t)8)

/*
 * Whether a peer of this release speaks the protocol as it is here; "6.29", as peer_is_perftest has
 * it.
 */
bool perftest_is_spoken(const char *release);

void perftest_put_hello(char ret[static PERFTEST_HELLO]);
void perftest_put_sizes(uint8_t ret[static PERFTEST_SIZES_BYTES]);

/* Of 256 to 4096 bytes. Taking: 0 or -EPROTO with a sentence. */
void perftest_put_mtu(unsigned bytes, char ret[static PERFTEST_MTU_BYTES]);
int perftest_take_mtu(const char in[static PERFTEST_MTU_BYTES], unsigned *ret_bytes);

/* One queue pair and the memory behind it. */
struct perftest_keys {
	unsigned lid, reads_max;
	uint32_t number, packet, key;
	uint64_t at;
	union verbs_gid gid;
};
#define PERFTEST_READS_MAX 255

/* How many bytes keys are. */
size_t perftest_keys_bytes(bool with_gid);
void perftest_put_keys(const struct perftest_keys *k, bool with_gid,
		       char ret[static PERFTEST_KEYS_BYTES]);
/* 0 or -EPROTO with a sentence. */
int perftest_take_keys(const char in[static PERFTEST_KEYS_BYTES], bool with_gid,
		       struct perftest_keys *ret);

/* The client's figures, which the server prints. */
struct perftest_report {
	uint64_t bytes, messages;
	double peak_mib, average_mib; /* MiB/s */
	double rate_mpps;             /* millions of messages a second */
};

void perftest_put_report(const struct perftest_report *r,
			 uint8_t ret[static PERFTEST_REPORT_BYTES]);
/* 0 or -EPROTO with a sentence: a figure that is not a number of this world. */
int perftest_take_report(const uint8_t in[static PERFTEST_REPORT_BYTES],
			 struct perftest_report *ret);
