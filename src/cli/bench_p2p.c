/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench p2p: how fast each pair is, and each device and the host. */
#include "cli/command.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/device_options.h"
#include "cli/progress.h"
#include "report/report_p2p.h"
#include "session/p2p_session.h"

#include <errno.h>
#include <unistd.h>

struct bench_p2p_options {
	struct common_options common;
	struct p2p_request request;
};

/* In the order of enum p2p_layout, without the first; then ours. */
static const char *const formats[] = {"p2pBandwidthLatencyTest", "nvbandwidth-json", FORMAT_CSV,
				      NULL};

/* clang-format off */
#define AT(member) offsetof(struct bench_p2p_options, member)
static const struct option p2p_table[] = {
	DEVICE_OPTIONS(struct bench_p2p_options),
	OPT_FILE("from", request.from, "FILE",
		"with --device host: simulate the links of this recorded machine, at their "
		"expected rates"),
	OPT_TEXT("pairs", request.pairs, "LIST",
		"measure only these pairs: 0->1 is one direction, 2-3 both; patterns always "
		"use all devices"),
	OPT_TEXT("only", request.only, "LIST",
		"measure only these quantities, or groups of them: bandwidth, latency, host, "
		"staged, patterns", .words = WORDS_P2P_METRICS),
	OPT_FLAG("all", request.all,
		"also measure what is skipped by default: through the host, patterns, within "
		"a device and more"),
	OPT_TEXT("size", request.size, "SIZE",
		"bytes of a copy (K, M, G: binary) instead of 512M or what a quarter of memory holds"),
	OPT_FLAG("sweep", request.sweep, "use copies from 4K up to that size, by factors of 4"),
	OPT_TEXT("time", request.time, "SECONDS",
		"repeat a round for at most this long until its medians are within 1 %; "
		"default 0.3"),
	OPT_FLAG("no-verify", request.no_verify,
		"do not check the data; checking is never part of the time"),
	COMMON_FORMAT(struct bench_p2p_options, formats,
		"print exactly what p2pBandwidthLatencyTest prints, or nvbandwidth's JSON "
		"(nvbandwidth-json), or the figures for a spreadsheet (csv)"),
	FIGURES_JSON(struct bench_p2p_options),
	COMMON_PAGE(struct bench_p2p_options),
	COMMON_COLOR(struct bench_p2p_options),
	COMMON_WIDTH(struct bench_p2p_options),
	OPT_FLAG("verbose", common.verbose,
		"every figure with its interval and samples", .letter = 'v'),
	COMMON_HELP(struct bench_p2p_options),
	OPTIONS_END,
};

/* clang-format on */

static enum exit_code judge(const struct p2p_session *s)
{
	struct p2p_counts n;

	p2p_count(&s->result, &n);
	if (n.wrong || s->ended)
		return EXIT_FINDING;
	if (s->result.stopped)
		return EXIT_REFUSED;
	return n.measured ? EXIT_OK : EXIT_NOT_JUDGED;
}

/* A peer's layout has no place for it. */
static void warn_aside(const struct p2p_session *s)
{
	struct p2p_counts n;

	p2p_count(&s->result, &n);
	devices_tell(&s->devices);
	if (n.wrong)
		fail(EXIT_FINDING, "data wrong at the owner in %zu of %zu cells", n.wrong,
		     n.checked);
	if (s->ended)
		fail(EXIT_FINDING, "ended early: %s", s->ended);
	if (s->result.stopped)
		fail(EXIT_REFUSED, "stopped: the figures are incomplete");
}

static int print_peer(const struct p2p_session *s, const struct p2p_report *r)
{
	AUTO_STRBUF struct strbuf b = {0};
	char host[65] = "unknown";

	gethostname(host, sizeof(host) - 1);
	if (s->o->layout == P2P_LAYOUT_P2P_TEST)
		format_p2p_test(r, &b);
	else
		format_nvbandwidth(r, host, &b);
	return print_text(&b, judge(s));
}

static int print_session(const struct p2p_session *s, const struct common_options *o)
{
	const struct p2p_report r = p2p_report_of(s, o->verbose);
	struct document *out;

	if (s->o->layout != P2P_LAYOUT_OWN || prints_data(o))
		warn_aside(s);
	if (s->o->layout != P2P_LAYOUT_OWN)
		return print_peer(s, &r);
	if (prints_data(o))
		return print_figures(s->figures, o, judge(s));
	out = new_document(o);
	report_p2p(out, &r);
	return show_document(out, o, judge(s));
}

static int run_session(struct p2p_session *s, struct progress *progress,
		       const struct common_options *o)
{
	bool refused;
	int r;

	if (!s->devices.request.n)
		return devices_none(&s->devices, true);
	progress_begin(progress);
	r = p2p_session_run(s, &refused);
	progress_end(progress);
	if (r < 0)
		return fail(refused ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	return print_session(s, o);
}

static int run_bench_p2p(const void *options, const char *const *args)
{
	const struct bench_p2p_options *o = options;
	struct p2p_request request = o->request;
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	struct p2p_session s;
	int r;

	(void)args;
	if (!format_is(&o->common, FORMAT_CSV))
		request.layout = (enum p2p_layout)o->common.format;
	if (p2p_session_begin(&s, &request, &ear) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = run_session(&s, &progress, &o->common);
	p2p_session_done(&s);
	return r;
}

const struct command command_bench_p2p = {
	.name = "bench p2p",
	.args = "",
	.summary = "measure how fast each pair of GPUs is, with checked data and the expected "
		   "rates",
	.about = "Measures copies and loads between every two GPUs, and between each GPU and "
		 "the host: bandwidth by copy engine and by kernel, latency, round trips. "
		 "Pairs that share no link run at the same time. Each median is printed with "
		 "its 95 % interval and the expected rate of the path. The owner of the "
		 "memory checks the data, outside the timed part.",
	.options = p2p_table,
	.size = sizeof(struct bench_p2p_options),
	.run = run_bench_p2p,
};
