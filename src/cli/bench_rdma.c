/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench rdma: whether NICs reach the memory of GPUs, whether the data is right, and how fast. */
#include "cli/command.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/device_options.h"
#include "cli/progress.h"
#include "report/report_perftest.h"
#include "report/report_rdma.h"
#include "report/report_rdma_hosts.h"

struct bench_rdma_options {
	struct common_options common;
	struct rdma_request request;
	int as;
};

#define FORMAT_PERFTEST     "perftest"
#define FORMAT_PERFTEST_606 "perftest-6.06"
static const char *const formats[] = {FORMAT_PERFTEST, FORMAT_PERFTEST_606, FORMAT_CSV, NULL};
static const char *const tools[] = {"perftest", NULL};

/* clang-format off */
#define AT(member) offsetof(struct bench_rdma_options, member)
static const struct option rdma_table[] = {
	DEVICE_OPTIONS(struct bench_rdma_options),
	{"from", 0, OPTION_FILE, AT(request.from), "FILE",
		"with --device host: simulate the paths of this recorded machine", NULL, 0, 0, 0},
	{"listen", 0, OPTION_FLAG, AT(request.listen), NULL,
		"wait for onehop bench rdma of another host, at ADDRESS of this host (127.0.0.1) and "
		"TCP port " PEER_TCP_PORT ", until Ctrl-C", NULL, 0, 0, 0},
	{"as", 0, OPTION_CHOICE, AT(as), "TOOL",
		"with HOST or --listen: the other host runs ib_write_bw, ib_read_bw (--only read), "
		"ib_write_lat (--only latency) or ib_send_lat (--only send) of perftest, TCP port " PERFTEST_TCP_PORT, tools, 0, 0, 0},
	{"iterations", 0, OPTION_NUMBER, AT(request.iterations), "N",
		"with --as perftest --only latency or send: round trips, as many as the other end's -n; default 1000",
		NULL, 0, 0, 0},
	{"list", 0, OPTION_FLAG, AT(request.list), NULL,
		"measure nothing: list the ports, their addresses and the reason for each "
		"address, and the pairs", NULL, 0, 0, 0},
	{"nics", 0, OPTION_TEXT, AT(request.nics), "LIST",
		"use only these: mlx5_0, mlx5_0/2 for a second port, or PCI addresses", NULL, 0, 0, 0, WORDS_NICS},
	{"gid", 0, OPTION_TEXT, AT(request.gid), "INDEX",
		"use only the address with this index of each port's table (see --list), instead of the best",
		NULL, 0, 0, 0},
	{"all", 0, OPTION_FLAG, AT(request.all), NULL,
		"use every NIC with every GPU, not only the nearest", NULL, 0, 0, 0},
	{"only", 0, OPTION_TEXT, AT(request.only), "LIST",
		"measure only these: write, read, both, latency; send and immediate (latencies of sends and of "
		"writes with immediate) only if they are named", NULL, 0, 0, 0, WORDS_RDMA_METRICS},
	{"memory-by", 0, OPTION_TEXT, AT(request.ways), "LIST",
		"use only this memory: host, and the GPUs' by dma-buf or by peer-memory", NULL, 0, 0, 0, WORDS_MEMORY},
	{"size", 0, OPTION_TEXT, AT(request.size), "SIZE",
		"bytes of a message (K, M: binary) instead of 64K", NULL, 0, 0, 0},
	{"sweep", 0, OPTION_FLAG, AT(request.sweep), NULL,
		"use messages from 2 bytes up to that size, or 8M, by factors of 2", NULL, 0, 0, 0},
	{"queues", 0, OPTION_NUMBER, AT(request.queues), "N",
		"queue pairs at once in each direction; default 1", NULL, 0, 0, 0},
	{"depth", 0, OPTION_NUMBER, AT(request.depth), "N",
		"messages in flight per queue; default 128", NULL, 0, 0, 0},
	{"time", 0, OPTION_TEXT, AT(request.time), "SECONDS",
		"repeat a measurement for at most this long until its median is within 1 %; "
		"default 0.3. With --as perftest --listen: what the other end may take, default 120",
		NULL, 0, 0, 0},
	{"no-relaxed-ordering", 0, OPTION_FLAG, AT(request.no_relaxed), NULL,
		"do not let the NIC reorder writes", NULL, 0, 0, 0},
	{"no-verify", 0, OPTION_FLAG, AT(request.no_verify), NULL,
		"do not check the data; checking is never part of the time", NULL, 0, 0, 0},
	COMMON_FORMAT(struct bench_rdma_options, formats,
		"print the tables of perftest 6.29 (perftest) or 6.06 (perftest-6.06), or the figures for a spreadsheet (csv)"),
	FIGURES_JSON(struct bench_rdma_options),
	COMMON_PAGE(struct bench_rdma_options),
	COMMON_COLOR(struct bench_rdma_options),
	COMMON_WIDTH(struct bench_rdma_options),
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL,
		"every figure with its interval and samples", NULL, 0, 0, 0},
	COMMON_HELP(struct bench_rdma_options),
	OPTIONS_END,
};

