/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/advice.h"

#include "base/alloc.h"
#include "machine/usable.h"
#include "topology/nearest.h"

#include <stdlib.h>
#include <string.h>

/* ---- what to set ---- */

static struct advice_variable *find(struct advice *a, const struct finding_variable *v)
{
	for (size_t i = 0; i < a->variable_n; i++)
		if (a->variables[i].variable == v->variable)
			return &a->variables[i];
	return NULL;
}

/* The copy between two GPUs that shows most what P2P brings: measured with it and without. */
static const struct observed *measured_pair(const struct machine *m, const struct finding *f)
{
	const struct observed *best = NULL;

	if (!f->pairs)
		return NULL;
	for (size_t i = 0; i < m->observed_n; i++) {
		const struct observed *o = &m->observed[i];

		if (o->kind == OBSERVED_BANDWIDTH && o->initiator >= 0 && o->target >= 0 &&
		    o->off > 0 && (!best || o->value > best->value))
			best = o;
	}
	return best;
}

static void add_variable(struct advice *a, const struct diagnosis *d, const struct finding *f,
			 const struct finding_variable *v)
{
	const struct machine *m = d->topology->machine;
	const struct setting *set = machine_setting(m, v->variable->name);
	struct advice_variable *at = find(a, v);

	if (!at) {
		at = ARENA_PUSH(d->arena, a->variables, a->variable_n);
		*at = (struct advice_variable){.variable = v->variable, .value = v->value};
		at->set = set && strcmp(set->value, v->value) == 0 ? set : NULL;
		at->measured = measured_pair(m, f);
	}
	at->sure |= f->confidence != CONFIDENCE_POSSIBLE;
	*ARENA_PUSH(d->arena, at->findings, at->finding_n) = f;
}

static int by_library(const void *a, const void *b)
{
	const struct advice_variable *x = a, *y = b;
	enum library p = library_of_variable(x->variable->name);
	enum library q = library_of_variable(y->variable->name);

	return p != q ? (p > q) - (p < q) : strcmp(x->variable->name, y->variable->name);
}

/* ---- NICs ---- */

static unsigned active_port(const struct rdma_device *d)
{
	for (size_t i = 0; i < d->port_n; i++)
		if (fact_str_is(d->ports[i].state, "ACTIVE"))
			return d->ports[i].number;
	return 0;
}

static void add_nics(struct advice *a, const struct diagnosis *d)
{
	const struct topology *t = d->topology;
	size_t *nics = arena_alloc(d->arena, t->gpu_n + 1, sizeof(*nics));

	if (t->endpoint_n == t->gpu_n || !t->gpu_n)
		return;
	a->nics = arena_alloc(d->arena, t->gpu_n, sizeof(*a->nics));
	topology_assign_nics(t, nics);
	for (size_t g = 0; g < t->gpu_n; g++) {
		struct advice_nic *n = &a->nics[g];

		n->gpu = &t->machine->gpus[g];
		n->class = PATH_UNKNOWN;
		if (nics[g] == NO_NIC)
			continue;
		n->nic = &t->machine->rdma[t->endpoints[nics[g]].index];
		n->port = active_port(n->nic);
		n->class = topology_path(t, g, nics[g])->class;
		n->equal = topology_count_nearest(t, g, n->class, true);
		n->preflight = topology_preflight(t, g, nics[g]);
	}
}

struct advice *advice_new(const struct diagnosis *d)
{
	struct advice *a = arena_alloc(d->arena, 1, sizeof(*a));

	for (size_t i = 0; i < d->finding_n; i++) {
		const struct finding *f = &d->findings[i];

		for (size_t k = 0; k < f->variable_n; k++)
			add_variable(a, d, f, &f->variables[k]);
		if (f->setting)
			*ARENA_PUSH(d->arena, a->settings, a->setting_n) = f;
	}
	if (a->variable_n)
		qsort(a->variables, a->variable_n, sizeof(*a->variables), by_library);
	add_nics(a, d);
	return a;
}

enum verdict advice_verdict(const struct diagnosis *d, const struct advice *a)
{
	for (size_t i = 0; i < a->setting_n; i++)
		if (a->settings[i]->severity >= SEVERITY_WARNING)
			return VERDICT_BAD;
	for (size_t i = 0; i < a->variable_n; i++)
		for (size_t k = 0; k < a->variables[i].finding_n && !a->variables[i].set; k++)
			if (a->variables[i].findings[k]->severity >= SEVERITY_WARNING)
				return VERDICT_BAD;
	return d->topology->endpoint_n ? VERDICT_OK : VERDICT_UNKNOWN;
}
