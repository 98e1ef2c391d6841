/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine/figures.c and the readers of other tools' results: layouts, rubbish around and in them.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "bench/collective_bench.h"
#include "ingest/figures_open.h"
#include "json_schema.h"
#include "open_recording.h"
#include "result/comparison.h"
#include "result/figures_json.h"

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#define CASE "tests/figures/rtx4090x8/"

static struct figures *parsed(const char *text, const char *name)
{
	struct figures *f = NULL;

	if (figures_parse(text, strlen(text), name, &f) < 0)
		fail_msg("%s", err_msg());
	return f;
}

static void assert_refused_as(int error, const char *text, const char *name, const char *part)
{
	struct figures *f = NULL;

	assert_int_equal(figures_parse(text, strlen(text), name, &f), -error);
	assert_null(f);
	if (!strstr(err_msg(), part))
		fail_msg("no \"%s\" in: %s", part, err_msg());
}

static void assert_refused(const char *text, const char *name, const char *part)
{
	assert_refused_as(EINVAL, text, name, part);
}

static void assert_value(const struct figures *f, const char *what, int i, int j, uint64_t bytes,
			 double value)
{
	const struct figure *r = figures_find(f, what, i, j, bytes);

	if (!r)
		fail_msg("no %s %d %d %llu", what, i, j, (unsigned long long)bytes);
	if (fabs(r->median - value) > 1e-9)
		fail_msg("%s %d %d: %f instead of %f", what, i, j, r->median, value);
}

/* ---- p2pBandwidthLatencyTest ---- */

static void the_case_p2p(void **state)
{
	struct figures *f = NULL;

	(void)state;
	assert_int_equal(figures_open(CASE "p2pBandwidthLatencyTest-before.txt", &f), 0);
	assert_int_equal(f->gpu_n, 8);
	assert_int_equal(f->trouble_n, 0);
	assert_int_equal(f->row_n, 7 * 56 + 8);
	assert_value(f, "p2p-access", 1, 0, 0, 0);
	assert_value(f, "both-ce-staged", 1, 0, 0, 21.39);
	assert_value(f, "both-ce", 1, 0, 0, 21.30);
	assert_value(f, "latency-write", 1, 0, 0, 11.67);
	assert_value(f, "local-copy", 0, 0, 0, 909.49);
	assert_null(figures_find(f, "write-ce", 3, 3, 0));
	assert_string_equal(figures_find(f, "latency-write", 1, 0, 0)->from,
			    CASE "p2pBandwidthLatencyTest-before.txt:74");
	figures_free(f);
}

static const char small[] = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
			    "Device: 0, NVIDIA H200, pciBusID: 4, pciDeviceID: 0, pciDomainID:0\n"
			    "Device: 1, NVIDIA H200, pciBusID: af, pciDeviceID: 1, pciDomainID:1\n"
			    "Device=0 CAN Access Peer Device=1\n"
			    "Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)\n"
			    "   D\\D     0      1 \n"
			    "     0 4000.11 380.52 \n"
			    "     1 381.00 4001.00 \n"
			    "P2P=Enabled Latency (P2P Reads) Matrix (us)\n"
			    "   GPU     0      1 \n"
			    "     0   2.00   3.25 \n"
			    "     1   3.50   2.00 \n"
			    "\n"
			    "   CPU     0      1 \n"
			    "     0   1.00   1.25 \n"
			    "     1   1.50   1.00 \n";

static void assert_small(const struct figures *f)
{
	assert_int_equal(f->gpu_n, 2);
	assert_string_equal(f->gpus[0].pci, "0000:04:00.0");
	assert_string_equal(f->gpus[1].pci, "0001:af:01.0");
	assert_string_equal(f->gpus[1].name, "NVIDIA H200");
	assert_int_equal(f->row_n, 5);
	assert_value(f, "p2p-access", 0, 1, 0, 1);
	assert_value(f, "read-ce", 0, 1, 0, 380.52);
	assert_value(f, "latency-read", 1, 0, 0, 3.5);
}

static void devices_and_reads(void **state)
{
	struct figures *f = parsed(small, "x");

	(void)state;
	assert_small(f);
	figures_free(f);
}

static void colours_and_carriage_returns(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct figures *f;

	(void)state;
	strbuf_puts(&b, "$ ./p2pBandwidthLatencyTest --p2p_read\r\nhello\r\n");
	for (const char *s = small; *s; s++) {
		if (*s == '\n')
			strbuf_puts(&b, "\033[0m\r");
		strbuf_putc(&b, *s);
		if (*s == '\n')
			strbuf_puts(&b, "\033[1;32m");
	}
	f = parsed(strbuf_str(&b), "x");
	assert_small(f);
	figures_free(f);
}

/* What is whole stays, what breaks off is told with its line. */
static void a_matrix_that_breaks_off(void **state)
{
	AUTO_FREE char *cut = strndup(small, (size_t)(strstr(small, "     1   3.50") - small) + 8);
	struct figures *f = parsed(cut, "x");

	(void)state;
	assert_int_equal(f->trouble_n, 1);
	assert_non_null(strstr(f->troubles[0], "x:12: "));
	assert_value(f, "read-ce", 1, 0, 0, 381);
	assert_value(f, "latency-read", 0, 1, 0, 3.25);
	assert_null(figures_find(f, "latency-read", 1, 0, 0));
	figures_free(f);
}

