/* SPDX-License-Identifier: Apache-2.0 */
/* log.jsonl: one line an event. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/date.h"
#include "base/err.h"
#include "fix/journal_impl.h"
#include "fix/sha256.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const mark_words[MARK_N] = {
	[MARK_NONE] = "none",
	[MARK_STARTED] = "started",
	[MARK_DONE] = "done",
	[MARK_FAILED] = "failed",
	[MARK_UNDO_STARTED] = "undo-started",
	[MARK_UNDONE] = "undone",
	[MARK_UNDO_FAILED] = "undo-failed",
};

static const char *const state_words[FIX_STATE_N] = {
	[FIX_APPLYING] = "applying", [FIX_APPLIED] = "applied", [FIX_ON_TRIAL] = "on-trial",
	[FIX_UNDOING] = "undoing",   [FIX_UNDONE] = "undone",   [FIX_FORGOTTEN] = "forgotten",
};

const char *fix_state_word(enum fix_state s)
{
	return state_words[s];
}

const char *step_mark_word(enum step_mark m)
{
	return mark_words[m];
}

/* ---- the chain ---- */

/*
 * Each line ends with a sum over itself and the sum of the line before, so that none can be lost between others, come
 * twice or be another one. Lines of before have none, and are not behind one that has.
 */
#define CHAIN_KEY ",\"chain\":\""
#define CHAIN_END "\"}"

/* Of the text of a line without its own sum and without what ends it. */
static void next_sum(const char *before, const char *text, size_t n, char ret[static JOURNAL_CHAIN])
{
	AUTO_FREE char *both = xprintf("%s %.*s", before, (int)n, text);
	char sum[SHA256_TEXT];

	sha256(both, strlen(both), sum);
	snprintf(ret, JOURNAL_CHAIN, "%.*s", JOURNAL_CHAIN - 1, sum);
}

char *journal_line(const char *before, const char *text, char ret[static JOURNAL_CHAIN])
{
	const size_t n = strlen(text) - 1; /* without "}" */

	next_sum(before, text, n, ret);
	return xprintf("%.*s" CHAIN_KEY "%s" CHAIN_END "\n", (int)n, text, ret);
}

/* What is in front of the sum at the end of a line; 0: it has none. */
static size_t in_front_of_sum(const char *text, size_t n)
{
	static const size_t key = sizeof(CHAIN_KEY) - 1, end = sizeof(CHAIN_END) - 1;
	const size_t tail = key + JOURNAL_CHAIN - 1 + end;

	if (n <= tail || memcmp(text + n - tail, CHAIN_KEY, key) != 0 ||
	    memcmp(text + n - end, CHAIN_END, end) != 0)
		return 0;
	return n - tail;
}

/* Goes on to the next line; false: this one is not what onehop wrote behind the one before. */
static bool follow_chain(const char *text, size_t n, struct journal_entry *e)
{
	const size_t own = in_front_of_sum(text, n);
	char sum[JOURNAL_CHAIN];
	bool right = !e->has_chain;

	next_sum(e->chain, text, own ? own : n, sum);
	if (own) {
		snprintf(e->chain, sizeof(e->chain), "%.*s", JOURNAL_CHAIN - 1,
			 text + own + sizeof(CHAIN_KEY) - 1);
		right = strcmp(e->chain, sum) == 0;
		e->has_chain = true;
	} else {
		memcpy(e->chain, sum, sizeof(sum));
	}
	return right;
}

/* ---- writing ---- */

#define OUTPUT_MOST ((size_t)64 << 10) /* the end of it, where programs say what went wrong */

