/* SPDX-License-Identifier: Apache-2.0 */
/* Which address (GID) a port is reached by, and why that one. Pure. */
#pragma once

#include "rdma/verbs_api.h"

#include <stdbool.h>

/* Of a port's table: at most so many are looked at. */
#define GIDS_MAX 32

enum gid_family {
	GID_FAMILY_IPV4,
	GID_FAMILY_IPV6,
	GID_FAMILY_LOCAL
}; /* local: reaches this link only */

enum gid_family gid_family(const union verbs_gid *g);
/* "10.0.2.15", "fe80::5054:ff:fe12:3456" */
#define GID_TEXT 46
void gid_text(const union verbs_gid *g, char buf[static GID_TEXT]);

struct gid_choice {
	struct verbs_gid_entry entry;
	char reason[160]; /* "RoCE v2, and an IPv4 address, which routers carry" */
};

/*
 * RoCE v2 before v1, which routers do not carry; an address that they carry before a link-local one; IPv4
 * before IPv6; the lowest index first. InfiniBand: index 0, which is the port's own. False: none can be used.
 */
bool gid_choose(const struct verbs_gid_entry *entries, size_t n, bool infiniband,
		struct gid_choice *ret);
