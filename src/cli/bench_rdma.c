/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench rdma: whether NICs reach the memory of GPUs, whether the data is right, and how fast. */
#include "cli/command.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/device_options.h"
#include "cli/progress.h"
#include "report/report_rdma.h"
#include "report/report_rdma_hosts.h"
#include "result/figures_json.h"

struct bench_rdma_options {
	struct common_options common;
	struct rdma_request request;
	int layout;
};

/* From 1: in the order of enum perftest_release; the first is today's. */
static const char *const formats[] = {"perftest", "perftest-6.06", NULL};

/* clang-format off */
#define AT(member) offsetof(struct bench_rdma_options, member)
static const struct option rdma_table[] = {
	DEVICE_OPTIONS(struct bench_rdma_options),
	{"from", 0, OPTION_FILE, AT(request.from), "FILE",
		"with --device host: simulate the paths of this recorded machine", NULL, 0, 0, 0},
	{"listen", 0, OPTION_FLAG, AT(request.listen), NULL,
		"wait for onehop bench rdma of another host, at ADDRESS of this host (127.0.0.1) and "
		"TCP port " PEER_TCP_PORT ", until Ctrl-C", NULL, 0, 0, 0},
	{"list", 0, OPTION_FLAG, AT(request.list), NULL,
		"measure nothing: list the ports, their addresses and the reason for each "
		"address, and the pairs", NULL, 0, 0, 0},
	{"nics", 0, OPTION_TEXT, AT(request.nics), "LIST",
		"use only these: mlx5_0, mlx5_0/2 for a second port, or PCI addresses", NULL, 0, 0, 0, WORDS_NICS},
	{"all", 0, OPTION_FLAG, AT(request.all), NULL,
		"use every NIC with every GPU, not only the nearest", NULL, 0, 0, 0},
	{"only", 0, OPTION_TEXT, AT(request.only), "LIST",
		"measure only these: write, read, both, latency", NULL, 0, 0, 0, WORDS_RDMA_METRICS},
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
		"default 0.3",
		NULL, 0, 0, 0},
	{"no-relaxed-ordering", 0, OPTION_FLAG, AT(request.no_relaxed), NULL,
		"do not let the NIC reorder writes", NULL, 0, 0, 0},
	{"no-verify", 0, OPTION_FLAG, AT(request.no_verify), NULL,
		"do not check the data; checking is never part of the time", NULL, 0, 0, 0},
	{"format", 0, OPTION_CHOICE, AT(layout), "NAME",
		"print the tables of perftest 6.29 (perftest) or 6.06 (perftest-6.06)", formats, 0, 0, 0},
	FIGURES_JSON(struct bench_rdma_options),
	COMMON_COLOR(struct bench_rdma_options),
	COMMON_WIDTH(struct bench_rdma_options),
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL,
		"every figure with its interval and samples", NULL, 0, 0, 0},
	COMMON_HELP(struct bench_rdma_options),
	OPTIONS_END,
};

/* clang-format on */

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

static int print_perftest(const struct rdma_session *s, int layout)
{
	AUTO_STRBUF struct strbuf b = {0};

	warn_aside(s);
	format_perftest(s, layout == 1 ? PERFTEST_6_29 : PERFTEST_6_06, &b);
	return print_text(&b, judge(s));
}

static int print_report(const struct rdma_session *s, const struct bench_rdma_options *o)
{
	struct document *out = document_new();
	int code;

	if (s->o->list)
		report_rdma_list(out, s);
	else
		report_rdma(out, s, o->common.verbose);
	code = print_document(out, &o->common, s->o->list ? EXIT_OK : judge(s));
	document_free(out);
	return code;
}

static int run_session(struct rdma_session *s, struct progress *progress,
		       const struct bench_rdma_options *o)
{
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
	if (o->layout)
		return print_perftest(s, o->layout);
	if (!o->common.json)
		return print_report(s, o);
	warn_aside(s);
	return print_json(figures_to_json(s->figures), judge(s));
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

static int print_hosts(const struct rdma_hosts *h, const struct bench_rdma_options *o)
{
	struct document *out;
	int code;

	if (o->common.json)
		return print_json(figures_to_json(h->figures), judge_hosts(h));
	out = document_new();
	report_rdma_hosts(out, h, o->common.verbose);
	code = print_document(out, &o->common, judge_hosts(h));
	document_free(out);
	fflush(stdout);
	return code;
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

/* Options of one host that have no meaning between two. */
static const char *one_host_only(const struct bench_rdma_options *o)
{
	return o->request.list    ? "--list"
	       : o->request.sweep ? "--sweep"
	       : o->request.ways  ? "--memory-by"
	       : o->layout        ? "--format"
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

	if (hosts && one_host_only(o))
		return fail(EXIT_REFUSED, "%s is for one host, not between two", one_host_only(o));
	if (o->layout && o->common.json)
		return fail(EXIT_REFUSED, "--format and --json exclude each other");
	if (o->request.list && (o->layout || o->common.json))
		return fail(EXIT_REFUSED, "--list has only its own format");
	if (rdma_session_begin(&s, &o->request, &ear) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = hosts ? run_hosts(&s, &progress, o, args[0]) : run_session(&s, &progress, o);
	rdma_session_done(&s);
	return r;
}

const struct command command_bench_rdma = {
	.name = "bench rdma",
	.args = "[HOST[:PORT] | --listen [ADDRESS[:PORT]]]",
	.summary = "test whether NICs can access GPU memory, with checked data, and how fast",
	.about = "Sends data through each active port of each NIC to itself, between this "
		 "host's memory and that of the host and of GPUs, registered as a dma-buf and "
		 "by peer memory. Writing into a GPU and reading from it are tested "
		 "separately. The owner of the memory checks the data, outside the timed "
		 "part. A failure is explained by its first failing step: cause, what to "
		 "check, what to do. With HOST, on which onehop bench rdma --listen ADDRESS runs: "
		 "which NICs of this host reach which of the other, then the rates and latencies "
		 "between them, host memory to host memory, checked by its owner. Changes nothing.",
	.options = rdma_table,
	.size = sizeof(struct bench_rdma_options),
	.max_args = 1,
	.run = run_bench_rdma,
};
