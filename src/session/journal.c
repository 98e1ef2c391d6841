/* SPDX-License-Identifier: Apache-2.0 */
#include "session/journal.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/state.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "bench/pattern.h"
#include "machine/machine.h"
#include "session/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION 2
/* No journal, whoever wrote it, is read without end. */
#define LINE_MAX_BYTES 4096
#define LINES_MAX      100000

/* ---- small things ---- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* Runs with simulated devices never touch the journal of real GPUs. */
static int state_path(const struct test_identity *i, bool make, const char *suffix, char **ret)
{
	AUTO_FREE char *folder = NULL;
	int r = 0;

	if (make)
		r = state_folder_make(&folder);
	else
		folder = state_folder();
	if (r < 0 || !folder)
		return r < 0 ? r : state_missing();
	*ret = xprintf("%s/test-run%s%s.jsonl", folder, strcmp(i->device, "host") ? "" : "-host",
		       suffix);
	return 0;
}

static int journal_path(const struct test_identity *i, bool make, char **ret)
{
	return state_path(i, make, "", ret);
}

/* ---- writing ---- */

/* One line, on disk when this returns. */
static int put_line(int fd, json_t *line)
{
	AUTO_FREE char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	AUTO_FREE char *whole = text ? xprintf("%s\n", text) : NULL;
	size_t n = whole ? strlen(whole) : 0;

	json_decref(line);
	if (!whole)
		return err_set(EINVAL, "a line of the test's journal cannot be written as JSON");
	if (write(fd, whole, n) != (ssize_t)n || fdatasync(fd) < 0)
		return err_sys(errno ? errno : EIO, "write the journal of the test");
	return 0;
}

static json_t *start_line(const struct test_identity *i, const char *event)
{
	json_t *names = json_array(), *options = json_array();
	char date[DATE_SIZE];

	date_now(date);
	for (size_t k = 0; k < i->n; k++)
		json_array_append_new(names, json_string(i->names[k]));
	for (size_t k = 0; k < i->option_n; k++)
		json_array_append_new(options, json_string(i->options[k]));
	return json_pack("{s:s, s:i, s:s, s:o, s:s, s:s, s:s, s:o}", "event", event, "version",
			 VERSION, "device", i->device, "options", options, "driver_version",
			 i->driver, "boot_id", i->boot_id, "date", date, "devices", names);
}

int test_journal_open(const struct test_identity *i, bool resume, struct test_journal *ret)
{
	AUTO_FREE char *path = NULL;
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, fd, r;

	r = journal_path(i, true, &path);
	if (r < 0)
		return r;
	assert(path != NULL);
	fd = open(path, flags | (resume ? 0 : O_TRUNC), 0600);
	if (fd < 0) /* ELOOP: a link; ENXIO: a pipe without a reader */
		return errno == ELOOP || errno == ENXIO ? state_not_regular(path)
							: state_refuse(errno, "write", path);
	r = state_check_regular(fd, path);
	if (r == 0)
		r = put_line(fd, start_line(i, resume ? "resume" : "start"));
	if (r < 0) {
		close(fd);
		return r;
	}
	*ret = (struct test_journal){fd, i};
	return 0;
}

static json_t *step_line(const struct test_journal *j, const char *event,
			 const struct test_step *step)
{
	json_t *o = json_pack("{s:s, s:s}", "event", event, "phase", test_phase_word(step->phase));

	if (step->initiator >= 0) {
		json_object_set_new(o, "initiator",
				    json_string(j->identity->names[step->initiator]));
		json_object_set_new(o, "target", json_string(j->identity->names[step->target]));
	}
	return o;
}

int test_journal_begins(struct test_journal *j, const struct test_step *step)
{
	return put_line(j->fd, step_line(j, "begin", step));
}

static json_t *patterns_json(const struct pair_result *p)
{
	json_t *done = json_array();

	for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++)
		if (p->patterns[k].done)
			json_array_append_new(done, json_string(pattern_rows[k].name));
	return done;
}

/* A line that cannot be written only means that the pair counts as not tested. */
void test_journal_ended(struct test_journal *j, const struct test_step *step)
{
	json_t *o = step_line(j, "end", step);
	const struct pair_result *p = step->result;

	if (p) {
		json_object_set_new(o, "state", json_string(pair_state_word(p->state)));
		json_object_set_new(o, "kind", json_string(wrong_word(p->kind)));
		json_object_set_new(o, "sentence", json_string(p->sentence));
		json_object_set_new(o, "gbps", json_real(p->copy_gbps));
		json_object_set_new(o, "round_trips", json_integer((json_int_t)p->round_trip.n));
		json_object_set_new(o, "median_ns", json_real(p->round_trip.median_ns));
		json_object_set_new(o, "p99_ns", json_real(p->round_trip.p99_ns));
		json_object_set_new(o, "max_ns", json_real(p->round_trip.max_ns));
		json_object_set_new(o, "pattern", json_string(pattern_rows[p->pattern].name));
		json_object_set_new(o, "patterns", patterns_json(p));
	}
	put_line(j->fd, o);
}

