/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines that two onehops exchange over TCP while they measure the NICs between their hosts. A
 * line is a word and KEY=VALUE pairs; everything in it has an upper limit. No I/O: what a peer
 * sends is decoded and checked here only.
 */
#pragma once

#include "rdma/verbs_api.h"

#include <stdbool.h>

struct strbuf;

#define PEER_VERSION  4
#define PEER_LINE_MAX 1024 /* bytes, with the line feed */
#define PEER_LIST_MAX 32
#define PEER_NAME_MAX 64
#define PEER_TEXT_MAX 256

/* The client asks, the listener answers. */
enum peer_word {
	PEER_HELLO, /* first line of both */
	PEER_PORT,  /* one of the sender's */
	PEER_GID,   /* of the last port */
	PEER_READY, /* the hello ends */
	PEER_ALIVE, /* at least once a second */
	PEER_BUSY,  /* to a second peer */
	PEER_REFUSED,
	PEER_BYE,
	/* requests for a port of the listener */
	PEER_OPEN,    /* memory and queue pairs, connected to the client's */
	PEER_PREPARE, /* poison or fill, of a round */
	PEER_CHECK,   /* what the client has written */
	PEER_PONG,    /* answer what is measured until a flag of 0 */
	PEER_CLOSE,
	/* answers, each for a port */
	PEER_OPENED,
	PEER_DONE,
	PEER_CHECKED,
	PEER_FAILED,
	/* for the listener's own report: a pair's reachability, a pair's figure */
	PEER_REACHED,
	PEER_FIGURE,
	PEER_WORD_N
};

enum peer_key {
	PEER_K_VERSION,
	PEER_K_PORT, /* the listener's */
	PEER_K_FROM, /* the client's port */
	PEER_K_NUMBER,
	PEER_K_STATE,
	PEER_K_LAYER,
	PEER_K_MTU,
	PEER_K_LID,
	PEER_K_RATE,    /* of the line, Mb/s */
	PEER_K_WRITES,  /* expected, MB/s: what the port can send, 0: unknown */
	PEER_K_READS,   /* ... and receive */
	PEER_K_INDEX,   /* of an address */
	PEER_K_TYPE,    /* of an address */
	PEER_K_BYTES,   /* of a message */
	PEER_K_LATENCY, /* of a message whose latency is measured */
	PEER_K_PLACES,
	PEER_K_DEPTH,
	PEER_K_PAIR,
	PEER_K_LIMIT, /* ms without a completion */
	PEER_K_OUTSTANDING,
	PEER_K_PACKET,
	PEER_K_OUT,
	PEER_K_OUT_KEY,
	PEER_K_IN,
	PEER_K_IN_KEY,
	PEER_K_ROUND,
	PEER_K_MEASURE,
	PEER_K_DATA, /* enum rdma_data */
	PEER_K_CHECKED,
	PEER_K_KIND,
	PEER_K_WORDS,
	PEER_K_WRONG,
	PEER_K_AT,
	PEER_K_SHIFT, /* bytes; less than 0 as a complement of 2 */
	PEER_K_AGO,
	PEER_K_STEP,
	PEER_K_CODE,
	PEER_K_VENDOR,
	PEER_K_MEDIAN, /* GB/s or us, times a million */
	PEER_K_LOW,
	PEER_K_HIGH,
	PEER_K_SAMPLES,
	PEER_K_EXPECTED,
	PEER_K_TIME, /* seconds that a measurement may take */
	PEER_K_WAY,  /* enum region_way */
	PEER_K_WAYS, /* bits of them: memory that a port has */
	PEER_KEY_N
};

struct peer_message {
	enum peer_word word;
	uint64_t v[PEER_KEY_N]; /* of the keys that the word has */
	union verbs_gid address;
	uint32_t list[PEER_LIST_MAX]; /* numbers of queue pairs; of links on the way to memory */
	size_t list_n;
	char name[PEER_NAME_MAX]; /* of a host or a device: letters, digits, . _ - */
	char text[PEER_TEXT_MAX]; /* a sentence, printable ASCII */
};

/*
 * A line of n bytes without its line feed. 0, or -EPROTO with a sentence: a word or key that does
 * not exist, a key that is missing, twice, or out of range, a character that no text may have.
 */
int peer_parse(const char *line, size_t n, struct peer_message *ret);
/* With the line feed. What a text may not have becomes '?', and what is too long is cut. */
void peer_format(const struct peer_message *m, struct strbuf *ret);

/*
 * "6.29": the release of a perftest whose first 16 bytes these are; false: they are not perftest's.
 */
#define PERFTEST_HELLO 16
bool peer_is_perftest(const char *bytes, size_t n, char ret_release[static PERFTEST_HELLO]);
