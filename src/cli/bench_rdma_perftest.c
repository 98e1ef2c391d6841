/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench rdma --as perftest: with a host that has perftest and no onehop. */
#include "cli/bench_rdma.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "rdma/perftest.h"
#include "report/report_perftest.h"

#include <stdio.h>
#include <string.h>

static enum exit_code judge(const struct rdma_perftest *p)
{
	if (p->cell.failure.step != RDMA_STEP_NONE || *p->ended ||
	    (p->s->expect_gbps > 0 && rdma_is_short(&p->cell, rdma_perftest_expected(p))))
		return EXIT_FINDING;
	return p->whole ? EXIT_OK : EXIT_REFUSED;
}

static int print_table(const struct rdma_perftest *p, enum perftest_release layout)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct rdma_cell cell = p->cell;
	const struct perftest_table t = {
		.measure = p->measure,
		.device = p->s->listing->ports[p->port].device,
		.bytes =
			rdma_is_latency(p->measure) ? p->job.load.latency_bytes : p->job.load.bytes,
		.cell = &cell,
	};

	/* perftest prints what was asked for; round trips have one value fewer. */
	if (rdma_is_latency(p->measure))
		cell.messages = p->job.load.trips;

	if (p->cell.failure.step != RDMA_STEP_NONE || *p->ended)
		fail(EXIT_FINDING, "%s", *p->ended ? p->ended : p->cell.failure.text);
	format_perftest_table(&t, layout, &b);
	return print_text(&b, judge(p));
}

static int print_run(const struct rdma_perftest *p, const struct common_options *o)
{
	enum perftest_release layout;
	struct document *out;

	if (perftest_layout(o, &layout))
		return print_table(p, layout);
	if (prints_data(o))
		return print_figures(p->figures, o, judge(p));
	out = new_document(o);
	report_perftest(out, p);
	return show_document(out, o, judge(p));
}

/* How perftest's programs are given a place: "10.0.0.1", or "-p 18516 10.0.0.1". */
static const char *place_for_perftest(const char *at, char buf[static PEER_PLACE_MAX + 16])
{
	const char *port = strrchr(at, ':') + 1;
	int n = (int)(port - at) - 1;
	bool brackets = *at == '[', usual = strcmp(port, PERFTEST_TCP_PORT) == 0;

	snprintf(buf, PEER_PLACE_MAX + 16, "%s%s%s%.*s", usual ? "" : "-p ", usual ? "" : port,
		 usual ? "" : " ", brackets ? n - 2 : n, brackets ? at + 1 : at);
	return buf;
}

static int serve(struct rdma_perftest *p, const char *at, const struct common_options *o)
{
	char place[PEER_PLACE_MAX + 16];

	if (rdma_perftest_listen(p, at) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	fail(EXIT_OK, "listening on %s; on the other host: %s %s", p->listens_at,
	     rdma_perftest_tool(p->measure), place_for_perftest(p->listens_at, place));
	return rdma_perftest_serve(p) ? print_run(p, o) : EXIT_REFUSED;
}

int bench_rdma_perftest(struct rdma_session *s, struct progress *progress,
			const struct common_options *o, const char *address)
{
	struct rdma_perftest p;
	int r = rdma_perftest_begin(&p, s);

	progress_begin(progress);
	if (r < 0)
		r = fail(r == -EINVAL ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	else if (s->o->listen)
		r = serve(&p, address ? address : "127.0.0.1", o);
	else if ((r = rdma_perftest_run(&p, address)) < 0)
		r = fail(bench_rdma_unmet(r), "%s", err_msg());
	else
		r = print_run(&p, o);
	progress_end(progress);
	rdma_perftest_done(&p);
	return r;
}