void test_journal_close(struct test_journal *j, bool complete)
{
	if (complete)
		put_line(j->fd, json_pack("{s:s}", "event", "done"));
	close(j->fd);
	j->fd = -1;
}

/* ---- reading ---- */

struct replay {
	const struct test_identity *identity;
	struct test_past *past;
	bool started;               /* a first line was there */
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

	if (json_integer_value(json_object_get(line, "version")) != VERSION)
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
	x->started = true;
	return 0;
}

static bool take_step(const struct replay *x, const json_t *line, struct test_step *ret)
{
	struct test_step s = {.initiator = -1, .target = -1};

	while (s.phase < TEST_PHASE_N &&
	       strcmp(test_phase_word(s.phase), text_of(line, "phase")) != 0)
		s.phase++;
	if (s.phase == TEST_PHASE_N)
		return false;
	s.initiator = device_index(x->identity, text_of(line, "initiator"));
	s.target = device_index(x->identity, text_of(line, "target"));
	*ret = s;
	return s.phase == TEST_ALL_REDUCE || (s.initiator >= 0 && s.target >= 0);
}

static bool is_of_pair(enum test_phase phase)
{
	return phase != TEST_LOCAL && phase != TEST_ALL_REDUCE;
}

static struct pair_result *known_pair(const struct replay *x, const struct test_step *s)
{
	return &x->past->known[(size_t)s->initiator * x->identity->n + (size_t)s->target];
}

static void take_begin(struct replay *x, const struct test_step *s)
{
	if (x->past->running_n < DEVICE_MAX)
		x->past->running[x->past->running_n++] = *s;
}

