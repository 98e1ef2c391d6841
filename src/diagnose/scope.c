/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the probe of a rule for each device, pair, port or link that the rule is about. */
#include "base/alloc.h"
#include "diagnose/rules.h"

/* What the calls of one rule came to. */
struct tally {
	struct pair_set kept;
	size_t first_initiator, first_target; /* of `kept` */
	struct outcome unknown;               /* the first reason */
	bool ok, na, is_unknown;
};

static void keep_pair(struct rule_run *run, struct tally *t)
{
	if (!t->kept.n) {
		t->first_initiator = run->initiator;
		t->first_target = run->target;
	}
	pair_set_add(&t->kept, run->initiator, run->target);
}

static void judge_one(struct rule_run *run, struct tally *t)
{
	enum verdict v = run->rule->probe(run);

	if (v == VERDICT_BAD && run->path)
		keep_pair(run, t);
	t->ok |= v == VERDICT_OK;
	t->na |= v == VERDICT_NA;
	if (v != VERDICT_UNKNOWN)
		return;
	if (!t->is_unknown)
		t->unknown = *run->outcome;
	t->is_unknown = true;
}

/* ---- what there is of each scope ---- */

static void judge_machine(struct rule_run *run, struct tally *t)
{
	judge_one(run, t);
}

static void judge_gpus(struct rule_run *run, struct tally *t)
{
	FOR_EACH_GPU (g, run) {
		run->gpu = g;
		judge_one(run, t);
	}
}

static void judge_pairs(struct rule_run *run, struct tally *t)
{
	t->kept = pair_set_new(run);
	FOR_EACH_GPU_PAIR (i, j, run) {
		run->initiator = i;
		run->target = j;
		run->path = topology_path(run->t, i, j);
		judge_one(run, t);
	}
	if (!t->kept.n || !run->rule->report)
		return;
	run->initiator = t->first_initiator;
	run->target = t->first_target;
	run->path = topology_path(run->t, run->initiator, run->target);
	run->pairs = &t->kept;
	run->rule->report(run);
}

static void judge_nics(struct rule_run *run, struct tally *t)
{
	FOR_EACH_RDMA (d, run) {
		run->nic = d;
		judge_one(run, t);
	}
}

static void judge_ports(struct rule_run *run, struct tally *t)
{
	size_t n = 0;

	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; i < d->port_n; i++, n++) {
			run->nic = d;
			run->port = &d->ports[i];
			judge_one(run, t);
		}
	if (n)
		return;
	/* Each RDMA device has one, so it could not be read. */
	rule_unknown(run, NULL, "no port's state could be read");
	t->unknown = *run->outcome;
	t->is_unknown = true;
}

static void walk_up(struct rule_run *run, struct tally *t, const struct pci_function *f,
		    const struct gpu *g, const char *name, bool *seen)
{
	for (; f && f->parent && !seen[f->index]; f = f->parent) {
		struct wire w = {f, f->parent, g, name};

		seen[f->index] = true;
		run->wire = &w;
		if (!pci_faces_down(f))
			judge_one(run, t);
		g = NULL;
		name = "switch";
	}
	run->wire = NULL;
}

static void judge_links(struct rule_run *run, struct tally *t)
{
	bool *seen = arena_alloc(run->d->arena, run->m->pci_n + 1, sizeof(*seen));

	FOR_EACH_GPU (g, run)
		walk_up(run, t, g->pci, g, run_text(run, "GPU%zu", g->index), seen);
	FOR_EACH_RDMA (d, run)
		if (d->pci)
			walk_up(run, t, d->pci, NULL, d->name, seen);
}

/* ---- what it comes to ---- */

/* Why a fact is unknown; NULL: it is not. */
static const char *why_unknown(const struct gpu *g, const struct rule_fact *fact)
{
	const char *at = (fact->of_pci ? (const char *)g->pci : (const char *)g) + fact->at;
	const struct fact_str *text = (const struct fact_str *)at;
	const struct fact_int *number = (const struct fact_int *)at;

	if (fact->is_text)
		return fact_unknown(*text) ? FACT_WHY(*text) : NULL;
	return fact_unknown(*number) ? FACT_WHY(*number) : NULL;
}

/* The rule's fact, for what found nothing: OK would be a guess where it is unknown. */
static enum verdict judge_fact(struct rule_run *run)
{
	const struct rule_fact *fact = &run->rule->fact;

	if (!fact->what)
		return VERDICT_OK;
	FOR_EACH_GPU (g, run)
		if (why_unknown(g, fact))
			return rule_unknown(run, why_unknown(g, fact), "%s of GPU%zu", fact->what,
					    g->index);
	return VERDICT_OK;
}

enum verdict rule_judge(struct rule_run *run)
{
	static void (*const scopes[SCOPE_N])(struct rule_run * run, struct tally * t) = {
		[SCOPE_MACHINE] = judge_machine, [SCOPE_GPU] = judge_gpus,
		[SCOPE_PAIR] = judge_pairs,      [SCOPE_NIC] = judge_nics,
		[SCOPE_PORT] = judge_ports,      [SCOPE_LINK] = judge_links,
	};
	struct tally t = {0};

	scopes[run->rule->scope](run, &t);
	if (run->found)
		return VERDICT_BAD;
	if (t.is_unknown && !(t.ok && run->rule->one_is_enough)) {
		*run->outcome = t.unknown;
		return VERDICT_UNKNOWN;
	}
	if (judge_fact(run) == VERDICT_UNKNOWN)
		return VERDICT_UNKNOWN;
	/* There may be nothing of what the rule is about. */
	return t.ok ? VERDICT_OK : VERDICT_NA;
}

/* ---- what a finding is about ---- */

static struct subject subject_here(struct rule_run *run)
{
	if (run->gpu)
		return subject_gpu(run, run->gpu);
	if (run->port)
		return (struct subject){.kind = SUBJECT_NIC,
					.name = run_text(run, "%s port %u", run->nic->name,
							 run->port->number),
					.detail = run->nic->pci ? run->nic->pci->name : NULL,
					.pci = run->nic->pci};
	if (run->nic)
		return subject_device(run, SUBJECT_NIC, run->nic->name, run->nic->pci);
	return SUBJECT(DRIVER, "driver");
}

struct finding *finding_here(struct rule_run *run, enum confidence c, const char *fmt, ...)
{
	struct finding *f;
	va_list ap;

	va_start(ap, fmt);
	f = finding_add(run, c, subject_here(run), "%s", arena_vprintf(run->d->arena, fmt, ap));
	va_end(ap);
	if (run->gpu)
		f->pairs = 2 * (run->m->gpu_n - 1);
	if (run->pairs)
		f->pair_map = run->pairs->in;
	return f;
}
