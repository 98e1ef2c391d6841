/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the journal: what ran, what was found, and what the machine did not survive. */
#include "session/journal.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/state.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "bench/pattern.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No journal, whoever wrote it, is read without end. */
#define LINE_MAX_BYTES 4096
#define LINES_MAX      100000
#define SUSPECTS_MAX   ((size_t)4 * DEVICE_MAX)

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* ---- names of steps ---- */

static void put_name(const char *initiator, const char *target, enum test_phase phase,
		     struct strbuf *ret)
{
	if (!*initiator)
		strbuf_puts(ret, "all devices");
	else if (strcmp(initiator, target) == 0)
		strbuf_puts(ret, initiator);
	else
		strbuf_printf(ret, "%s -> %s", initiator, target);
	strbuf_printf(ret, " (%s)", test_phase_word(phase));
}

void test_step_name(const struct test_step *s, const char *const *names, struct strbuf *ret)
{
	bool all = s->initiator < 0;

	put_name(all ? "" : names[s->initiator], all ? "" : names[s->target], s->phase, ret);
}

static void mark_name(const struct test_mark *m, struct strbuf *ret)
{
	put_name(m->initiator, m->target, m->phase, ret);
}

void test_past_running(const struct test_past *p, struct strbuf *ret)
{
	for (size_t k = 0; k < p->running_n; k++) {
		strbuf_puts(ret, k ? ", " : "");
		mark_name(&p->running[k], ret);
	}
}

/* ---- a run's first line ---- */

struct replay {
	const struct test_identity *identity;
	struct test_past *past;
	bool started;               /* a first line was there */
	bool includes;              /* the run that the lines are of includes suspects */
	unsigned torn_line;         /* could not be read: excused if the run ended with it */
	char boot_id[BOOT_ID_SIZE]; /* of the run that the lines are of */
};

/* -1: no such device. */
static int device_index(const struct test_identity *i, const char *name)
{
	for (size_t k = 0; k < i->n; k++)
		if (strcmp(i->names[k], name) == 0)
			return (int)k;
	return -1;
}

static bool same_devices(const struct test_identity *i, const json_t *names)
{
	if (json_array_size(names) != i->n)
		return false;
	for (size_t k = 0; k < i->n; k++) {
		const char *name = json_string_value(json_array_get(names, k));

		if (!name || strcmp(name, i->names[k]) != 0)
			return false;
	}
	return true;
}

static int refuse_devices(const json_t *names)
{
	AUTO_STRBUF struct strbuf list = {0};
	const json_t *name;
	size_t k;

	json_array_foreach (names, k, name)
		strbuf_printf(&list, "%s%s", k ? ", " : "",
			      json_is_string(name) ? json_string_value(name) : "?");
	return err_set(EINVAL,
		       "the last run tested other devices: %s. Choose them with --device and "
		       "--gpus, or start again without --resume",
		       strbuf_str(&list));
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, " ");

	return n == strcspn(b, " ") && strncmp(a, b, n) == 0;
}

/* NULL: the run had no such option. */
static const char *option_then(const json_t *options, const char *like)
{
	const json_t *option;
	size_t k;

	json_array_foreach (options, k, option) {
		const char *text = json_string_value(option);

		if (text && same_name(text, like))
			return text;
	}
	return NULL;
}

static bool is_option_now(const struct test_identity *i, const char *like)
{
	for (size_t k = 0; k < i->option_n; k++)
		if (same_name(i->options[k], like))
			return true;
	return false;
}

/* What differs, "": nothing. */
static void compare_options(const struct test_identity *i, const json_t *options,
			    struct strbuf *ret)
{
	const json_t *option;
	size_t k;

	for (k = 0; k < i->option_n; k++) {
		const char *now = i->options[k], *then = option_then(options, now);

		if (!then)
			strbuf_printf(ret, "%s%s is new", ret->len ? "; " : "", now);
		else if (strcmp(then, now) != 0)
			strbuf_printf(ret, "%s%s instead of %s", ret->len ? "; " : "", now, then);
	}
	json_array_foreach (options, k, option) {
		const char *then = json_string_value(option);

		if (then && !is_option_now(i, then))
			strbuf_printf(ret, "%s%s is missing", ret->len ? "; " : "", then);
	}
}

