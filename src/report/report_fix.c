/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop fix` prints: the plan before anything is done, and the outcome. */
#include "report/report_fix_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "change/change.h"
#include "diagnose/diagnose.h"
#include "report/report_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Devices named of one offer before "and N more". */
#define MAX_TARGETS 4

/* ---- what there is to do ---- */

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

static void add_nothing_changed(struct document *out)
{
	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0, "Nothing was changed.");
}

/* What a fix that cannot be read did is unknown, but for these. */
static void add_left_files(struct document *out, const struct fix_outcome *o)
{
	if (!o->left_file_n)
		return;
	document_blank(out);
	document_paragraph(
		out, STYLE_WARN, 0,
		"These files of onehop are there, and no other fix has them. If you do not want what they do, remove them, and regenerate what is made from them (grub.cfg, the initramfs):");
	for (size_t i = 0; i < o->left_file_n; i++)
		document_item(out, STYLE_PLAIN, 2, "-", "%s/%s", o->root ? o->root : "",
			      o->left_files[i]);
}

void report_forgotten(struct document *out, const struct fix_outcome *o)
{
	const struct journal_entry *e = o->entry;
	AUTO_STRBUF struct strbuf shown = {0};

	if (o->dry_run) {
		add_left_files(out, o);
		add_nothing_changed(out);
		return;
	}
	if (!e->damage)
		strbuf_printf(&shown, "; onehop history %u still shows what it did", e->number);
	document_paragraph(
		out, STYLE_PLAIN, 0,
		"Fix %u is closed, and nothing else was changed. onehop undo skips it%s.",
		e->number, strbuf_str(&shown));
	add_left_files(out, o);
}

/* ---- what comes first ---- */

/* An undo ran to its end, but some steps failed: it was not interrupted. */
static bool is_stuck(const struct journal_entry *e)
{
	for (size_t i = 0; e->state == FIX_UNDOING && i < e->plan->step_n; i++)
		if (e->marks[i] == MARK_UNDO_FAILED)
			return true;
	return false;
}

static void add_unfinished_fix(struct document *out, const struct journal_entry *e,
			       const char *root, bool past_undo)
{
	const char *then =
		past_undo ? "what follows is the plan for the system as it is then"
			  : "then it plans again; what follows is for the system as it is now";

	if (e->trial == TRIAL_OVER)
		document_paragraph(
			out, STYLE_WARN, 0,
			"The trial boot of fix %u of %s was not confirmed: the machine starts without its kernel parameters. To undo the rest of that fix: onehop undo %u. onehop fix --apply does this first: %s.",
			e->number, e->date, e->number, then);
	else if (is_stuck(e))
		document_paragraph(
			out, STYLE_BAD, 0,
			"Some steps of fix %u of %s could not be undone. To see why: onehop history %u%s. To try again: onehop undo %u%s",
			e->number, e->date, e->number, root, e->number, root);
	else
		document_paragraph(
			out, STYLE_BAD, 0,
			"Fix %u of %s is not finished (%s). Unless another onehop is running, it was interrupted. To undo it: onehop undo %u%s. onehop fix --apply does this first: %s.",
			e->number, e->date, fix_state_word(e->state), e->number, root, then);
	document_blank(out);
}

static void add_trial_fix(struct document *out, const struct journal_entry *e)
{
	if (e->trial == TRIAL_RUNS)
		document_paragraph(
			out, STYLE_WARN, 0,
			"This boot tries the kernel parameters of fix %u. To keep them: onehop fix --confirm. Without confirmation the next boot drops them; to cancel now: onehop undo %u. Until it is decided, nothing else is planned.",
			e->number, e->number);
	else if (e->displaced)
		document_paragraph(
			out, STYLE_WARN, 0,
			"Fix %u is on trial, but the boot loader is no longer set to start its entry at the next boot: somebody has changed that since. To set it again: onehop undo %u, then onehop fix --apply. Until it is decided, nothing else is planned.",
			e->number, e->number);
	else
		document_paragraph(
			out, STYLE_WARN, 0,
			"The next boot tries the kernel parameters of fix %u. Reboot to try them. To cancel: onehop undo %u. Until it is decided, nothing else is planned.",
			e->number, e->number);
	document_blank(out);
}

/* What is read now has its changes, the next boot has not. */
static void add_undone_fix(struct document *out, const struct journal_entry *e)
{
	document_paragraph(
		out, STYLE_WARN, 0,
		"Fix %u is undone, but some of its changes stay in effect until the next reboot. The following is about this boot only: reboot, then run onehop fix again.",
		e->number);
	document_blank(out);
}

/* The plan may depend on what the damaged fix did. */
static void add_damaged_fix(struct document *out, const struct journal_entry *e)
{
	document_paragraph(
		out, STYLE_BAD, 0,
		"The journal of fix %u is damaged: %s. Until it is repaired, nothing is applied.",
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
			add_unfinished_fix(out, e, strbuf_str(&root), r->past_undo);
		else if (e->trial != TRIAL_NONE)
			add_trial_fix(out, e);
		else if (e->damage && !journal_is_over(e))
			add_damaged_fix(out, e);
		else if (e->state == FIX_UNDONE && r->boot_id && fix_reboot_due(e, r->boot_id))
			add_undone_fix(out, e);
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

/* Then the plan is printed as the first part of what is done. */
static bool is_being_applied(const struct plan_report *r)
{
	return plan_doing_steps(r->plan) && !r->machine->recorded && !r->apply_words;
}

/* Whether rules propose something that is already set. */
static bool is_already_set(const struct plan_report *r)
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
				   "Nothing is changed: see the reasons below.");
	else if (r->rule_n && not_judged)
		document_paragraph(
			out, STYLE_WARN, 0,
			"Nothing is planned: some of the named rules could not be judged.");
	else if (is_already_set(r))
		document_paragraph(
			out, STYLE_GOOD, 0,
			"Everything is already set. Some of it may need a reboot or a new login to take effect (see: onehop history).");
	else if (r->judged)
		document_paragraph(out, not_judged ? STYLE_WARN : STYLE_GOOD, 0,
				   not_judged ? "Nothing to fix in what could be judged."
					      : "There is nothing to fix.");
	else if (!r->machine->gpu_n && fact_known(r->machine->pci_listed))
		document_paragraph(out, STYLE_WARN, 0,
				   "No NVIDIA GPU found: there is nothing to fix.");
	else if (r->machine->gpu_n)
		document_paragraph(
			out, STYLE_WARN, 0,
			"Nothing to fix was found, but it is unknown whether any pair is direct. onehop check lists what could not be read.");
	else
		document_paragraph(
			out, STYLE_WARN, 0,
			"Nothing is planned, because nothing could be judged. onehop check lists what could not be read.");
}

static void add_head(struct document *out, const struct plan_report *r)
{
	size_t steps = plan_doing_steps(r->plan), manual = r->plan->manual_n;
	AUTO_STRBUF struct strbuf b = {0};

	add_recorded(out, r->machine);
	if (r->root)
		document_paragraph(
			out, STYLE_PLAIN, 0,
			"System image %s: --apply writes its files and runs none of its programs. Hardware: %s.",
			r->root, r->machine->recorded ? "the recorded machine" : "this host");
	if (!plan_has_work(r->plan)) {
		add_nothing_to_do(out, r);
		return;
	}
	if (steps)
		add_count(&b, steps, "change", "changes");
	/* What a person does may need a reboot of its own, and says so. */
	if (steps && !plan_has_trial(r->plan))
		strbuf_printf(&b, manual ? " (%s)" : ", %s",
			      plan_needs_reboot(r->plan) ? "reboot needed" : "no reboot needed");
	if (manual) {
		strbuf_puts(&b, steps ? " and " : "");
		add_count(&b, manual, "thing to do yourself", "things to do yourself");
	}
	if (plan_has_trial(r->plan))
		strbuf_puts(&b, "; the next boot tries the kernel parameters");
	document_paragraph(out, STYLE_STRONG, 0, "Plan: %s.%s", strbuf_str(&b),
			   is_being_applied(r) ? "" : " Nothing has been changed yet.");
}

/* ---- steps ---- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The same change to another device. */
static bool is_likewise(const struct step *s, const struct step *other)
{
	return step_has_value(s) && s->kind == other->kind && s->mask == other->mask &&
	       s->again_at_boot == other->again_at_boot && same_text(s->at, other->at) &&
	       s->value.old == other->value.old &&
	       s->value.new == other->value.new &&texts_same(&s->rules, &other->rules) &&
	       texts_same(&s->why, &other->why) && texts_same(&s->cost, &other->cost);
}

/* An earlier step differs only in the device. */
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
		strbuf_printf(b, "; and %zu more like %s", l->n - max,
			      l->n - max == 1 ? "this" : "these");
}

/* The reasons or the costs of a step. */
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

/* Texts that no earlier step showed; all of them, or the first few. */
static void add_parts(struct strbuf *b, const struct plan *p, size_t i, texts_of_step *of, bool all)
{
	struct texts left = *of(&p->steps[i]);
	AUTO_FREE const char **items = xcalloc(left.n + 1, sizeof(*items));
	size_t n = 0;

	for (size_t k = 0; k < left.n; k++)
		if (!is_reported(p, i, of, left.items[k]))
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

static void add_reasons(struct document *out, enum style style, const char *label,
			const struct plan_report *r, size_t i, texts_of_step *of)
{
	AUTO_STRBUF struct strbuf b = {0};

	add_parts(&b, r->plan, i, of, r->verbose);
	if (b.len)
		document_item(out, style, FIX_TEXT_COLUMN, label, "%s", b.text);
}

void add_step_title(struct document *out, size_t number, const char *title)
{
	char label[24];

	snprintf(label, sizeof(label), "%zu.", number);
	document_styled_item(out, STYLE_STRONG, STYLE_STRONG, 0, label, "%c%s",
			     toupper((unsigned char)*title), *title ? title + 1 : "");
}

/* The program that makes it runs as root. */
static void add_unseen(struct document *out, const struct plan_report *r, const struct step *s)
{
	if (s->kind == STEP_GENERATED && s->argv && !r->is_root && !r->machine->recorded)
		document_paragraph(
			out, STYLE_DIM, FIX_TEXT_COLUMN,
			"What will change in /%s, and which lines it loses, is shown to root: sudo onehop fix",
			s->target);
}

/* A program's undo is a command, which is shown with the step itself. */
static void add_undo(struct document *out, const struct step *s)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (s->kind == STEP_TOOL || s->kind == STEP_WORDS)
		return;
	step_undo_words(s, &b);
	document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "Undo:", "%s", b.text);
}

/* What differs from an earlier step only in the device is one line, without --verbose. */
static void add_step(struct document *out, const struct plan_report *r, size_t i, size_t number)
{
	const struct step *s = &r->plan->steps[i];
	bool likewise = !r->verbose && is_reported_by_another(r->plan, i);
	AUTO_STRBUF struct strbuf title = {0};

	strbuf_puts(&title, s->what);
	if (likewise)
		strbuf_puts(&title, " (likewise)");
	else
		add_rules(&title, &s->rules);
	if (!likewise)
		document_blank(out);
	add_step_title(out, number, strbuf_str(&title));
	if (likewise)
		return;
	add_step_change(out, s, r->verbose);
	add_unseen(out, r, s);
	add_reasons(out, STYLE_DIM, "Why: ", r, i, why_of);
	add_reasons(out, STYLE_WARN, "Cost:", r, i, cost_of);
	if (step_in_force(s))
		document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "When:", "%s", step_in_force(s));
	if (r->verbose)
		add_undo(out, s);
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

/* The way back comes before the first step that needs a reboot. */
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

/* ---- after a trial boot ---- */

bool trial_is_unknown(const struct plan_report *r)
{
	return r->plan->no_trial && r->plan->trial_unseen && !r->is_root && !r->machine->recorded;
}

static void add_no_trial(struct document *out, const struct plan_report *r)
{
	if (!r->plan->no_trial)
		return;
	document_blank(out);
	if (trial_is_unknown(r))
		document_item(
			out, STYLE_WARN, 0, "note:",
			"whether a trial boot is possible is unknown without root (%s). sudo onehop fix shows it",
			r->plan->no_trial);
	else
		document_item(
			out, STYLE_WARN, 0, "note:",
			"no trial boot: %s. The kernel parameters are permanent from the next boot on",
			r->plan->no_trial);
}

/* By whom the trial is confirmed. */
static void add_confirmation(struct document *out, const struct plan *p)
{
	if (p->unconfirmed)
		document_paragraph(
			out, STYLE_STRONG, 0,
			"The next boot tries the kernel parameters. To keep them, run onehop fix --confirm during that boot: no systemd unit can do it (%s). onehop will then:",
			p->unconfirmed);
	else
		document_paragraph(
			out, STYLE_STRONG, 0,
			"The next boot tries the kernel parameters. When it is confirmed, automatically if it is healthy or by onehop fix --confirm, onehop will:");
}

static void add_trial(struct document *out, const struct plan_report *r)
{
	const struct plan *p = r->plan;
	size_t number = 0;

	add_no_trial(out, r);
	if (!p->on_confirm_n)
		return;
	document_blank(out);
	add_confirmation(out, p);
	for (size_t i = 0; i < p->on_confirm_n; i++)
		if (step_does(&p->on_confirm[i])) {
			char label[24];

			snprintf(label, sizeof(label), "%zu.", ++number);
			document_item(out, STYLE_PLAIN, 2, label, "%s", p->on_confirm[i].what);
			add_step_made(out, &p->on_confirm[i], r->verbose);
			add_unseen(out, r, &p->on_confirm[i]);
		}
	document_paragraph(
		out, STYLE_PLAIN, 0,
		"Without confirmation the boot after it uses the old parameters. All other changes are made now and last until onehop undo.");
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
		document_item(out, STYLE_STRONG, 5, "Do:", "%s", m->how);
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
		document_item(out, STYLE_WARN, 5, "Why:", "%s", l->why);
	}
}

/* Optional changes of one rule for the same reason. */
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
			strbuf_puts(&b, "; cost: ");
		add_texts(&b, &c->cost, MAX_REASONS);
		document_item(out, STYLE_PLAIN, 2, "-", "onehop fix %s", strbuf_str(&b));
	}
}

static void add_lost(struct document *out, const struct plan *p, bool undoing)
{
	if (!plan_drops_lines(p))
		return;
	document_blank(out);
	report_dropped(out, p, undoing);
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

void report_root_would_judge(const struct plan_report *r, struct strbuf *out)
{
	for (const struct outcome *o = NULL; (o = report_not_judged(r, o));)
		if (o->root_would_tell)
			strbuf_printf(out, "%s%s", out->len ? ", " : "", o->rule->id);
}

/* One line for all rules; a reason for each rule that was named. */
static void add_not_judged(struct document *out, const struct plan_report *r)
{
	const struct outcome *o = report_not_judged(r, NULL);
	AUTO_STRBUF struct strbuf ids = {0};

	if (o && !r->plan->note_n)
		document_blank(out);
	if (!r->rule_n)
		report_root_would_judge(r, &ids);
	for (; r->rule_n && o; o = report_not_judged(r, o))
		document_item(out, STYLE_WARN, 0, "note:", "%s could not be judged: %s",
			      o->rule->id, o->why ? o->why : "onehop check says why");
	if (ids.len)
		document_item(out, STYLE_WARN, 0, "note:", "not judged without root: %s", ids.text);
}

/* ---- what to do next ---- */

static void add_end(struct document *out, const struct plan_report *r)
{
	const char *sudo = r->is_root ? "" : "sudo ";
	AUTO_STRBUF struct strbuf root = {0};

	if (is_being_applied(r) || !plan_has_work(r->plan))
		return;
	document_blank(out);
	add_root_words(&root, r->root);
	if (!plan_doing_steps(r->plan)) {
		document_paragraph(out, STYLE_STRONG, 0,
				   "The above is for you to do: %s changes nothing here.",
				   r->apply_words ? r->apply_words : "--apply");
	} else if (r->machine->recorded) {
		document_paragraph(out, STYLE_STRONG, 0,
				   "To apply a plan, run onehop fix on the machine itself.");
	} else {
		document_item(out, STYLE_STRONG, 0, "Apply:", "%s%s", sudo, r->apply_words);
		document_item(out, STYLE_STRONG, 0,
			      "Undo: ", "%sonehop undo%s (also works from a rescue shell)", sudo,
			      strbuf_str(&root));
	}
}

struct plan_report plan_report_of(const struct plan *p, const struct machine *m,
				  const struct change_session *s)
{
	struct plan_report r = {.plan = p, .machine = m, .judged = true};

	if (!s)
		return r;
	r.root = s->root;
	r.journal = s->journal;
	r.journal_n = s->journal_n;
	r.boot_id = s->boot_id;
	r.journal_unread = s->journal_unread;
	r.is_root = change_session_may_write(s);
	return r;
}

struct plan_report plan_report_of_session(const struct plan_session *p,
					  const struct change_session *s)
{
	struct plan_report r = plan_report_of(p->planned.plan, p->machine, s);

	r.changes = &p->planned.changes;
	r.judged = diagnosis_judged_any(p->diagnosis);
	r.diagnosis = p->diagnosis;
	r.past_undo = p->undone;
	r.rules = p->o->rules;
	r.rule_n = p->o->rule_n;
	return r;
}

bool report_trial_is_open(const struct plan_report *r)
{
	for (size_t i = 0; i < r->journal_n; i++)
		if (!r->journal[i].damage &&
		    (r->journal[i].trial == TRIAL_WAITS || r->journal[i].trial == TRIAL_RUNS))
			return true;
	return false;
}

void report_plan(struct document *out, const struct plan_report *r)
{
	add_unfinished(out, r);
	if (report_trial_is_open(r))
		return;
	add_head(out, r);
	add_steps(out, r);
	add_trial(out, r);
	add_lost(out, r->plan, false);
	add_manual(out, r->plan);
	add_left_out(out, r->plan);
	add_opt_in(out, r->changes);
	add_notes(out, r->plan);
	add_not_judged(out, r);
	add_end(out, r);
}

/* ---- the outcome ---- */

static const char *const result_words[] = {[FIX_DONE] = "done",
					   [FIX_NOTHING] = "nothing",
					   [FIX_DRIFT] = "drift",
					   [FIX_ROLLED_BACK] = "taken-back",
					   [FIX_NOT_ROLLED_BACK] = "stuck"};

const char *fix_outcome_word(const struct fix_outcome *o)
{
	return o->error ? "refused" : o->dry_run ? "dry-run" : result_words[o->result];
}

/* All changes are lost at the next reboot. */
static bool passes_with_reboot(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *s = &p->steps[i];

		if (step_does(s) && !s->passing && (!step_is_volatile(s) || s->again_at_boot))
			return false;
	}
	return !p->wanted_n;
}

static bool shares_rule(const struct texts *a, const struct texts *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (texts_have(b, a->items[i]))
			return true;
	return false;
}

/*
 * Another part of what one of the steps is for; the plan also listed what has nothing to do with
 * them.
 */
static bool is_of_steps(const struct plan *p, const struct plan_manual *m)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (step_does(&p->steps[i]) && shares_rule(&m->rules, &p->steps[i].rules))
			return true;
	return !m->rules.n;
}

static void add_manual_then(struct document *out, const struct fix_outcome *o)
{
	const struct plan *p = o->entry ? o->entry->plan : NULL;
	bool begun = false;

	for (size_t i = 0; p && i < p->manual_n; i++) {
		const struct plan_manual *m = &p->manual[i];

		if (!is_of_steps(p, m))
			continue;
		if (!begun)
			document_paragraph(
				out, STYLE_WARN, 0,
				"The fix asked you to do this. If you did, undo it yourself:");
		begun = true;
		document_item(out, STYLE_PLAIN, 2, "-", "%s: %s", m->what, m->how);
	}
}

static void add_until_reboot(struct document *out, const struct fix_outcome *o, const char *root)
{
	if (o->only_now)
		document_paragraph(
			out, STYLE_WARN, 0,
			"This lasts until the next reboot. To keep it: onehop undo %u%s, then fix again without --now.",
			o->number, root);
	else if (o->entry->plan->manual_n)
		document_paragraph(
			out, STYLE_WARN, 0,
			"This lasts until the next reboot. To keep it, do what \"Do these yourself\" lists above.");
	else
		document_paragraph(out, STYLE_WARN, 0, "This lasts until the next reboot.");
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
			"Fix %u is confirmed: its kernel parameters are permanent. To undo it: onehop undo %u",
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
			   o->undo ? "Nothing to undo: everything already has its old value."
				   : "Nothing was changed: everything was already set.");
}

static void add_drift(struct document *out, const struct fix_outcome *o, const char *root)
{
	(void)root;
	document_paragraph(
		out, STYLE_BAD, 0,
		"Nothing was changed: the system changed after the plan was made (see above). To plan again: onehop fix%s",
		o->confirmed ? " --confirm" : "");
}

/* A trial does not outlive the confirmation that failed. */
static void add_taken_back(struct document *out, const struct fix_outcome *o, const char *root)
{
	(void)root;
	if (o->confirmed)
		document_paragraph(
			out, STYLE_BAD, 0,
			"Fix %u is not confirmed: a step failed, and the whole fix was undone. Its trial is over: the next boot is without its kernel parameters. To try them again, fix the cause above, reboot, then: onehop fix --apply",
			o->number);
	else
		document_paragraph(
			out, STYLE_BAD, 0,
			"A step failed. The steps before it were undone: nothing remains changed.");
}

static void add_stuck(struct document *out, const struct fix_outcome *o, const char *root)
{
	if (o->confirmed)
		document_paragraph(out, STYLE_BAD, 0,
				   "Fix %u is not confirmed: a step failed, and its trial is over.",
				   o->number);
	document_paragraph(
		out, STYLE_BAD, 0,
		"Fix %u could not be undone completely. Fix the causes of the failures above, then: onehop undo %u%s%s. The old contents are in %s/%s/fixes/%u/old-*.",
		o->number, o->number, root,
		o->root ? " (or without --root in that system, if a program has to run there)" : "",
		o->root ? o->root : "", JOURNAL_FOLDER, o->number);
}

static void (*const add_result[])(struct document *out, const struct fix_outcome *o,
				  const char *root) = {[FIX_DONE] = add_done,
						       [FIX_NOTHING] = add_nothing,
						       [FIX_DRIFT] = add_drift,
						       [FIX_ROLLED_BACK] = add_taken_back,
						       [FIX_NOT_ROLLED_BACK] = add_stuck};

/* The unit that confirms a trial is a file that is there for the trial. */
static bool has_unit(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].trial && p->steps[i].kind == STEP_FILE)
			return true;
	return false;
}

static void add_reboot(struct document *out, const struct fix_outcome *o)
{
	if (o->undo)
		document_paragraph(
			out, STYLE_WARN, 0,
			"Reboot to complete the undo: some changes stay in effect until then.");
	else if (o->entry && o->entry->state == FIX_ON_TRIAL)
		document_paragraph(
			out, STYLE_WARN, 0,
			"Reboot to try the kernel parameters. To keep them: onehop fix --confirm in that boot%s. Otherwise the boot after it drops them.",
			has_unit(o->entry->plan)
				? ", which onehop-trial.service does by itself if the boot is healthy"
				: "");
	else
		document_paragraph(out, STYLE_WARN, 0,
				   "Reboot for all changes to take effect, then run: onehop check");
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
			"A signal to stop came. The change was finished first, so that nothing is half done.");
}

/* ---- undo --dry-run ---- */

static const char *const look_texts[STEP_STATE_N] = {
	[STEP_IS_OLD] = "already restored",
	[STEP_IS_NEW] = NULL, /* as expected */
	[STEP_IS_OTHER] = "was changed by something else since then: left alone",
	[STEP_NOT_SEEN] = NULL,
};

/* " [acs-redirect, iommu]": those of all steps, each once. */
static void add_plan_rules(struct strbuf *b, const struct plan *p)
{
	struct texts all = {0};

	for (size_t i = 0; i < p->step_n; i++)
		for (size_t k = 0; k < p->steps[i].rules.n; k++)
			texts_add(p->arena, &all, p->steps[i].rules.items[k]);
	add_rules(b, &all);
}

/* NULL: nothing. */
static const char *why_stuck(const struct fix_outcome *o, size_t step)
{
	for (size_t i = 0; i < o->event_n; i++)
		if (o->events[i].step == step && o->events[i].event == FIX_UNDO_FAILED)
			return o->events[i].text;
	return NULL;
}

static void add_stuck_steps(struct document *out, const struct fix_outcome *o)
{
	if (o->result != FIX_NOT_ROLLED_BACK)
		return;
	document_blank(out);
	document_paragraph(
		out, STYLE_BAD, 0,
		"This undo will not be complete: what is marked as failing above stays. Fix the causes first, or undo the rest now.");
}

void report_undo_plan(struct document *out, const struct fix_outcome *o, bool verbose)
{
	const struct journal_entry *e = o->entry;
	AUTO_STRBUF struct strbuf rules = {0};
	size_t number = 0;

	add_plan_rules(&rules, e->plan);
	document_paragraph(out, STYLE_STRONG, 0, "Fix %u of %s%s will be undone:", e->number,
			   e->date, strbuf_str(&rules));
	document_blank(out);
	for (size_t i = e->plan->step_n; i-- > 0;) {
		const struct step *s = &e->plan->steps[i];
		AUTO_STRBUF struct strbuf b = {0};

		/* Confirming a trial has ended what was for it alone. */
		if (!step_undoes(s) || (s->trial && e->marks[i] == MARK_UNDONE))
			continue;
		step_undo_words(s, &b);
		if (o->look[i] == STEP_IS_OTHER && s->kind == STEP_GENERATED)
			strbuf_puts(
				&b,
				" (was changed since then: it is regenerated, without lines that its program does not make; a copy is kept)");
		else if (o->look[i] == STEP_IS_OTHER && step_by_parts(s))
			strbuf_puts(
				&b,
				" (was changed since then: only the lines of the fix are removed)");
		else if (look_texts[o->look[i]])
			strbuf_printf(&b, " (%s)", look_texts[o->look[i]]);
		add_step_title(out, ++number, strbuf_str(&b));
		add_step_undo(out, s);
		if (why_stuck(o, i))
			document_item(out, STYLE_BAD, FIX_TEXT_COLUMN, "Fails:", "%s",
				      why_stuck(o, i));
		if (o->now[i] && verbose)
			document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "Now: ", "%s", o->now[i]);
	}
	add_stuck_steps(out, o);
	add_lost(out, e->plan, true);
	if (o->dry_run)
		add_nothing_changed(out);
}