static void two_runs_become_one(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	const struct figure *r;
	struct figures *f;

	(void)state;
	strbuf_printf(&b, "%s%s", small,
		      "Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix\n"
		      "   D\\D     0      1\n     0 1 390.52\n     1 2 3\n");
	f = parsed(strbuf_str(&b), "x");
	r = figures_find(f, "read-ce", 0, 1, 0);
	assert_true(r->median == (380.52 + 390.52) / 2 && r->low == 380.52 && r->high == 390.52);
	assert_int_equal(r->samples, 2);
	assert_int_equal(f->row_n, 5);
	figures_free(f);
}

/* P2P that only one of two runs had is not half there. */
static void runs_that_disagree(void **state)
{
	static const char matrix[] = "P2P Connectivity Matrix\n     D\\D     0     1\n";
	AUTO_STRBUF struct strbuf b = {0};
	const struct figure *r;
	struct figures *f;

	(void)state;
	strbuf_printf(&b, "%s     0 1 1\n     1 1 1\n%s     0 1 0\n     1 1 1\n", matrix, matrix);
	f = parsed(strbuf_str(&b), "x");
	r = figures_find(f, "p2p-access", 0, 1, 0);
	assert_true(r->median == 0 && r->low == 0 && r->high == 0);
	assert_string_equal(r->from, "x:7");
	assert_true(figures_find(f, "p2p-access", 1, 0, 0)->median == 1);
	figures_free(f);
}

static void no_matrix_at_all(void **state)
{
	(void)state;
	assert_refused("P2P Connectivity Matrix\nnothing here\n", "x", "x:1: no matrix follows");
	assert_refused("P2P Connectivity Matrix\n     D\\D     0     2\n", "x", "x:1: ");
	assert_refused("hello\n", "x", "x: a text, not the output of p2p");
	assert_refused(
		"h:1:2 [0] NCCL INFO cudaDriverVersion 12040\n", "x",
		"is a debug log of NCCL, not the output of p2pBandwidthLatencyTest, nccl-tests, "
		"nvbandwidth -j or onehop: use onehop log");
}

/* ---- nccl-tests ---- */

static void the_case_nccl(void **state)
{
	const struct figure *r;
	struct figures *f = NULL;

	(void)state;
	assert_int_equal(figures_open(CASE "nccl-all_reduce-before.txt", &f), 0);
	assert_int_equal(f->gpu_n, 8);
	assert_null(f->gpus[1].pci); /* [0x25] tells no domain */
	assert_string_equal(f->gpus[1].name, "NVIDIA GeForce RTX 4090");
	assert_value(f, "all-reduce-bus", -1, -1, 134217728, 14.47);
	assert_value(f, "all-reduce-time", -1, -1, 134217728, 16227);
	assert_value(f, "all-reduce-time", -1, -1, 8, 38.83);
	assert_null(figures_find(f, "all-reduce-bus", -1, -1, 8)); /* 0.00 is no measurement */
	r = figures_find(f, "all-reduce-bus", -1, -1, 134217728);
	assert_true(r->low == 14.45 && r->high == 14.47 && r->samples == 2);
	figures_free(f);
}

#define RANKS                                                                                      \
	"#  Rank  0 Group  0 Pid  11 on node-a device  0 [0000:04:00] NVIDIA H200\n"               \
	"#  Rank  1 Group  0 Pid  11 on node-a device  1 [0001:05:00] NVIDIA H200\n"
#define HEADER                                                                                     \
	"#       size         count      type   redop    root     time   algbw   busbw  #wrong  "  \
	"   time   algbw   busbw  #wrong \n"
#define ROW_NONE "1048576 262144 float none -1 10.00 100.0 50.00 0 11.00 95.00 47.50 N/A\n"

