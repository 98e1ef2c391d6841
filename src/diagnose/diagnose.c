/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the rules over a topology and orders what they find. */
#include "diagnose/diagnose.h"
#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "diagnose/rules.h"

#include <string.h>

/* ---- what a rule needs ---- */

static enum verdict need_gpu(struct rule_run *run)
{
	if (run->m->gpu_n)
		return VERDICT_OK;
	if (fact_known(run->m->pci_listed))
		return VERDICT_NA;
	return rule_unknown(run, FACT_WHY(run->m->pci_listed), "PCI devices could not be listed");
}

static enum verdict need_two_gpus(struct rule_run *run)
{
	if (run->m->gpu_n > 1)
		return VERDICT_OK;
	return run->m->gpu_n == 1 ? VERDICT_NA : need_gpu(run);
}

static enum verdict need_rdma(struct rule_run *run)
{
	if (run->m->rdma_n)
		return VERDICT_OK;
	if (!fact_unknown(run->m->rdma_listed))
		return VERDICT_NA;
	return rule_unknown(run, FACT_WHY(run->m->rdma_listed), "RDMA devices");
}

/* Whether any function's registers beyond the first 64 bytes were read; a rule copes with the rest.
 */
static enum verdict need_config_space(struct rule_run *run)
{
	if (!run->m->pci_n)
		return fact_known(run->m->pci_listed)
			       ? VERDICT_NA
			       : rule_unknown(run, FACT_WHY(run->m->pci_listed),
					      "PCI devices could not be listed");
	FOR_EACH_PCI (f, run)
		if (f->config_size > 64 || fact_known(f->acs_ctl))
			return VERDICT_OK;
	return rule_unknown(run, fact_is(run->m->root, 0) ? FACT_NEEDS_ROOT : "not read",
			    "PCI registers beyond the first 64 bytes");
}

static enum verdict need_nvml(struct rule_run *run)
{
	enum verdict v = need_gpu(run);

	if (v != VERDICT_OK || fact_known(run->m->driver.nvml))
		return v;
	return rule_unknown(run, FACT_WHY(run->m->driver.nvml),
			    "what NVIDIA's management library says");
}

static enum verdict need_log(struct rule_run *run)
{
	if (fact_is(run->m->log_read, 1) || run->m->log_n)
		return VERDICT_OK;
	return rule_unknown(run, FACT_WHY(run->m->log_read), "the kernel log");
}

static enum verdict need_driver(struct rule_run *run)
{
	struct fact_int loaded = run->m->driver.loaded;

	if (fact_unknown(loaded))
		return rule_unknown(run, FACT_WHY(loaded), "whether the nvidia module is loaded");
	return fact_is_not(loaded, 0) ? VERDICT_OK : VERDICT_NA;
}

static const struct {
	enum rule_needs need;
	enum verdict (*check)(struct rule_run *run);
} needs[] = {
	{NEEDS_GPU, need_gpu},   {NEEDS_TWO_GPUS, need_two_gpus},
	{NEEDS_RDMA, need_rdma}, {NEEDS_DRIVER, need_driver},
	{NEEDS_NVML, need_nvml}, {NEEDS_CONFIG_SPACE, need_config_space},
	{NEEDS_LOG, need_log},
};

/* OK when all is there, else the verdict of the whole rule: not applicable weighs more than
 * unknown.
 */
enum verdict rule_needs_met(struct rule_run *run, unsigned wanted)
{
	enum verdict worst = VERDICT_OK;

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		enum verdict v = wanted & needs[i].need ? needs[i].check(run) : VERDICT_OK;

		if (v == VERDICT_NA)
			return VERDICT_NA;
		if (v == VERDICT_UNKNOWN)
			worst = v;
	}
	return worst;
}

/* ---- what texts need not show ---- */

static enum verdict whole_log(struct rule_run *run)
{
	struct fact_int read = run->m->log_read;

	if (!fact_is(read, 1))
		return rule_unknown(run, FACT_WHY(read), "the rest of the kernel log");
	return run->m->text_part_n ? rule_unknown(run, "not in the text",
						  "lines that the kernel log may have besides")
				   : VERDICT_OK;
}

