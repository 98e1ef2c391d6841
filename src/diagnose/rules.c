/* SPDX-License-Identifier: Apache-2.0 */
/* All rules: the topics' tables one after the other, in the order in which a packet meets them. */
#include "diagnose/rules.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

static const struct rule *const topics[] = {
	rules_driver,    rules_unlock,    rules_pcie,     rules_routing,     rules_uplink,
	rules_nvlink,    rules_host,      rules_fix,      rules_log,         rules_peermem,
	rules_rdma,      rules_nccl,      rules_nccl_net, rules_nccl_values, rules_nccl_bugs,
	rules_nccl_topo, rules_libraries, rules_observed,
};

const struct rule *rule_next(const struct rule *r)
{
	for (size_t t = 0; t < ARRAY_LEN(topics); t++) {
		const struct rule *row = topics[t];

		if (!r)
			return row;
		while (row->id && row != r)
			row++;
		if (row->id && row[1].id)
			return row + 1;
		if (row->id)
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