static void which_collective(void **state)
{
	static const struct {
		const char *text, *name, *word;
	} rows[] = {
		{"# Collective test starting: all_gather_perf\n" HEADER ROW_NONE, "x",
		 "all-gather-time"},
		{"$ mpirun ./build/alltoall_perf -g 2\n" RANKS HEADER ROW_NONE, "x",
		 "all-to-all-time"},
		{HEADER ROW_NONE, "a/all_gather.txt", "all-gather-time"},
		{RANKS HEADER "8 2 float sum -1 1.00 0.00 0.00 0 1.00 0.00 0.00 0\n"
			      "1048576 262144 float sum -1 10.00 100.0 100.0 0 1.00 0.00 0.00 0\n",
		 "x", "all-reduce-time"},
		{RANKS HEADER "1048576 262144 float sum -1 10.0 100.0 50.0 0 9.0 101.0 51.0 0\n",
		 "x", "reduce-scatter-time"},
		{RANKS HEADER "1048576 262144 float sum 0 10.0 100.0 100.0 0 9.0 101.0 101.0 0\n",
		 "x", "reduce-time"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct figures *f = parsed(rows[i].text, rows[i].name);

		if (!figures_find(f, rows[i].word, -1, -1, 1048576))
			fail_msg("%zu: %s, not %s", i, f->rows[0].what, rows[i].word);
		figures_free(f);
	}
	assert_refused(RANKS HEADER ROW_NONE, "x", "x:4: the table does not show its collective");
	assert_refused_as(ENODATA, HEADER, "all_reduce", "without any result");
}

/* Several tables, NCCL's log between the rows, a row cut off, another type, an unmeasured place. */
static void rubbish_around_rows(void **state)
{
	static const char text[] =
		"node:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\r\n" RANKS
		"# Collective test starting: all_reduce_perf\r\n" HEADER
		"node:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer\n"
		"1048576 262144 float sum -1 10.00 104.9 104.9 0 N/A N/A N/A N/A\r\n"
		"2097152 524288 half sum -1 10.00 104.9 104.9 0 10.0 104.9 104.9 0\n"
		"4194304 1048576 float sum -1 20.00 20\n"
		"# Collective test concluded: all_reduce_perf\n"
		"# Collective test starting: broadcast_perf\n" HEADER
		"1048576 262144 float none 0 7.00 149.8 149.8 0 6.00 174.8 174.8 0\n";
	struct figures *f = parsed(text, "x");

	(void)state;
	assert_string_equal(f->gpus[1].pci, "0001:05:00.0");
	assert_value(f, "all-reduce-time", -1, -1, 1048576, 10);
	assert_int_equal(figures_find(f, "all-reduce-time", -1, -1, 1048576)->samples, 1);
	assert_value(f, "broadcast-time", -1, -1, 1048576, 6);
	assert_value(f, "broadcast-bus", -1, -1, 1048576, 174.8);
	assert_value(f, METRIC_ALL_VERIFIED, -1, -1, 0, 1);
	assert_int_equal(f->row_n, 5);
	assert_int_equal(f->trouble_n, 2);
	assert_non_null(strstr(f->troubles[0], "x:8: another type"));
	assert_non_null(strstr(f->troubles[1], "x:9: a row of 7 columns"));
	figures_free(f);
}

/* In place, out of place, in a row that is left out, in the summary alone. */
static void wrong_values(void **state)
{
	static const char *const rows[] = {
		"1048576 262144 float sum -1 10.00 104.9 104.9 0 10.00 104.9 104.9 3\n",
		"1048576 262144 float sum -1 10.00 104.9 104.9 1e+10 10.00 104.9 104.9 0\n",
		"1048576 262144 float sum -1 10.00 104.9 104.9 0 10.00 104.9 104.9 0\n"
		"1048576 524288 half sum -1 10.00 104.9 104.9 1 10.00 104.9 104.9 0\n",
		"1048576 262144 float sum -1 10.00 104.9 104.9 N/A 10.00 104.9 104.9 N/A\n"
		"# Out of bounds values : 4 FAILED\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_FREE char *text = xprintf(HEADER "%s", rows[i]);
		struct figures *f = parsed(text, "all_reduce");

		assert_value(f, METRIC_ALL_VERIFIED, -1, -1, 0, 0);
		figures_free(f);
	}
}

static void unchecked_values(void **state)
{
	struct figures *f = parsed(
		HEADER
		"1048576 262144 float sum -1 10.00 104.9 104.9 N/A 10.00 104.9 104.9 N/A\n# Out of "
		"bounds values : 0 OK\n",
		"all_reduce");

	(void)state;
	assert_null(figures_find(f, METRIC_ALL_VERIFIED, -1, -1, 0));
	figures_free(f);
}

static void older_headers(void **state)
{
	struct figures *f = parsed(
		"#       size         count      type     root     time   algbw   busbw  error     "
		"time   algbw   busbw  error\n"
		"1048576 262144 float 0 7.00 149.8 149.8 0e+00 6.00 174.8 174.8 0e+00\n",
		"broadcast");

	(void)state;
	assert_value(f, "broadcast-bus", -1, -1, 1048576, 174.8);
	figures_free(f);
}

/* ---- JSON ---- */

static void own_json_there_and_back(void **state)
{
	AUTO_STRBUF struct strbuf trouble = {0};
	struct figures *f = figures_new("a", "onehop bench p2p"), *again = NULL;
	const struct figure *r;
	struct figure *row;
	json_t *json;

	(void)state;
	figures_need_gpus(f, 2);
	f->gpus[1].pci = "0000:41:00.0";
	f->gpus[1].cuda_ordinal = 0;
	f->when = "2026-01-05T10:00:00Z";
	row = figures_add(f, "write-ce", 0, 1, 396.5);
	row->low = 396;
	row->high = 397;
	row->samples = 31;
	row->bytes = 1u << 29;
	figures_add(f, "warp-drive", -1, 1, 0.0)->samples = 0;
	json = figures_to_json(f);
	json_schema_check(json, "figures.schema.json", &trouble);
	assert_string_equal(strbuf_str(&trouble), "");
	assert_null(json_object_get(json_array_get(json_object_get(json, "gpus"), 0), "pci"));
	assert_int_equal(figures_from_json(json, "b", &again), 0);
	assert_string_equal(again->tool, "onehop bench p2p");
	assert_string_equal(again->when, f->when);
	assert_null(again->gpus[0].pci);
	assert_int_equal(again->gpus[0].nvml_index, -1);
	assert_string_equal(again->gpus[1].pci, "0000:41:00.0");
	r = figures_find(again, "write-ce", 0, 1, 1u << 29);
	assert_true(r->median == 396.5 && r->low == 396 && r->high == 397 && r->samples == 31);
	assert_true(r->higher_is_better);
	assert_int_equal(figures_find(again, "warp-drive", -1, 1, 0)->samples, 0);
	json_decref(json);
	figures_free(again);
	figures_free(f);
}

/* ---- what the first release wrote ---- */

/* Read, written as it is written now, and read once more: nothing is lost. */
static struct figures *read_old(const char *name)
{
	AUTO_FREE char *path = xprintf("tests/figures/release-0.1.0/%s", name);
	json_t *old = json_load_file(path, 0, NULL), *now;
	struct figures *f, *again;

	assert_non_null(old);
	assert_int_equal(figures_from_json(old, name, &f), 0);
	assert_int_equal(f->trouble_n, 0);
	now = figures_to_json(f);
	assert_int_equal(figures_from_json(now, name, &again), 0);
	assert_int_equal(again->gpu_n, f->gpu_n);
	assert_int_equal(again->row_n, f->row_n);
	for (size_t i = 0; i < f->row_n; i++) {
		const struct figure *a = &f->rows[i], *b = &again->rows[i];

		assert_string_equal(a->what, b->what);
		assert_string_equal(a->from, b->from);
		assert_string_equal(a->kind, b->kind);
		assert_int_equal(a->initiator, b->initiator);
		assert_int_equal(a->target, b->target);
		assert_int_equal(a->samples, b->samples);
		assert_int_equal(a->among_n, b->among_n);
		assert_true(a->bytes == b->bytes && a->median == b->median && a->low == b->low &&
			    a->high == b->high && a->expected == b->expected);
	}
	json_decref(old);
	json_decref(now);
	figures_free(f);
	return again;
}

static void figures_of_the_first_release(void **state)
{
	struct figures *f = read_old("figures.json");
	const struct figure *r = figures_find(f, "write-ce", 0, 1, 1u << 29);

	(void)state;
	assert_string_equal(f->tool, "onehop bench p2p");
	assert_string_equal(f->gpus[1].pci, "0000:00:07.0");
	assert_int_equal(f->gpus[1].nvml_index, 1);
	assert_int_equal(f->row_n, 20);
	assert_true(r->median > 390 && r->low < r->high && r->samples >= FIGURE_INTERVAL_SAMPLES);
	figures_free(f);
}

static void tests_of_the_first_release(void **state)
{
	struct figures *f = read_old("test.json");
	const struct figure *round = figures_find(f, METRIC_ROUND_TRIP_SINGLE, 0, 1, 0);

	(void)state;
	assert_string_equal(f->tool, "onehop test");
	assert_string_equal(f->gpus[0].pci, "0000:00:06.0");
	assert_value(f, METRIC_PAIR_VERIFIED, 0, 1, 0, 1);
	assert_value(f, METRIC_PAIR_RATE, 1, 0, 0, 1);
	assert_value(f, METRIC_GPU_VERIFIED, 1, 1, 0, 1);
	assert_true(round->median > 2 && round->median < 4);
	figures_free(f);
}

/* A matrix that is cut is left out and named. */
static void text_of_nvbandwidth(void **state)
{
	static const char whole[] =
		"Running device_to_device_bidirectional_memcpy_write_ce.\n"
		"memcpy CE GPU(row) <-> GPU(column) Write1 bandwidth (GB/s)\n"
		"           0         1\n 0       N/A     20.1\n 1     20.2       N/A\n"
		"memcpy CE GPU(row) <-> GPU(column) Write2 bandwidth (GB/s)\n"
		"           0         1\n 0       N/A     20.3\n 1     20.4       N/A\n"
		"memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)\n"
		"           0         1\n 0       N/A     40.4\n 1     40.6       N/A\n"
		"Running host_to_device_memcpy_ce.\n"
		"memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
		"           0         1\n 0     26.03     25.94\n";
	struct figures *f;

	(void)state;
	assert_int_equal(figures_parse(whole, strlen(whole), "n.txt", &f), 0);
	assert_int_equal(f->row_n, 4);
	assert_value(f, "both-ce", 1, 0, 0, 40.6);
	assert_int_equal(f->trouble_n, 0);
	figures_free(f);
	assert_int_equal(figures_parse(whole, strlen(whole) - 14, "n.txt", &f), 0);
	assert_int_equal(f->row_n, 2);
	assert_string_equal(f->troubles[0], "the matrix of host_to_device_memcpy_ce is cut off");
	figures_free(f);
}

/* What `onehop test` and `bench p2p` measure differs by a factor, so nobody may compare the two. */
static void round_trips_of_two_tools(void **state)
{
	static const char *const names[] = {METRIC_ROUND_TRIP_SINGLE, METRIC_ROUND_TRIP};
	static const char *const tools[] = {"onehop test", "onehop bench p2p"};
	struct figures *of[2];
	struct comparison *c;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		json_t *json =
			json_pack("{s:s, s:i, s:s, s:[{s:s}, {s:s}], s:[{s:s, s:i, s:i, s:f}]}",
				  "schema", "onehop-figures", "version", 2, "tool", tools[i],
				  "gpus", "pci", "0000:41:00.0", "pci", "0000:42:00.0", "figures",
				  "what", "round-trip", "initiator", 0, "target", 1, "median", 3.0);

		assert_int_equal(figures_from_json(json, "kept.json", &of[i]), 0);
		assert_string_equal(of[i]->rows[0].what, names[i]);
		json_decref(json);
	}
	c = comparison_new(of[0], of[1]);
	assert_int_equal(c->kind_n, 0);
	assert_int_equal(c->only_before, 1);
	assert_int_equal(c->only_after, 1);
	comparison_free(c);
	figures_free(of[0]);
	figures_free(of[1]);
}

