/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench p2p: how fast each pair is, and each device and the host. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/device_options.h"
#include "cli/progress.h"
#include "device/worker.h"
#include "report/report_p2p.h"
#include "result/figures_json.h"
#include "session/link_watch.h"
#include "session/stop.h"
#include "session/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_BYTES (512ull << 20)
#define HOST_BYTES    (4ull << 20)
#define PEER_BYTES    160000000ull /* p2pBandwidthLatencyTest's */
#define SWEEP_FROM    4096ull
#define SWEEP_FACTOR  4
#define MAX_SIZES     32
#define KILL_LIMIT_US 1000000

struct p2p_command_options {
	struct common_options common;
	struct device_options devices;
	const char *pairs, *only, *size, *time;
	int format;
	bool all, sweep, no_verify;
};

enum format { FORMAT_OWN, FORMAT_P2P_TEST, FORMAT_NVBANDWIDTH };
static const char *const formats[] = {"p2pBandwidthLatencyTest", "nvbandwidth-json", NULL};

/* clang-format off */
#define AT(member) offsetof(struct p2p_command_options, member)
static const struct option p2p_table[] = {
	DEVICE_OPTIONS(struct p2p_command_options),
	{"from", 0, OPTION_FILE, AT(common.from), "FILE",
		"with --device host: follow the links of this recorded machine, at the rates expected "
		"there", NULL, 0, 0, 0},
	{"pairs", 0, OPTION_TEXT, AT(pairs), "LIST",
		"only these pairs: 0->1 is one direction, 2-3 both; patterns always have all devices",
		NULL, 0, 0, 0},
	{"only", 0, OPTION_TEXT, AT(only), "LIST",
		"only these measurements, or groups of them: bandwidth, latency, host, staged, patterns",
		NULL, 0, 0, 0},
	{"all", 0, OPTION_FLAG, AT(all), NULL,
		"also what is left out otherwise: through the host, patterns, within a device and more",
		NULL, 0, 0, 0},
	{"size", 0, OPTION_TEXT, AT(size), "SIZE",
		"bytes of a copy (K, M, G: binary) instead of 512M or what a quarter of memory holds",
		NULL, 0, 0, 0},
	{"sweep", 0, OPTION_FLAG, AT(sweep), NULL,
		"copies from 4K up to that size, by factors of 4", NULL, 0, 0, 0},
	{"time", 0, OPTION_TEXT, AT(time), "SECONDS",
		"repeat a round at most so long until its medians are within 1 %; 0.3 by default",
		NULL, 0, 0, 0},
	{"no-verify", 0, OPTION_FLAG, AT(no_verify), NULL,
		"do not check what arrived; checking is never part of the time", NULL, 0, 0, 0},
	{"format", 0, OPTION_CHOICE, AT(format), "NAME",
		"print exactly what p2pBandwidthLatencyTest prints, or nvbandwidth's JSON "
		"(nvbandwidth-json)", formats, 0, 0, 0},
	FIGURES_JSON(struct p2p_command_options),
	COMMON_COLOR(struct p2p_command_options),
	COMMON_WIDTH(struct p2p_command_options),
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL,
		"every figure with its interval and samples", NULL, 0, 0, 0},
	COMMON_HELP(struct p2p_command_options),
	OPTIONS_END,
};

/* clang-format on */

/* ---- a run, as the command sees it ---- */

struct p2p_command {
	const struct p2p_command_options *o;
	enum format format;
	struct devices devices;
	struct device_set *set;
	struct p2p_options run;
	const struct metric **metrics;
	uint64_t sizes[MAX_SIZES];
	struct pair *pairs;
	bool *access;
	struct link_seen links[DEVICE_MAX];
	struct p2p_result result;
	double start_s, run_s;
	struct progress progress;
	const char *ended; /* by an error */
};

/* ---- what to measure ---- */

