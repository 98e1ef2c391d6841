/* SPDX-License-Identifier: Apache-2.0 */
/* NICs that a matrix names, as RDMA devices of the source. */
#include "ingest/claims_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS "sys/class/infiniband"

/* "NIC0" of a matrix: its name in the legend, or the label itself. */
static const char *name_of(const struct claims *c, const char *label)
{
	const char *path = arena_printf(c->arena, "nic/%s/name", label);
	const struct source_entry *e = source_entry_of(c->map, path, SOURCE_FILE);

	return e && !e->error ? e->data : label;
}

/* The text shows no address, and nothing assigns what lspci lists to these names. */
static void stand_in(struct claims *c, const char *name, size_t i)
{
	struct pci_address a = {.domain = PCI_NO_ADDRESS, .bus = (uint8_t)i, .device = 1};
	char address[PCI_ADDRESS_LEN];

	pci_address_format(a, address);
	claim(c, CLAIM_NOWHERE, "", "function/%s", address);
	claim_link(c, CLAIM_NOWHERE, arena_printf(c->arena, "../../../%s", address),
		   CLASS "/%s/device", name);
}

/* "nic/NIC0/listed": each name once; the matrices of several texts may have the same. */
static size_t list_nics(struct claims *c, struct strbuf *names)
{
	AUTO_FREE struct source_entry *entries = NULL;
	size_t n, count = 0;
	const char *at = NULL;

	entries = claims_entries(c, "nic/", &n);
	for (size_t i = 0; i < n && count < CLAIMS_MAX_NICS; i++) {
		const char *label = entries[i].path + strlen("nic/"), *slash = strchr(label, '/');
		const char *name;

		if (strcmp(slash, "/listed") != 0)
			continue;
		name = name_of(c, arena_strndup(c->arena, label, (size_t)(slash - label)));
		if (source_entry_of(c->map, arena_printf(c->arena, CLASS "/%s/device", name),
				    SOURCE_LINK))
			continue;
		at = at ? at : source_origin(c->map, entries[i].path);
		stand_in(c, name, count++);
		strbuf_printf(names, "%s\n", name);
	}
	if (!count)
		return 0;
	source_put_list(c->map, CLASS, strbuf_str(names));
	source_put_origin(c->map, CLASS, at);
	return count;
}

void claims_put_nics(struct claims *c, char (*gpus)[PCI_ADDRESS_LEN], size_t gpu_n)
{
	AUTO_FREE struct source_entry *entries = NULL;
	AUTO_STRBUF struct strbuf names = {0};
	size_t n;

	if (!list_nics(c, &names))
		return;
	entries = claims_entries(c, "nic/", &n);
	for (size_t i = 0; i < n; i++) {
		char label[64];
		unsigned gpu;

		if (sscanf(entries[i].path, "nic/%63[^/]/level/%3u", label, &gpu) == 2 &&
		    gpu < gpu_n && gpus[gpu][0])
			claims_move(c, &entries[i],
				    arena_printf(c->arena, CLASS "/%s/stated/level/%s",
						 name_of(c, label), gpus[gpu]));
	}
}