/* Additions that get lost are told for information: the pair is right. */
static void atomics_of_the_first_release(void **state)
{
	json_t *old = json_load_file("tests/figures/release-0.1.0/test.json", 0, NULL);
	json_t *pair = json_array_get(json_object_get(old, "pairs"), 0);
	struct figures *f;

	(void)state;
	assert_int_equal(json_array_append_new(json_object_get(pair, "patterns"),
					       json_pack("{s:s, s:s, s:i}", "pattern", "atomics",
							 "kind", "lost", "lost", 7)),
			 0);
	assert_int_equal(figures_from_json(old, "test.json", &f), 0);
	assert_value(f, METRIC_PAIR_VERIFIED, 0, 1, 0, 1);
	figures_free(f);
	json_decref(old);
}

static void what_the_first_release_kept(void **state)
{
	struct figures *f = read_old("observed.json");
	size_t together = 0;

	(void)state;
	assert_string_equal(f->tool, "onehop test");
	assert_string_equal(f->when, "2026-11-22T21:37:04Z");
	assert_string_equal(f->conditions[CONDITION_DRIVER], "580.159.04");
	assert_string_equal(f->conditions[CONDITION_BOOT], "11111111-2222-3333-4444-555555555555");
	assert_value(f, METRIC_PAIR_VERIFIED, 0, 1, 0, 1);
	assert_value(f, METRIC_GPU_VERIFIED, 0, 0, 0, 1);
	assert_non_null(figures_find(f, METRIC_ROUND_TRIP_SINGLE, 1, 0, 0));
	for (size_t i = 0; i < f->row_n; i++)
		together += strcmp(f->rows[i].what, METRIC_ALL_VERIFIED) == 0 &&
			    f->rows[i].among_n == 2 && *f->rows[i].pattern;
	assert_int_equal(together, 2);
	figures_free(f);
}

