/* SPDX-License-Identifier: Apache-2.0 */
#include "session/test_session.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "bench/pattern.h"
#include "bench/test_figures.h"
#include "device/worker.h"
#include "diagnose/diagnose.h"
#include "result/figures.h"
#include "session/stop.h"

#include <errno.h>
#include <string.h>

/* Of each simulated device; half of it is used. */
#define HOST_MEMORY (32ul << 20)

static bool is_host(const struct test_session *s)
{
	return devices_are_simulated(&s->devices);
}

/* ---- a fault to show ---- */

static int refuse_fault(const char *word)
{
	const char *names[FAULT_N] = {0}, *nearest;
	AUTO_STRBUF struct strbuf words = {0};

	for (int f = FAULT_NONE + 1; f < FAULT_N; f++) {
		names[f] = fault_word((enum fault_kind)f);
		strbuf_printf(&words, "%s%s", words.len ? ", " : "", names[f]);
	}
	nearest = nearest_name(word, names, FAULT_N);
	if (nearest)
		return err_set(EINVAL, "--inject: no fault '%s'; did you mean %s?", word, nearest);
	return err_set(EINVAL, "--inject: no fault '%s', must be one of %s", word,
		       strbuf_str(&words));
}

static int parse_fault(const struct devices *d, const char *text, struct fault *ret)
{
	size_t length = strcspn(text, ":");
	AUTO_FREE char *word = xstrndup(text, length);
	struct fault f = {fault_parse(word), -1, -1};
	struct pair pair;
	int r;

	if (f.kind == FAULT_N || f.kind == FAULT_NONE)
		return refuse_fault(word);
	if (text[length]) {
		r = devices_find_pair(d, text + length + 1, &pair, NULL);
		if (r < 0)
			return err_wrap(r, "--inject %s", word);
		f.initiator = d->request.number[pair.initiator];
		f.target = d->request.number[pair.target];
	}
	*ret = f;
	return 0;
}

static unsigned informs_of(const struct test_choice *o)
{
	return (o->atomics ? PATTERN_BIT(PATTERN_ATOMICS) : 0) |
	       (o->compressible ? PATTERN_BIT(PATTERN_COMPRESSIBLE) : 0) |
	       (o->host_memory ? PATTERN_BIT(PATTERN_HOST_MEMORY) : 0);
}

/* A fault that no pattern of this run can meet would pass as a healthy run. */
static int check_visible(const struct test_choice *o, enum fault_kind fault)
{
	enum pattern finder = pattern_finding(fault);

	if (finder == PATTERN_NONE ||
	    pattern_wanted(o->long_s > 0, informs_of(o)) & PATTERN_BIT(finder))
		return 0;
	return err_set(EINVAL, "--inject %s needs %s: nothing else that is tested meets this fault",
		       fault_word(fault), pattern_rows[finder].option);
}

static int inject(struct test_session *s)
{
	struct fault *f = &s->devices.request.host.fault;
	int r;

	if (!is_host(s))
		return err_set(EINVAL,
			       "--inject works only with simulated devices: add --device host:N");
	r = parse_fault(&s->devices, s->o->inject, f);
	return r < 0 ? r : check_visible(s->o, f->kind);
}

/* ---- what to run ---- */

static void fill_request(struct test_session *s)
{
	struct test_request *r = &s->request;

	r->devices = s->devices.request;
	r->devices.host.memory_bytes = HOST_MEMORY;
	for (size_t i = 0; i < s->devices.request.n && !is_host(s); i++)
		r->pci[i] = s->devices.chosen.keys[i];
	r->paths = s->devices.paths;
	r->memory_bytes = s->devices.memory_bytes;
	r->limit_us = (uint64_t)s->o->deadline_s * 1000000;
	r->long_s = s->o->long_s;
	r->informs = informs_of(s->o);
	if (s->o->long_s && !r->memory_bytes)
		r->memory_bytes = UINT64_MAX; /* up to the last */
}

