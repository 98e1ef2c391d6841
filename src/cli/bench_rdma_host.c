/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench rdma on one host. */
#include "cli/bench_rdma.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/device_options.h"

static enum exit_code judge(const struct rdma_session *s)
{
	struct rdma_counts n = rdma_count(s->pairs, s->pair_n);

	if (n.wrong || n.failed || n.working < n.pairs || (s->expect_gbps > 0 && n.slow))
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
		fail(EXIT_FINDING, "data wrong at the owner in %zu of %zu measurements", n.wrong,
		     n.checked);
	if (n.working < n.pairs)
		fail(EXIT_FINDING, "%zu of %zu pairs of NIC and memory do not work",
		     n.pairs - n.working, n.pairs);
	if (s->expect_gbps > 0 && n.slow)
		fail(EXIT_FINDING, "%zu of %zu rates are below what --expect says", n.slow,
		     n.rated);
	if (s->stopped)
		fail(EXIT_REFUSED, "stopped: the figures are incomplete");
}

static int print_session(const struct rdma_session *s, const struct common_options *o)
{
	AUTO_STRBUF struct strbuf b = {0};
	enum perftest_release layout;
	struct document *out;
	bool as_table = perftest_layout(o, &layout);

	if (as_table || prints_data(o))
		warn_aside(s);
	if (as_table) {
		format_perftest(s, layout, &b);
		return print_text(&b, judge(s));
	}
	if (prints_data(o))
		return print_figures(s->figures, o, judge(s));
	out = new_document(o);
	report_rdma(out, s, o->verbose);
	return show_document(out, o, judge(s));
}

int bench_rdma_host(struct rdma_session *s, struct progress *progress,
		    const struct common_options *o)
{
	struct document *out;
	int r;

	if (s->o->list) {
		out = new_document(o);
		report_rdma_list(out, s);
		return show_document(out, o, EXIT_OK);
	}
	progress_begin(progress);
	r = rdma_session_run(s);
	progress_end(progress);
	return r < 0 ? fail(EXIT_NOT_JUDGED, "%s", err_msg()) : print_session(s, o);
}