/* It is printed within a line. */
static void names_stay_on_one_line(void **state)
{
	static const char text[] =
		"{\"schema\": \"onehop-figures\", \"version\": 1, \"tool\": \"a\\nerror b\\u001b[2J\", "
		"\"gpus\": [], \"figures\": []}";
	struct figures *f = NULL;

	(void)state;
	assert_int_equal(figures_parse(text, strlen(text), "x", &f), 0);
	assert_string_equal(f->tool, "a error b [2J");
	figures_free(f);
}

static void own_json_that_is_no_good(void **state)
{
	static const char *const rows[][2] = {
		{"{\"schema\": \"onehop-figures\"}", "is of no version of"},
		{"{\"schema\": \"onehop-figures\", \"version\": 3}", "is of no version of"},
		{"{\"schema\": \"onehop-figures\", \"version\": 1}", "\"gpus\" must be an array"},
		{"{\"schema\": \"onehop-figures\", \"version\": 1, \"gpus\": [], \"figures\": [{}]}",
		 "figures[0]: what or median"},
		{"{\"schema\": \"onehop-figures\", \"version\": 1, \"gpus\": [], \"figures\": "
		 "[{\"what\": \"write-ce\", \"median\": 1, \"initiator\": 0}]}",
		 "figures[0]: initiator"},
		{"{\"schema\": \"onehop-figures\", \"version\": 1, \"gpus\": [{\"pci\": 7}], "
		 "\"figures\": []}",
		 "gpus[0]: pci is not a text"},
		{"{\"schema\": \"onehop-figures\", \"version\": 2, \"gpus\": [{}], \"figures\": "
		 "[{\"what\": \"all-verified\", \"median\": 1, \"gpus\": [0, 0]}]}",
		 "figures[0]: gpus is not a list of some"},
		{"{\"schema\": \"onehop-figures\", \"version\": 2, \"gpus\": [{}], \"figures\": "
		 "[{\"what\": \"all-verified\", \"median\": 1, \"gpus\": [1]}]}",
		 "figures[0]: gpus is not a list of indexes"},
		{"{\"schema\": \"onehop-figures\", \"version\": 2, \"gpus\": [], \"figures\": "
		 "[{\"what\": \"write-ce\", \"median\": 1, \"unit\": \"GiB/s\"}]}",
		 "x: figures[0]: write-ce is in GB/s, and this says 'GiB/s'"},
		{"{\"schema\": \"onehop-figures\", \"version\": 2, \"gpus\": [], \"figures\": "
		 "[{\"what\": \"round-trip\", \"median\": 1, \"higher_is_better\": true}]}",
		 "x: figures[0]: of round-trip less is better, and this says otherwise"},
		{"{\"schema\": \"onehop-figures\", \"version\": 2, \"gpus\": [], \"figures\": "
		 "[{\"what\": \"round-trip\", \"median\": 1, \"higher_is_better\": 1}]}",
		 "figures[0]: higher_is_better is not true or false"},
		{"{\"schema\": \"onehop-figures\", \"version\": 2, \"gpus\": [{\"ports\": 1}], "
		 "\"figures\": []}",
		 "gpus[0]: ports is not a list of ports"},
		{"{\"schema\": \"onehop-figures\", \"version\": 2, \"gpus\": [{\"ports\": "
		 "[{\"pci\": \"0000:00:01.0\", \"acs\": 65536}]}], \"figures\": []}",
		 "ports[0]: acs is not a whole number in its range"},
		{"{\"schema\": ", "x:1: invalid JSON"},
		{"{\"schema\": 1}\n{\"schema\": 1}\n",
		 "x:2: a second result or other text follows"},
		{"{\"a\": 1}", "JSON, but not a result"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_refused(rows[i][0], "x", rows[i][1]);
}

/* ---- several runs in one store ---- */

static struct figures *run_of(const char *first, const char *second, const char *when)
{
	struct figures *f = figures_new("", "onehop test");

	figures_add_gpu(f, first, "a", 0);
	figures_add_gpu(f, second, "b", 1);
	f->when = when;
	return f;
}

static void add_together(struct figures *f, const char *pattern)
{
	static const int both[] = {0, 1};
	struct figure *row = figures_add(f, METRIC_ALL_VERIFIED, -1, -1, 0);

	row->pattern = pattern;
	row->among = both;
	row->among_n = 2;
}

/* The new run has the GPUs the other way round, and one that the old did not have. */
static void what_was_not_tested_again_is_kept(void **state)
{
	struct figures *old = run_of("0000:41:00.0", "0000:42:00.0", "then");
	struct figures *f = run_of("0000:42:00.0", "0000:43:00.0", "now");
	const struct figure *row;

	(void)state;
	figures_add(old, METRIC_PAIR_VERIFIED, 0, 1, 0)->kind = "shifted";
	figures_add(old, METRIC_GPU_VERIFIED, 1, 1, 0);
	add_together(old, "p2p");
	figures_add(f, METRIC_GPU_VERIFIED, 0, 0, 1); /* 42, which had failed */
	add_together(f, "p2p");                       /* 42 and 43: not of 41 */
	figures_keep_earlier(f, old);
	assert_int_equal(f->gpu_n, 3);
	assert_string_equal(f->gpus[2].pci, "0000:41:00.0");
	assert_int_equal(f->row_n, 4);
	row = figures_find(f, METRIC_PAIR_VERIFIED, 2, 0, 0);
	assert_string_equal(row->kind, "shifted");
	assert_string_equal(row->when, "then");
	assert_value(f, METRIC_GPU_VERIFIED, 0, 0, 0, 1);
	assert_int_equal(f->rows[3].among[0], 2);
	assert_int_equal(f->rows[3].among[1], 0);
	figures_free(old);
	figures_free(f);
}

static void what_was_tested_again_is_replaced(void **state)
{
	struct figures *old = run_of("0000:41:00.0", "0000:42:00.0", "then");
	struct figures *f = run_of("0000:42:00.0", "0000:41:00.0", "now");

	(void)state;
	figures_add(old, METRIC_ACCESS, 0, 1, 0);
	figures_add(old, METRIC_ROUND_TRIP, 0, 1, 3);
	add_together(old, "p2p");
	add_together(old, "staged");
	figures_add(f, METRIC_PAIR_VERIFIED, 1, 0, 1);
	add_together(f, "p2p");
	figures_keep_earlier(f, old);
	assert_int_equal(f->row_n, 3);
	assert_string_equal(f->rows[2].pattern, "staged");
	figures_free(old);
	figures_free(f);
}

static void json_of_nccl_tests(void **state)
{
	struct figures *f = parsed(
		"{\"version\": 3, \"args\": [\"./build/reduce_scatter_perf\"], \"config\": "
		"{\"devices\": [{\"rank\": 0, \"device\": 3}]}, \"results\": [{\"size\": 1048576, "
		"\"out_of_place\": {\"time\": 10.5, \"alg_bw\": 99.8, \"bus_bw\": 49.9}, "
		"\"in_place\": {\"cpu_time\": 10.25, \"bus_bw\": 51.1}}]}",
		"x");

	(void)state;
	assert_int_equal(f->gpus[0].cuda_ordinal, 3);
	assert_value(f, "reduce-scatter-time", -1, -1, 1048576, 10.25);
	assert_value(f, "reduce-scatter-bus", -1, -1, 1048576, 51.1);
	figures_free(f);
}

static void json_of_nvbandwidth(void **state)
{
	struct figures *f = parsed(
		"{\"nvbandwidth\": {\"GPU Device list\": [\"0: NVIDIA H200 (00000000:04:00): "
		"(h)\", \"1: NVIDIA H200 (00000000:05:00): (h)\"], \"testcases\": [{\"name\": "
		"\"device_to_device_memcpy_write_ce\", \"bandwidth_description\": \"memcpy CE "
		"GPU(row) <- GPU(column) bandwidth (GB/s)\", \"bandwidth_matrix\": [[\"N/A\", "
		"\"396.10\"], [\"395.00\", \"N/A\"]]}, {\"name\": "
		"\"device_to_device_bidirectional_memcpy_write_ce\", \"bandwidth_matrix\": "
		"[[\"N/A\", \"391\"], [\"392\", \"N/A\"], [\"N/A\", \"390\"], [\"389\", \"N/A\"], "
		"[\"N/A\", \"781\"], [\"782\", \"N/A\"]]}, {\"name\": "
		"\"host_to_device_memcpy_ce\", \"bandwidth_matrix\": [[\"55.10\", \"55.20\"]]}, "
		"{\"name\": \"device_to_host_memcpy_ce\", \"bandwidth_matrix\": [[\"54.10\", "
		"\"N/A\"]]}, {\"name\": \"host_device_latency_sm\", \"bandwidth_matrix\": "
		"[[\"650.5\", \"N/A\"]]}, {\"name\": \"device_local_copy\", \"bandwidth_matrix\": "
		"[[\"N/A\", \"1900.5\"]]}]}}",
		"x");

	(void)state;
	assert_string_equal(f->gpus[1].pci, "0000:05:00.0");
	assert_string_equal(f->gpus[1].name, "NVIDIA H200");
	assert_value(f, "write-ce", 0, 1, 0, 396.1); /* the row issues, whatever the arrow says */
	assert_value(f, "write-ce", 1, 0, 0, 395);
	assert_value(f, "both-ce", 0, 1, 0, 781); /* the third matrix is the sum */
	assert_value(f, "both-ce", 1, 0, 0, 782);
	assert_value(f, "h2d-ce", 1, -1, 0, 55.2); /* the GPU moves the data, both ways */
	assert_value(f, "d2h-ce", 0, -1, 0, 54.1);
	assert_value(f, "latency-host", 0, -1, 0, 650.5);
	assert_value(f, "local-copy", 1, 1, 0, 1900.5);
	assert_int_equal(f->row_n, 9);
	figures_free(f);
}

/* ---- words, files, observations ---- */

/* A name on disk means one metric, and what a row says of another exists. */
static void every_metric_is_found_by_its_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < metric_n; i++) {
		const struct metric *m = &metrics[i];
		size_t n = strlen(m->word);

		assert_ptr_equal(metric_find(m->name), m);
		assert_memory_equal(m->name, m->word, n);
		assert_string_equal(m->name + n, m->staged ? METRIC_STAGED : "");
		assert_non_null(m->title);
		assert_int_equal(m->shape != SHAPE_YES_NO, m->noise > 0);
		if (m->off)
			assert_true(metric_find(m->off)->staged);
		if (m->collective)
			assert_ptr_equal(metric_of_collective(m->collective, metric_is_rate(m),
							      m->staged),
					 m);
	}
	assert_null(metric_find("write"));
}

