/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop fix`, `undo` and `history` print: a plan, its outcome, and earlier fixes. */
#pragma once

#include "report/document.h"
#include "session/plan_session.h"

#include <jansson.h>

struct machine;
struct change_set;
struct diagnosis;
struct outcome;

/* ---- a plan ---- */

struct plan_report {
	const struct plan *plan;
	const struct change_set *changes; /* optional ones are offered; NULL: none */
	const struct machine *machine;
	const char *root; /* folder of a system image; NULL: the running system */
	const struct journal_entry *journal; /* earlier fixes: interrupted ones are shown first */
	size_t journal_n;
	const char *boot_id;        /* as in struct history_report; NULL: unknown */
	const char *journal_unread; /* why earlier fixes could not be read; NULL: they were */
	bool past_undo;             /* it is for what is there once interrupted fixes are undone */
	const char *apply_words; /* "onehop fix --apply"; NULL: it is being applied, or cannot be */
	bool is_root;            /* whoever runs this could apply it */
	bool judged;             /* false: there was nothing to judge, or not one pair could be */
	/* for the rules that could not be judged; NULL: not shown */
	const struct diagnosis *diagnosis;
	const char *const *rules; /* rules that the user named */
	size_t rule_n;            /* 0: all rules */
	bool verbose;
};

/* With what a session knows that could carry it out; NULL: none could. It counts as judged. */
struct plan_report plan_report_of(const struct plan *p, const struct machine *m,
				  const struct change_session *s);
/* The same of a run of fix, with what was judged and what is offered. */
struct plan_report plan_report_of_session(const struct plan_session *p,
					  const struct change_session *s);
void report_plan(struct document *out, const struct plan_report *r);

/* What a plan does about what a rule found. */
enum plan_answer {
	PLAN_ANSWERS_NOTHING,    /* the rule proposes no change */
	PLAN_ANSWERS_STEPS,      /* onehop makes changes */
	PLAN_ANSWERS_ON_REQUEST, /* optional: only if the rule is named */
	PLAN_ANSWERS_BY_HAND,
	PLAN_ANSWERS_LEFT_OUT, /* currently not possible; the plan says why */
	PLAN_ANSWERS_SET,      /* all are already set, and wait for a reboot or a new session */
	PLAN_ANSWER_N
};

/* `changes`: those the plan was made from, and the optional ones. */
enum plan_answer plan_answer(const struct plan *p, const struct change_set *changes,
			     const char *rule);
/*
 * Rules that could not be judged: those that were named; of all, those that root could judge and
 * that propose changes. The next one behind `o`, NULL: the first; NULL: none.
 */
const struct outcome *report_not_judged(const struct plan_report *r, const struct outcome *o);
/* Ids of those of them that only root could judge. */
void report_root_would_judge(const struct plan_report *r, struct strbuf *out);
/* "put back /etc/nccl.conf": what undoing a step does. */
void step_undo_words(const struct step *s, struct strbuf *out);

/* ---- while it is carried out ---- */

struct fix_lines {
	unsigned announced;  /* the fix whose heading was printed */
	bool announced_undo; /* and for which direction */
	bool started;        /* "1/4 ... " was printed without its end */
};

/* What a piece of news adds: a heading, "1/4 WHAT ... ", its end. `l`: of all of a run. */
void report_fix_news(struct fix_lines *l, const struct fix_news *n, struct strbuf *out);

/*
 * A trial waits for its boot, or for a decision: what the machine needs besides is unknown until
 * then.
 */
bool report_trial_is_open(const struct plan_report *r);

/* ---- the outcome ---- */

/* The lines that would be lost, file by file, and where to keep them; nothing if there are none. */
void report_dropped(struct document *out, const struct plan *p, bool undoing);
/*
 * The difference that a program made to a file, once it is known; nothing if the plan has shown it.
 */
void report_generated(struct document *out, const struct step *s, bool verbose);

/* The last lines of `fix --apply` and `undo`, after the progress lines. */
void report_fix_outcome(struct document *out, const struct fix_outcome *o);
const char *fix_outcome_word(const struct fix_outcome *o); /* "done", "taken-back", ... */

/* The last line of undo --forget. */
void report_forgotten(struct document *out, const struct fix_outcome *o);

/* ---- before an undo ---- */

/* `o`: as of change_session_rehearse_undo. */
void report_undo_plan(struct document *out, const struct fix_outcome *o, bool verbose);

/* ---- history ---- */

struct history_report {
	const struct journal_entry *entries;
	size_t n;
	const char *root;    /* as in struct plan_report */
	const char *boot_id; /* of the running system; "": unknown, or the journal of an image */
	json_t *const *logs; /* one an entry: the lines of its log; NULL: none */
	bool verbose;
};

void report_history(struct document *out, const struct history_report *r);
/* One fix, whole. */
void report_history_entry(struct document *out, const struct history_report *r, size_t i);
/* --format csv: a row for each. */
void report_history_csv(struct strbuf *out, const struct history_report *r);
/*
 * The state in JSON: "applied", ...; "failed-undone": it was never applied completely; "damaged".
 */
const char *fix_history_word(const struct journal_entry *e);
/* Applied or undone in this boot, and takes effect after a reboot. */
bool fix_reboot_due(const struct journal_entry *e, const char *boot_id);

/* ---- JSON; new references ---- */

json_t *report_plan_json(const struct plan_report *r, const struct fix_outcome *outcome);
json_t *report_undo_json(const struct fix_outcome *o);
json_t *report_history_json(const struct history_report *r);
