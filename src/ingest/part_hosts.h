/* SPDX-License-Identifier: Apache-2.0 */
/* Which host printed which part of the texts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct part;

enum { MOST_TEXT_HOSTS = 64 };

struct text_host {
	const char *name; /* up to its first point */
	const char *file;
	unsigned line;
};

/* The hosts whose outputs the texts hold, in the order in which the texts name them. */
struct text_hosts {
	struct text_host items[MOST_TEXT_HOSTS];
	size_t n;
	bool full; /* there are more */
};

/* The hosts that prompts name. */
struct prompt_hosts {
	struct text_hosts all;
	struct text_hosts machines; /* those that are surely not containers */
};

/* Adds a host unless it is listed. "localhost" and a container's id name none. */
void text_hosts_add(struct arena *a, struct text_hosts *h, const char *name, const char *file,
		    unsigned line);
/* The listed name of a host that is written like this; NULL: it is not listed. */
const char *text_hosts_find(const struct text_hosts *h, const char *name);
/* Adds the hosts that outputs name themselves: uname, the journal. */
void text_hosts_of_parts(struct arena *a, struct text_hosts *h, const struct part *parts, size_t n);
/* Those of the prompts above the parts. */
void text_hosts_in_prompts(struct arena *a, struct prompt_hosts *h, const struct part *parts,
			   size_t n);
/*
 * Of those in prompts the machines, if they are several, and what differs from another or from one
 * in `h` only in its number.
 */
void text_hosts_add_prompts(struct arena *a, struct text_hosts *h,
			    const struct prompt_hosts *prompts);

/*
 * Sets `host` of the parts of one text, as far as the text shows: `host` was in front of all its
 * lines (NULL: none was), the output names it, or the prompt above, or the text names only one of
 * them.
 */
void part_hosts_assign(const struct text_hosts *h, const char *host, struct part *parts, size_t n);
/* "gpu7" and "gpu12" of one cluster; a container is named otherwise than its host. */
bool host_is_sibling(const char *a, const char *b);
/* How many characters at s can be of the name of a host. */
size_t host_name_length(const char *s);