/* `bench nccl` names its operations by the words of the table. */
static void operations_are_collectives(void **state)
{
	(void)state;
	for (size_t i = 0; nccl_op_words[i]; i++)
		assert_non_null(metric_of_collective(nccl_op_words[i], false, true));
	for (int op = 0; op < NCCL_OP_N; op++)
		for (int staged = 0; staged < 2; staged++) {
			const char *word = nccl_op_words[op];
			const bool is_ours =
				op != NCCL_BARRIER && nccl_op_is_ours((enum nccl_op)op);

			assert_int_equal(!!metric_against_nccl(word, METRIC_AGAINST_TIME, staged),
					 is_ours);
			assert_int_equal(!!metric_against_nccl(word, METRIC_AGAINST_RATIO, staged),
					 is_ours);
		}
}

/* A peer prints each of its matrices once, in places without a gap. */
static void places_in_the_output_of_peers(void **state)
{
	(void)state;
	for (int peer = 0; peer < PEER_N; peer++) {
		unsigned last = 0, n = 0;

		for (size_t i = 0; i < metric_n; i++) {
			unsigned place = metrics[i].peers[peer].place;

			n += place > 0;
			last = place > last ? place : last;
			if (place)
				assert_ptr_equal(metric_at((enum metric_peer)peer, place),
						 &metrics[i]);
		}
		assert_int_equal(n, last);
	}
}