/* clang-format on */

/* Whether it is a layout of perftest, and which. */
static bool perftest_layout(const struct bench_rdma_options *o, enum perftest_release *ret)
{
	*ret = format_is(&o->common, FORMAT_PERFTEST_606) ? PERFTEST_6_06 : PERFTEST_6_29;
	return *ret == PERFTEST_6_06 || format_is(&o->common, FORMAT_PERFTEST);
}

static enum exit_code judge(const struct rdma_session *s)
{
	struct rdma_counts n = rdma_count(s->pairs, s->pair_n);

	if (n.wrong || n.failed || n.working < n.pairs)
		return EXIT_FINDING;
	if (s->stopped)
		return EXIT_REFUSED;
	return n.measured ? EXIT_OK : EXIT_NOT_JUDGED;
}

/* Layouts for programs have no place for it. */
static void warn_aside(const struct rdma_session *s)
{
	struct rdma_counts n = rdma_count(s->pairs, s->pair_n);

	devices_tell(&s->devices);
	if (n.wrong)
		fail(EXIT_FINDING, "data wrong at the owner in %zu of %zu directions", n.wrong,
		     n.checked);
	if (n.working < n.pairs)
		fail(EXIT_FINDING, "%zu of %zu pairs of NIC and memory do not work",
		     n.pairs - n.working, n.pairs);
	if (s->stopped)
		fail(EXIT_REFUSED, "stopped: the figures are incomplete");
}

static int print_perftest(const struct rdma_session *s, enum perftest_release layout)
{
	AUTO_STRBUF struct strbuf b = {0};

	warn_aside(s);
	format_perftest(s, layout, &b);
	return print_text(&b, judge(s));
}

static int print_report(const struct rdma_session *s, const struct bench_rdma_options *o)
{
	struct document *out = new_document(&o->common);

	if (s->o->list)
		report_rdma_list(out, s);
	else
		report_rdma(out, s, o->common.verbose);
	return show_document(out, &o->common, s->o->list ? EXIT_OK : judge(s));
}