static enum verdict whole_settings(struct rule_run *run)
{
	return fact_is(run->m->environment, 1) ? VERDICT_OK
					       : rule_unknown(run, FACT_WHY(run->m->environment),
							      "the environment of the program");
}

static enum verdict whole_cmdline(struct rule_run *run)
{
	struct fact_int whole = run->m->kernel.cmdline_whole;

	return fact_unknown(whole) && fact_known(run->m->kernel.cmdline)
		       ? rule_unknown(run, FACT_WHY(whole), "the rest of the kernel's command line")
		       : VERDICT_OK;
}

static enum verdict whole_tree(struct rule_run *run)
{
	if (!run->m->pci_n && !fact_known(run->m->pci_listed))
		return rule_unknown(run, FACT_WHY(run->m->pci_listed),
				    "PCI devices could not be listed");
	FOR_EACH_GPU (g, run)
		if (!g->pci->root)
			return rule_unknown(run,
					    fact_why_cut(g->pci->parent_unknown)
						    ? g->pci->parent_unknown
						    : "not in the text",
					    "the bridges above GPU%zu", g->index);
	return VERDICT_OK;
}

/* On a machine without the driver lspci alone lists GPUs. */
static enum verdict whole_gpus(struct rule_run *run)
{
	struct fact_int all = run->m->driver.nvml_lists_all;

	return !run->m->text_part_n || fact_is(all, 1)
		       ? VERDICT_OK
		       : rule_unknown(run, FACT_WHY(all), "GPUs that the text does not show");
}

static enum verdict whole_nics(struct rule_run *run)
{
	struct fact_int all = run->m->rdma_listed;

	return !run->m->text_part_n || fact_known(all)
		       ? VERDICT_OK
		       : rule_unknown(run, FACT_WHY(all), "NICs that the text does not show");
}

/* What a text shows a part of proves what is there. That nothing is wrong takes the whole. */
static enum verdict check_whole(struct rule_run *run)
{
	static const struct {
		unsigned needs; /* any of them */
		enum verdict (*check)(struct rule_run *run);
	} wholes[] = {
		{NEEDS_LOG, whole_log},
		{NEEDS_SETTINGS, whole_settings},
		{NEEDS_CMDLINE, whole_cmdline},
		{NEEDS_TREE, whole_tree},
		{NEEDS_GPU | NEEDS_TWO_GPUS | NEEDS_NVML | NEEDS_TREE, whole_gpus},
		{NEEDS_RDMA, whole_nics},
	};

	for (size_t i = 0; i < ARRAY_LEN(wholes); i++) {
		enum verdict v =
			run->rule->needs & wholes[i].needs ? wholes[i].check(run) : VERDICT_OK;

		if (v != VERDICT_OK)
			return v;
	}
	return VERDICT_OK;
}

/* ---- order ---- */

/* What a probe lowered to information no longer blocks. */
static enum blocks finding_blocks(const struct finding *f)
{
	return f->severity > SEVERITY_INFO ? f->rule->blocks : BLOCKS_NOTHING;
}

/*
 * What ended a run comes first: it is what somebody came to ask about. If something else may be the
 * cause of that (`follows`), faults that explain it come before it.
 */
static int place_of(const struct finding *f, bool follows)
{
	if (finding_blocks(f) == BLOCKS_RUN)
		return follows ? 1 : 0;
	return follows && f->rule->ends_runs && f->severity == SEVERITY_ERROR &&
			       f->confidence <= CONFIDENCE_LIKELY
		       ? 0
		       : 2;
}

static void set_places(struct diagnosis_builder *b)
{
	bool follows = false;

	for (size_t i = 0; i < b->found_n; i++)
		follows |= b->found[i]->follows;
	for (size_t i = 0; i < b->found_n; i++)
		b->found[i]->place = place_of(b->found[i], follows);
}