static void programs_name_their_collective(void **state)
{
	(void)state;
	assert_string_equal(metric_collective("x/all_reduce_perf -b 8", "_perf"), "all-reduce");
	assert_string_equal(metric_collective("reduce_scatter_perf", "_perf"), "reduce-scatter");
	assert_string_equal(metric_collective("alltoallv_perf", "_perf"), "all-to-all-v");
	assert_string_equal(metric_collective("alltoall-before.txt", ""), "all-to-all");
	assert_null(metric_collective("all_reduce", "_perf"));
	assert_null(metric_collective("reducing", "_perf"));
}

static void machines_are_told_from_results(void **state)
{
	struct source *s;

	(void)state;
	assert_true(open_recording("tests/figures/release-0.1.0/test.json", &s) < 0);
	assert_non_null(
		strstr(err_msg(),
		       "is a result as JSON, not a recording or a text with outputs that onehop "
		       "reads: use onehop compare"));
}

/* ---- what a NIC moved ---- */

static void add_nic(struct figures *f, const char *what, const char *nic, const char *memory,
		    double value)
{
	struct figure *row = figures_add(f, what, -1, 0, value);

	row->nic = nic;
	row->memory = memory;
}

static size_t count_rows(const struct figures *f, const char *what, const char *nic,
			 const char *memory)
{
	size_t n = 0;

	for (size_t i = 0; i < f->row_n; i++)
		n += strcmp(f->rows[i].what, what) == 0 && strcmp(f->rows[i].nic, nic) == 0 &&
		     strcmp(f->rows[i].memory, memory) == 0;
	return n;
}

