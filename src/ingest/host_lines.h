/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs of several hosts in one text: each line behind the name of its host, as pdsh and clush
 * print them, or below a heading with the names of the hosts that printed it, as clush -b and
 * dshbak do.
 */
#pragma once

#include "ingest/part_hosts.h"
#include "ingest/text.h"

struct host_lines {
	const char *host; /* NULL: the lines that no host's name is in front of */
	struct text_line *lines;
	size_t n;
};

/*
 * The lines of each host, in their order and without the name. 0: the text is not of this form,
 * which the outputs that are found in it show. The arrays are allocated in the arena.
 */
size_t host_lines_split(struct arena *a, struct text_line *lines, size_t n,
			struct host_lines **ret);

/* ---- a text that comes in pieces ---- */

/*
 * Whose line is whose, from the first piece on. Number 0 are the lines that no host's name is in
 * front of.
 */
struct host_stream {
	struct arena *arena;
	bool grouped; /* headings name the hosts of the lines below */
	const char *names[MOST_TEXT_HOSTS + 1];
	size_t n;
	size_t now[MOST_TEXT_HOSTS + 1], now_n; /* grouped: the hosts of the last heading */
	bool framed;                            /* the line before the last one was a frame */
	char *heading; /* the last line, behind a frame; NULL: it was not */
};

/* False: the first piece, of n lines, is not of this form. The lines stay as they are. */
bool host_stream_begin(struct host_stream *s, struct arena *a, struct text_line *lines, size_t n);
/* The numbers of the hosts that printed the line, which loses its name. */
const size_t *host_stream_line(struct host_stream *s, struct text_line *l, size_t *ret_n);
