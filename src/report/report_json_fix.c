/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of `onehop fix`, `undo` and `history`: docs/json-schema/{fix,undo,history}.schema.json. */
#include "report/report_fix_impl.h"
#include "report/report_json_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "change/change.h"
#include "diagnose/diagnose.h"

#include <string.h>

static const char *const event_words[FIX_EVENT_N] = {
	[FIX_STEP_START] = "started",        [FIX_STEP_DONE] = "done",
	[FIX_STEP_SKIPPED] = "skipped",      [FIX_STEP_FAILED] = "failed",
	[FIX_UNDO_START] = "undo-started",   [FIX_UNDO_DONE] = "undone",
	[FIX_UNDO_SKIPPED] = "undo-skipped", [FIX_UNDO_FAILED] = "undo-failed",
	[FIX_RECOVER] = "recovered",
};

/* "undone", "failed": what became of a step. */
static const char *fix_event_word(enum fix_event e)
{
	return event_words[e];
}

/* ---- steps ---- */

static json_t *rules_json(const struct texts *rules)
{
	json_t *a = json_array();

	for (size_t i = 0; i < rules->n; i++)
		json_array_append_new(a, json_text(rules->items[i]));
	return a;
}

/* As people read them. */
static json_t *reasons_json(const struct texts *l)
{
	AUTO_STRBUF struct strbuf b = {0};

	add_texts(&b, l, MAX_REASONS);
	return json_text(strbuf_str(&b));
}

/* Text as it is; what is not UTF-8 is cleaned. */
static json_t *content_json(const struct step *s, const struct bytes *b, unsigned value)
{
	AUTO_STRBUF struct strbuf number = {0};
	json_t *exact;

	step_value_text(s, value, &number);
	if (step_has_value(s))
		return json_text(number.text);
	if (!b->data || s->kind == STEP_GENERATED)
		return json_null();
	exact = json_stringn(b->data, b->size);
	return exact ? exact : json_text(b->data);
}

/* NULL-ended. */
static json_t *list_json(const char *const *argv)
{
	json_t *a;

	if (!argv)
		return json_null();
	a = json_array();
	for (; *argv; argv++)
		json_array_append_new(a, json_text(*argv));
	return a;
}

static json_t *step_json(const struct step *s, size_t number)
{
	json_t *o = json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "step", (json_int_t)number, "kind",
			      step_kind_word(s->kind), "target", json_text(s->target), "at",
			      json_text(s->at), "old", content_json(s, &s->old, s->value.old),
			      "new", content_json(s, &s->new, s->value.new));

	json_object_set_new(o, "mask",
			    s->kind == STEP_REGISTER ? json_integer(s->mask) : json_null());
	json_object_set_new(o, "command", list_json(s->argv));
	json_object_set_new(o, "command_if", json_text(s->argv_if));
	json_object_set_new(o, "undo_command", list_json(s->undo_argv));
	json_object_set_new(o, "dropped", list_json(s->dropped));
	json_object_set_new(o, "undo_if", json_text(s->undo_if));
	json_object_set_new(o, "what", json_text(s->what));
	json_object_set_new(o, "why", reasons_json(&s->why));
	json_object_set_new(o, "rules", rules_json(&s->rules));
	json_object_set_new(o, "cost", s->cost.n ? reasons_json(&s->cost) : json_null());
	json_object_set_new(o, "reboot", json_boolean(s->reboot));
	json_object_set_new(o, "again_at_boot", json_boolean(s->again_at_boot));
	json_object_set_new(o, "trial", json_boolean(s->trial));
	return o;
}

static json_t *steps_of_json(const struct step *steps, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, step_json(&steps[i], i));
	return a;
}

static json_t *steps_json(const struct plan *p)
{
	return steps_of_json(p->steps, p->step_n);
}

/* ---- a plan ---- */

static json_t *manual_json(const struct plan *p)
{
	json_t *a = json_array();

	for (size_t i = 0; i < p->manual_n; i++)
		json_array_append_new(a, json_pack("{s:o, s:o, s:o}", "what",
						   json_text(p->manual[i].what), "how",
						   json_text(p->manual[i].how), "rules",
						   rules_json(&p->manual[i].rules)));
	return a;
}

static json_t *left_out_json(const struct plan *p)
{
	json_t *a = json_array();

	for (size_t i = 0; i < p->left_out_n; i++)
		json_array_append_new(a, json_pack("{s:o, s:o, s:o}", "what",
						   reasons_json(&p->left_out[i].what), "why",
						   json_text(p->left_out[i].why), "rules",
						   rules_json(&p->left_out[i].rules)));
	return a;
}

static json_t *not_judged_json(const struct plan_report *r)
{
	json_t *a = json_array();

	for (const struct outcome *o = NULL; (o = report_not_judged(r, o));)
		json_array_append_new(a, json_pack("{s:s, s:o, s:b}", "rule", o->rule->id, "why",
						   json_text(o->why), "root_would_tell",
						   (int)o->root_would_tell));
	return a;
}

static json_t *opt_in_json(const struct change_set *changes)
{
	json_t *a = json_array();

	for (size_t i = 0; changes && i < changes->n; i++) {
		const struct change *c = &changes->items[i];

		if (c->opt_in)
			json_array_append_new(a, json_pack("{s:s, s:o, s:o, s:o, s:o}", "change",
							   change_kind_word(c->kind), "target",
							   json_text(c->target), "rules",
							   rules_json(&c->rules), "reason",
							   reasons_json(&c->reason), "cost",
							   c->cost.n ? reasons_json(&c->cost)
								     : json_null()));
	}
	return a;
}