int test_check_compressible(const struct diagnosis *d)
{
	const struct outcome *o = diagnosis_outcome(d, "uvm-managed");

	if (o->verdict != VERDICT_BAD && o->verdict != VERDICT_UNKNOWN)
		return 0;
	return err_set(
		EPERM,
		"--compressible: %s a peer's access to compressible memory could end in the "
		"host's memory. `onehop unlock` has the edit that prevents it; see `onehop "
		"check --explain uvm-managed`",
		o->verdict == VERDICT_BAD
			? "the driver carries an old edit for P2P through BAR1, with which"
			: "whether the driver carries an old edit for P2P through BAR1 is unknown; with one,");
}

static void identify(struct test_session *s)
{
	const struct machine *m = s->devices.machine;
	struct test_identity *i = &s->identity;

	read_boot_id(s->boot_id);
	*i = (struct test_identity){.device = is_host(s) ? "host" : "cuda",
				    .driver = m ? fact_str_or(m->driver.module_version, "") : "",
				    .boot_id = s->boot_id,
				    .names = s->devices.chosen.keys,
				    .n = s->devices.chosen.n,
				    .include_suspects = s->o->include_suspects};
	for (size_t k = 0; k < s->o->option_n && k < TEST_OPTIONS_MAX; k++)
		i->options[i->option_n++] = s->o->options[k];
}

int test_session_begin(struct test_session *s, const struct test_choice *o,
		       const struct session_ear *ear)
{
	int r;

	*s = (struct test_session){.o = o,
				   .ear = ear,
				   .devices = DEVICES_NONE,
				   .journal = TEST_JOURNAL_NONE,
				   .journal_lock = -1};
	r = devices_choose(&o->devices, o->from, MACHINE_TO_JUDGE, &s->devices);
	if (r == 0 && o->inject)
		r = inject(s);
	if (r == 0)
		r = devices_lock(&s->devices);
	if (r < 0)
		return r;
	if (s->devices.topology)
		s->diagnosis = diagnose(s->devices.topology);
	if (o->compressible && s->diagnosis)
		r = test_check_compressible(s->diagnosis);
	fill_request(s);
	identify(s);
	return r;
}

/* ---- hooks ---- */

static void tell_progress(struct test_session *s, const struct test_step *step)
{
	AUTO_STRBUF struct strbuf name = {0};

	test_step_name(step, s->devices.chosen.names, &name);
	session_tell_left(s->ear, &s->pace, 1 + (double)step->left, "%s", strbuf_str(&name));
}

static int open_device(void *context, const struct device_request *one, struct device_set **ret)
{
	const struct test_session *s = context;

	return worker_open(NULL, one, s->devices.stop_fd, ret);
}

static int step_begins(void *context, const struct test_step *step)
{
	struct test_session *s = context;
	int r = test_journal_begins(&s->journal, step);

	if (r < 0)
		return r;
	log_watch_begins(&s->log, step);
	tell_progress(s, step);
	return 0;
}

static void step_ended(void *context, const struct test_step *step)
{
	struct test_session *s = context;

	log_watch_ended(&s->log, step);
	test_journal_ended(&s->journal, step);
}

static bool was_stopped(void *context)
{
	const struct test_session *s = context;

	return stop_signals_seen(s->devices.stop_fd);
}

/* ---- an earlier run ---- */

/* Suspects are not run again unless that is asked for: the machine may stop once more. */
static bool hold_suspects(struct test_session *s, struct strbuf *note)
{
	AUTO_STRBUF struct strbuf held = {0};

	test_past_hold(&s->past, &s->identity, s->known, &s->request.all_reduce_suspect, &held);
	s->request.known = s->known;
	if (held.len)
		strbuf_printf(note,
			      " Not run, because the machine stopped during an earlier test of it: "
			      "%s. To run it too, add --include-suspects.",
			      strbuf_str(&held));
	return held.len;
}

static void note_unfinished(const struct test_past *past, struct strbuf *note)
{
	AUTO_STRBUF struct strbuf running = {0};

	test_past_running(past, &running);
	strbuf_printf(note, "The test of %s did not finish%s.", past->date,
		      past->restarted ? ", and the machine has restarted since" : "");
	if (running.len)
		strbuf_printf(note, " It was running: %s.", strbuf_str(&running));
}

