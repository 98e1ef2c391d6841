/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How CUDA numbers the GPUs (CUDA C++ Programming Guide, "CUDA Environment Variables"):
 * CUDA_DEVICE_ORDER sorts them, CUDA_VISIBLE_DEVICES selects and renumbers, and everything after
 * the first entry that does not match a GPU is hidden.
 */
#include "machine/gpu_impl.h"

#include "base/alloc.h"
#include "base/text.h"

#include <string.h>

struct order {
	struct machine *m;
	struct gpu **gpus; /* those that the driver shows, by PCI address */
	size_t n;
	const char *sorted; /* why CUDA orders by PCI address; NULL if that is unknown */
	const char *from;   /* for the facts */
	int64_t next;       /* the next ordinal */
};

/* The variable's value; NULL: not set. `name` ends in '='. */
static char *value_of(struct arena *a, const char *environment, const char *name)
{
	const char *value;
	size_t n;

	return text_after(environment, name, &value, &n) ? arena_strndup(a, value, n) : NULL;
}

static void set_all(struct machine *m, struct fact_int f)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].cuda_ordinal = f;
}

static bool same_model(const struct gpu *a, const struct gpu *b)
{
	return fact_known(a->pci->device) && fact_is(b->pci->device, a->pci->device.value);
}

/* By default CUDA puts the fastest GPU first, by an undocumented measure. */
static const char *why_sorted(const struct order *o, const char *environment)
{
	const char *order = value_of(o->m->arena, environment, "CUDA_DEVICE_ORDER=");

	if (order && strcmp(order, "PCI_BUS_ID") == 0)
		return "CUDA_DEVICE_ORDER=PCI_BUS_ID";
	for (size_t i = 1; i < o->n; i++)
		if (!same_model(o->gpus[0], o->gpus[i]))
			return NULL;
	return "CUDA's default order, with GPUs of one model";
}

static void number(struct order *o, struct gpu *g)
{
	g->cuda_ordinal = fact_int(o->next++, o->from);
}

/* The one GPU whose UUID starts with the entry. */
static struct gpu *find_uuid(const struct order *o, const char *entry)
{
	struct gpu *found = NULL;

	for (size_t i = 0; i < o->n; i++) {
		if (!text_starts_with(fact_str_or(o->gpus[i]->uuid, ""), entry))
			continue;
		if (found)
			return NULL;
		found = o->gpus[i];
	}
	return found;
}

static bool uuids_known(const struct order *o)
{
	for (size_t i = 0; i < o->n; i++)
		if (!fact_known(o->gpus[i]->uuid))
			return false;
	return true;
}

/*
 * One entry of CUDA_VISIBLE_DEVICES. NULL and no reason: it does not match a GPU, and the list ends
 * here.
 */
static struct gpu *find_entry(const struct order *o, const char *entry, const char **ret_why)
{
	uint64_t index;

	if (text_starts_with(entry, "MIG-")) {
		*ret_why = "CUDA_VISIBLE_DEVICES names MIG instances";
		return NULL;
	}
	if (text_starts_with(entry, "GPU-")) {
		if (!uuids_known(o))
			*ret_why =
				"CUDA_VISIBLE_DEVICES names UUIDs, and the GPUs' UUIDs are unknown";
		return *ret_why ? NULL : find_uuid(o, entry);
	}
	if (text_to_u64(entry, &index) < 0 || index >= o->n)
		return NULL;
	if (!o->sorted)
		*ret_why = "CUDA orders GPUs of different models by speed; "
			   "CUDA_DEVICE_ORDER=PCI_BUS_ID is not set";
	return *ret_why ? NULL : o->gpus[index];
}

static void select_visible(struct order *o, char *list)
{
	const char *why = NULL;

	o->from = arena_printf(o->m->arena, "CUDA_VISIBLE_DEVICES=%s", list);
	set_all(o->m, fact_int_absent(o->from));
	for (char *entry; (entry = strsep(&list, ","));) {
		struct gpu *g = find_entry(o, text_trim(entry), &why);

		if (g && fact_known(g->cuda_ordinal))
			why = "CUDA_VISIBLE_DEVICES names a GPU twice";
		if (!g || why)
			break;
		number(o, g);
	}
	if (why)
		set_all(o->m, fact_int_unknown(why));
}

static void assign(struct order *o, const char *environment)
{
	char *visible = value_of(o->m->arena, environment, "CUDA_VISIBLE_DEVICES=");

	o->sorted = why_sorted(o, environment);
	o->from = o->sorted;
	if (visible) {
		select_visible(o, visible);
		return;
	}
	set_all(o->m, fact_int_absent("NVML does not list it"));
	for (size_t i = 0; i < o->n && o->sorted; i++)
		number(o, o->gpus[i]);
	for (size_t i = 0; i < o->n && !o->sorted; i++)
		o->gpus[i]->cuda_ordinal =
			fact_int_unknown("CUDA orders GPUs of different models by speed; "
					 "CUDA_DEVICE_ORDER=PCI_BUS_ID is not set");
}

void cuda_order(struct reader *r)
{
	struct machine *m = r->m;
	struct order o = {.m = m};
	struct fact_str environment;

	if (!m->gpu_n)
		return;
	if (!fact_known(m->driver.nvml)) {
		set_all(m, fact_int_unknown(m->driver.nvml.from));
		return;
	}
	environment = read_text(r, "environment.txt");
	if (!fact_known(environment)) {
		set_all(m, fact_int_unknown(fact_absent(environment) ? "no environment.txt"
								     : environment.from));
		return;
	}
	o.gpus = arena_alloc(m->arena, m->gpu_n, sizeof(struct gpu *));
	for (size_t i = 0; i < m->gpu_n; i++) {
		if (fact_known(m->gpus[i].nvml_index))
			o.gpus[o.n++] = &m->gpus[i];
		if (fact_is(m->gpus[i].mig_enabled, 1)) {
			set_all(m, fact_int_unknown("MIG is on: CUDA numbers instances, not GPUs"));
			return;
		}
	}
	assign(&o, environment.value);
}