static int compare_findings(const void *a, const void *b)
{
	const struct finding *x = *(const struct finding *const *)a;
	const struct finding *y = *(const struct finding *const *)b;
	enum blocks bx = finding_blocks(x), by = finding_blocks(y);
	int c;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (x->rule->turn != y->rule->turn)
		return x->rule->turn < y->rule->turn ? -1 : 1;
	if (bx != by)
		return bx > by ? -1 : 1;
	if (x->pairs != y->pairs)
		return x->pairs > y->pairs ? -1 : 1;
	if (x->confidence != y->confidence)
		return x->confidence < y->confidence ? -1 : 1;
	c = strverscmp(x->subject, y->subject);
	return c ? c : strcmp(x->rule->id, y->rule->id);
}

static void sort_findings(struct diagnosis_builder *b)
{
	struct diagnosis *d = &b->d;

	if (!b->found_n)
		return;
	set_places(b);
	qsort(b->found, b->found_n, sizeof(*b->found), compare_findings);
	d->findings = arena_alloc(d->arena, b->found_n, sizeof(*d->findings));
	for (size_t i = 0; i < b->found_n; i++) {
		finding_finish(d->arena, d->topology->machine, b->found[i]);
		d->findings[i] = *b->found[i];
	}
	d->finding_n = b->found_n;
}

/* ---- what was seen outweighs ---- */

static bool concerns(const struct finding *f, size_t gpu_n, const struct topology *t, size_t i,
		     size_t j)
{
	bool of_one = f->pci && pci_is_gpu(f->pci) && f->pairs <= 2 * (gpu_n - 1);

	if (f->pair_map)
		return f->pair_map[i * gpu_n + j];
	return !of_one || t->endpoints[i].pci == f->pci || t->endpoints[j].pci == f->pci;
}

/* The weakest that was seen of any pair that the finding concerns; NULL: of one nothing was. */
static const struct chain_link *least_seen(const struct finding *f, const struct topology *t)
{
	const struct chain_link *least = NULL;

	for (size_t i = 0; i < t->gpu_n; i++)
		for (size_t j = 0; j < t->gpu_n; j++) {
			const struct chain_link *l = &topology_path(t, i, j)->chain[CHAIN_OBSERVED];

			if (i == j || !concerns(f, t->gpu_n, t, i, j))
				continue;
			if (l->reason != REASON_OBSERVED_WORKS && l->reason != REASON_OBSERVED_FAST)
				return NULL;
			if (!least || l->reason == REASON_OBSERVED_FAST)
				least = l;
		}
	return least;
}

/* NCCL connected some of the pairs all the same. */
static void weigh_nccl(struct diagnosis_builder *b, struct finding *f)
{
	const struct topology *t = b->d.topology;
	const struct chain_link *seen = NULL;
	size_t n = 0;

	for (size_t i = 0; i < t->gpu_n; i++)
		for (size_t j = 0; j < t->gpu_n; j++) {
			const struct path *p = topology_path(t, i, j);

			if (i == j || p->verdict != PAIR_SUSPECT ||
			    !path_nccl_contradicts_driver(p) || !concerns(f, t->gpu_n, t, i, j))
				continue;
			seen = seen ? seen : &p->chain[CHAIN_NCCL];
			n++;
		}
	if (n)
		f->sentence =
			arena_printf(b->d.arena, "%s; but NCCL used P2P on %zu of these pairs (%s)",
				     f->sentence, n, seen->from);
}

/* A copy between all the pairs that a rule says cannot: what it read is out of date, or no
 * hindrance. */
static void weigh_observed(struct diagnosis_builder *b, struct finding *f)
{
	const struct chain_link *seen;
	bool checked;

	if (!f->rule->predicts || f->severity == SEVERITY_INFO)
		return;
	seen = least_seen(f, b->d.topology);
	if (!seen) {
		weigh_nccl(b, f);
		return;
	}
	checked = seen->reason == REASON_OBSERVED_WORKS;
	f->severity = checked ? SEVERITY_INFO : SEVERITY_WARNING;
	f->sentence = arena_printf(b->d.arena, "%s; but %s (%s)", f->sentence,
				   checked ? "checked copies arrived with correct data"
					   : "copies ran as fast as P2P does, with unchecked data",
				   seen->from);
	if (checked)
		finding_needs_nothing(f);
	else
		f->remedy = "run onehop test to check whether the data arrives; if it does, "
			    "nothing needs to be fixed";
}

/* ---- running ---- */

