/* SPDX-License-Identifier: Apache-2.0 */
/* All rules: the topics' tables one after the other, in the order in which a packet meets them. */
#include "diagnose/rules.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

static const struct {
	const struct rule *rows;
	size_t n;
} topics[] = {
	{rules_driver, RULES_DRIVER_N},
	{rules_unlock, RULES_UNLOCK_N},
	{rules_pcie, RULES_PCIE_N},
	{rules_routing, RULES_ROUTING_N},
	{rules_uplink, RULES_UPLINK_N},
	{rules_nvlink, RULES_NVLINK_N},
	{rules_host, RULES_HOST_N},
	{rules_fix, RULES_FIX_N},
	{rules_log, RULES_LOG_N},
	{rules_peermem, RULES_PEERMEM_N},
	{rules_rdma, RULES_RDMA_N},
	{rules_nccl, RULES_NCCL_N},
	{rules_nccl_net, RULES_NCCL_NET_N},
	{rules_nccl_values, RULES_NCCL_VALUES_N},
	{rules_nccl_bugs, RULES_NCCL_BUGS_N},
	{rules_nccl_topo, RULES_NCCL_TOPO_N},
	{rules_libraries, RULES_LIBRARIES_N},
	{rules_observed, RULES_OBSERVED_N},
};

static bool is_last(const struct rule *r, size_t topic)
{
	return r == &topics[topic].rows[topics[topic].n - 1];
}

static bool is_of(const struct rule *r, size_t topic)
{
	for (size_t i = 0; i < topics[topic].n; i++)
		if (r == &topics[topic].rows[i])
			return true;
	return false;
}

const struct rule *rule_next(const struct rule *r)
{
	for (size_t t = 0; t < sizeof(topics) / sizeof(*topics); t++) {
		if (!r)
			return &topics[t].rows[0];
		if (is_of(r, t) && !is_last(r, t))
			return r + 1;
		if (is_last(r, t))
			r = NULL; /* the next topic's first */
	}
	return NULL;
}

const struct rule *rule_find(const char *id)
{
	const struct rule *r = NULL;

	while ((r = rule_next(r)))
		if (!strcmp(r->id, id))
			return r;
	return NULL;
}

/* "bar1-vbios, bar1-firmware": the rules that begin so. */
static size_t list_that_begin(const char *start, struct strbuf *ret_names)
{
	size_t n = 0;

	FOR_EACH_RULE (r)
		if (text_starts_with(r->id, start))
			strbuf_printf(ret_names, "%s%s", n++ ? ", " : "", r->id);
	return n;
}

static const char *nearest_rule(const char *id)
{
	const char *names[256] = {0};
	size_t n = 0;

	FOR_EACH_RULE (r)
		if (n < 256)
			names[n++] = r->id;
	return nearest_name(id, names, n);
}

const struct rule *rule_named(const char *id)
{
	AUTO_STRBUF struct strbuf begun = {0};
	const struct rule *rule = rule_find(id);
	const char *nearest;

	if (rule)
		return rule;
	nearest = nearest_rule(id);
	if (strlen(id) > 2 && list_that_begin(id, &begun) > 1)
		err_set(ENOENT, "no rule '%s'; rules that begin so: %s", id, strbuf_str(&begun));
	else if (nearest)
		err_set(ENOENT, "no rule '%s'; did you mean %s?", id, nearest);
	else
		err_set(ENOENT, "no rule '%s' (see: onehop check --list)", id);
	return NULL;
}
