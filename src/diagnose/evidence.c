/* SPDX-License-Identifier: Apache-2.0 */
/* What probes say in the same words: evidence from facts, sizes, lists of GPUs and pairs. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "diagnose/rules.h"

#include <inttypes.h>

const char *run_text(struct rule_run *run, const char *fmt, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = arena_vprintf(run->d->arena, fmt, ap);
	va_end(ap);
	return text;
}

const char *run_bytes(struct rule_run *run, uint64_t bytes)
{
	static const struct {
		unsigned shift;
		const char *unit;
	} units[] = {{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		uint64_t one = UINT64_C(1) << units[i].shift;

		if (bytes >= one)
			return run_text(run, bytes % one ? "%.1f %s" : "%.0f %s",
					(double)bytes / (double)one, units[i].unit);
	}
	return run_text(run, "%" PRIu64 " bytes", bytes);
}

const char *run_list(struct rule_run *run, const char *list, const char *item)
{
	return list ? run_text(run, "%s, %s", list, item) : item;
}

const char *gpu_list_text(struct rule_run *run, const char *names, size_t n)
{
	return n == run->m->gpu_n && n > 2 ? run_text(run, "all %zu GPUs", n) : names;
}

/* ---- evidence ---- */

static void evidence_fact(struct rule_run *run, struct finding *f, const char *name,
			  enum fact_state state, const char *value, const char *from)
{
	const char *shown = state == FACT_KNOWN    ? value
			    : state == FACT_ABSENT ? "absent"
						   : "unknown";

	finding_evidence(run, f, from, name, "%s", shown);
}

void evidence_int(struct rule_run *run, struct finding *f, const char *name, struct fact_int fact)
{
	evidence_fact(run, f, name, fact.state, run_text(run, "%" PRId64, fact.value), fact.from);
}

void evidence_yes_no(struct rule_run *run, struct finding *f, const char *name,
		     struct fact_int fact)
{
	evidence_fact(run, f, name, fact.state, fact.value ? "yes" : "no", fact.from);
}

void evidence_bytes(struct rule_run *run, struct finding *f, const char *name, struct fact_int fact)
{
	const char *text = fact.value < 0 ? "unlimited" : run_bytes(run, (uint64_t)fact.value);

	evidence_fact(run, f, name, fact.state, text, fact.from);
}

void evidence_word(struct rule_run *run, struct finding *f, const char *name, struct fact_int fact,
		   const char *const *words, size_t n)
{
	bool named = fact.value >= 0 && (size_t)fact.value < n && words[fact.value];

	evidence_fact(run, f, name, fact.state,
		      named ? words[fact.value] : run_text(run, "%" PRId64, fact.value), fact.from);
}

void evidence_str(struct rule_run *run, struct finding *f, const char *name, struct fact_str fact)
{
	evidence_fact(run, f, name, fact.state, fact.value, fact.from);
}

void evidence_registry(struct rule_run *run, struct finding *f)
{
	const struct nvidia_driver *d = &run->m->driver;

	evidence_str(run, f, "RegistryDwords", d->registry_dwords);
	if (*fact_str_or(d->registry_dwords_per_device, ""))
		evidence_str(run, f, "RegistryDwordsPerDevice", d->registry_dwords_per_device);
}

void evidence_text(struct rule_run *run, struct finding *f, const char *from, const char *what)
{
	*ARENA_PUSH(run->d->arena, f->evidence, f->evidence_n) =
		(struct evidence){.what = what, .from = from};
}

void evidence_observed(struct rule_run *run, struct finding *f, const struct observed *o,
		       const char *fmt, ...)
{
	const char *value;
	va_list ap;

	va_start(ap, fmt);
	value = arena_vprintf(run->d->arena, fmt, ap);
	va_end(ap);
	finding_evidence(run, f, o->from, run_text(run, "GPU%d->GPU%d", o->initiator, o->target),
			 "%s", value);
}

/* ---- pairs ---- */

struct pair_set pair_set_new(struct rule_run *run)
{
	size_t n = run->m->gpu_n;

	return (struct pair_set){.in = arena_alloc(run->d->arena, n * n, sizeof(bool)), .gpu_n = n};
}

void pair_set_add(struct pair_set *s, size_t initiator, size_t target)
{
	bool *in = &s->in[initiator * s->gpu_n + target];

	s->n += !*in;
	*in = true;
}

bool pair_set_in(const struct pair_set *s, size_t initiator, size_t target)
{
	return s->in[initiator * s->gpu_n + target];
}

static bool pair_set_has(const struct pair_set *s, size_t k, size_t *ret_i, size_t *ret_j)
{
	*ret_i = k / s->gpu_n;
	*ret_j = k % s->gpu_n;
	return s->in[k];
}

/* The set is one pair in both directions. */
static bool both_ways(const struct pair_set *s, size_t *ret_i, size_t *ret_j)
{
	if (s->n != 2)
		return false;
	for (size_t k = 0; k < s->gpu_n * s->gpu_n; k++)
		if (pair_set_has(s, k, ret_i, ret_j))
			return s->in[*ret_j * s->gpu_n + *ret_i];
	return false;
}

void finding_names_pairs(struct rule_run *run, struct finding *f, const struct pair_set *s)
{
	size_t i, j;

	f->pairs = s->n;
	if (s->gpu_n > 2 && s->n == s->gpu_n * (s->gpu_n - 1))
		return;
	for (size_t k = 0; k < s->gpu_n * s->gpu_n; k++) {
		if (!pair_set_has(s, k, &i, &j))
			continue;
		finding_names(run, f, run->m->gpus[i].pci);
		finding_names(run, f, run->m->gpus[j].pci);
	}
}

#define PAIRS_NAMED 4

const char *pair_set_text(struct rule_run *run, const struct pair_set *s)
{
	AUTO_STRBUF struct strbuf b = {0};
	size_t all = s->gpu_n * (s->gpu_n - 1), named = 0, i, j;

	if (both_ways(s, &i, &j))
		return run_text(run, "GPU%zu and GPU%zu (both ways)", i, j);
	if (s->n == all)
		return run_text(run, "all %zu pairs", all);
	for (size_t k = 0; k < s->gpu_n * s->gpu_n && named < PAIRS_NAMED; k++)
		if (pair_set_has(s, k, &i, &j))
			strbuf_printf(&b, "%sGPU%zu->GPU%zu", named++ ? ", " : "", i, j);
	return run_text(run, "%zu of %zu pairs (%s%s)", s->n, all, strbuf_str(&b),
			s->n > named ? ", ..." : "");
}

const struct observed *message_heard(const struct rule_run *run, enum tool_message message)
{
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	if (o->kind == OBSERVED_MESSAGE && o->message == message)
		return o;
	return NULL;
}
