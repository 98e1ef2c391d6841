/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onehop bench rdma: whether NICs reach the memory of GPUs, whether the data is right, and how
 * fast.
 */
#include "cli/bench_rdma.h"

#include "base/err.h"
#include "cli/device_options.h"
#include "rdma/peer.h"
#include "rdma/perftest.h"

#include <errno.h>

static const char *const formats[] = {FORMAT_PERFTEST, FORMAT_PERFTEST_606, FORMAT_CSV, NULL};
static const char *const tools[] = {"perftest", NULL};

/* clang-format off */
#define AT(member) offsetof(struct bench_rdma_options, member)
static const struct option rdma_table[] = {
	DEVICE_OPTIONS(struct bench_rdma_options),
	OPT_FILE("from", request.from, "FILE",
		"with --device host: simulate the paths of this recorded machine"),
	OPT_FLAG("listen", request.listen,
		"wait for onehop bench rdma of another host, at ADDRESS of this host (127.0.0.1) and "
		"TCP port " PEER_TCP_PORT ", until Ctrl-C"),
	OPT_CHOICE("as", as, "TOOL", tools,
		"with HOST or --listen: the other host runs ib_write_bw, ib_read_bw (--only read), "
		"ib_write_lat (--only latency) or ib_send_lat (--only send) of perftest, TCP port " PERFTEST_TCP_PORT),
	OPT_NUMBER("iterations", request.iterations, "N",
		"with --as perftest --only latency or send: round trips, as many as the other end's -n; default 1000"),
	OPT_FLAG("list", request.list,
		"measure nothing: list the ports, their addresses and the reason for each "
		"address, and the pairs"),
	OPT_TEXT("nics", request.nics, "LIST",
		"use only these: mlx5_0, mlx5_0/2 for a second port, or PCI addresses", .words = WORDS_NICS),
	OPT_TEXT("gid", request.gid, "INDEX",
		"use only the address with this index of each port's table (see --list), instead of the best"),
	OPT_FLAG("all", request.all, "use every NIC with every GPU, not only the nearest"),
	OPT_TEXT("only", request.only, "LIST",
		"measure only these: write, read, both, latency; send and immediate (latencies of sends and of "
		"writes with immediate) only if they are named", .words = WORDS_RDMA_METRICS),
	OPT_TEXT("memory-by", request.ways, "LIST",
		"use only this memory: host, and the GPUs' by dma-buf or by peer-memory; on-demand (host memory that is "
		"not pinned) only if it is named", .words = WORDS_MEMORY),
	OPT_TEXT("size", request.size, "SIZE",
		"bytes of a message (K, M: binary), 2 to 8M, instead of 64K for rates and 8 for latencies"),
	OPT_FLAG("sweep", request.sweep,
		"use messages from 2 bytes up to that size, or 8M, by factors of 2"),
	OPT_NUMBER("queues", request.queues, "N",
		"queue pairs at once in each direction; default 1"),
	OPT_NUMBER("depth", request.depth, "N", "messages in flight per queue; default 128"),
	OPT_TEXT("time", request.time, "SECONDS",
		"repeat a measurement for at most this long until its median is within 1 %; "
		"default 0.3. With --as perftest --listen: what the other end may take, default 120"),
	OPT_TEXT("expect", request.expect, "GB/s",
		"the rate of each direction that is expected, instead of what the links allow: the exit status is 1 "
		"where one is below 85 % of it"),
	OPT_FLAG("no-relaxed-ordering", request.no_relaxed, "do not let the NIC reorder writes"),
	OPT_FLAG("no-verify", request.no_verify,
		"do not check the data; checking is never part of the time"),
	COMMON_FORMAT(struct bench_rdma_options, formats,
		"print the tables of perftest 6.29 (perftest) or 6.06 (perftest-6.06), or the figures for a spreadsheet (csv)"),
	FIGURES_JSON(struct bench_rdma_options),
	COMMON_PAGE(struct bench_rdma_options),
	COMMON_COLOR(struct bench_rdma_options),
	COMMON_WIDTH(struct bench_rdma_options),
	OPT_FLAG("verbose", common.verbose,
		"every figure with its interval and samples", .letter = 'v'),
	COMMON_HELP(struct bench_rdma_options),
	OPTIONS_END,
};

/* clang-format on */

static const struct option_rule rdma_rules[] = {
	{"list", .not_with = "listen as format json", .why = ": it measures nothing"},
	{"as", .not_with = "sweep memory-by queues",
	 .why = ": perftest's programs measure one size, with one queue pair and the memory of hosts"},
	{"iterations", .needs = "as"},
	{0},
};

bool perftest_layout(const struct common_options *o, enum perftest_release *ret)
{
	*ret = format_is(o, FORMAT_PERFTEST_606) ? PERFTEST_6_06 : PERFTEST_6_29;
	return *ret == PERFTEST_6_06 || format_is(o, FORMAT_PERFTEST);
}

static int run_what(struct rdma_session *s, struct progress *progress,
		    const struct bench_rdma_options *o, const char *address)
{
	int r = rdma_session_look(s);

	if (r < 0)
		return fail(r == -EINVAL ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	if (!s->listing->n)
		return fail(EXIT_NOT_JUDGED, "libibverbs lists no NIC on this machine");
	return o->as ? bench_rdma_perftest(s, progress, &o->common, address)
	       : o->request.listen || address ? bench_rdma_hosts(s, progress, &o->common, address)
					      : bench_rdma_host(s, progress, &o->common);
}

/*
 * What the table of rules cannot hold: an address is not an option, and a listener for perftest
 * takes more of them.
 */
static int check_place(const struct bench_rdma_options *o, const char *address)
{
	bool listener = o->request.listen && !o->as;

	if (address && o->request.list)
		return err_set(EINVAL, "--list is for one host, not between two");
	if (o->as && !o->request.listen && !address)
		return err_set(EINVAL, "--as needs HOST, or --listen");
	if (listener && (o->request.sweep || o->common.format))
		return err_set(EINVAL, "%s is for the host that measures",
			       o->request.sweep ? "--sweep" : "--format");
	return 0;
}

static int run_bench_rdma(const void *options, const char *const *args)
{
	const struct bench_rdma_options *o = options;
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	struct rdma_session s;
	int r;

	if (check_place(o, args[0]) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (rdma_session_begin(&s, &o->request, &ear) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = run_what(&s, &progress, o, args[0]);
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
	.rules = rdma_rules,
	.size = sizeof(struct bench_rdma_options),
	.max_args = 1,
	.run = run_bench_rdma,
};
