/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench rdma between two hosts. */
#include "cli/bench_rdma.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "report/report_rdma_hosts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static enum exit_code judge(const struct rdma_hosts *h)
{
	struct hosts_counts n = rdma_hosts_count(h);

	if (n.wrong || n.failed || *h->ended || rdma_hosts_has_lonely(h) ||
	    (n.reached < n.tried && !rdma_hosts_are_rails(h)) || (h->s->expect_gbps > 0 && n.slow))
		return EXIT_FINDING;
	if (h->s->stopped && !h->whole)
		return EXIT_REFUSED;
	return n.tried ? EXIT_OK : EXIT_NOT_JUDGED;
}

static int print_perftest(const struct rdma_hosts *h, enum perftest_release layout)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (*h->ended)
		fail(EXIT_FINDING, "%s", h->ended);
	if (judge(h) == EXIT_FINDING)
		fail(EXIT_FINDING,
		     "something failed or is wrong: see the same run without --format");
	format_perftest_hosts(h, layout, &b);
	return print_text(&b, judge(h));
}

static int print_hosts(const struct rdma_hosts *h, const struct common_options *o)
{
	enum perftest_release layout;
	struct document *out;

	bool as_table = perftest_layout(o, &layout);
	size_t too_slow = rdma_hosts_count(h).too_slow;

	if (too_slow && (as_table || prints_data(o)))
		fail(EXIT_OK,
		     "%zu %s left out: at this rate a message takes longer than it is waited for",
		     too_slow, text_plural(too_slow, "measurement was", "measurements were"));
	if (as_table)
		return print_perftest(h, layout);
	if (prints_data(o))
		return print_figures(h->figures, o, judge(h));
	out = new_document(o);
	report_rdma_hosts(out, h, o->verbose);
	return show_document(out, o, judge(h));
}

/*
 * What another host gives to reach a place of this one; any of its addresses cannot be told by one.
 */
static const char *place_for_others(const char *at, char buf[static PEER_PLACE_MAX + 8])
{
	bool any = strncmp(at, "0.0.0.0:", 8) == 0 || strncmp(at, "[::]:", 5) == 0;

	snprintf(buf, PEER_PLACE_MAX + 8, "%s%s", any ? "ADDRESS" : "",
		 any ? strrchr(at, ':') : at);
	return buf;
}

static int listen_for_peers(struct rdma_hosts *h, const char *at, const struct common_options *o)
{
	int code = EXIT_OK;
	char place[PEER_PLACE_MAX + 8];

	if (rdma_hosts_listen(h, at) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	fail(EXIT_OK, "listening on %s; on the other host: onehop bench rdma %s", h->listens_at,
	     place_for_others(h->listens_at, place));
	while (!h->s->stopped && rdma_hosts_serve(h))
		code = print_hosts(h, o);
	return code;
}

enum exit_code bench_rdma_unmet(int r)
{
	return r == -EINVAL || r == -EINTR || r == -EBUSY ? EXIT_REFUSED : EXIT_FINDING;
}

int bench_rdma_hosts(struct rdma_session *s, struct progress *progress,
		     const struct common_options *o, const char *address)
{
	struct rdma_hosts h;
	int r;

	progress_begin(progress);
	rdma_hosts_begin(&h, s);
	if (s->o->listen)
		r = listen_for_peers(&h, address ? address : "127.0.0.1", o);
	else if ((r = rdma_hosts_run(&h, address)) < 0)
		r = fail(bench_rdma_unmet(r), "%s", err_msg());
	else
		r = print_hosts(&h, o);
	progress_end(progress);
	rdma_hosts_done(&h);
	return r;
}