/* What --only calls several metrics at once. */
static const struct {
	const char *name;
	unsigned shapes; /* a bit each */
	bool staged;
} groups[] = {
	{"bandwidth", 1 << SHAPE_PAIR, false},
	{"latency",
	 1 << SHAPE_CHASE | 1 << SHAPE_CHASE_HOST | 1 << SHAPE_ROUND_TRIP | 1 << SHAPE_TINY, false},
	{"host", 1 << SHAPE_HOST | 1 << SHAPE_CHASE_HOST, false},
	{"staged", ~0u, true},
	{"patterns", 1 << SHAPE_TRAFFIC, false},
};

/* `words`: names of metrics and groups, blank-separated. */
static bool is_chosen(const struct metric *m, const char *words)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		if (text_has_word(words, groups[i].name) && m->staged == groups[i].staged &&
		    groups[i].shapes >> m->shape & 1)
			return true;
	return text_has_word(words, m->name);
}

/* What a format wants of a person who did not choose; reads are the peer's --p2p_read. */
static bool is_wanted(const struct metric *m, enum format format)
{
	if (format == FORMAT_P2P_TEST)
		return m->peers[PEER_P2P_TEST].place && !m->read;
	return m->standard && (format == FORMAT_OWN || m->peers[PEER_NVBANDWIDTH].place);
}

static bool is_known(const char *word)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		if (strcmp(groups[i].name, word) == 0)
			return true;
	return p2p_metric_find(word) != NULL;
}

static int no_word(const char *word)
{
	AUTO_FREE const char **names =
		xcalloc(metric_n + sizeof(groups) / sizeof(*groups), sizeof(*names));
	AUTO_FREE const struct metric **all = xcalloc(metric_n, sizeof(*all));
	size_t n = 0, measured = p2p_metrics(all);
	const char *nearest;

	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		names[n++] = groups[i].name;
	for (size_t i = 0; i < measured; i++)
		names[n++] = all[i]->name;
	nearest = nearest_name(word, names, n);
	if (nearest)
		return err_set(EINVAL, "--only: no measurement '%s'; did you mean %s?", word,
			       nearest);
	return err_set(EINVAL, "--only: no measurement '%s' (see: man onehop-bench-p2p)", word);
}

/* "a,b" as "a b", each known. */
static int check_words(const char *list, char **ret)
{
	AUTO_FREE char *words = xstrdup(list);

	for (char *at = words, *end; at; at = end ? end + 1 : NULL) {
		end = strchr(at, ',');
		if (end)
			*end = '\0';
		if (!is_known(at))
			return no_word(at);
		if (end)
			*end = ' ';
	}
	*ret = TAKE_PTR(words);
	return 0;
}

/*
 * In the table's order, which is that of the report. Where a peer's layout has an order of its own, what
 * goes without peer access comes first: turning it off again takes longer than a round.
 */
static void choose_words(struct p2p_command *c, const char *words)
{
	AUTO_FREE const struct metric **all = xcalloc(metric_n, sizeof(*all));
	size_t n = p2p_metrics(all);

	c->metrics = xcalloc(n, sizeof(*c->metrics));
	for (int staged = c->format == FORMAT_P2P_TEST; staged >= 0; staged--)
		for (size_t i = 0; i < n; i++) {
			if (c->format == FORMAT_P2P_TEST && all[i]->staged != staged)
				continue;
			if (c->o->all ||
			    (words ? is_chosen(all[i], words) : is_wanted(all[i], c->format)))
				c->metrics[c->run.metric_n++] = all[i];
		}
	c->run.metrics = c->metrics;
}

/*
 * p2pBandwidthLatencyTest times five copies of a pair. Six samples of one or more take as long, and give an
 * interval; through the host smaller copies are as fast.
 */
static void choose_pace(struct p2p_command *c)
{
	if (c->format != FORMAT_P2P_TEST)
		return;
	c->run.sample_us = 400;
	c->run.stopping.budget_s = 0.015;
	c->run.staged_bytes = c->o->size ? 0 : PEER_BYTES / 4;
}

