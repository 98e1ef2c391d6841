/* SPDX-License-Identifier: Apache-2.0 */
/* onehop test: is what one GPU writes into another's memory, or reads from it, really there? */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "bench/test_figures.h"
#include "cli/device_options.h"
#include "cli/progress.h"
#include "device/worker.h"
#include "report/report_test.h"
#include "result/figures.h"
#include "session/journal.h"
#include "session/log_watch.h"
#include "session/stop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of each stand-in; half of it is used. */
#define HOST_MEMORY (32ul << 20)

struct test_options {
	struct common_options common;
	struct device_options devices;
	const char *inject;
	int deadline_s, long_s;
	bool resume, atomics;
};

/* clang-format off */
#define AT(member) offsetof(struct test_options, member)
static const struct option test_table[] = {
	DEVICE_OPTIONS(struct test_options),
	{"deadline", 0, OPTION_NUMBER, AT(deadline_s), "SECONDS",
		"a transfer that takes longer hangs; 5 by default", NULL, 0, 0, 0},
	{"long", 0, OPTION_NUMBER, AT(long_s), "SECONDS",
		"test all of the last memory too, and load all pairs for so long (60: a minute)",
		NULL, 0, 0, 0},
	{"atomics", 0, OPTION_FLAG, AT(atomics), NULL,
		"count atomic additions to other GPUs' memory, for information", NULL, 0, 0, 0},
	{"resume", 0, OPTION_FLAG, AT(resume), NULL,
		"say what ran when the last test ended (crash, reboot), and test the rest",
		NULL, 0, 0, 0},
	{"inject", 0, OPTION_TEXT, AT(inject), "KIND[:I->J]",
		"with --device host:N, show a fault on purpose: mirror, displace, stale, torn, lost, "
		"hang, refuse, slow, cached, replay, overtake, late, reread, remap, hole, ipc-offset, "
		"lossy",
		NULL, 0, 0, 0},
	COMMON_JSON(struct test_options),
	COMMON_COLOR(struct test_options),
	COMMON_WIDTH(struct test_options),
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL,
		"every pair with all that was checked", NULL, 0, 0, 0},
	COMMON_HELP(struct test_options),
	OPTIONS_END,
};
/* clang-format on */

/* ---- a run, as the command sees it ---- */

struct test_command {
	const struct test_options *o;
	struct test_request request;
	struct devices devices;
	struct test_identity identity;
	struct test_past past;
	struct test_journal journal;
	struct test_result result;
	struct diagnosis *diagnosis; /* NULL for stand-ins */
	char boot_id[BOOT_ID_SIZE];

	/* ---- while it runs ---- */
	struct progress progress;
	struct log_watch log; /* not begun for stand-ins */
};

/* ---- options ---- */

static int refuse_fault(const char *word)
{
	AUTO_STRBUF struct strbuf words = {0};

	for (int f = FAULT_NONE + 1; f < FAULT_N; f++)
		strbuf_printf(&words, "%s%s", f > FAULT_NONE + 1 ? ", " : "",
			      fault_word((enum fault_kind)f));
	return err_set(EINVAL, "--inject wants one of %s, not '%s'", strbuf_str(&words), word);
}

static int parse_fault(const struct devices *d, const char *text, struct fault *ret)
{
	size_t length = strcspn(text, ":");
	AUTO_FREE char *word = xstrndup(text, length);
	struct fault f = {fault_parse(word), -1, -1};
	struct pair pair;
	bool both;
	int r;

	if (f.kind == FAULT_N || f.kind == FAULT_NONE)
		return refuse_fault(word);
	if (text[length]) {
		r = devices_find_pair(d, text + length + 1, &pair, &both);
		if (r == 0 && both)
			r = err_set(EINVAL, "one direction only, 0->1");
		if (r < 0)
			return err_wrap(r, "--inject wants KIND:I->J");
		f.initiator = d->request.number[pair.initiator];
		f.target = d->request.number[pair.target];
	}
	*ret = f;
	return 0;
}

/* ---- which devices ---- */

static bool is_host(const struct test_command *c)
{
	return devices_are_stand_ins(&c->devices);
}

static int inject(struct test_command *c)
{
	if (!is_host(c))
		return err_set(EINVAL, "--inject shows faults on the host back end only: "
				       "--device host:N");
	return parse_fault(&c->devices, c->o->inject, &c->devices.request.host.fault);
}