static json_t *texts_json(const char *const *texts, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_text(texts[i]));
	return a;
}

static json_t *unfinished_json(const struct plan_report *r)
{
	json_t *a = json_array();

	for (size_t i = 0; i < r->journal_n; i++) {
		const struct journal_entry *e = &r->journal[i];

		if (journal_is_unfinished(e))
			json_array_append_new(a, json_integer(e->number));
	}
	return a;
}

/* ---- the outcome ---- */

static json_t *told_json(const struct fix_outcome *o)
{
	json_t *a = json_array();

	for (size_t i = 0; i < o->event_n; i++) {
		const struct step_event *t = &o->events[i];

		json_array_append_new(a,
				      json_pack("{s:o, s:I, s:o, s:s, s:o}", "fix",
						t->fix ? json_integer(t->fix) : json_null(), "step",
						(json_int_t)t->step, "what", json_text(t->what),
						"state", fix_event_word(t->event), "text",
						json_text(t->text)));
	}
	return a;
}

static json_t *outcome_json(const struct fix_outcome *o)
{
	if (!o)
		return json_null();
	return json_pack("{s:o, s:s, s:o, s:b, s:o}", "fix",
			 o->number ? json_integer(o->number) : json_null(), "outcome",
			 fix_outcome_word(o), "error",
			 o->error ? json_text(o->sentence) : json_null(), "reboot_due",
			 (int)o->reboot, "steps", told_json(o));
}

static json_t *no_trial_json(const struct plan_report *r)
{
	const struct plan *p = r->plan;
	AUTO_FREE char *unknown =
		trial_is_unknown(r) ? xprintf("unknown without root: %s", p->no_trial) : NULL;

	return json_text(unknown ? unknown : p->no_trial);
}

json_t *report_plan_json(const struct plan_report *r, const struct fix_outcome *outcome)
{
	static const struct plan no_steps;
	const struct plan *p = r->plan;
	/* As for people: nothing is planned before a trial is decided. */
	const bool waits = !outcome && report_trial_is_open(r);
	const struct plan *done = waits ? &no_steps : p;
	json_t *o = json_head("fix");

	json_object_set_new(o, "recorded", json_boolean(r->machine->recorded));
	json_object_set_new(o, "root", json_text(r->root));
	json_object_set_new(o, "unfinished", unfinished_json(r));
	json_object_set_new(o, "steps", steps_json(done));
	json_object_set_new(o, "manual", manual_json(p));
	json_object_set_new(o, "left_out", left_out_json(done));
	json_object_set_new(o, "not_judged", not_judged_json(r));
	json_object_set_new(o, "apart", opt_in_json(r->changes));
	json_object_set_new(o, "notes", texts_json(done->notes, done->note_n));
	json_object_set_new(o, "way_back", texts_json(done->way_back, done->way_back_n));
	json_object_set_new(o, "reboot", json_boolean(plan_needs_reboot(done)));
	json_object_set_new(o, "on_confirm", steps_of_json(done->on_confirm, done->on_confirm_n));
	json_object_set_new(o, "no_trial", waits ? json_null() : no_trial_json(r));
	json_object_set_new(o, "result", outcome_json(outcome));
	return o;
}

json_t *report_undo_json(const struct fix_outcome *o)
{
	json_t *all = json_head("undo"), *left = json_array();

	json_object_set_new(all, "root", json_text(o->root));
	json_object_set_new(all, "dry_run", json_boolean(o->dry_run));
	json_object_set_new(all, "plan", o->entry ? steps_json(o->entry->plan) : json_null());
	json_object_set_new(all, "result", outcome_json(o));
	for (size_t i = 0; i < o->left_file_n; i++)
		json_array_append_new(left, json_sprintf("/%s", o->left_files[i]));
	json_object_set_new(all, "left_files", left);
	return all;
}

/* ---- history ---- */

static json_t *past_steps_json(const struct history_report *r, size_t entry)
{
	const struct journal_entry *e = &r->entries[entry];
	json_t *a = json_array(), *line;

	for (size_t i = 0; i < e->plan->step_n; i++) {
		json_t *o = step_json(&e->plan->steps[i], i), *printed = json_array();
		size_t k;

		json_object_set_new(o, "state", json_string(step_mark_word(e->marks[i])));
		json_object_set_new(o, "error", json_text(e->errors[i]));
		json_array_foreach (r->logs ? r->logs[entry] : NULL, k, line) {
			json_t *text = json_object_get(line, "output");

			if (json_is_string(text) &&
			    json_integer_value(json_object_get(line, "step")) == (json_int_t)i)
				json_array_append(printed, text);
		}
		json_object_set_new(o, "printed", printed);
		json_array_append_new(a, o);
	}
	return a;
}

json_t *report_history_json(const struct history_report *r)
{
	json_t *o = json_head("history"), *fixes = json_array();

	for (size_t i = 0; i < r->n; i++) {
		const struct journal_entry *e = &r->entries[i];

		json_array_append_new(fixes,
				      json_pack("{s:I, s:o, s:s, s:o, s:o, s:b, s:b, s:o}", "fix",
						(json_int_t)e->number, "date", json_text(e->date),
						"state", fix_history_word(e), "damage",
						json_text(e->damaged), "boot_id",
						json_text(e->boot_id), "reboot",
						(int)plan_needs_reboot(e->plan), "reboot_due",
						(int)fix_reboot_due(e, r->boot_id), "steps",
						past_steps_json(r, i)));
	}
	json_object_set_new(o, "fixes", fixes);
	return o;
}
