/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop fix` tells people: the plan before anything is done, and how it ended. */
#include "report/report_fix_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "change/change.h"
#include "diagnose/diagnose.h"
#include "report/report_impl.h"

#include <stdio.h>
#include <string.h>

/* Devices named of one offer before "and N more". */
#define MAX_TARGETS 4

/* ---- what there is to do ---- */

size_t plan_doing_steps(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->step_n; i++)
		n += step_does(&p->steps[i]);
	return n;
}

bool plan_has_work(const struct plan *p)
{
	return plan_doing_steps(p) > 0 || p->manual_n > 0;
}

enum plan_answer plan_answer(const struct plan *p, const struct change_set *changes,
			     const char *rule)
{
	bool by_hand = false, opt_in = false, set = false;

	for (size_t i = 0; i < p->step_n; i++)
		if (step_does(&p->steps[i]) && texts_have(&p->steps[i].rules, rule))
			return PLAN_ANSWERS_STEPS;
	for (size_t i = 0; i < p->left_out_n; i++)
		if (texts_have(&p->left_out[i].rules, rule))
			return PLAN_ANSWERS_LEFT_OUT;
	for (size_t i = 0; i < p->manual_n; i++)
		by_hand |= texts_have(&p->manual[i].rules, rule);
	for (size_t i = 0; i < changes->n; i++) {
		const struct change *c = &changes->items[i];

		if (!texts_have(&c->rules, rule))
			continue;
		opt_in |= c->opt_in;
		set |= !c->opt_in && c->kind != CHANGE_BY_HAND;
	}
	return by_hand  ? PLAN_ANSWERS_BY_HAND
	       : opt_in ? PLAN_ANSWERS_ON_REQUEST
	       : set    ? PLAN_ANSWERS_SET
			: PLAN_ANSWERS_NOTHING;
}

void report_forgotten(struct document *out, unsigned number)
{
	document_paragraph(
		out, STYLE_PLAIN, 0,
		"Fix %u is closed, and nothing else was changed: onehop history %u still says what "
		"it did, and onehop undo skips it.",
		number, number);
}

/* ---- what comes first ---- */

/* Undone as far as it went, rather than interrupted. */
static bool is_stuck(const struct journal_entry *e)
{
	for (size_t i = 0; e->state == FIX_UNDOING && i < e->plan->step_n; i++)
		if (e->marks[i] == MARK_UNDO_FAILED)
			return true;
	return false;
}

static void add_unfinished_fix(struct document *out, const struct journal_entry *e,
			       const char *root)
{
	if (e->trial == TRIAL_OVER)
		document_paragraph(
			out, STYLE_WARN, 0,
			"The trial boot of fix %u of %s was not confirmed, and the machine starts "
			"as before. onehop undo %u takes back the rest of that fix, and so does "
			"onehop fix --apply before anything else.",
			e->number, e->date, e->number);
	else if (is_stuck(e))
		document_paragraph(
			out, STYLE_BAD, 0,
			"Of fix %u of %s some steps could not be undone: onehop history %u%s says "
			"which and why, onehop undo %u%s tries them again.",
			e->number, e->date, e->number, root, e->number, root);
	else
		document_paragraph(
			out, STYLE_BAD, 0,
			"Fix %u of %s is not finished (%s). Unless another onehop is running now, it was "
			"interrupted: onehop undo %u%s reverts what it did, and onehop fix --apply does so first.",
			e->number, e->date, fix_state_word(e->state), e->number, root);
	document_blank(out);
}

static void add_trial_fix(struct document *out, const struct journal_entry *e)
{
	if (e->trial == TRIAL_RUNS)
		document_paragraph(
			out, STYLE_WARN, 0,
			"Fix %u is on trial in this boot: onehop fix --confirm keeps its kernel "
			"parameters, and without that the next boot goes without them. No other "
			"fix is made before that is decided.",
			e->number);
	else
		document_paragraph(
			out, STYLE_WARN, 0,
			"Fix %u is on trial: the next boot has its kernel parameters, once. No "
			"other fix is made before that is decided; onehop undo %u takes it back.",
			e->number, e->number);
	document_blank(out);
}

/* What is planned may be of what it did. */
static void add_damaged_fix(struct document *out, const struct journal_entry *e)
{
	document_paragraph(out, STYLE_BAD, 0,
			   "Fix %u is damaged, and nothing is applied until that is repaired: %s.",
			   e->number, e->damaged);
	document_blank(out);
}

static void add_unfinished(struct document *out, const struct plan_report *r)
{
	AUTO_STRBUF struct strbuf root = {0};

	add_root_words(&root, r->root);
	for (size_t i = 0; i < r->journal_n; i++) {
		const struct journal_entry *e = &r->journal[i];

		if (journal_is_unfinished(e))
			add_unfinished_fix(out, e, strbuf_str(&root));
		else if (e->trial != TRIAL_NONE)
			add_trial_fix(out, e);
		else if (e->damage && !journal_is_over(e))
			add_damaged_fix(out, e);
	}
	if (!r->journal_unread)
		return;
	document_paragraph(out, STYLE_WARN, 0, "Earlier fixes could not be read: %s",
			   r->journal_unread);
	document_blank(out);
}

/* "3 steps", "1 step" */
static void add_count(struct strbuf *b, size_t n, const char *one, const char *many)
{
	strbuf_printf(b, "%zu %s", n, text_plural(n, one, many));
}

static void add_head(struct document *out, const struct plan_report *r)
{
	size_t steps = plan_doing_steps(r->plan), manual = r->plan->manual_n;
	AUTO_STRBUF struct strbuf b = {0};

	add_recorded(out, r->machine);
	if (r->root)
		document_paragraph(
			out, STYLE_PLAIN, 0,
			"For the system image %s: --apply writes its files and runs none of its "
			"programs. The hardware is %s.",
			r->root,
			r->machine->recorded ? "the recorded machine's"
					     : "this host's, as it is now");
	if (!steps && !manual)
		return;
	if (steps)
		add_count(&b, steps, "step", "steps");
	if (manual) {
		strbuf_puts(&b, steps ? ", and " : "");
		add_count(&b, manual, "thing to do yourself", "things to do yourself");
	}
	if (plan_has_trial(r->plan))
		strbuf_puts(&b, "; the next boot tries the kernel parameters, once");
	else if (plan_needs_reboot(r->plan))
		strbuf_puts(&b, "; some of it takes effect only after a reboot");
	document_paragraph(out, STYLE_STRONG, 0, "Plan: %s.", strbuf_str(&b));
}

/* ---- steps ---- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The same to another device. */
static bool is_likewise(const struct step *s, const struct step *other)
{
	return (s->kind == STEP_REGISTER || s->kind == STEP_BAR_SIZE) && s->kind == other->kind &&
	       s->mask == other->mask && s->again_at_boot == other->again_at_boot &&
	       same_text(s->at, other->at) && same_text(s->old.data, other->old.data) &&
	       same_text(s->new.data, other->new.data) && texts_same(&s->rules, &other->rules) &&
	       texts_same(&s->why, &other->why) && texts_same(&s->cost, &other->cost);
}

/* A step before says all but the name. */
static bool is_reported_by_another(const struct plan *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (is_likewise(&p->steps[i], &p->steps[k]))
			return true;
	return false;
}

void add_texts(struct strbuf *b, const struct texts *l, size_t max)
{
	for (size_t i = 0; i < l->n && i < max; i++)
		strbuf_printf(b, "%s%s", i ? "; " : "", l->items[i]);
	if (l->n > max)
		strbuf_printf(b, "; and %zu more like these", l->n - max);
}

/* Where a step has its reasons, or its costs. */
typedef const struct texts *texts_of_step(const struct step *s);

static const struct texts *why_of(const struct step *s)
{
	return &s->why;
}

static const struct texts *cost_of(const struct step *s)
{
	return &s->cost;
}

static bool is_reported(const struct plan *p, size_t i, texts_of_step *of, const char *text)
{
	for (size_t k = 0; k < i; k++)
		if (step_does(&p->steps[k]) && texts_have(of(&p->steps[k]), text))
			return true;
	return false;
}

/* Those that no step before has: a file that serves several changes has all. */
static void add_parts(struct strbuf *b, const struct plan *p, size_t i, texts_of_step *of, bool all)
{
	struct texts left = *of(&p->steps[i]);
	AUTO_FREE const char **items = xcalloc(left.n + 1, sizeof(*items));
	size_t n = 0;

	for (size_t k = 0; k < left.n; k++)
		if (all || !is_reported(p, i, of, left.items[k]))
			items[n++] = left.items[k];
	left = (struct texts){items, n};
	add_texts(b, &left, all ? n : MAX_REASONS);
}

/* " [acs-redirect, iommu]" */
static void add_rules(struct strbuf *b, const struct texts *rules)
{
	if (!rules->n)
		return;
	strbuf_puts(b, " [");
	texts_join(rules, ", ", b);
	strbuf_puts(b, "]");
}

static void add_why(struct document *out, const struct plan *p, size_t i, bool all)
{
	AUTO_STRBUF struct strbuf b = {0};

	add_parts(&b, p, i, why_of, all);
	if (!b.len)
		strbuf_puts(&b, "as above");
	add_rules(&b, &p->steps[i].rules);
	document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "why:   ", "%s", strbuf_str(&b));
}

static void add_cost(struct document *out, const struct plan *p, size_t i, bool all)
{
	AUTO_STRBUF struct strbuf b = {0};

	add_parts(&b, p, i, cost_of, all);
	if (b.len)
		document_item(out, STYLE_WARN, FIX_TEXT_COLUMN, "costs: ", "%s", b.text);
}

/* What a step before says is not said again, but with --verbose. */
static void add_step(struct document *out, const struct plan_report *r, size_t i, size_t number)
{
	const struct step *s = &r->plan->steps[i];
	bool likewise = !r->verbose && is_reported_by_another(r->plan, i);
	char label[24];

	snprintf(label, sizeof(label), "%zu.", number);
	if (!likewise)
		document_blank(out);
	document_styled_item(out, STYLE_STRONG, STYLE_STRONG, 0, label, "%s%s", s->what,
			     likewise ? " (likewise)" : "");
	if (likewise)
		return;
	add_why(out, r->plan, i, r->verbose);
	add_step_change(out, s, r->verbose);
	add_cost(out, r->plan, i, r->verbose);
	document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "when:  ", "%s", step_in_force(s));
}

static void add_way_back(struct document *out, const struct plan *p, bool verbose)
{
	if (!p->way_back_line)
		return;
	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0,
			   "If the machine does not start after the reboot (write this down): %s",
			   p->way_back_line);
	for (size_t i = 0; verbose && i < p->way_back_n; i++)
		document_item(out, STYLE_PLAIN, 2, "-", "%s", p->way_back[i]);
}

/* The way back stands before the first step that needs a reboot. */
static void add_steps(struct document *out, const struct plan_report *r)
{
	const struct plan *p = r->plan;
	bool reported = false;
	size_t number = 0;

	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *s = &p->steps[i];

		if (s->reboot && !reported)
			add_way_back(out, p, r->verbose);
		reported = reported || s->reboot;
		if (step_does(s))
			add_step(out, r, i, ++number);
	}
}

/* ---- what a trial boot is followed by ---- */

static void add_trial(struct document *out, const struct plan *p)
{
	size_t number = 0;

	if (p->no_trial) {
		document_blank(out);
		document_item(
			out, STYLE_WARN, 0, "note:",
			"no trial boot: %s. The kernel parameters take effect at the next boot and "
			"stay",
			p->no_trial);
	}
	if (!p->on_confirm_n)
		return;
	document_blank(out);
	document_paragraph(
		out, STYLE_STRONG, 0,
		"The next boot tries the kernel parameters. Once it is confirmed (by onehop's unit "
		"if it is healthy, or by onehop fix --confirm), onehop will:");
	for (size_t i = 0; i < p->on_confirm_n; i++)
		if (step_does(&p->on_confirm[i])) {
			char label[24];

			snprintf(label, sizeof(label), "%zu.", ++number);
			document_item(out, STYLE_PLAIN, 2, label, "%s", p->on_confirm[i].what);
		}
	document_paragraph(
		out, STYLE_PLAIN, 0,
		"Without confirmation the boot after it has the old parameters again. All other "
		"changes are made now and stay until onehop undo.");
}

/* ---- what is not done ---- */

static void add_manual(struct document *out, const struct plan *p)
{
	if (!p->manual_n)
		return;
	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0, "Do these yourself:");
	for (size_t i = 0; i < p->manual_n; i++) {
		const struct plan_manual *m = &p->manual[i];
		AUTO_STRBUF struct strbuf b = {0};

		strbuf_puts(&b, m->what);
		add_rules(&b, &m->rules);
		document_item(out, STYLE_PLAIN, 2, "-", "%s", strbuf_str(&b));
		document_item(out, STYLE_STRONG, 5, "do:", "%s", m->how);
	}
}

static void add_left_out(struct document *out, const struct plan *p)
{
	if (!p->left_out_n)
		return;
	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0, "Not done:");
	for (size_t i = 0; i < p->left_out_n; i++) {
		const struct plan_left_out *l = &p->left_out[i];
		AUTO_STRBUF struct strbuf b = {0};

		add_texts(&b, &l->what, MAX_REASONS);
		add_rules(&b, &l->rules);
		document_item(out, STYLE_PLAIN, 2, "-", "%s", strbuf_str(&b));
		document_item(out, STYLE_WARN, 5, "why:", "%s", l->why);
	}
}

/* Changes of one rule, apart, that are for the same. */
static bool is_offered(const struct change *c, const struct change *like)
{
	return c->opt_in && texts_same(&c->rules, &like->rules) &&
	       texts_same(&c->reason, &like->reason);
}

/* " (0000:22:00.0, 0000:23:00.0 and 2 more)" */
static void add_targets(struct strbuf *b, const struct change_set *set, const struct change *like,
			size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++) {
		const struct change *c = &set->items[i];

		if (is_offered(c, like) && c->target && n++ < max)
			strbuf_printf(b, "%s%s", n > 1 ? ", " : " (", c->target);
	}
	if (n > max)
		strbuf_printf(b, " and %zu more", n - max);
	if (n)
		strbuf_puts(b, ")");
}

static bool was_offered(const struct change_set *set, const struct change *c)
{
	for (const struct change *other = set->items; other < c; other++)
		if (is_offered(other, c))
			return true;
	return false;
}

static void add_opt_in(struct document *out, const struct change_set *set)
{
	bool begun = false;

	for (size_t i = 0; set && i < set->n; i++) {
		const struct change *c = &set->items[i];
		AUTO_STRBUF struct strbuf b = {0};

		if (!c->opt_in || was_offered(set, c))
			continue;
		if (!begun) {
			document_blank(out);
			document_paragraph(
				out, STYLE_STRONG, 0,
				"Optional (may not help). To include one, run its command:");
		}
		begun = true;
		texts_join(&c->rules, " ", &b);
		add_targets(&b, set, c, MAX_TARGETS);
		strbuf_puts(&b, ": ");
		add_texts(&b, &c->reason, MAX_REASONS);
		if (c->cost.n)
			strbuf_puts(&b, "; costs: ");
		add_texts(&b, &c->cost, MAX_REASONS);
		document_item(out, STYLE_PLAIN, 2, "-", "onehop fix %s", strbuf_str(&b));
	}
}

static void add_notes(struct document *out, const struct plan *p)
{
	if (p->note_n)
		document_blank(out);
	for (size_t i = 0; i < p->note_n; i++)
		document_item(out, STYLE_WARN, 0, "note:", "%s", p->notes[i]);
}

/* ---- what could not be judged ---- */

static bool is_asked_for(const struct plan_report *r, const struct outcome *o)
{
	for (size_t i = 0; i < r->rule_n; i++)
		if (strcmp(r->rules[i], o->rule->id) == 0)
			return true;
	return !r->rule_n && o->root_would_tell && o->rule->propose;
}

const struct outcome *report_not_judged(const struct plan_report *r, const struct outcome *o)
{
	const struct diagnosis *d = r->diagnosis;

	if (!d)
		return NULL;
	for (o = o ? o + 1 : d->outcomes; o < d->outcomes + d->outcome_n; o++)
		if (o->verdict == VERDICT_UNKNOWN && is_asked_for(r, o))
			return o;
	return NULL;
}

/* Of all rules, one line; of those that were named, why. */
static void add_not_judged(struct document *out, const struct plan_report *r)
{
	const struct outcome *o = report_not_judged(r, NULL);
	AUTO_STRBUF struct strbuf ids = {0};

	if (o && !r->plan->note_n)
		document_blank(out);
	for (; o; o = report_not_judged(r, o))
		if (r->rule_n)
			document_item(out, STYLE_WARN, 0, "note:", "%s could not be judged: %s",
				      o->rule->id, o->why ? o->why : "onehop check says why");
		else
			strbuf_printf(&ids, "%s%s", ids.len ? ", " : "", o->rule->id);
	if (ids.len)
		document_item(out, STYLE_WARN, 0, "note:", "not judged without root: %s", ids.text);
}

/* ---- how to go on ---- */

/* Something that rules propose, and that needs no step here any more. */
static bool is_so_already(const struct plan_report *r)
{
	for (size_t i = 0; r->changes && i < r->changes->n; i++)
		if (!r->changes->items[i].opt_in && r->changes->items[i].kind != CHANGE_BY_HAND)
			return true;
	return false;
}

static void add_nothing_to_do(struct document *out, const struct plan_report *r)
{
	const bool not_judged = report_not_judged(r, NULL);

	if (r->plan->left_out_n)
		document_paragraph(out, STYLE_WARN, 0,
				   "Nothing was changed, for the reasons above.");
	else if (r->rule_n && not_judged)
		document_paragraph(
			out, STYLE_WARN, 0,
			"Nothing is planned: some of the rules that you named could not be judged.");
	else if (is_so_already(r))
		document_paragraph(
			out, STYLE_GOOD, 0,
			"Everything is set already. Some of it may take effect only after a reboot "
			"or a new login: see onehop history.");
	else if (r->judged)
		document_paragraph(out, not_judged ? STYLE_WARN : STYLE_GOOD, 0,
				   not_judged ? "Nothing to fix in what could be judged."
					      : "There is nothing to fix.");
	else
		document_paragraph(
			out, STYLE_WARN, 0,
			"Nothing could be judged, so nothing is planned. onehop check lists what "
			"could not be read.");
}

static void add_end(struct document *out, const struct plan_report *r)
{
	bool steps = plan_doing_steps(r->plan) > 0;

	if (steps && !r->machine->recorded && !r->apply_words) /* it is being applied */
		return;
	document_blank(out);
	if (!plan_has_work(r->plan))
		add_nothing_to_do(out, r);
	else if (!steps)
		document_paragraph(out, STYLE_STRONG, 0,
				   "Nothing was changed. onehop cannot do any of this itself.");
	else if (r->machine->recorded)
		document_paragraph(
			out, STYLE_STRONG, 0,
			"Nothing was changed: this is a recording. On the machine itself: onehop "
			"fix");
	else
		document_paragraph(out, STYLE_STRONG, 0, "Nothing was changed. To do it%s: %s%s",
				   r->is_root ? "" : ", as root, from step 1 on",
				   r->is_root ? "" : "sudo ", r->apply_words);
}

void report_plan(struct document *out, const struct plan_report *r)
{
	add_unfinished(out, r);
	add_head(out, r);
	add_steps(out, r);
	add_trial(out, r->plan);
	add_manual(out, r->plan);
	add_left_out(out, r->plan);
	add_opt_in(out, r->changes);
	add_notes(out, r->plan);
	add_not_judged(out, r);
	add_end(out, r);
}

/* ---- how it ended ---- */

static const char *const result_words[] = {[FIX_DONE] = "done",
					   [FIX_NOTHING] = "nothing",
					   [FIX_DRIFT] = "drift",
					   [FIX_ROLLED_BACK] = "taken-back",
					   [FIX_NOT_ROLLED_BACK] = "stuck"};

const char *fix_outcome_word(const struct fix_outcome *o)
{
	return o->error ? "refused" : o->dry_run ? "dry-run" : result_words[o->result];
}

/* Nothing of it outlives the running system. */
static bool passes_with_reboot(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *s = &p->steps[i];

		if (step_does(s) && !s->passing && (!step_is_volatile(s) || s->again_at_boot))
			return false;
	}
	return !p->wanted_n;
}

static void add_manual_then(struct document *out, const struct fix_outcome *o)
{
	const struct plan *p = o->entry ? o->entry->plan : NULL;

	if (!p || !p->manual_n)
		return;
	document_paragraph(out, STYLE_WARN, 0,
			   "The fix left this to you. If you did it, redo it or undo it by hand:");
	for (size_t i = 0; i < p->manual_n; i++)
		document_item(out, STYLE_PLAIN, 2, "-", "%s: %s", p->manual[i].what,
			      p->manual[i].how);
}

static void add_until_reboot(struct document *out, const struct fix_outcome *o, const char *root)
{
	if (o->only_now)
		document_paragraph(
			out, STYLE_WARN, 0,
			"It lasts until the next reboot. To keep it: onehop undo %u%s, and then "
			"fix again without --now.",
			o->number, root);
	else if (o->entry->plan->manual_n)
		document_paragraph(
			out, STYLE_WARN, 0,
			"It lasts until the next reboot. To keep it, do what is listed above under "
			"\"Do these yourself\".");
	else
		document_paragraph(out, STYLE_WARN, 0, "It lasts until the next reboot.");
}

static void add_done(struct document *out, const struct fix_outcome *o, const char *root)
{
	if (o->undo) {
		document_paragraph(out, STYLE_GOOD, 0, "Fix %u is undone.", o->number);
		return;
	}
	if (o->confirmed) {
		document_paragraph(
			out, STYLE_GOOD, 0,
			"Fix %u is confirmed: its kernel parameters stay. To undo it: onehop "
			"undo %u",
			o->number, o->number);
		return;
	}
	document_paragraph(out, STYLE_GOOD, 0, "Done as fix %u. To undo it: onehop undo %u%s",
			   o->number, o->number, root);
	if (o->entry && passes_with_reboot(o->entry->plan))
		add_until_reboot(out, o, root);
}

static void add_nothing(struct document *out, const struct fix_outcome *o, const char *root)
{
	(void)root;
	document_paragraph(out, STYLE_GOOD, 0,
			   o->undo ? "There was nothing to undo: everything is as it was before."
				   : "Everything was set already: nothing was changed.");
}

static void add_drift(struct document *out, const struct fix_outcome *o, const char *root)
{
	(void)o;
	(void)root;
	document_paragraph(
		out, STYLE_BAD, 0,
		"Nothing was changed: something changed since the plan was made (above). onehop "
		"fix makes a new one.");
}

static void add_taken_back(struct document *out, const struct fix_outcome *o, const char *root)
{
	(void)o;
	(void)root;
	document_paragraph(
		out, STYLE_BAD, 0,
		"A step failed, and the steps before it were undone: the machine is as it was.");
}

static void add_stuck(struct document *out, const struct fix_outcome *o, const char *root)
{
	document_paragraph(
		out, STYLE_BAD, 0,
		"Fix %u could not be undone completely; the steps that failed are listed above. When the cause "
		"is fixed, onehop undo %u%s tries again; the contents before it are in "
		"%s/%s/fixes/%u/old-*.",
		o->number, o->number, root, o->root ? o->root : "", JOURNAL_FOLDER, o->number);
}

static void (*const add_result[])(struct document *out, const struct fix_outcome *o,
				  const char *root) = {[FIX_DONE] = add_done,
						       [FIX_NOTHING] = add_nothing,
						       [FIX_DRIFT] = add_drift,
						       [FIX_ROLLED_BACK] = add_taken_back,
						       [FIX_NOT_ROLLED_BACK] = add_stuck};

static void add_reboot(struct document *out, const struct fix_outcome *o)
{
	if (o->undo)
		document_paragraph(
			out, STYLE_WARN, 0,
			"A reboot is due: until then the running system still has what was in "
			"force.");
	else if (o->entry && o->entry->state == FIX_ON_TRIAL)
		document_paragraph(
			out, STYLE_WARN, 0,
			"A reboot is due: it tries the kernel parameters. If that boot is not "
			"confirmed, the one after it goes without them.");
	else
		document_paragraph(
			out, STYLE_WARN, 0,
			"A reboot is due: until then not all of it is in force. Then onehop check "
			"says whether it is.");
}

void report_fix_outcome(struct document *out, const struct fix_outcome *o)
{
	AUTO_STRBUF struct strbuf root = {0};

	add_root_words(&root, o->root);
	if (o->error) /* the sentence goes to stderr */
		return;
	add_result[o->result](out, o, strbuf_str(&root));
	if (o->result == FIX_DONE && o->reboot)
		add_reboot(out, o);
	if (o->result == FIX_DONE && o->undo)
		add_manual_then(out, o);
	if (o->was_signalled)
		document_paragraph(
			out, STYLE_WARN, 0,
			"It was asked to stop, and finished first, so that nothing is half "
			"done.");
}

/* ---- undo --dry-run ---- */

static const char *const look_texts[STEP_STATE_N] = {
	[STEP_IS_OLD] = "is already as before",
	[STEP_IS_NEW] = NULL, /* what is to be expected */
	[STEP_IS_OTHER] = "was changed by somebody else since, and stays as it is",
	[STEP_NOT_SEEN] = NULL,
};

void report_undo_plan(struct document *out, const struct journal_entry *e,
		      const enum step_state *look, char *const *now, bool verbose)
{
	size_t number = 0;

	document_paragraph(out, STYLE_STRONG, 0,
			   "Undoing fix %u of %s takes these steps:", e->number, e->date);
	for (size_t i = e->plan->step_n; i-- > 0;) {
		const struct step *s = &e->plan->steps[i];
		AUTO_STRBUF struct strbuf b = {0};
		char label[24];

		if (!step_undoes(s))
			continue;
		snprintf(label, sizeof(label), "%zu.", ++number);
		step_undo_words(s, &b);
		if (look[i] == STEP_IS_OTHER && step_by_parts(s))
			strbuf_puts(&b, " (was changed since: what is left of the fix goes)");
		else if (look_texts[look[i]])
			strbuf_printf(&b, " (%s)", look_texts[look[i]]);
		document_item(out, STYLE_STRONG, 0, label, "%s", strbuf_str(&b));
		add_step_undo(out, s);
		if (now[i] && verbose)
			document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "now:", "%s", now[i]);
	}
}

void report_nothing_changed(struct document *out)
{
	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0, "Nothing was changed.");
}
