/* SPDX-License-Identifier: Apache-2.0 */
/* What a measurement needs to know of a machine: per ordered pair of devices the links it uses and
 * what to expect. The caller makes it, fills it and frees it. */
#pragma once

#include <stddef.h>

/*
 * A directed link, by number: the same number in two lists is the same wires in the same direction.
 * Each list is owned by the struct paths it is in.
 */
struct link_list {
	unsigned *ids;
	size_t n;
};

/* 0 or -ENOMEM. An id that is in the list is not added again. */
int link_list_add(struct link_list *l, unsigned id);

#define PATH_NAME_SIZE   16
#define PATH_REASON_SIZE 80

struct pair_path {
	struct link_list links;
	double expected_gbps;       /* GB/s one way, 0: unknown */
	char class[PATH_NAME_SIZE]; /* "NV18", "PIX"; "?": unknown */
	/*
	 * what limits expected_gbps, "x8 link at 0000:41:00.0"; "" when nothing does that could be
	 * better
	 */
	char reason[PATH_REASON_SIZE];
};

/* Between one device and the host's memory. */
struct host_path {
	struct link_list to_host, from_host;
	double expected_gbps; /* GB/s one way, 0: unknown */
	char reason[PATH_REASON_SIZE];
};

struct paths {
	unsigned device_n;
	struct pair_path *pairs; /* device_n squared, row initiator; the diagonal is empty */
	struct host_path *hosts; /* device_n */
};

#define PATHS_DEVICES_MAX 256
#define PATHS_LINKS_MAX   65536 /* ids are below it */

/* Nothing known: no links, expected 0, class "?". 0, -EINVAL (too many devices) or -ENOMEM. */
int paths_new(unsigned device_n, struct paths **ret);
void paths_free(struct paths *p); /* NULL is fine */

struct pair_path *paths_pair(const struct paths *p, unsigned initiator, unsigned target);

/* 0, or -EINVAL and a sentence: a link id out of range or listed twice, or a figure that is
 * none. */
int paths_check(const struct paths *p);
