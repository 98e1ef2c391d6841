/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs of several hosts in one text: each line behind the name of its host, as pdsh and clush print them, or below a
 * heading with the names of the hosts that printed it, as clush -b and dshbak do.
 */
#pragma once

#include "ingest/text.h"

struct host_lines {
	const char *host; /* NULL: the lines that no host's name is in front of */
	struct text_line *lines;
	size_t n;
};

/*
 * The lines of each host, in their order and without the name. 0: the text is not of this form, which the outputs that
 * are found in it show. The arrays are allocated in the arena.
 */
size_t host_lines_split(struct arena *a, struct text_line *lines, size_t n,
			struct host_lines **ret);
