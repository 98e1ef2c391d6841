/* SPDX-License-Identifier: Apache-2.0 */
/* A topology of NCCL in a text: a dump of NCCL_TOPO_DUMP_FILE, or the file of NCCL_TOPO_FILE. */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/nccl_topology.h"

#include <stdio.h>
#include <string.h>

static const char *const elements[] = {"<system", "<cpu",    "<pci", "<gpu", "<nic",
				       "<net",    "<nvlink", "<c2c", "</"};

static const char *element_of(const struct text_line *l)
{
	for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++)
		if (text_starts_with(line_text(l), elements[i]))
			return elements[i];
	return NULL;
}

/* From "<system version=" to "</system>"; a browser or a mail may have folded the elements. */
size_t nccl_topology_match(struct part *p, const struct text_line *lines, size_t n)
{
	size_t end = 1;

	if (!text_starts_with(line_text(&lines[0]), "<system version="))
		return 0;
	p->cut = true;
	for (size_t i = 1; i < n && p->cut; i++) {
		if (line_is_blank(&lines[i]))
			continue;
		if (!element_of(&lines[i]) && strchr(lines[i - 1].text, '>'))
			break;
		p->cut = !text_starts_with(line_text(&lines[i]), "</system>");
		end = i + 1;
	}
	p->cut_at = p->cut ? lines[end - 1].number : 0;
	return end;
}

/* What decodes it uses no host's hash, no GUID and no name of an interface. */
const char *nccl_topology_keep(const struct part *p, const struct text_line *l, struct arena *a)
{
	const char *element = element_of(l);

	(void)p;
	if (element && (strcmp(element, "<net") == 0 || strcmp(element, "<cpu") == 0))
		return arena_printf(a, "%s>", element);
	return l->text;
}

/* The line that has the address, or the first. */
static struct claim_at place_of(const struct part *p, const struct nccl_topology_device *d)
{
	for (size_t i = 0; i < p->n; i++)
		if (strstr(p->lines[i].text, d->address))
			return CLAIM_AT(p, &p->lines[i]);
	return CLAIM_AT(p, &p->lines[0]);
}

/* NCCL found these in the machine; its links are the lesser of both ends, and are not claimed. */
static void claim_device(const struct part *p, struct claims *c,
			 const struct nccl_topology_device *d)
{
	static const char folder[] = "sys/bus/pci/devices";
	struct claim_at at = place_of(p, d);
	char name[20];

	if (!d->used || !claim_function(c, at, d->address, name))
		return;
	/* Some releases write no more of it than "0x03". */
	if (strlen(d->class) == strlen("0x030200"))
		claim(c, at, d->class, "%s/%s/class", folder, name);
	if (*d->vendor)
		claim(c, at, d->vendor, "%s/%s/vendor", folder, name);
	if (*d->device)
		claim(c, at, d->device, "%s/%s/device", folder, name);
	if (d->gpu_index >= 0)
		claim_gpu_at(c, at, (unsigned)d->gpu_index, d->address);
}

void nccl_topology_decode(const struct part *p, struct claims *c)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct arena *a = arena_new();
	struct nccl_topology t = {0};

	for (size_t i = 0; i < p->n; i++) {
		strbuf_printf(&text, "%s\n", p->lines[i].text);
		claim_line(c, CLAIM_AT(p, &p->lines[i]), p->lines[i].text, NCCL_TOPOLOGY_TEXT);
	}
	nccl_topology_parse(a, strbuf_str(&text), p->file, &t);
	for (size_t i = 0; t.dumped && i < t.n; i++)
		claim_device(p, c, &t.devices[i]);
	arena_free(a);
}