static int choose_metrics(struct p2p_command *c)
{
	AUTO_FREE char *words = NULL;
	int r = 0;

	if (c->o->only && c->o->all)
		return err_set(EINVAL, "--only and --all exclude each other");
	if (c->o->only)
		r = check_words(c->o->only, &words);
	if (r < 0)
		return r;
	choose_words(c, words);
	return 0;
}

static int add_pair(struct p2p_command *c, struct pair p)
{
	for (size_t i = 0; i < c->run.pair_n; i++)
		if (c->pairs[i].initiator == p.initiator && c->pairs[i].target == p.target)
			return err_set(EINVAL, "--pairs names a pair twice");
	c->pairs = xrealloc(c->pairs, c->run.pair_n + 1, sizeof(*c->pairs));
	c->pairs[c->run.pair_n++] = p;
	c->run.pairs = c->pairs;
	return 0;
}

static int choose_pairs(struct p2p_command *c)
{
	AUTO_FREE char *list = c->o->pairs ? xstrdup(c->o->pairs) : NULL;
	char *rest = list, *word;
	int r = 0;

	while (r == 0 && (word = strsep(&rest, ","))) {
		struct pair p = {0};
		bool both = false;

		r = devices_find_pair(&c->devices, word, &p, &both);
		r = r < 0 ? err_wrap(r, "--pairs") : add_pair(c, p);
		if (r == 0 && both)
			r = add_pair(c, (struct pair){p.target, p.initiator});
	}
	return r;
}

/* Two buffers of that size are needed on each device. */
static uint64_t default_bytes(const struct p2p_command *c)
{
	uint64_t bytes = devices_are_stand_ins(&c->devices) ? HOST_BYTES
			 : c->format == FORMAT_P2P_TEST     ? PEER_BYTES
							    : DEFAULT_BYTES;

	for (size_t i = 0; i < c->set->n; i++)
		if (c->set->info[i].free_bytes && c->set->info[i].free_bytes / 4 < bytes)
			bytes = c->set->info[i].free_bytes / 4;
	if (c->devices.memory_bytes && c->devices.memory_bytes / 2 < bytes)
		bytes = c->devices.memory_bytes / 2;
	return bytes;
}

static int choose_sizes(struct p2p_command *c)
{
	uint64_t bytes = default_bytes(c);
	int r = 0;

	if (c->o->size)
		r = parse_bytes("--size", c->o->size, &bytes);
	if (r == 0 && bytes < P2P_SIZE_MIN)
		r = err_set(EINVAL, "copies of %lu bytes are too small: %d is the least",
			    (unsigned long)bytes, P2P_SIZE_MIN);
	bytes = bytes / 16 * 16;
	if (r == 0 && c->devices.memory_bytes && bytes > c->devices.memory_bytes / 2)
		r = err_set(EINVAL, "--size needs two buffers on each device, more than --memory");
	for (uint64_t b = SWEEP_FROM; r == 0 && c->o->sweep && b < bytes; b *= SWEEP_FACTOR)
		c->sizes[c->run.size_n++] = b;
	c->sizes[c->run.size_n++] = bytes;
	c->run.sizes = c->sizes;
	return r;
}

static int choose_time(struct p2p_command *c)
{
	char *end;
	double s;

	if (!c->o->time)
		return 0;
	s = strtod(c->o->time, &end);
	if (end == c->o->time || *end || !(s > 0 && s <= 3600))
		return err_set(EINVAL, "--time wants seconds, up to 3600, not '%s'", c->o->time);
	c->run.stopping.budget_s = s;
	return 0;
}

/* ---- while it runs ---- */