static void fill_request(struct test_command *c)
{
	c->request.devices = c->devices.request;
	c->request.devices.host.memory_bytes = HOST_MEMORY;
	for (size_t i = 0; i < c->devices.request.n && !is_host(c); i++)
		c->request.pci[i] = c->devices.chosen.keys[i];
	c->request.paths = c->devices.paths;
	c->request.memory_bytes = c->devices.memory_bytes;
	c->request.limit_us = (uint64_t)c->o->deadline_s * 1000000;
	c->request.long_s = c->o->long_s;
	c->request.atomics = c->o->atomics;
	if (c->o->long_s && !c->request.memory_bytes)
		c->request.memory_bytes = UINT64_MAX; /* up to the last */
}

static int choose(struct test_command *c)
{
	int r = devices_choose(&c->o->devices, c->o->common.from, MACHINE_TO_JUDGE, &c->devices);

	if (r == 0 && c->o->inject)
		r = inject(c);
	if (r == 0)
		r = devices_lock(&c->devices);
	if (r < 0)
		return r;
	if (c->devices.topology)
		c->diagnosis = diagnose(c->devices.topology);
	fill_request(c);
	return 0;
}

static void identify(struct test_command *c)
{
	const struct machine *m = c->devices.machine;

	read_boot_id(c->boot_id);
	c->identity =
		(struct test_identity){.device = is_host(c) ? "host" : "cuda",
				       .inject = c->o->inject ? c->o->inject : "",
				       .driver = m ? fact_str_or(m->driver.module_version, "") : "",
				       .boot_id = c->boot_id,
				       .names = c->devices.chosen.keys,
				       .n = c->devices.chosen.n};
}

/* ---- progress ---- */

static void show_progress(struct test_command *c, const struct test_step *s)
{
	AUTO_STRBUF struct strbuf name = {0};

	test_step_name(s, c->devices.chosen.names, &name);
	progress_show(&c->progress, "%s, %zu left", strbuf_str(&name), s->left);
}

/* ---- hooks ---- */

static int open_device(void *context, const struct device_request *one, struct device_set **ret)
{
	const struct test_command *c = context;

	return worker_open(NULL, one, c->devices.stop_fd, ret);
}

static int step_begins(void *context, const struct test_step *step)
{
	struct test_command *c = context;
	int r = test_journal_begins(&c->journal, step);

	if (r < 0)
		return r;
	log_watch_begins(&c->log, step);
	show_progress(c, step);
	return 0;
}

static void step_ended(void *context, const struct test_step *step)
{
	struct test_command *c = context;

	log_watch_ended(&c->log, step);
	test_journal_ended(&c->journal, step);
}

static bool was_stopped(void *context)
{
	const struct test_command *c = context;

	return stop_signals_seen(c->devices.stop_fd);
}

/* ---- an earlier run ---- */

static void list_running(const struct test_command *c, struct strbuf *b)
{
	for (size_t i = 0; i < c->past.running_n; i++) {
		strbuf_puts(b, i ? ", " : "");
		test_step_name(&c->past.running[i], c->devices.chosen.names, b);
	}
}

static char *past_note(const struct test_command *c)
{
	AUTO_STRBUF struct strbuf running = {0};

	if (!c->past.found || c->past.complete)
		return NULL;
	list_running(c, &running);
	return xprintf("The test of %s did not end by itself%s%s%s", c->past.date,
		       c->past.restarted ? "; the machine was started again since" : "",
		       c->past.running_n ? ". Running then: " : ". Nothing was running then.",
		       strbuf_str(&running));
}

static bool all_reduce_ran(const struct test_command *c)
{
	for (size_t i = 0; i < c->past.running_n; i++)
		if (c->past.running[i].phase == TEST_ALL_REDUCE)
			return true;
	return false;
}

/* 0, or a code to end with. */
static int take_past(struct test_command *c)
{
	int r = test_past_read(&c->identity, &c->past);

	if (!c->o->resume)
		return 0;
	if (r == -ENOENT)
		return fail(EXIT_REFUSED, "--resume: no earlier test is known");
	if (r < 0)
		return fail(EXIT_REFUSED, "--resume: %s", err_msg());
	if (c->past.complete)
		return fail(EXIT_REFUSED,
			    "--resume: the test of %s ended by itself, nothing is left",
			    c->past.date);
	c->request.known = c->past.known;
	c->request.no_all_reduce = all_reduce_ran(c);
	return 0;
}

/* ---- the end ---- */

static enum exit_code judge(const struct test_report *r)
{
	struct test_counts c;

