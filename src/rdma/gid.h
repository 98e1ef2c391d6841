/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the address (GID) of a port, and says why. No I/O. */
#pragma once

#include "rdma/verbs_api.h"

#include <stdbool.h>

/* The maximum number of entries of a port's table that are read. */
#define GIDS_MAX 32

enum gid_family {
	GID_FAMILY_IPV4,
	GID_FAMILY_IPV6,
	GID_FAMILY_LOCAL
}; /* link-local: reaches only this link */

enum gid_family gid_family(const union verbs_gid *g);
/* "10.0.2.15", "fe80::5054:ff:fe12:3456" */
#define GID_TEXT 46
void gid_text(const union verbs_gid *g, char buf[static GID_TEXT]);

struct gid_choice {
	struct verbs_gid_entry entry;
	char reason[160]; /* "RoCE v2, and a routable IPv4 address" */
};

/*
 * RoCE v2 before v1, which cannot be routed; a routable address before a link-local one; IPv4
 * before IPv6; the lowest index first. InfiniBand: index 0, which is the port's own. False: none is
 * usable.
 */
bool gid_choose(const struct verbs_gid_entry *entries, size_t n, bool infiniband,
		struct gid_choice *ret);

/*
 * The entry of this index, whatever it is worth, with what gid_choose would take. False: there is
 * none.
 */
bool gid_force(const struct verbs_gid_entry *entries, size_t n, bool infiniband, unsigned index,
	       struct gid_choice *ret);

/* Whether two addresses look like ones of one network: /24 of IPv4, /64 of IPv6. */
bool gid_same_network(const union verbs_gid *a, const union verbs_gid *b);
/*
 * For a connection: an address of this port and the index of one of the other's, of one type and
 * family. Besides the order above, two addresses of one network before those of two. False: none
 * match.
 */
bool gid_choose_pair(const struct verbs_gid_entry *own, size_t own_n,
		     const struct verbs_gid_entry *far, size_t far_n, bool infiniband,
		     struct gid_choice *ret_own, struct verbs_gid_entry *ret_far);
