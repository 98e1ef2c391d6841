/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a text of any size. A small text keeps all of its lines. Of a large one, whenever a
 * piece of it has been read, only the lines remain that a decoder may use, each statement once
 * (struct text_unit), and no more than MOST_KEPT of them; a run of others becomes one line, with
 * the number of its last.
 */
#pragma once

#include "ingest/host_lines.h"
#include "ingest/text.h"

#include <stdint.h>

enum {
	REDUCE_AT = 4 << 20, /* bytes of a piece */
	SEEN_SLOTS = 8192,
	MOST_ALIKE = 256,     /* lines of the kernel log with one message that are kept, per boot */
	MOST_OF_START = 8192, /* with one start: the same error of the same device */
	MOST_RELEVANT = 6 << 20, /* bytes of lines of the kernel log that are kept */
	MOST_KEPT = 16 << 20,    /* bytes of lines, with what is stored of each */
	MOST_LOGGED = 8 << 20,   /* of logs of runs */
	MOST_FAILURES = 2 << 20, /* of those that show how a run failed: they come last in a log */
	MOST_UNITS = 1 << 16,    /* that are compared with later ones */
};

/* Messages of the kernel log in one boot. */
struct seen_messages {
	struct seen_message {
		uint64_t hash; /* 0: free */
		unsigned count;
	} * slots; /* SEEN_SLOTS of them; NULL: none was seen */
	size_t n;
};

/* What was said last about a subject. */
struct seen_unit {
	uint64_t subject; /* 0: free */
	uint64_t says;
	size_t kept; /* index in kept_units */
};

/* Those that are compared with later ones. */
struct kept_unit {
	unsigned line;  /* the number of its last */
	unsigned alike; /* later ones that say the same */
};

/* What is kept so far, of all hosts. */
struct text_room {
	size_t kept_bytes, logged_bytes, failure_bytes;
	size_t relevant_bytes; /* of the kernel log */
};

struct text_reducer {
	struct arena *arena; /* of the lines that are kept; the caller's */
	struct arena *piece; /* of the lines of the piece; NULL: it is `arena` */
	struct text_splitter split;
	size_t piece_bytes; /* read into the piece */
	size_t piece_limit; /* it is reduced when it has so many */
	size_t piece_least;
	struct text_room own, *room; /* NULL: its own */
	/*
	 * Lines behind the names of hosts are looked for, and are then kept by host; the caller
	 * sets it.
	 */
	bool by_host;
	struct host_stream *stream;  /* NULL: there are none */
	struct text_reducer **hosts; /* by the stream's numbers; NULL: the host has no line */
	size_t carried;              /* lines of the piece that an earlier one began with */
	size_t below;                /* the first of these that are below a part */
	bool goes_on;                /* they begin within a part, below the command `command` */
	uint64_t command, series;
	struct text_line *lines;
	size_t n;
	struct seen_messages seen, starts;
	struct seen_unit *units;
	size_t unit_n, unit_size;
	struct kept_unit *kept_units;
	size_t kept_unit_n;
	size_t repeated; /* lines of the kernel log that repeat others and are not kept */
	bool lost;       /* lines of the kernel log that mattered are not kept */
	/* Lines that decoders would have used, for which there was no room. */
	size_t left_out;
	unsigned first_left_out;
};

struct text_reducer text_reducer(struct arena *a);
void text_reduce_add(struct text_reducer *r, const char *data, size_t n);
/* Ends the text: its lines are r->lines, r->n of them, until text_reduce_free. */
void text_reduce_end(struct text_reducer *r);
void text_reduce_free(struct text_reducer *r);
/* Whether lines that matter are not kept: what the others do not say is unknown. */
bool text_reduce_lost(const struct text_reducer *r);
/* It stands for lines that only repeat what lines above it say. */
bool line_is_repeated(const struct text_line *l);