static int run_session(struct rdma_session *s, struct progress *progress,
		       const struct bench_rdma_options *o)
{
	enum perftest_release layout;
	int r = rdma_session_look(s);

	if (r < 0)
		return fail(r == -EINVAL ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	if (!s->listing->n)
		return fail(EXIT_NOT_JUDGED, "libibverbs lists no NIC on this machine");
	if (s->o->list)
		return print_report(s, o);
	progress_begin(progress);
	r = rdma_session_run(s);
	progress_end(progress);
	if (r < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	if (perftest_layout(o, &layout))
		return print_perftest(s, layout);
	if (!prints_data(&o->common))
		return print_report(s, o);
	warn_aside(s);
	return print_figures(s->figures, &o->common, judge(s));
}

/* ---- two hosts ---- */

static enum exit_code judge_hosts(const struct rdma_hosts *h)
{
	struct hosts_counts n = rdma_hosts_count(h);

	if (n.wrong || n.failed || *h->ended || rdma_hosts_has_lonely(h) ||
	    (n.reached < n.tried && !rdma_hosts_are_rails(h)))
		return EXIT_FINDING;
	if (h->s->stopped && !h->whole)
		return EXIT_REFUSED;
	return n.tried ? EXIT_OK : EXIT_NOT_JUDGED;
}

static int print_perftest_hosts(const struct rdma_hosts *h, enum perftest_release layout)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (*h->ended)
		fail(EXIT_FINDING, "%s", h->ended);
	if (judge_hosts(h) == EXIT_FINDING)
		fail(EXIT_FINDING,
		     "something failed or is wrong: see the same run without --format");
	format_perftest_hosts(h, layout, &b);
	return print_text(&b, judge_hosts(h));
}

static int print_hosts(const struct rdma_hosts *h, const struct bench_rdma_options *o)
{
	enum perftest_release layout;
	struct document *out;

	if (perftest_layout(o, &layout))
		return print_perftest_hosts(h, layout);
	if (prints_data(&o->common))
		return print_figures(h->figures, &o->common, judge_hosts(h));
	out = new_document(&o->common);
	report_rdma_hosts(out, h, o->common.verbose);
	return show_document(out, &o->common, judge_hosts(h));
}

static int listen_for_hosts(struct rdma_hosts *h, const char *at,
			    const struct bench_rdma_options *o)
{
	int code = EXIT_OK;

	if (rdma_hosts_listen(h, at) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	fail(EXIT_OK, "listening on %s; on the other host: onehop bench rdma %s", h->listens_at,
	     h->listens_at);
	while (!h->s->stopped && rdma_hosts_serve(h))
		code = print_hosts(h, o);
	return code;
}

static int run_hosts(struct rdma_session *s, struct progress *progress,
		     const struct bench_rdma_options *o, const char *address)
{
	struct rdma_hosts h;
	int r = rdma_session_look(s);

	if (r < 0)
		return fail(r == -EINVAL ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	if (!s->listing->n)
		return fail(EXIT_NOT_JUDGED, "libibverbs lists no NIC on this machine");
	progress_begin(progress);
	rdma_hosts_begin(&h, s);
	if (s->o->listen)
		r = listen_for_hosts(&h, address ? address : "127.0.0.1", o);
	else if (rdma_hosts_run(&h, address) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = print_hosts(&h, o);
	progress_end(progress);
	rdma_hosts_done(&h);
	return r;
}

/* ---- a host with perftest ---- */

static enum exit_code judge_perftest(const struct rdma_perftest *p)
{
	if (p->cell.failure.step != RDMA_STEP_NONE || *p->ended)
		return EXIT_FINDING;
	return p->whole ? EXIT_OK : EXIT_REFUSED;
}

static int print_as_perftest(const struct rdma_perftest *p, enum perftest_release layout)
{
	AUTO_STRBUF struct strbuf b = {0};
	const struct perftest_table t = {
		.measure = p->measure,
		.device = p->s->listing->ports[p->port].device,
		.bytes =
			rdma_is_latency(p->measure) ? p->job.load.latency_bytes : p->job.load.bytes,
		.cell = &p->cell,
	};

	if (p->cell.failure.step != RDMA_STEP_NONE || *p->ended)
		fail(EXIT_FINDING, "%s", *p->ended ? p->ended : p->cell.failure.text);
	format_perftest_table(&t, layout, &b);
	return print_text(&b, judge_perftest(p));
}

static int print_perftest_run(const struct rdma_perftest *p, const struct bench_rdma_options *o)
{
	enum perftest_release layout;
	struct document *out;

	if (perftest_layout(o, &layout))
		return print_as_perftest(p, layout);
	if (prints_data(&o->common))
		return print_figures(p->figures, &o->common, judge_perftest(p));
	out = document_new();
	report_perftest(out, p);
	return show_document(out, &o->common, judge_perftest(p));
}

static int serve_perftest(struct rdma_perftest *p, const char *at,
			  const struct bench_rdma_options *o)
{
	if (rdma_perftest_listen(p, at) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	fail(EXIT_OK, "listening on %s; on the other host: %s ADDRESS", p->listens_at,
	     rdma_perftest_tool(p->measure));
	return rdma_perftest_serve(p) ? print_perftest_run(p, o) : EXIT_REFUSED;
}

static int run_perftest(struct rdma_session *s, struct progress *progress,
			const struct bench_rdma_options *o, const char *address)
{
	struct rdma_perftest p;
	int r = rdma_session_look(s);

	if (r < 0)
		return fail(r == -EINVAL ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	r = rdma_perftest_begin(&p, s);
	progress_begin(progress);
	if (r < 0)
		r = fail(r == -EINVAL ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	else if (s->o->listen)
		r = serve_perftest(&p, address ? address : "127.0.0.1", o);
	else if (rdma_perftest_run(&p, address) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = print_perftest_run(&p, o);
	progress_end(progress);
	rdma_perftest_done(&p);
	return r;
}

/* Options that have no meaning between two hosts; NULL: none is there. */
static const char *meaningless(const struct bench_rdma_options *o)
{
	bool listener = o->request.listen && !o->as;

	return o->request.list                           ? "--list"
	       : o->request.sweep && (listener || o->as) ? "--sweep"
	       : o->request.ways && o->as                ? "--memory-by"
	       : o->common.format && listener            ? "--format"
							 : NULL;
}

static int run_bench_rdma(const void *options, const char *const *args)
{
	const struct bench_rdma_options *o = options;
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	struct rdma_session s;
	int r;

	bool hosts = o->request.listen || args[0];

	if (hosts && meaningless(o))
		return fail(EXIT_REFUSED,
			    o->request.list
				    ? "%s is for one host, not between two"
				    : "%s is for the host that measures, with another onehop",
			    meaningless(o));
	if (o->as && !hosts)
		return fail(EXIT_REFUSED, "--as needs HOST, or --listen");
	if (o->as && o->request.queues > 1)
		return fail(EXIT_REFUSED, "--as perftest uses one queue pair");
	if (!o->as && o->request.iterations)
		return fail(EXIT_REFUSED, "--iterations is for --as perftest");
	if (o->request.list && (o->common.format || o->common.json))
		return fail(EXIT_REFUSED, "--list has only its own format");
	if (rdma_session_begin(&s, &o->request, &ear) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = o->as   ? run_perftest(&s, &progress, o, args[0])
		    : hosts ? run_hosts(&s, &progress, o, args[0])
			    : run_session(&s, &progress, o);
	rdma_session_done(&s);
	return r;
}

const struct command command_bench_rdma = {
	.name = "bench rdma",
	.args = "[HOST[:PORT] | --listen [ADDRESS[:PORT]]]",
	.summary = "test whether NICs can access GPU memory, with checked data, and how fast",
	.about =
		"Sends data through each active port of each NIC to itself, between this "
		"host's memory and that of the host and of GPUs, registered as a dma-buf and "
		"by peer memory. Writing into a GPU and reading from it are tested "
		"separately. The owner of the memory checks the data, outside the timed "
		"part. A failure is explained by its first failing step: cause, what to "
		"check, what to do. With HOST, on which onehop bench rdma --listen ADDRESS runs: "
		"which NICs of this host reach which of the other, then the rates and latencies "
		"between them, of host memory and of GPUs, checked by its owner. With --as perftest "
		"the other host runs a program of perftest instead. Changes nothing.",
	.options = rdma_table,
	.size = sizeof(struct bench_rdma_options),
	.max_args = 1,
	.run = run_bench_rdma,
};