/* What programs print need not be UTF-8. */
static void set_text(json_t *o, const char *key, const char *s)
{
	AUTO_FREE char *plain = NULL;
	size_t n = s ? strlen(s) : 0;

	if (n == 0)
		return;
	if (n > OUTPUT_MOST)
		s += n - OUTPUT_MOST;
	if (json_object_set_new(o, key, json_string(s)) == 0)
		return;
	plain = xstrdup(s);
	for (char *c = plain; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	json_object_set_new(o, key, json_string(plain));
}

/* Takes the object. */
static char *text_of(json_t *o)
{
	AUTO_FREE char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	return xstrdup(text ? text : "{}");
}

/* A program that was run may have taken some of the copies by then: what it has to leave is noted before. */
static void set_keep(json_t *o, const struct step *s)
{
	json_t *keep = json_array();

	for (size_t i = 0; i < step_word_count(s); i++)
		json_array_append_new(keep, json_integer(s->keep[i]));
	json_object_set_new(o, "keep", keep);
}

char *journal_mark_text(const struct journal_entry *e, size_t step, enum step_mark mark,
			const char *text, const char *output)
{
	const struct step *s = &e->plan->steps[step];
	char now[32];
	json_t *o;

	date_now(now);
	o = json_pack("{s:s, s:I, s:s}", "time", now, "step", (json_int_t)step, "mark",
		      mark_words[mark]);
	if (mark == MARK_UNDO_STARTED && s->keep)
		set_keep(o, s);
	set_text(o, "text", text);
	set_text(o, "output", output);
	return text_of(o);
}

char *journal_state_text(enum fix_state state, const char *boot_id)
{
	char now[32];

	date_now(now);
	return text_of(json_pack("{s:s, s:s, s:s}", "time", now, "state", state_words[state],
				 "boot_id", boot_id));
}

/* ---- reading ---- */

void journal_note_mark(struct journal_entry *e, size_t step, enum step_mark mark, const char *text)
{
	bool failed = mark == MARK_FAILED || mark == MARK_UNDO_FAILED;

	/* What failed stays known when it was taken back; what was undone after all did not fail. */
	if (failed || mark == MARK_STARTED || e->marks[step] == MARK_UNDO_FAILED)
		e->errors[step] = NULL;
	if (failed)
		e->errors[step] = arena_strdup(e->plan->arena, text ? text : "it failed");
	e->marks[step] = mark;
}

void journal_note_state(struct journal_entry *e, enum fix_state state, const char *boot_id)
{
	e->state = state;
	if (state != FIX_ON_TRIAL)
		e->trial = TRIAL_NONE;
	e->was_on_trial |= state == FIX_ON_TRIAL;
	e->was_applied |= state == FIX_APPLIED || state == FIX_ON_TRIAL;
	snprintf(e->last_boot_id, sizeof(e->last_boot_id), "%s", boot_id);
}

/* -1: none of them. */
static int word_index(const char *const *words, int n, const json_t *value)
{
	const char *s = json_string_value(value);

	for (int i = 0; s && i < n; i++)
		if (strcmp(s, words[i]) == 0)
			return i;
	return -1;
}

/* A kernel command line has no more words: the longest is 4096 bytes long. */
#define COPIES_MAX 2048

/* Lines of before had none. */
static bool take_keep(const json_t *keep, struct arena *a, struct step *s)
{
	const size_t n = json_array_size(keep);
	unsigned *copies;

	if (!keep)
		return true;
	if (s->kind != STEP_WORDS || n != step_word_count(s))
		return false;
	copies = arena_alloc(a, n, sizeof(*copies));
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(keep, i);
		const json_int_t value = json_integer_value(item);

		if (!json_is_integer(item) || value < 0 || value > COPIES_MAX)
			return false;
		copies[i] = (unsigned)value;
	}
	s->keep = copies;
	return true;
}

static bool take_mark(const json_t *line, struct journal_entry *e)
{
	const json_t *step = json_object_get(line, "step");
	const char *text = json_string_value(json_object_get(line, "text"));
	int mark = word_index(mark_words, MARK_N, json_object_get(line, "mark"));
	json_int_t i = json_integer_value(step);

	if (!json_is_integer(step) || i < 0 || (size_t)i >= e->plan->step_n || mark < 0)
		return false;
	journal_note_mark(e, (size_t)i, (enum step_mark)mark, text);
	return take_keep(json_object_get(line, "keep"), e->plan->arena, &e->plan->steps[i]);
}

static bool take_state(const json_t *line, struct journal_entry *e)
{
	int state = word_index(state_words, FIX_STATE_N, json_object_get(line, "state"));
	const char *boot_id = json_string_value(json_object_get(line, "boot_id"));

	if (state < 0 || !boot_id)
		return false;
	journal_note_state(e, (enum fix_state)state, boot_id);
	return true;
}

static bool take_line(const char *text, size_t n, struct journal_entry *e)
{
	json_t *line = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	bool ok = follow_chain(text, n, e) &&
		  (json_object_get(line, "step") ? take_mark(line, e) : take_state(line, e));

	json_decref(line);
	return ok;
}

static bool is_json(const char *text, size_t n)
{
	json_t *line = json_loadb(text, n, 0, NULL);
	bool ok = line != NULL;

	json_decref(line);
	return ok;
}

size_t journal_log_whole(const char *text, size_t size)
{
	const char *end = memrchr(text, '\n', size), *before;
	size_t whole = end ? (size_t)(end - text) + 1 : 0, start;

	if (whole < size || whole == 0)
		return whole; /* the last line has no newline */
	before = memrchr(text, '\n', whole - 1);
	start = before ? (size_t)(before - text) + 1 : 0;
	/* Some file systems lengthen a file first and leave zeros where the data should be. */
	return is_json(text + start, whole - 1 - start) ? whole : start;
}

int journal_log_parse(const char *text, size_t size, const char *where, struct journal_entry *e)
{
	size_t whole = journal_log_whole(text, size), number = 1;

	for (size_t at = 0; at < whole; number++) {
		const char *end = memchr(text + at, '\n', whole - at);
		size_t n = (size_t)(end - text) - at;

		if (!take_line(text + at, n, e))
			return err_set(EPROTO, "%s/log.jsonl: line %zu is none that onehop wrote",
				       where, number);
		at += n + 1;
	}
	return 0;
}

/* A line that is not a state's, or not onehop's, behind the last one: it is not over any more. */
static void glance_at_line(const char *text, size_t n, struct journal_entry *e)
{
	json_t *line = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	const char *time = json_string_value(json_object_get(line, "time"));
	const bool own = follow_chain(text, n, e);

	if (time && !*e->date)
		snprintf(e->date, sizeof(e->date), "%s", time);
	if (!(own && take_state(line, e)) && e->state == FIX_UNDONE)
		e->state = FIX_UNDOING;
	json_decref(line);
}

void journal_log_glance(const char *text, size_t size, struct journal_entry *e)
{
	size_t whole = journal_log_whole(text, size);

	for (size_t at = 0; at < whole;) {
		const char *end = memchr(text + at, '\n', whole - at);
		size_t n = (size_t)(end - text) - at;

		glance_at_line(text + at, n, e);
		at += n + 1;
	}
}