static int check_start(const struct test_identity *i, const json_t *line)
{
	AUTO_STRBUF struct strbuf differences = {0};

	if (json_integer_value(json_object_get(line, "version")) != TEST_JOURNAL_VERSION)
		return err_set(EINVAL, "another version of onehop wrote the journal of the last "
				       "run; start again without --resume");
	if (!same_devices(i, json_object_get(line, "devices")))
		return refuse_devices(json_object_get(line, "devices"));
	compare_options(i, json_object_get(line, "options"), &differences);
	if (differences.len)
		return err_set(EINVAL,
			       "the last run had other options: %s. Give the same options, or "
			       "start again without --resume",
			       strbuf_str(&differences));
	if (strcmp(text_of(line, "driver_version"), i->driver) != 0)
		return err_set(EINVAL,
			       "the last run used driver %s, this one uses %s; start again "
			       "without --resume",
			       text_of(line, "driver_version"), i->driver);
	return 0;
}

static int take_start(struct replay *x, const json_t *line)
{
	const char *date = text_of(line, "date"), *boot = text_of(line, "boot_id");
	int r = check_start(x->identity, line);

	if (r < 0)
		return r;
	text_copy(x->boot_id, sizeof(x->boot_id), boot, strlen(boot));
	text_copy(x->past->date, sizeof(x->past->date), date, strlen(date));
	x->past->running_n = 0;
	x->includes = json_is_true(json_object_get(line, "include_suspects"));
	x->started = true;
	return 0;
}

/* ---- marks ---- */

static void set_text(char *buf, size_t size, const char *text)
{
	text_copy(buf, size, text, strlen(text));
}

/* False: it is not a step. */
static bool take_mark(const json_t *line, const char *date, struct test_mark *ret)
{
	struct test_mark m = {.phase = 0};

	while (m.phase < TEST_PHASE_N &&
	       strcmp(test_phase_word(m.phase), text_of(line, "phase")) != 0)
		m.phase++;
	if (m.phase == TEST_PHASE_N)
		return false;
	set_text(m.initiator, sizeof(m.initiator), text_of(line, "initiator"));
	set_text(m.target, sizeof(m.target), text_of(line, "target"));
	set_text(m.date, sizeof(m.date), date);
	*ret = m;
	return m.phase == TEST_ALL_REDUCE ? !*m.initiator && !*m.target : *m.initiator && *m.target;
}

static bool same_mark(const struct test_mark *a, const struct test_mark *b)
{
	return a->phase == b->phase && strcmp(a->initiator, b->initiator) == 0 &&
	       strcmp(a->target, b->target) == 0;
}

static void drop_mark(struct test_mark *marks, size_t *n, const struct test_mark *m)
{
	for (size_t k = 0; k < *n; k++)
		if (same_mark(&marks[k], m))
			marks[k--] = marks[--*n];
}

/* False: there are too many. */
static bool add_suspect(struct test_past *past, const struct test_mark *m)
{
	drop_mark(past->suspects, &past->suspect_n, m);
	if (past->suspect_n == SUSPECTS_MAX)
		return false;
	past->suspects = xrealloc(past->suspects, past->suspect_n + 1, sizeof(*m));
	past->suspects[past->suspect_n++] = *m;
	return true;
}

static bool is_of_pair(enum test_phase phase)
{
	return phase != TEST_LOCAL && phase != TEST_ALL_REDUCE;
}

/* NULL: another device. */
static struct pair_result *known_pair(const struct test_identity *i, struct pair_result *known,
				      const char *initiator, const char *target)
{
	int a = device_index(i, initiator), b = device_index(i, target);

	return a < 0 || b < 0 ? NULL : &known[(size_t)a * i->n + (size_t)b];
}

/* ---- lines ---- */

static void take_patterns(struct pair_result *p, const json_t *line)
{
	const char *failed = text_of(line, "pattern");
	const json_t *name;
	size_t i;

	json_array_foreach (json_object_get(line, "patterns"), i, name) {
		const char *word = json_string_value(name);
		enum pattern k = word ? pattern_parse(word) : PATTERN_N;

		if (k < PATTERN_N)
			p->patterns[k].done = true;
	}
	if (pattern_parse(failed) < PATTERN_N)
		p->pattern = pattern_parse(failed);
}