/* NIC and memory are part of what a measurement is; each direction is replaced by itself. */
static void figures_of_nics(void **state)
{
	struct figures *f = figures_new("", "onehop bench rdma"),
		       *old = figures_new("", "onehop bench rdma");
	struct figures *again = NULL;
	json_t *doc;

	(void)state;
	figures_add_gpu(f, "0000:01:00.0", "GPU", 0);
	figures_add_gpu(old, "0000:01:00.0", "GPU", 0);
	add_nic(old, METRIC_NIC_WRITE, "mlx5_0", "dma-buf", 20);
	add_nic(old, METRIC_NIC_WRITE, "mlx5_0", "peer-memory", 21);
	add_nic(old, METRIC_NIC_WRITE, "mlx5_1", "dma-buf", 22);
	add_nic(old, METRIC_NIC_READ, "mlx5_0", "dma-buf", 23);
	add_nic(old, METRIC_NIC_BOTH, "mlx5_0", "dma-buf", 40);
	add_nic(f, METRIC_NIC_WRITE_VERIFIED, "mlx5_0", "dma-buf", 0);
	figures_keep_earlier(f, old);
	assert_int_equal(f->row_n, 5);
	assert_int_equal(count_rows(f, METRIC_NIC_WRITE, "mlx5_0", "dma-buf"), 0);
	assert_int_equal(count_rows(f, METRIC_NIC_WRITE, "mlx5_0", "peer-memory"), 1);
	assert_int_equal(count_rows(f, METRIC_NIC_WRITE, "mlx5_1", "dma-buf"), 1);
	assert_int_equal(count_rows(f, METRIC_NIC_READ, "mlx5_0", "dma-buf"), 1);
	assert_int_equal(count_rows(f, METRIC_NIC_BOTH, "mlx5_0", "dma-buf"), 1);
	doc = figures_to_json(f);
	assert_int_equal(figures_from_json(doc, "again", &again), 0);
	figures_merge(again);
	assert_int_equal(again->row_n, 5);
	assert_int_equal(count_rows(again, METRIC_NIC_WRITE, "mlx5_0", "peer-memory"), 1);
	json_decref(doc);
	figures_free(again);
	figures_free(old);
	figures_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_of_nics),
		cmocka_unit_test(the_case_p2p),
		cmocka_unit_test(devices_and_reads),
		cmocka_unit_test(colours_and_carriage_returns),
		cmocka_unit_test(a_matrix_that_breaks_off),
		cmocka_unit_test(two_runs_become_one),
		cmocka_unit_test(runs_that_disagree),
		cmocka_unit_test(no_matrix_at_all),
		cmocka_unit_test(the_case_nccl),
		cmocka_unit_test(which_collective),
		cmocka_unit_test(rubbish_around_rows),
		cmocka_unit_test(wrong_values),
		cmocka_unit_test(unchecked_values),
		cmocka_unit_test(older_headers),
		cmocka_unit_test(own_json_there_and_back),
		cmocka_unit_test(figures_of_the_first_release),
		cmocka_unit_test(atomics_of_the_first_release),
		cmocka_unit_test(tests_of_the_first_release),
		cmocka_unit_test(round_trips_of_two_tools),
		cmocka_unit_test(text_of_nvbandwidth),
		cmocka_unit_test(what_the_first_release_kept),
		cmocka_unit_test(what_was_not_tested_again_is_kept),
		cmocka_unit_test(what_was_tested_again_is_replaced),
		cmocka_unit_test(names_stay_on_one_line),
		cmocka_unit_test(own_json_that_is_no_good),
		cmocka_unit_test(json_of_nccl_tests),
		cmocka_unit_test(json_of_nvbandwidth),
		cmocka_unit_test(every_metric_is_found_by_its_name),
		cmocka_unit_test(operations_are_collectives),
		cmocka_unit_test(places_in_the_output_of_peers),
		cmocka_unit_test(programs_name_their_collective),
		cmocka_unit_test(machines_are_told_from_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
