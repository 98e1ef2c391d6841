/* SPDX-License-Identifier: Apache-2.0 */
/* rm.json into facts. The document is untrusted: every value is checked. */
#include "machine/gpu_impl.h"

#include "base/alloc.h"
#include "machine/rm_api.h"

#include <jansson.h>
#include <string.h>

#define DOCUMENT "rm.json"
#define CALL     "NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2"

struct rm_decode {
	struct reader *r;
	const char *why;   /* why a value is not there */
	bool *listed;      /* per GPU of the machine: the driver has started it */
	const json_t *doc; /* NULL: there is none */
};

/* ---- one answer ---- */

/* The connection that each bit means; RM sets at most one of them. */
static const struct {
	uint32_t bit;
	enum rm_connection connection;
} connections[] = {
	{RM_P2P_NVLINK, RM_CONNECTION_NVLINK},
	{RM_P2P_INDIRECT_NVLINK, RM_CONNECTION_NVLINK_INDIRECT},
	{RM_P2P_C2C, RM_CONNECTION_C2C},
	{RM_P2P_PROP, RM_CONNECTION_MAILBOX},
	{RM_P2P_PCI_BAR1, RM_CONNECTION_BAR1},
};

static struct fact_int connection_of(struct arena *a, uint32_t caps)
{
	struct fact_int f = fact_int(RM_CONNECTION_NONE, CALL);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(connections); i++) {
		if (!(caps & connections[i].bit))
			continue;
		f.value = connections[i].connection;
		n++;
	}
	if (n > 1 || (!n && (caps & RM_P2P_PCI)))
		return fact_int_unknown(arena_printf(a, CALL ": 0x%x names %s", caps,
						     n > 1 ? "more than one connection"
							   : "no known kind of PCIe P2P"));
	return f;
}

static struct fact_int flag(uint32_t caps, uint32_t bits)
{
	return fact_int((caps & bits) != 0, CALL);
}

static void set_all(struct rm_p2p *p, struct fact_int f)
{
	p->connection = p->reads = p->writes = p->atomics = p->caps = f;
}

static void decode_answer(struct rm_decode *d, const json_t *v, struct rm_p2p *ret)
{
	const json_t *refused = json_object_get(v, "refused"), *caps = json_object_get(v, "caps");
	struct arena *a = d->r->m->arena;
	long long value = json_integer_value(caps);
	uint32_t word;

	if (json_is_integer(refused)) {
		value = json_integer_value(refused);
		set_all(ret, fact_int_unknown(
				     value < 0 && value > -4096
					     ? arena_printf(a, CALL ": %s", strerror((int)-value))
					     : arena_printf(a, CALL ": status 0x%llx",
							    (unsigned long long)value)));
		return;
	}
	if (!json_is_integer(caps) || value < 0 || value > UINT32_MAX) {
		set_all(ret, fact_int_unknown("no capabilities in " DOCUMENT));
		return;
	}
	word = (uint32_t)value;
	ret->caps = fact_int(value, CALL);
	ret->connection = connection_of(a, word);
	ret->reads = flag(word, RM_P2P_READS | RM_P2P_INDIRECT_READS);
	ret->writes = flag(word, RM_P2P_WRITES | RM_P2P_INDIRECT_WRITES);
	ret->atomics = flag(word, RM_P2P_ATOMICS | RM_P2P_INDIRECT_ATOMICS);
}

/* ---- which entry is about which GPUs ---- */

/* The GPU at a place of "gpus"; NULL: there is none, or this machine does not show it. */
static struct gpu *gpu_at(const struct rm_decode *d, size_t place)
{
	const struct machine *m = d->r->m;
	const char *text =
		json_string_value(json_array_get(json_object_get(d->doc, "gpus"), place));
	struct pci_address address;

	if (!text || pci_address_parse(text, &address) < 0)
		return NULL;
	for (size_t i = 0; i < m->gpu_n; i++)
		if (pci_address_compare(m->gpus[i].pci->address, address) == 0)
			return &m->gpus[i];
	return NULL;
}

static struct gpu *gpu_of_pair(const struct rm_decode *d, const json_t *v, size_t which)
{
	const json_t *place = json_array_get(json_object_get(v, "gpus"), which);

	if (!json_is_integer(place) || json_integer_value(place) < 0)
		return NULL;
	return gpu_at(d, (size_t)json_integer_value(place));
}

