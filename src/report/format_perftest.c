/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of ib_write_bw, ib_read_bw, ib_write_lat and ib_read_lat, byte for byte. */
#include "base/strbuf.h"
#include "report/report_rdma.h"

#define RULE                                                                                       \
	"---------------------------------------------------------------------------------------\n"
#define MIB 1048576.0

static const char *const titles[RDMA_MEASURE_N] = {
	[RDMA_WRITE] = "RDMA_Write BW Test",
	[RDMA_READ] = "RDMA_Read BW Test",
	[RDMA_LATENCY_WRITE] = "RDMA_Write Latency Test",
	[RDMA_LATENCY_SEND] = "Send Latency Test",
	[RDMA_LATENCY_READ] = "RDMA_Read Latency Test",
};

/* The unit is MiB/s in both; 6.06 calls it MB/s. */
static const struct {
	const char *heading, *before_rate;
} bandwidths[] = {
	[PERFTEST_6_06] =
		{" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n",
		 "\t\t   "},
	[PERFTEST_6_29] =
		{" #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n",
		 "\t\t     "},
};

static const char latencies[] =
	" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";

/* Its peak is the fastest sample; a rate of messages in millions a second comes from GB/s. */
static void add_bandwidth(struct strbuf *out, uint64_t bytes, const struct rdma_cell *c,
			  enum perftest_release release)
{
	strbuf_printf(out, " %-7lu    %-10lu       %-7.2f            %-7.2f%s%-7.6f\n",
		      (unsigned long)bytes, (unsigned long)c->messages, c->value.max * 1e9 / MIB,
		      c->value.median * 1e9 / MIB, bandwidths[release].before_rate,
		      c->value.median * 1e3 / (double)bytes);
}

static void add_latency(struct strbuf *out, uint64_t bytes, const struct rdma_cell *c)
{
	strbuf_printf(out,
		      " %-7lu %lu          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     "
		      "\t%-7.2f\t\t%-7.2f \t\t%-7.2f\n",
		      (unsigned long)bytes, (unsigned long)c->messages, c->value.min, c->value.max,
		      c->value.median, c->mean, c->deviation, c->p99, c->p999);
}

void format_perftest_table(const struct perftest_table *t, enum perftest_release release,
			   struct strbuf *out)
{
	if (!titles[t->measure] || !t->cell->value.n)
		return;
	strbuf_puts(out, RULE);
	strbuf_printf(out,
		      "                    %s\n Dual-port       : OFF\t\tDevice         : %s\n",
		      titles[t->measure], t->device);
	if (t->memory)
		strbuf_printf(out, " Memory          : %s by %s\n", t->memory,
			      region_way_word(t->way));
	strbuf_puts(out, RULE);
	strbuf_puts(out, rdma_is_latency(t->measure) ? latencies : bandwidths[release].heading);
	if (rdma_is_latency(t->measure))
		add_latency(out, t->bytes, t->cell);
	else
		add_bandwidth(out, t->bytes, t->cell, release);
	strbuf_puts(out, RULE);
}

static void add_table(struct strbuf *out, const struct rdma_session *s, const struct rdma_pair *p,
		      const struct rdma_run *r, enum rdma_measure m, enum perftest_release release)
{
	const struct perftest_table t = {
		.measure = m,
		.device = s->listing->ports[p->port].device,
		.memory = p->gpu >= 0 ? s->devices.chosen.names[p->gpu] : NULL,
		.way = r->way,
		.bytes = rdma_bytes(r->size, m),
		.cell = &r->result.cells[m],
	};

	format_perftest_table(&t, release, out);
}

void format_perftest(const struct rdma_session *s, enum perftest_release release,
		     struct strbuf *out)
{
	for (size_t i = 0; i < s->pair_n; i++)
		for (size_t k = 0; k < s->pairs[i].run_n; k++)
			for (int m = 0; m < RDMA_MEASURE_N; m++)
				add_table(out, s, &s->pairs[i], &s->pairs[i].runs[k],
					  (enum rdma_measure)m, release);
}
