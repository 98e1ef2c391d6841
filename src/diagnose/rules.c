/* SPDX-License-Identifier: Apache-2.0 */
/* All rules: the topics' tables one after the other, in the order in which a packet meets them. */
#include "diagnose/rules.h"

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