/*
 * The answer holds the status of each capability, which nvmlDeviceGetP2PStatus returns, one
 * capability per call. NVML's own answers stay.
 */
static void decode_status(const json_t *v, struct gpu_pair *ret)
{
	static const struct {
		enum rm_p2p_index index;
		const char *from;
	} caps[P2P_CAP_N] = {
		[P2P_READ] = {RM_INDEX_READ, CALL " READ"},
		[P2P_WRITE] = {RM_INDEX_WRITE, CALL " WRITE"},
		[P2P_NVLINK] = {RM_INDEX_NVLINK, CALL " NVLINK"},
		[P2P_ATOMICS] = {RM_INDEX_ATOMICS, CALL " ATOMICS"},
		[P2P_PCI] = {RM_INDEX_PCI, CALL " PCI"},
	};
	const json_t *status = json_object_get(v, "status");

	for (size_t cap = 0; cap < P2P_CAP_N; cap++) {
		const json_t *value = json_array_get(status, caps[cap].index);

		if (fact_unknown(ret->p2p[cap]) && json_is_integer(value) &&
		    json_integer_value(value) >= 0 &&
		    json_integer_value(value) < P2P_STATUS_UNKNOWN)
			ret->p2p[cap] = fact_int(json_integer_value(value), caps[cap].from);
	}
}

static void decode_pair(struct rm_decode *d, const json_t *v)
{
	const struct gpu *a = gpu_of_pair(d, v, 0), *b = gpu_of_pair(d, v, 1);
	const struct machine *m = d->r->m;
	struct gpu_pair *forth, *back;

	if (!a || !b || a == b)
		return;
	forth = &m->pairs[a->index * m->gpu_n + b->index];
	back = &m->pairs[b->index * m->gpu_n + a->index];
	decode_answer(d, v, &forth->rm);
	back->rm = forth->rm;
	decode_status(v, forth);
	decode_status(v, back);
}

/* ---- the document ---- */

static const char *why_not(const struct rm_decode *d, const struct gpu *a, const struct gpu *b)
{
	const struct gpu *missing = d->listed[a->index] ? b : a;

	if (!json_is_array(json_object_get(d->doc, "gpus")) || d->listed[missing->index])
		return d->why;
	return arena_printf(d->r->m->arena, "the driver has not started GPU%zu %s", missing->index,
			    missing->pci->name);
}

static void decode_all(struct rm_decode *d)
{
	const json_t *gpus = json_object_get(d->doc, "gpus");
	const json_t *pairs = json_object_get(d->doc, "pairs"), *v;
	const struct machine *m = d->r->m;
	size_t i;

	for (i = 0; i < json_array_size(gpus); i++) {
		const struct gpu *g = gpu_at(d, i);

		if (g)
			d->listed[g->index] = true;
	}
	for (i = 0; i < m->gpu_n; i++)
		for (size_t j = 0; j < m->gpu_n; j++)
			if (i != j)
				set_all(&m->pairs[i * m->gpu_n + j].rm,
					fact_int_unknown(why_not(d, &m->gpus[i], &m->gpus[j])));
	json_array_foreach (pairs, i, v)
		decode_pair(d, v);
}

static const struct gpu_document document = {
	.name = DOCUMENT,
	.parts = MACHINE_RM,
	.read = read_rm,
	.whom = "the resource manager",
	.speaker = "resource manager",
	.missing = DOCUMENT " is missing",
};

void rm_decode(struct reader *r)
{
	struct rm_decode d = {.r = r};
	json_t *doc = gpu_document(r, &document, &d.why);

	d.doc = doc;
	d.listed = arena_alloc(r->m->arena, r->m->gpu_n + 1, sizeof(*d.listed));
	decode_all(&d);
	json_decref(doc);
}

const char *rm_connection_word(int64_t connection)
{
	static const char *const words[RM_CONNECTION_N] = {
		[RM_CONNECTION_NONE] = "none",
		[RM_CONNECTION_NVLINK] = "nvlink",
		[RM_CONNECTION_NVLINK_INDIRECT] = "nvlink-indirect",
		[RM_CONNECTION_C2C] = "c2c",
		[RM_CONNECTION_MAILBOX] = "pcie-mailbox",
		[RM_CONNECTION_BAR1] = "pcie-bar1",
	};

	return connection >= 0 && connection < RM_CONNECTION_N ? words[connection] : "unknown";
}