static size_t rule_count(void)
{
	size_t n = 0;

	FOR_EACH_RULE (r)
		n++;
	return n;
}

static void run_rule(struct diagnosis_builder *b, const struct rule *rule, struct outcome *outcome)
{
	struct rule_run run = {
		.m = b->d.topology->machine,
		.t = b->d.topology,
		.rule = rule,
		.d = &b->d,
		.outcome = outcome,
	};

	outcome->rule = rule;
	if (rule->heard)
		rule->heard(&run);
	outcome->verdict = rule_needs_met(&run, rule->needs);
	if (outcome->verdict == VERDICT_OK)
		outcome->verdict = rule_judge(&run);
	outcome->verdict = rule_verdict(&run, outcome->verdict);
	if (outcome->verdict == VERDICT_OK)
		outcome->verdict = check_whole(&run);
	if (outcome->verdict != VERDICT_UNKNOWN) {
		outcome->what = outcome->why = NULL;
		outcome->root_would_tell = outcome->cut_off = false;
	}
}

struct diagnosis *diagnose(const struct topology *t)
{
	struct arena *a = arena_new();
	struct diagnosis_builder *b = arena_alloc(a, 1, sizeof(*b));
	struct diagnosis *d = &b->d;
	size_t i = 0;

	d->topology = t;
	d->arena = a;
	d->outcome_n = rule_count();
	d->outcomes = arena_alloc(a, d->outcome_n, sizeof(*d->outcomes));
	FOR_EACH_RULE (r)
		run_rule(b, r, &d->outcomes[i++]);
	for (i = 0; i < b->found_n; i++)
		weigh_observed(b, b->found[i]);
	sort_findings(b);
	return d;
}

const struct outcome *diagnosis_outcome(const struct diagnosis *d, const char *rule)
{
	const struct outcome *o = d->outcomes;

	while (strcmp(o->rule->id, rule) != 0)
		o++;
	return o;
}

void diagnosis_free(struct diagnosis *d)
{
	if (d)
		arena_free(d->arena);
}

/* ---- for probes ---- */

enum verdict rule_unknown(struct rule_run *run, const char *why, const char *fmt, ...)
{
	struct outcome *o = run->outcome;
	va_list ap;

	va_start(ap, fmt);
	o->what = arena_vprintf(run->d->arena, fmt, ap);
	va_end(ap);
	o->why = why ? arena_printf(run->d->arena, "%s: %s", o->what, why) : o->what;
	o->root_would_tell = fact_why_needs_root(why);
	o->cut_off = fact_why_cut(why);
	return VERDICT_UNKNOWN;
}

enum verdict rule_verdict(const struct rule_run *run, enum verdict otherwise)
{
	return run->found ? VERDICT_BAD : otherwise;
}

/* ---- words ---- */

const char *severity_word(enum severity s)
{
	static const char *const words[SEVERITY_N] = {"info", "warning", "error"};

	return words[s];
}

const char *verdict_word(enum verdict v)
{
	static const char *const words[VERDICT_N] = {"not-applicable", "ok", "unknown", "bad"};

	return words[v];
}

const char *confidence_word(enum confidence c)
{
	static const char *const words[CONFIDENCE_N] = {"certain", "likely", "possible"};

	return words[c];
}

const char *subject_word(enum subject_kind k)
{
	static const char *const words[SUBJECT_KIND_N] = {
		[SUBJECT_HOST] = "host",       [SUBJECT_DRIVER] = "driver",
		[SUBJECT_MODULE] = "module",   [SUBJECT_GPU] = "gpu",
		[SUBJECT_GPUS] = "gpus",       [SUBJECT_PAIR] = "pair",
		[SUBJECT_PORT] = "port",       [SUBJECT_NIC] = "nic",
		[SUBJECT_NICS] = "nics",       [SUBJECT_DEVICE] = "device",
		[SUBJECT_NCCL] = "nccl",       [SUBJECT_SETTING] = "setting",
		[SUBJECT_FILE] = "file",       [SUBJECT_FIX] = "fix",
		[SUBJECT_LIBRARY] = "library", [SUBJECT_RESULT] = "result",
	};

	return words[k];
}