/* What was not tested is tested again. */
static void take_result(struct pair_result *p, const json_t *line)
{
	const char *state = text_of(line, "state"), *sentence = text_of(line, "sentence");

	*p = (struct pair_result){.kind = wrong_parse(text_of(line, "kind"))};
	if (strcmp(state, pair_state_word(PAIR_RIGHT)) == 0 && p->kind == WRONG_NOTHING)
		p->state = PAIR_RIGHT;
	else if (strcmp(state, pair_state_word(PAIR_WRONG)) == 0 && p->kind != WRONG_N)
		p->state = PAIR_WRONG;
	else
		p->kind = WRONG_NOTHING;
	text_copy(p->sentence, sizeof(p->sentence), sentence, strlen(sentence));
	p->copy_gbps = json_number_value(json_object_get(line, "gbps"));
	p->round_trip = (struct round_trip){
		.n = (uint64_t)json_integer_value(json_object_get(line, "round_trips")),
		.median_ns = json_number_value(json_object_get(line, "median_ns")),
		.p99_ns = json_number_value(json_object_get(line, "p99_ns")),
		.max_ns = json_number_value(json_object_get(line, "max_ns"))};
	take_patterns(p, line);
}

static bool take_begin(struct replay *x, const struct test_mark *m)
{
	if (x->past->running_n == DEVICE_MAX)
		return false;
	x->past->running[x->past->running_n++] = *m;
	return true;
}

static bool take_end(struct replay *x, const struct test_mark *m, const json_t *line)
{
	struct test_past *past = x->past;
	struct pair_result *p = NULL;

	drop_mark(past->running, &past->running_n, m);
	if (x->includes)
		drop_mark(past->suspects, &past->suspect_n, m);
	if (is_of_pair(m->phase)) {
		p = known_pair(x->identity, past->known, m->initiator, m->target);
		if (p)
			take_result(p, line);
	}
	return p || !is_of_pair(m->phase);
}

/*
 * A run that was only killed says nothing of what it tested, which therefore runs again. If the
 * machine has restarted since, what ran may have stopped it, and does not.
 */
static bool close_running(struct replay *x, const char *boot_id)
{
	struct test_past *past = x->past;
	bool fits = true;

	past->restarted = !*boot_id || strcmp(x->boot_id, boot_id) != 0;
	for (size_t k = 0; past->restarted && k < past->running_n; k++)
		fits &= add_suspect(past, &past->running[k]);
	return fits;
}

/* False: the line is not one of a journal. */
static bool take_event(struct replay *x, const json_t *line)
{
	const char *event = text_of(line, "event");
	bool begins = strcmp(event, "begin") == 0, suspect = strcmp(event, "suspect") == 0;
	struct test_mark m;

	if (strcmp(event, "done") == 0)
		return x->past->complete = true;
	if (!begins && !suspect && strcmp(event, "end") != 0)
		return false;
	if (!take_mark(line, suspect ? text_of(line, "date") : x->past->date, &m))
		return false;
	return suspect  ? add_suspect(x->past, &m)
	       : begins ? take_begin(x, &m)
			: take_end(x, &m, line);
}

static void note_damage(struct replay *x, unsigned line)
{
	if (line && !x->past->damaged_line)
		x->past->damaged_line = line;
}

/*
 * The last line of a run may be incomplete if the machine lost power: then its step had not begun,
 * or counts as running. What any other line that cannot be read said is unknown.
 */
static int take_line(struct replay *x, const char *text, unsigned number)
{
	json_t *line = json_loads(text, 0, NULL);
	const char *event = text_of(line, "event");
	bool resumes = strcmp(event, "resume") == 0, well = true;
	int r = 0;

	if (resumes && x->torn_line)
		x->past->torn = true;
	else
		note_damage(x, x->torn_line);
	x->torn_line = 0;
	if (resumes || strcmp(event, "start") == 0) {
		well = close_running(x, text_of(line, "boot_id"));
		r = take_start(x, line);
	} else if (!x->started || !take_event(x, line)) {
		x->torn_line = number;
	}
	if (!well)
		note_damage(x, number);
	json_decref(line);
	return r;
}

/* ---- files ---- */

static int open_journal(const struct test_identity *i, char **ret_path, FILE **ret)
{
	int r = test_state_path(i, false, ".jsonl", ret_path), fd;

	if (r < 0)
		return r;
	fd = state_open(*ret_path);
	if (fd < 0)
		return fd;
	*ret = fdopen(fd, "r");
	if (*ret)
		return 0;
	close(fd);
	return err_sys(ENOMEM, "read %s", *ret_path);
}

static int take_lines(struct replay *x, FILE *f, const char *path)
{
	char text[LINE_MAX_BYTES];
	unsigned n = 0;
	int r = 0;

	while (r == 0 && n < LINES_MAX && fgets(text, sizeof(text), f))
		r = take_line(x, text, ++n);
	if (r == 0 && !x->started)
		return file_refuse(fileno(f), path, "a journal of onehop test");
	if (r == 0 && n == LINES_MAX)
		note_damage(x, n);
	x->past->torn |= x->torn_line != 0;
	if (!close_running(x, x->identity->boot_id))
		note_damage(x, n);
	return r;
}

