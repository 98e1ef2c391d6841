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

/*
 * Where a text shows the NIC's address, that one; else nothing assigns what lspci lists to its
 * name, and a stand-in is used.
 */
static void put_address(struct claims *c, const char *name, size_t i)
{
	const char *path = arena_printf(c->arena, "nic/%s/pci", name);
	const struct source_entry *e = source_entry_of(c->map, path, SOURCE_FILE);
	struct pci_address a = {.domain = PCI_NO_ADDRESS, .bus = (uint8_t)i, .device = 1};
	char address[PCI_ADDRESS_LEN];

	pci_address_format(a, address);
	if (e && !e->error)
		text_copy(address, sizeof(address), e->data, strlen(e->data));
	else
		claim(c, CLAIM_NOWHERE, "", "function/%s", address);
	claim_link(c, CLAIM_NOWHERE, arena_printf(c->arena, "../../../%s", address),
		   CLASS "/%s/device", name);
}

/* "nic/mlx5_0/port/1": the ports that texts name. */
static void put_ports(struct claims *c, const char *name)
{
	AUTO_FREE struct source_entry *entries = NULL;
	AUTO_STRBUF struct strbuf ports = {0};
	const char *prefix = arena_printf(c->arena, "nic/%s/port/", name);
	const char *path = arena_printf(c->arena, CLASS "/%s/ports", name);
	size_t n;

	entries = claims_entries(c, prefix, &n);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&ports, "%s\n", entries[i].path + strlen(prefix));
	if (!n)
		return;
	source_put_list(c->map, path, strbuf_str(&ports));
	source_put_origin(c->map, path, source_origin(c->map, entries[0].path));
}

/*
 * "nic/NIC0/listed" of a matrix, "nic/mlx5_0/named" of other outputs: each name once, as several
 * texts may have the same.
 */
static size_t list_nics(struct claims *c, struct strbuf *names)
{
	AUTO_FREE struct source_entry *entries = NULL;
	size_t n, count = 0;
	const char *at = NULL;
	bool all =
		false; /* a matrix lists all NICs, other outputs perhaps one that was asked for */

	entries = claims_entries(c, "nic/", &n);
	for (size_t i = 0; i < n && count < CLAIMS_MAX_NICS; i++) {
		const char *label = entries[i].path + strlen("nic/"), *slash = strchr(label, '/');
		const char *name;

		if (strcmp(slash, "/listed") != 0 && strcmp(slash, "/named") != 0)
			continue;
		all |= strcmp(slash, "/listed") == 0;
		name = name_of(c, arena_strndup(c->arena, label, (size_t)(slash - label)));
		if (source_entry_of(c->map, arena_printf(c->arena, CLASS "/%s/device", name),
				    SOURCE_LINK))
			continue;
		at = at ? at : source_origin(c->map, entries[i].path);
		put_address(c, name, count++);
		put_ports(c, name);
		strbuf_printf(names, "%s\n", name);
	}
	if (!count)
		return 0;
	if (!all)
		claim(c, CLAIM_NOWHERE, "1", "stated/some-nics");
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
