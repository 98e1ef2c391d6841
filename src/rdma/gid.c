/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/gid.h"

#include "base/network.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { IPV4_AT = 12 }; /* ::ffff:a.b.c.d */

static bool is_mapped(const union verbs_gid *g)
{
	return network_is_ipv4(g->raw);
}

static bool is_empty(const union verbs_gid *g)
{
	return !g->aligned[0] && !g->aligned[1];
}

enum gid_family gid_family(const union verbs_gid *g)
{
	if (is_mapped(g)) /* 169.254/16 */
		return g->raw[IPV4_AT] == 169 && g->raw[IPV4_AT + 1] == 254 ? GID_FAMILY_LOCAL
									    : GID_FAMILY_IPV4;
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80 ? GID_FAMILY_LOCAL : GID_FAMILY_IPV6;
}

void gid_text(const union verbs_gid *g, char buf[static GID_TEXT])
{
	if (is_mapped(g))
		inet_ntop(AF_INET, g->raw + IPV4_AT, buf, GID_TEXT);
	else
		inet_ntop(AF_INET6, g->raw, buf, GID_TEXT);
}

/* "RoCE v2" */
static const char *gid_type_text(uint32_t type)
{
	static const char *const texts[] = {
		[VERBS_GID_IB] = "InfiniBand",
		[VERBS_GID_ROCE_V1] = "RoCE v1",
		[VERBS_GID_ROCE_V2] = "RoCE v2",
	};

	return type <= VERBS_GID_ROCE_V2 ? texts[type] : "of an unknown type";
}

/* Less is better. */
static unsigned rank(const struct verbs_gid_entry *e)
{
	return (e->gid_type != VERBS_GID_ROCE_V2) * 4u + (unsigned)gid_family(&e->gid);
}

static void explain(const struct verbs_gid_entry *e, bool only, char *buf, size_t size)
{
	static const char *const families[] = {
		[GID_FAMILY_IPV4] = "a routable IPv4 address",
		[GID_FAMILY_IPV6] = "a routable IPv6 address",
		[GID_FAMILY_LOCAL] = "link-local: it reaches only this network",
	};

	snprintf(buf, size, "%s%s, %s", only ? "the only one: " : "", gid_type_text(e->gid_type),
		 families[gid_family(&e->gid)]);
}

static bool choose_infiniband(const struct verbs_gid_entry *entries, size_t n,
			      struct gid_choice *ret)
{
	for (size_t i = 0; i < n; i++)
		if (entries[i].gid_index == 0) {
			ret->entry = entries[i];
			snprintf(ret->reason, sizeof(ret->reason),
				 "InfiniBand: index 0 is the port's own");
			return true;
		}
	return false;
}

bool gid_choose(const struct verbs_gid_entry *entries, size_t n, bool infiniband,
		struct gid_choice *ret)
{
	const struct verbs_gid_entry *best = NULL;
	size_t usable = 0;

	if (infiniband)
		return choose_infiniband(entries, n, ret);
	for (size_t i = 0; i < n; i++) {
		if (is_empty(&entries[i].gid))
			continue;
		usable++;
		if (!best || rank(&entries[i]) < rank(best))
			best = &entries[i];
	}
	if (!best)
		return false;
	ret->entry = *best;
	explain(best, usable == 1, ret->reason, sizeof(ret->reason));
	return true;
}

bool gid_force(const struct verbs_gid_entry *entries, size_t n, bool infiniband, unsigned index,
	       struct gid_choice *ret)
{
	struct gid_choice best;
	char kind[80];

	for (size_t i = 0; i < n; i++) {
		if (entries[i].gid_index != index || is_empty(&entries[i].gid))
			continue;
		ret->entry = entries[i];
		explain(&entries[i], false, kind, sizeof(kind));
		snprintf(ret->reason, sizeof(ret->reason), "--gid asks for it; %s", kind);
		if (gid_choose(entries, n, infiniband, &best) && best.entry.gid_index != index)
			snprintf(ret->reason, sizeof(ret->reason),
				 "--gid asks for it; %s; without --gid it would be index %u", kind,
				 best.entry.gid_index);
		return true;
	}
	return false;
}

/* ---- two ports ---- */

bool gid_same_network(const union verbs_gid *a, const union verbs_gid *b)
{
	return network_same(a->raw, b->raw);
}

/* Less is better; the family of both is the same. */
static unsigned rank_pair(const struct verbs_gid_entry *own, const struct verbs_gid_entry *far)
{
	enum gid_family f = gid_family(&own->gid);

	return (own->gid_type != VERBS_GID_ROCE_V2) * 8u + (f == GID_FAMILY_LOCAL) * 4u +
	       !gid_same_network(&own->gid, &far->gid) * 2u + (f == GID_FAMILY_IPV6);
}

static bool can_talk(const struct verbs_gid_entry *own, const struct verbs_gid_entry *far)
{
	return !is_empty(&own->gid) && !is_empty(&far->gid) && own->gid_type == far->gid_type &&
	       is_mapped(&own->gid) == is_mapped(&far->gid) &&
	       gid_family(&own->gid) == gid_family(&far->gid);
}

static void explain_pair(struct gid_choice *own, const struct verbs_gid_entry *far)
{
	char kind[80];

	explain(&own->entry, false, kind, sizeof(kind));
	snprintf(own->reason, sizeof(own->reason), "%s; %s", kind,
		 gid_same_network(&own->entry.gid, &far->gid) ? "both are of one network"
							      : "of two networks");
}

bool gid_choose_pair(const struct verbs_gid_entry *own, size_t own_n,
		     const struct verbs_gid_entry *far, size_t far_n, bool infiniband,
		     struct gid_choice *ret_own, struct verbs_gid_entry *ret_far)
{
	unsigned best = UINT_MAX;
	struct gid_choice other;

	if (infiniband) {
		bool found = gid_choose(own, own_n, true, ret_own) &&
			     gid_choose(far, far_n, true, &other);

		if (found)
			*ret_far = other.entry;
		return found;
	}
	for (size_t i = 0; i < own_n; i++)
		for (size_t k = 0; k < far_n; k++) {
			if (!can_talk(&own[i], &far[k]) || rank_pair(&own[i], &far[k]) >= best)
				continue;
			best = rank_pair(&own[i], &far[k]);
			ret_own->entry = own[i];
			*ret_far = far[k];
		}
	if (best != UINT_MAX)
		explain_pair(ret_own, ret_far);
	return best != UINT_MAX;
}