static int read_past(const struct test_identity *i, FILE *f, const char *path,
		     struct test_past *ret)
{
	struct test_past past = {.found = true};
	struct replay x = {.identity = i, .past = &past};
	int r;

	past.known = xcalloc(i->n * i->n, sizeof(*past.known));
	r = take_lines(&x, f, path);
	if (r < 0)
		test_past_done(&past);
	*ret = past;
	return r;
}

int test_past_read(const struct test_identity *i, struct test_past *ret)
{
	AUTO_FREE char *path = NULL;
	AUTO_FCLOSE FILE *f = NULL;
	int r;

	*ret = (struct test_past){0};
	r = open_journal(i, &path, &f);
	if (r == 0)
		r = read_past(i, f, path, ret);
	if (r == 0 && ret->damaged_line) {
		r = err_set(EINVAL,
			    "%s:%u: the line cannot be read, so what ran is unknown; start again "
			    "without --resume",
			    path, ret->damaged_line);
		test_past_done(ret);
	}
	return r;
}

/* The strings live with `array`. False: there are other things in it, or more than `max`. */
static bool take_texts(const json_t *array, size_t max, const char **ret, size_t *ret_n)
{
	size_t n = json_array_size(array);

	if (n > max)
		return false;
	for (size_t k = 0; k < n; k++) {
		ret[k] = json_string_value(json_array_get(array, k));
		if (!ret[k])
			return false;
	}
	*ret_n = n;
	return true;
}

/* The run that the first line is of; names live with `start`. */
static bool own_identity(const json_t *start, const char *names[static DEVICE_MAX],
			 struct test_identity *ret)
{
	ret->driver = text_of(start, "driver_version");
	ret->names = names;
	return take_texts(json_object_get(start, "devices"), DEVICE_MAX, names, &ret->n) &&
	       ret->n &&
	       take_texts(json_object_get(start, "options"), TEST_OPTIONS_MAX, ret->options,
			  &ret->option_n);
}

int test_past_review(const struct test_identity *i, struct test_past *ret)
{
	struct test_identity own = {.device = i->device, .boot_id = i->boot_id};
	AUTO_FREE char *path = NULL;
	AUTO_FCLOSE FILE *f = NULL;
	const char *names[DEVICE_MAX];
	char text[LINE_MAX_BYTES];
	json_t *start = NULL;
	int r;

	*ret = (struct test_past){0};
	r = open_journal(i, &path, &f);
	if (r < 0)
		return r;
	if (fgets(text, sizeof(text), f))
		start = json_loads(text, 0, NULL);
	rewind(f);
	if (own_identity(start, names, &own))
		r = read_past(&own, f, path, ret);
	else
		r = file_refuse(fileno(f), path, "a journal of onehop test");
	json_decref(start);
	free(ret->known); /* of other devices than this run's, perhaps */
	ret->known = NULL;
	return r;
}

void test_past_done(struct test_past *p)
{
	free(p->known);
	free(p->suspects);
	*p = (struct test_past){0};
}

/* ---- suspects ---- */

static void hold(struct pair_result *p, enum test_phase phase)
{
	*p = (struct pair_result){.state = PAIR_WRONG, .kind = WRONG_ENDED};
	snprintf(p->sentence, sizeof(p->sentence),
		 "suspect (%s): the machine stopped during an earlier test; not run again",
		 test_phase_word(phase));
}

/* A pattern uses both directions. */
void test_past_hold(const struct test_past *p, const struct test_identity *i,
		    struct pair_result *known, bool *ret_all_reduce, struct strbuf *ret)
{
	for (size_t k = 0; k < p->suspect_n && !i->include_suspects; k++) {
		const struct test_mark *m = &p->suspects[k];
		bool all = m->phase == TEST_ALL_REDUCE;
		struct pair_result *there = known_pair(i, known, m->initiator, m->target);

		if (!all && !there)
			continue;
		strbuf_puts(ret, ret->len ? ", " : "");
		mark_name(m, ret);
		if (all)
			*ret_all_reduce = true;
		else
			hold(there, m->phase);
		if (m->phase == TEST_PATTERNS)
			hold(known_pair(i, known, m->target, m->initiator), m->phase);
	}
}