static void show_progress(void *context, const struct metric *m, uint64_t bytes, size_t round,
			  size_t rounds, size_t left)
{
	struct p2p_command *c = context;
	char size[BYTES_TEXT_SIZE], copies[64] = "";

	if (bytes)
		snprintf(copies, sizeof(copies), " with copies of %s", bytes_text(bytes, size));
	progress_show(&c->progress, "%s%s, round %zu of %zu, %zu left", m->name, copies, round + 1,
		      rounds, left);
}

static bool was_stopped(void *context)
{
	const struct p2p_command *c = context;

	return stop_signals_seen(c->devices.stop_fd);
}

static void look_at_links(void *context, const struct round *round)
{
	struct p2p_command *c = context;

	link_watch_look(c->links, c->set->info, c->devices.paths, round);
}

/* ---- running ---- */

static int open_set(struct p2p_command *c)
{
	double start = clock_s();
	int r = worker_open(NULL, &c->devices.request, c->devices.stop_fd, &c->set);

	c->start_s = clock_s() - start;
	for (size_t k = 0; r == 0 && k < c->set->n; k++)
		r = devices_check(&c->devices, k, c->set->info[k].ordinal, c->set->info[k].pci);
	return r;
}

static int ask_access(struct p2p_command *c)
{
	size_t n = c->set->n;
	int r = 0;

	c->access = xcalloc(n * n, sizeof(*c->access));
	for (size_t i = 0; i < n * n && r == 0; i++)
		if (i / n != i % n)
			r = c->set->ops->can_access(c->set, (int)(i / n), (int)(i % n),
						    &c->access[i]);
	return r;
}

static int choose_all(struct p2p_command *c)
{
	int r = choose_sizes(c);

	if (r == 0)
		r = choose_pairs(c);
	c->run.paths = c->devices.paths;
	c->run.verify = !c->o->no_verify;
	c->run.diagonal = c->format == FORMAT_P2P_TEST;
	return r == 0 ? ask_access(c) : r;
}

static void measure(struct p2p_command *c)
{
	const struct p2p_hooks hooks = {c, show_progress, was_stopped,
					devices_are_stand_ins(&c->devices) ? NULL : look_at_links};
	double start;
	int r;

	for (size_t k = 0; hooks.under_load && k < c->set->n; k++)
		link_watch_limit(&c->links[k], devices_gpu(&c->devices, k));
	c->run.hooks = &hooks;
	progress_begin(&c->progress);
	start = clock_s();
	r = p2p_run(c->set, &c->run, &c->result);
	c->run_s = clock_s() - start;
	c->run.hooks = NULL;
	progress_end(&c->progress);
	if (r < 0)
		c->ended = xstrdup(err_msg());
}

/* ---- the end ---- */

static enum exit_code judge(const struct p2p_command *c)
{
	struct p2p_counts n;

	report_p2p_count(&c->result, &n);
	if (n.wrong || c->ended)
		return EXIT_FINDING;
	if (c->result.stopped)
		return EXIT_REFUSED;
	return n.measured ? EXIT_WELL : EXIT_NOT_JUDGED;
}

/* A peer's layout has no place for it. */
static void warn_aside(const struct p2p_command *c)
{
	struct p2p_counts n;

	report_p2p_count(&c->result, &n);
	devices_tell(&c->devices);
	if (n.wrong)
		fail(EXIT_FINDING, "data wrong at the owner in %zu of %zu cells", n.wrong,
		     n.checked);
	if (c->ended)
		fail(EXIT_FINDING, "ended before its time: %s", c->ended);
	if (c->result.stopped)
		fail(EXIT_REFUSED, "stopped: the figures are what was done until then");
}

static int print_peer(const struct p2p_command *c, const struct p2p_report *r)
{
	AUTO_STRBUF struct strbuf b = {0};
	char host[65] = "unknown";

	warn_aside(c);
	gethostname(host, sizeof(host) - 1);
	if (c->format == FORMAT_P2P_TEST)
		format_p2p_test(r, &b);
	else
		format_nvbandwidth(r, host, &b);
	return print_text(&b, judge(c));
}

