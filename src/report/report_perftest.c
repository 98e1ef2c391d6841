/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop bench rdma --as perftest` tells people. */
#include "report/report_perftest.h"

#include "base/text.h"
#include "report/report_impl.h"

#include <math.h>

static void add_head(struct document *out, const struct rdma_perftest *p)
{
	char port[PORT_NAME], gid[GID_TEXT];
	const struct nic_port *own = &p->s->listing->ports[p->port];

	port_name(own, port);
	gid_text(&own->gid.entry.gid, gid);
	if (p->serves)
		document_paragraph(out, STYLE_PLAIN, 0,
				   "%s %s on %s with %s of this host (%s, index %u).",
				   *p->release ? "perftest" : "A client", p->release, p->address,
				   port, gid, own->gid.entry.gid_index);
	else
		document_paragraph(out, STYLE_PLAIN, 0,
				   "%s with perftest %s on %s, from %s (%s, index %u).",
				   rdma_perftest_tool(p->measure),
				   *p->release ? p->release : "(unknown)", p->address, port, gid,
				   own->gid.entry.gid_index);
}

static void add_rate(struct document *out, const struct rdma_perftest *p)
{
	const struct summary *v = &p->cell.value;
	double expected = rdma_perftest_expected(p);
	char size[BYTES_TEXT_SIZE];

	document_paragraph(out, STYLE_STRONG, 0,
			   "%s %.3f GB/s (%.3f to %.3f): messages of %s, %u in flight, "
			   "1 queue pair, host memory on both sides.",
			   p->measure == RDMA_READ ? "Reads" : "Writes", v->median, summary_low(v),
			   summary_high(v), bytes_text(p->job.load.bytes, size), p->job.load.depth);
	if (expected > 0)
		document_paragraph(out, STYLE_PLAIN, 0,
				   "%s of this host's end: %.3g GB/s; the limit is %s.",
				   rdma_is_short(&p->cell, expected) ? "Less than is expected"
								     : "As is expected",
				   expected, p->limit);
}

static void add_latency(struct document *out, const struct rdma_perftest *p)
{
	const struct rdma_cell *c = &p->cell;

	document_paragraph(out, STYLE_STRONG, 0,
			   "Half a round trip %.2f us (median of %zu; 99 %% below %.2f us): %s "
			   "of %llu bytes, host memory on both sides.",
			   c->value.median, c->value.n, c->p99,
			   p->measure == RDMA_LATENCY_SEND ? "sends" : "writes",
			   (unsigned long long)p->job.load.latency_bytes);
}

static void add_report(struct document *out, const struct rdma_perftest *p)
{
	char size[BYTES_TEXT_SIZE];

	document_paragraph(
		out, STYLE_STRONG, 0,
		"It reports %.3f GB/s (%.2f MiB/s) on average: %llu messages of %s. This "
		"host did not measure.",
		p->reported.average_mib * 1048576.0 / 1e9, p->reported.average_mib,
		(unsigned long long)p->reported.messages, bytes_text(p->reported.bytes, size));
}

static void add_failure(struct document *out, const struct rdma_perftest *p)
{
	const struct rdma_failure *f = &p->cell.failure;

	if (f->step == RDMA_STEP_NONE)
		return;
	document_paragraph(out, STYLE_BAD, 0, "%s failed.", rdma_step_text(f->step));
	add_rdma_cause(out, f);
}

void report_perftest(struct document *out, const struct rdma_perftest *p)
{
	add_head(out, p);
	if (*p->ended)
		document_paragraph(out, STYLE_BAD, 0, "Incomplete: %s.", p->ended);
	else if (p->s->stopped && !p->whole)
		document_paragraph(out, STYLE_WARN, 0, "Stopped: the results are incomplete.");
	add_failure(out, p);
	if (p->cell.value.n && rdma_is_latency(p->measure))
		add_latency(out, p);
	else if (p->cell.value.n)
		add_rate(out, p);
	if (p->has_report)
		add_report(out, p);
	if (p->whole)
		document_paragraph(
			out, STYLE_DIM, 0,
			"The data was not checked: perftest sends no pattern and checks none.");
}