static bool same_step(const struct test_step *a, const struct test_step *b)
{
	return a->phase == b->phase && a->initiator == b->initiator && a->target == b->target;
}

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
static void take_result(const struct replay *x, const struct test_step *s, const json_t *line)
{
	struct pair_result *p = known_pair(x, s);
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

static void take_end(struct replay *x, const struct test_step *s, const json_t *line)
{
	struct test_past *past = x->past;

	for (size_t k = 0; k < past->running_n; k++)
		if (same_step(&past->running[k], s))
			past->running[k--] = past->running[--past->running_n];
	if (is_of_pair(s->phase))
		take_result(x, s, line);
}

static void suspect(struct replay *x, const struct test_step *s)
{
	struct pair_result *p = known_pair(x, s);

	*p = (struct pair_result){.state = PAIR_WRONG, .kind = WRONG_ENDED};
	snprintf(p->sentence, sizeof(p->sentence),
		 "suspect: an earlier run tested it (%s) when the machine stopped",
		 test_phase_word(s->phase));
}

/*
 * A run that was only killed says nothing of what it tested, which therefore runs again. If the machine has restarted
 * since, what ran may have stopped it, and does not. A pattern uses both directions.
 */
static void close_running(struct replay *x, const char *boot_id)
{
	x->past->restarted = !*boot_id || strcmp(x->boot_id, boot_id) != 0;
	for (size_t k = 0; x->past->restarted && k < x->past->running_n; k++) {
		const struct test_step *s = &x->past->running[k];
		const struct test_step back = {s->phase, s->target, s->initiator, NULL, 0};

		if (s->phase == TEST_ALL_REDUCE)
			x->past->all_reduce_suspect = true;
		else
			suspect(x, s);
		if (s->phase == TEST_PATTERNS)
			suspect(x, &back);
	}
}

static int take_line(struct replay *x, const char *text)
{
	json_t *line = json_loads(text, 0, NULL);
	const char *event = text_of(line, "event");
	struct test_step s;
	int r = 0;

	if (strcmp(event, "start") == 0 || strcmp(event, "resume") == 0) {
		close_running(x, text_of(line, "boot_id"));
		r = take_start(x, line);
	} else if (!x->started) {
		; /* of an unknown run */
	} else if (strcmp(event, "done") == 0) {
		x->past->complete = true;
	} else if (strcmp(event, "begin") == 0 && take_step(x, line, &s)) {
		take_begin(x, &s);
	} else if (strcmp(event, "end") == 0 && take_step(x, line, &s)) {
		take_end(x, &s, line);
	} /* else: the last line of a machine that lost power */
	json_decref(line);
	return r;
}

static int open_journal(const char *path, FILE **ret)
{
	int fd = state_open(path);

	if (fd < 0)
		return fd;
	*ret = fdopen(fd, "r");
	if (*ret)
		return 0;
	close(fd);
	return err_sys(ENOMEM, "read %s", path);
}

int test_past_read(const struct test_identity *i, struct test_past *ret)
{
	AUTO_FREE char *path = NULL;
	AUTO_FCLOSE FILE *f = NULL;
	struct test_past past = {.found = true};
	struct replay x = {.identity = i, .past = &past};
	char text[LINE_MAX_BYTES];
	int r = journal_path(i, false, &path);

	*ret = (struct test_past){0};
	if (r < 0)
		return r;
	r = open_journal(path, &f);
	if (r < 0)
		return r;
	past.known = xcalloc(i->n * i->n, sizeof(*past.known));
	for (int n = 0; r == 0 && n < LINES_MAX && fgets(text, sizeof(text), f); n++)
		r = take_line(&x, text);
	if (r == 0 && !x.started)
		r = file_refuse(fileno(f), path, "a journal of onehop test");
	close_running(&x, i->boot_id);
	*ret = past;
	if (r < 0)
		test_past_done(ret);
	return r;
}

void test_past_done(struct test_past *p)
{
	free(p->known);
	*p = (struct test_past){0};
}

/* ---- keeping what a new run would overwrite ---- */

void test_step_name(const struct test_step *s, const char *const *names, struct strbuf *ret)
{
	if (s->initiator < 0)
		strbuf_puts(ret, "all devices");
	else if (s->initiator == s->target)
		strbuf_puts(ret, names[s->initiator]);
	else
		strbuf_printf(ret, "%s -> %s", names[s->initiator], names[s->target]);
	strbuf_printf(ret, " (%s)", test_phase_word(s->phase));
}

/* How the journal begins; NULL: there is none, or it is invalid. */
static json_t *read_start(const char *path)
{
	AUTO_FCLOSE FILE *f = NULL;
	char text[LINE_MAX_BYTES];

	return open_journal(path, &f) == 0 && fgets(text, sizeof(text), f)
		       ? json_loads(text, 0, NULL)
		       : NULL;
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

/* As test_past_read, of the devices that the journal itself names; the names live with `start`. */
static bool read_own_past(const struct test_identity *i, const json_t *start,
			  const char *names[static DEVICE_MAX], struct test_past *ret)
{
	struct test_identity own = {.device = i->device,
				    .driver = text_of(start, "driver_version"),
				    .boot_id = i->boot_id,
				    .names = names};

	return take_texts(json_object_get(start, "devices"), DEVICE_MAX, names, &own.n) && own.n &&
	       take_texts(json_object_get(start, "options"), TEST_OPTIONS_MAX, own.options,
			  &own.option_n) &&
	       test_past_read(&own, ret) == 0;
}

void test_past_running(const struct test_past *past, const char *const *names, struct strbuf *ret)
{
	for (size_t k = 0; k < past->running_n; k++) {
		strbuf_puts(ret, k ? ", " : "");
		test_step_name(&past->running[k], names, ret);
	}
	if (!past->running_n)
		strbuf_puts(ret, "nothing");
}

static char *kept_note(const struct test_past *past, const char *const *names, const char *kept)
{
	AUTO_STRBUF struct strbuf running = {0};

	test_past_running(past, names, &running);
	return xprintf("the test of %s did not finish; it was running: %s. This run tests "
		       "everything again; --resume would have tested only the rest. The earlier "
		       "journal is now %s",
		       past->date, strbuf_str(&running), kept);
}

int test_journal_keep(const struct test_identity *i, char **ret_note)
{
	AUTO_FREE char *path = NULL, *kept = NULL;
	const char *names[DEVICE_MAX];
	struct test_past past = {0};
	json_t *start = NULL;
	char *note = NULL;
	int r = journal_path(i, false, &path);

	if (r == 0)
		r = state_path(i, false, ".previous", &kept);
	if (r == 0)
		start = read_start(path);
	if (start && read_own_past(i, start, names, &past) && !past.complete) {
		note = kept_note(&past, names, kept);
		if (rename(path, kept) < 0)
			r = err_sys(errno, "rename %s to %s", path, kept);
	}
	json_decref(start);
	test_past_done(&past);
	if (r < 0)
		free(note);
	else
		*ret_note = note;
	return r;
}