static struct figures *make_figures(const struct p2p_command *c)
{
	struct figures *f = p2p_figures(&c->result, c->devices.paths, c->set->info, c->set->n);

	bool stand_ins = devices_are_stand_ins(&c->devices);

	if (stand_ins)
		f->note = STAND_INS_TEXT;
	figures_stamp(f, stand_ins ? NULL : c->devices.machine);
	return f;
}

static int print_report(const struct p2p_command *c, const struct figures *f)
{
	const struct p2p_report r = {
		.stand_ins = devices_are_stand_ins(&c->devices),
		.machine = c->devices.machine,
		.names = c->devices.chosen.names,
		.devices = c->set->info,
		.n = c->set->n,
		.access = c->access,
		.paths = c->devices.paths,
		.result = &c->result,
		.figures = f,
		.links = devices_are_stand_ins(&c->devices) ? NULL : c->links,
		.skips = c->devices.chosen.skips,
		.skip_n = c->devices.chosen.skip_n,
		.ended = c->ended,
		.start_s = c->start_s,
		.run_s = c->run_s,
		.verbose = c->o->common.verbose,
	};
	struct document *out;
	int code;

	if (c->format != FORMAT_OWN)
		return print_peer(c, &r);
	if (c->o->common.json) {
		warn_aside(c);
		return print_json(figures_to_json(f), judge(c));
	}
	out = document_new();
	report_p2p(out, &r);
	code = print_document(out, &c->o->common, judge(c));
	document_free(out);
	return code;
}

/* Nobody waits for what hangs. */
static void close_set(struct p2p_command *c)
{
	if (c->set && c->ended)
		worker_kill(c->set, KILL_LIMIT_US);
	device_close(c->set);
}

static int run_devices(struct p2p_command *c)
{
	struct figures *f;
	int code, r;

	r = open_set(c);
	if (r < 0)
		return fail(r == -EINTR ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	if (choose_all(c) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	measure(c);
	f = make_figures(c);
	code = print_report(c, f);
	if (!devices_are_stand_ins(&c->devices) && store_keep(f) < 0)
		fail(EXIT_WELL, "the results are not kept for onehop check: %s", err_msg());
	figures_free(f);
	p2p_result_done(&c->result);
	return code;
}

static int run_bench_p2p(const void *options, const char *const *args)
{
	struct p2p_command c = {.o = options, .devices = DEVICES_NONE};
	int r;

	(void)args;
	c.format = (enum format)c.o->format;
	p2p_options_default(&c.run);
	choose_pace(&c);
	r = c.format != FORMAT_OWN && c.o->common.json
		    ? err_set(EINVAL, "--format and --json exclude each other")
		    : choose_metrics(&c);
	if (r == 0)
		r = choose_time(&c);
	if (r == 0)
		r = devices_choose(&c.o->devices, c.o->common.from, 0, &c.devices);
	if (r == 0)
		r = devices_lock(&c.devices);
	if (r < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = c.devices.request.n ? run_devices(&c) : devices_none(&c.devices);
	close_set(&c);
	devices_done(&c.devices);
	free(c.metrics);
	free(c.pairs);
	free(c.access);
	free((char *)c.ended);
	return r;
}

const struct command command_bench_p2p = {
	.name = "bench p2p",
	.args = "",
	.summary = "how fast each pair of GPUs is, with checked data, beside what to expect",
	.about = "Measures copies and loads between every two GPUs, and between each GPU and the "
		 "host: bandwidth by copy engine and by kernel, latency, round trips. Pairs that "
		 "share no link run at the same time. Each median comes with its 95 % interval, "
		 "and beside it stands what the path should give. What arrives is checked by the "
		 "owner of the memory, outside the timed part.",
	.options = p2p_table,
	.size = sizeof(struct p2p_command_options),
	.run = run_bench_p2p,
};