	report_test_count(r, &c);
	if (c.wrong || c.locals_wrong || c.arms_wrong)
		return EXIT_FINDING;
	if (r->result && r->result->stopped)
		return EXIT_REFUSED;
	if (!c.right)
		return EXIT_NOT_JUDGED;
	return c.not_tested ? EXIT_FINDING : EXIT_WELL;
}

static struct figures *make_figures(const struct test_command *c)
{
	struct figures *f = test_figures(&c->result, c->devices.chosen.names,
					 is_host(c) ? NULL : c->devices.chosen.keys);

	figures_stamp(f, is_host(c) ? NULL : c->devices.machine);
	return f;
}

static int print_report(struct test_command *c, bool ran)
{
	AUTO_FREE char *note = past_note(c);
	struct figures *figures = ran ? make_figures(c) : NULL;
	const struct test_report r = {.device = c->identity.device,
				      .inject = c->o->inject,
				      .result = ran ? &c->result : NULL,
				      .names = c->devices.chosen.names,
				      .gpus = is_host(c) ? NULL : c->devices.chosen.numbers,
				      .diagnosis = c->diagnosis,
				      .skips = c->devices.chosen.skips,
				      .skip_n = c->devices.chosen.skip_n,
				      .log = c->log.lines,
				      .log_n = c->log.line_n,
				      .log_unread = c->log.unread,
				      .note = note,
				      .figures = figures,
				      .verbose = c->o->common.verbose};
	struct document *out;
	int code;

	if (c->o->common.json) {
		code = print_json(report_test_json(&r), judge(&r));
	} else {
		out = document_new();
		report_test(out, &r);
		code = print_document(out, &c->o->common, judge(&r));
		document_free(out);
	}
	figures_free(figures);
	return code;
}

/* What the host back end shows says nothing of this machine's GPUs. */
static void keep_results(struct test_command *c)
{
	struct figures *f;

	if (is_host(c))
		return;
	f = make_figures(c);
	if (store_keep(f) < 0)
		fail(EXIT_WELL, "the results are not kept for onehop check: %s", err_msg());
	figures_free(f);
}

/* ---- running ---- */

static int run_journalled(struct test_command *c)
{
	const struct test_hooks hooks = {c, step_begins, step_ended, was_stopped};
	int r;

	if (test_journal_open(&c->identity, c->o->resume, &c->journal) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	c->request.open = open_device;
	c->request.open_context = c;
	progress_begin(&c->progress);
	if (!is_host(c))
		log_watch_open(&c->log, c->identity.names, c->identity.n);
	r = test_run(&c->request, &hooks, &c->result);
	progress_end(&c->progress);
	test_journal_close(&c->journal, r == 0 && !c->result.stopped);
	if (r < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	keep_results(c);
	r = print_report(c, true);
	test_result_done(&c->result);
	return r;
}

/* A new journal begins: what the old one is still good for is said and kept. 0, or a code. */
static int keep_past(const struct test_command *c)
{
	AUTO_FREE char *note = NULL;

	if (test_journal_keep(&c->identity, &note) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (note)
		fail(EXIT_WELL, "%s", note);
	return 0;
}

static int run_devices(struct test_command *c)
{
	int r = take_past(c);

	if (r == 0 && !c->o->resume)
		r = keep_past(c);
	return r ? r : run_journalled(c);
}

static void done(struct test_command *c)
{
	test_past_done(&c->past);
	if (c->diagnosis)
		diagnosis_free(c->diagnosis);
	devices_done(&c->devices);
	log_watch_done(&c->log);
}

static int run_test(const void *options, const char *const *args)
{
	struct test_command c = {.o = options, .devices = DEVICES_NONE};
	int r;

	(void)args;
	if (choose(&c) < 0) {
		r = fail(EXIT_REFUSED, "%s", err_msg());
	} else {
		identify(&c);
		r = c.devices.request.n ? run_devices(&c) : print_report(&c, false);
	}
	done(&c);
	return r;
}

const struct command command_test = {
	.name = "test",
	.args = "",
	.summary = "prove that each GPU reaches each other's memory: data checked by their owner",
	.about =
		"Every GPU writes into and reads from every other's memory, by copy engine and by "
		"kernel, at several sizes and places; whoever owns the memory checks what arrived. "
		"Then flags go to and fro between running kernels, pairs use each other's memory "
		"in "
		"the ways that are known to fail where copies are right, and all GPUs sum up "
		"values "
		"that are known. Each GPU is held by a process of its own, which is killed when it "
		"hangs; "
		"what is about to run is on disk before it runs.",
	.options = test_table,
	.size = sizeof(struct test_options),
	.run = run_test,
};