static int resume(struct test_session *s, struct strbuf *note)
{
	int r = test_past_read(&s->identity, &s->past);

	if (r == -ENOENT)
		return err_set(ENOENT, "--resume: there is no earlier test to resume");
	if (r < 0)
		return err_wrap(r, "--resume");
	if (s->past.complete)
		return err_set(EINVAL, "--resume: the test of %s finished, nothing is left to test",
			       s->past.date);
	note_unfinished(&s->past, note);
	if (s->past.torn)
		strbuf_puts(note, " The last line of its journal is incomplete and was not used.");
	strbuf_puts(note, s->past.running_n && !s->past.restarted
				  ? " This run repeats that and tests the rest."
				  : " This run tests the rest.");
	s->known = TAKE_PTR(s->past.known);
	hold_suspects(s, note);
	return test_journal_resume(&s->identity, &s->journal);
}

/* The last run's journal as a new run sees it. */
static void review(struct test_session *s, struct strbuf *note)
{
	const struct test_past *past = &s->past;
	int r = test_past_review(&s->identity, &s->past);
	bool held;

	if (r < 0 && r != -ENOENT)
		strbuf_printf(note, "What the last test ran is unknown: %s.", err_msg());
	if (past->found && !past->complete)
		note_unfinished(past, note);
	if (past->damaged_line)
		strbuf_printf(
			note,
			" Line %u of its journal cannot be read, so what else it ran is unknown.",
			past->damaged_line);
	held = hold_suspects(s, note);
	if (past->found && !past->complete && !past->damaged_line)
		strbuf_printf(note,
			      " Everything%s is tested again; --resume would have tested only the "
			      "rest.",
			      held ? " else" : "");
}

/* What earlier runs found is tested again; only what the machine stopped in is kept. */
static int start(struct test_session *s, struct strbuf *note)
{
	AUTO_FREE char *kept = NULL;
	int r;

	s->known = xcalloc(s->identity.n * s->identity.n, sizeof(*s->known));
	review(s, note);
	r = test_journal_start(&s->identity, &s->past, &s->journal, &kept);
	if (r == 0 && kept)
		strbuf_printf(note, " The earlier journal is now %s.", kept);
	return r;
}

static int take_past(struct test_session *s)
{
	AUTO_STRBUF struct strbuf note = {0};
	int r = test_journal_lock(&s->identity, &s->journal_lock);

	if (r == 0)
		r = s->o->resume ? resume(s, &note) : start(s, &note);
	if (r < 0 || !note.len)
		return r;
	s->note = xstrdup(strbuf_str(&note) + (*note.text == ' '));
	session_tell(s->ear, SESSION_NOTE, "%s", s->note);
	return 0;
}

/* ---- running ---- */

int test_session_run(struct test_session *s, bool *ret_refused)
{
	const struct test_hooks hooks = {s, step_begins, step_ended, was_stopped};
	int r = take_past(s);

	*ret_refused = r < 0;
	if (r < 0)
		return r;
	s->request.open = open_device;
	s->request.open_context = s;
	if (!is_host(s))
		log_watch_open(&s->log, s->identity.names, s->identity.n);
	r = test_run(&s->request, &hooks, &s->result);
	test_journal_close(&s->journal, r == 0 && !s->result.stopped);
	if (r < 0)
		return r;
	s->figures = test_figures(&s->result, s->devices.chosen.names,
				  is_host(s) ? NULL : s->devices.chosen.keys);
	session_keep(s->ear, &s->devices, s->devices.machine, s->figures);
	return 0;
}

void test_session_done(struct test_session *s)
{
	test_journal_close(&s->journal, false);
	cleanup_close(&s->journal_lock);
	test_past_done(&s->past);
	free(s->known);
	test_result_done(&s->result);
	figures_free(s->figures);
	free(s->note);
	if (s->diagnosis)
		diagnosis_free(s->diagnosis);
	devices_done(&s->devices);
	log_watch_done(&s->log);
}
