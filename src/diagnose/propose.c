/* SPDX-License-Identifier: Apache-2.0 */
/* From findings to changes: what the rules propose, and the rest as work for a person. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/rules.h"

#include <string.h>

static bool is_named(const struct propose_options *o, const char *id)
{
	for (size_t i = 0; i < o->rule_n; i++)
		if (strcmp(o->rules[i], id) == 0)
			return true;
	return false;
}

/* A note alone is not a reason to change a machine, unless somebody asks for it. */
static bool asks_for_change(const struct rule_run *run, const struct finding *f)
{
	return f->rule == run->rule &&
	       (f->severity > SEVERITY_INFO || is_named(run->options, run->rule->id));
}

bool propose_wanted(const struct rule_run *run)
{
	FOR_EACH_FINDING (f, run)
		if (asks_for_change(run, f))
			return true;
	return false;
}

void propose(struct rule_run *run, struct change_set *out, struct change c)
{
	c.rules = TEXTS(run->rule->id);
	if (is_named(run->options, run->rule->id))
		c.opt_in = false;
	change_add(out, &c);
	run->found = true;
}

/* What the rule's first finding says. */
static const char *first_sentence(const struct rule_run *run)
{
	FOR_EACH_FINDING (f, run)
		if (f->rule == run->rule)
			return f->sentence;
	return run->rule->why;
}

void propose_by_hand(struct rule_run *run, struct change_set *out, const char *what,
		     const char *fmt, ...)
{
	const char *how;
	va_list ap;

	va_start(ap, fmt);
	how = arena_vprintf(out->arena, fmt, ap);
	va_end(ap);
	propose(run, out,
		(struct change){.kind = CHANGE_BY_HAND,
				.lifetime = CHANGE_LASTING,
				.target = what,
				.new = how,
				.reason = TEXTS(first_sentence(run))});
}

/* ---- what no rule proposes ---- */

#define SUBJECTS_NAMED 4

/* The subjects of all findings that one remedy is for, of which f is the first. */
static const char *subjects(struct rule_run *run, const struct finding *first)
{
	const char *list = NULL;
	size_t n = 0;

	FOR_EACH_FINDING (f, run)
		if (asks_for_change(run, f) && strcmp(f->remedy, first->remedy) == 0 &&
		    n++ < SUBJECTS_NAMED)
			list = run_list(run, list, f->subject);
	return n > SUBJECTS_NAMED
		       ? run_text(run, "%s and %zu more", list, n - (size_t)SUBJECTS_NAMED)
		       : list;
}

static bool is_first_with_remedy(const struct rule_run *run, const struct finding *f)
{
	for (const struct finding *x = run->d->findings; x < f; x++)
		if (asks_for_change(run, x) && strcmp(x->remedy, f->remedy) == 0)
			return false;
	return true;
}

static void propose_remedy(struct rule_run *run, struct change_set *out, const struct finding *f)
{
	const char *target = subjects(run, f);
	const bool alone = strcmp(target, f->subject) == 0;
	AUTO_STRBUF struct strbuf statement = {0};

	finding_statement(f, &statement);
	propose(run, out,
		(struct change){.kind = CHANGE_BY_HAND,
				.lifetime = CHANGE_LASTING,
				.target = target,
				.new = f->remedy,
				.stated = alone,
				.reason = TEXTS(alone ? strbuf_str(&statement) : f->sentence)});
}

/* The remedies of the run's findings, as work for a person. */
static void propose_remedies(struct rule_run *run, struct change_set *out)
{
	FOR_EACH_FINDING (f, run)
		if (asks_for_change(run, f) && !f->nothing_to_do && is_first_with_remedy(run, f))
			propose_remedy(run, out, f);
}

/* ---- all rules ---- */

/* Where a test has shown that it works all the same, only requested changes are proposed. */
static bool has_work(const struct rule_run *run)
{
	FOR_EACH_FINDING (f, run)
		if (f->rule == run->rule && !f->nothing_to_do)
			return true;
	return is_named(run->options, run->rule->id);
}

static void propose_rule(struct diagnosis *d, const struct propose_options *o,
			 const struct rule *rule, struct change_set *out)
{
	struct outcome nobody_reads = {.rule = rule};
	struct rule_run run = {
		.m = d->topology->machine,
		.t = d->topology,
		.rule = rule,
		.d = d,
		.outcome = &nobody_reads,
		.options = o,
	};

	if (!has_work(&run))
		return;
	if (rule->propose)
		rule->propose(&run, out);
	if (!run.found)
		propose_remedies(&run, out);
}

bool finding_is_first_of_rule(const struct diagnosis *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (d->findings[k].rule == d->findings[i].rule)
			return false;
	return true;
}

/* In the order of the findings: what to repair first comes first. */
void diagnosis_propose(const struct diagnosis *d, const struct propose_options *o,
		       struct change_set *out)
{
	struct diagnosis copy = *d;

	copy.arena = out->arena; /* texts that are made on the way: d stays as it is */
	for (size_t i = 0; i < d->finding_n; i++) {
		const struct rule *rule = d->findings[i].rule;

		if (finding_is_first_of_rule(d, i) && (!o->rule_n || is_named(o, rule->id)))
			propose_rule(&copy, o, rule, out);
	}
}
