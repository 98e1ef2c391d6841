/* SPDX-License-Identifier: Apache-2.0 */
/* What is printed of made-up pair figures: the peers' layouts byte for byte, the report's parts. */
#include "base/strbuf.h"
#include "ingest/figures_open.h"
#include "report/report_p2p.h"

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS_MAX 64

struct made {
	struct device_info devices[2];
	const char *names[2];
	bool access[4];
	struct p2p_cell cells[CELLS_MAX];
	struct p2p_plan plans[16];
	struct p2p_result result;
	struct paths *paths;
	struct p2p_report r;
};

static struct p2p_cell *add(struct made *m, const char *word, int initiator, int target,
			    double value)
{
	struct p2p_cell *c = &m->cells[m->result.cell_n++];

	*c = (struct p2p_cell){
		.metric = p2p_metric_find(word),
		.initiator = initiator,
		.target = target,
		.bytes = 64 << 20,
		.value = {.n = 9,
			  .median = value,
			  .low = value,
			  .high = value,
			  .min = value,
			  .max = value},
		.stop = STOP_NARROW,
		.data = P2P_RIGHT,
	};
	assert_non_null(c->metric);
	return c;
}

static void plan(struct made *m, const char *word)
{
	m->plans[m->result.plan_n++] = (struct p2p_plan){.metric = p2p_metric_find(word),
							 .bytes = 64 << 20,
							 .rounds = 2,
							 .least = 2,
							 .seconds = 0.5};
}

static struct made *make(void)
{
	struct made *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->devices[0] = (struct device_info){.name = "Made Up 1000", .pci = "0000:41:00.0"};
	m->devices[1] = (struct device_info){.name = "Made Up 1000",
					     .pci = "0001:c1:00.0",
					     .number = 1,
					     .ordinal = 1};
	m->names[0] = "GPU0 0000:41:00.0";
	m->names[1] = "GPU1 0001:c1:00.0";
	m->access[1] = true;
	m->result.cells = m->cells;
	m->result.plans = m->plans;
	assert_int_equal(paths_new(2, &m->paths), 0);
	m->r = (struct p2p_report){.names = m->names,
				   .devices = m->devices,
				   .n = 2,
				   .access = m->access,
				   .paths = m->paths,
				   .result = &m->result};
	return m;
}

static void drop(struct made *m)
{
	paths_free(m->paths);
	free(m);
}

/* ---- p2pBandwidthLatencyTest ---- */

static const char p2p_text[] =
	"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
	"Device: 0, Made Up 1000, pciBusID: 41, pciDeviceID: 0, pciDomainID:0\n"
	"Device: 1, Made Up 1000, pciBusID: c1, pciDeviceID: 0, pciDomainID:1\n"
	"Device=0 CAN Access Peer Device=1\n"
	"Device=1 CANNOT Access Peer Device=0\n"
	"\n"
	"***NOTE: In case a device doesn't have P2P access to other one, it falls back to normal "
	"memcopy procedure.\n"
	"So you can see lesser Bandwidth (GB/s) and unstable Latency (us) in those cases.\n"
	"\n"
	"P2P Connectivity Matrix\n"
	"     D\\D     0     1\n"
	"     0\t     1     1\n"
	"     1\t     0     1\n"
	"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n"
	"   D\\D     0      1 \n"
	"     0 901.20  11.25 \n"
	"     1  11.50 902.35 \n"
	"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
	"   D\\D     0      1 \n"
	"     0 3904.12  26.12 \n"
	"     1  11.50 903.00 \n" /* refused: as through the host */
	"Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n"
	"   D\\D     0      1 \n"
	"     0 905.00  20.00 \n"
	"     1  20.00 906.00 \n"
	"Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n"
	"   D\\D     0      1 \n"
	"     0 907.00  50.25 \n"
	"     1  50.25 908.00 \n"
	"P2P=Disabled Latency Matrix (us)\n"
	"   GPU     0      1 \n"
	"     0   2.25  14.00 \n"
	"     1  15.00   2.50 \n"
	"\n"
	"   CPU     0      1 \n"
	"     0   1.25   4.00 \n"
	"     1   5.00   1.50 \n"
	"P2P=Enabled Latency (P2P Writes) Matrix (us)\n"
	"   GPU     0      1 \n"
	"     0   2.00   1.12 \n"
	"     1   1.38   2.00 \n"
	"\n"
	"   CPU     0      1 \n"
	"     0   1.00   0.75 \n"
	"     1   0.50   1.00 \n"
	"\n"
	"NOTE: The CUDA Samples are not meant for performance measurements. Results may vary when "
	"GPU Boost is enabled.\n";

static void add_four(struct made *m, const char *word, double a, double b, double c, double d)
{
	add(m, word, 0, 0, a);
	if (b > 0)
		add(m, word, 0, 1, b);
	if (c > 0)
		add(m, word, 1, 0, c);
	add(m, word, 1, 1, d);
}

static void add_enqueue(struct made *m, double a, double b, double c, double d)
{
	const double values[] = {a, b, c, d};

	for (size_t i = 0; i < 4; i++)
		m->cells[m->result.cell_n - 4 + i].enqueue_us = values[i];
}

static void test_p2p_test(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct made *m = make();
	struct p2p_cell *refused;

	(void)state;
	add_four(m, "write-ce-staged", 901.2, 11.25, 11.5, 902.35);
	add_four(m, "write-ce", 3904.124, 26.125, 0, 903);
	refused = add(m, "write-ce", 1, 0, 0);
	refused->value = (struct summary){0};
	add_four(m, "both-ce-staged", 905, 20, 0, 906); /* a pair is measured once */
	add_four(m, "both-ce", 907, 0, 50.25, 908);
	add_four(m, "latency-write-staged", 2.25, 14, 15, 2.5);
	add_enqueue(m, 1.25, 4, 5, 1.5);
	add_four(m, "latency-write", 2, 1.125, 1.375, 2);
	add_enqueue(m, 1, 0.75, 0.5, 1);
	format_p2p_test(&m->r, &b);
	assert_string_equal(strbuf_str(&b), p2p_text);
	drop(m);
}

/* The pair was left out: "-", which compare reads as not measured, and no 0.00. */
static void unmeasured_is_a_dash(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct figures *f = NULL;
	struct made *m = make();

	(void)state;
	add_four(m, "write-ce", 901, 26.5, 0, 902);
	format_p2p_test(&m->r, &b);
	assert_non_null(strstr(b.text, "     0 901.00  26.50 \n     1      - 902.00 \n"));
	assert_null(strstr(b.text, "  0.00"));
	assert_int_equal(figures_parse(b.text, b.len, "x", &f), 0);
	assert_int_equal(f->trouble_n, 0);
	assert_non_null(figures_find(f, "write-ce", 0, 1, 0));
	assert_null(figures_find(f, "write-ce", 1, 0, 0));
	figures_free(f);
	drop(m);
}

static void test_p2p_test_reads(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct made *m = make();
	const char *writes, *reads, *both;

	(void)state;
	add_four(m, "write-ce", 1, 2, 3, 4);
	add_four(m, "read-ce", 5, 6, 7, 8);
	format_p2p_test(&m->r, &b);
	writes = strstr(strbuf_str(&b), "(P2P Writes) Matrix (GB/s)\n");
	reads = strstr(
		strbuf_str(&b),
		"Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)\n   D\\D     0     "
		" 1 \n     0   5.00   6.00 \n");
	both = strstr(strbuf_str(&b), "Bidirectional P2P=Disabled");
	assert_true(writes && reads && both && writes < reads && reads < both);
	drop(m);
}

/* ---- nvbandwidth ---- */

#define JSON_HEAD                                                                                  \
	"{\n"                                                                                      \
	"\t\"nvbandwidth\" : \n"                                                                   \
	"\t{\n"                                                                                    \
	"\t\t\"CUDA Runtime Version\" : 0,\n"                                                      \
	"\t\t\"Driver Version\" : \"none\",\n"                                                     \
	"\t\t\"GPU Device list\" : \n"                                                             \
	"\t\t[\n"                                                                                  \
	"\t\t\t\"0: Made Up 1000 (00000000:41:00): (here)\",\n"                                    \
	"\t\t\t\"1: Made Up 1000 (00000001:c1:00): (here)\"\n"                                     \
	"\t\t],\n"                                                                                 \
	"\t\t\"git_version\" : \"onehop " ONEHOP_VERSION "\",\n"                                   \
	"\t\t\"testcases\" : \n"                                                                   \
	"\t\t[\n"
#define JSON_TAIL                                                                                  \
	"\t\t],\n"                                                                                 \
	"\t\t\"version\" : \"v0.8\"\n"                                                             \
	"\t}\n"                                                                                    \
	"}\n"                                                                                      \
	"\n"
#define JSON_ROW(a, b) "\t\t\t\t\t[\n\t\t\t\t\t\t\"" a "\",\n\t\t\t\t\t\t\"" b "\"\n\t\t\t\t\t]"

static const char nvb_text[] = JSON_HEAD
	"\t\t\t{\n"
	"\t\t\t\t\"bandwidth_description\" : \"memcpy CE CPU(row) -> GPU(column) bandwidth "
	"(GB/s)\",\n"
	"\t\t\t\t\"bandwidth_matrix\" : \n"
	"\t\t\t\t[\n" JSON_ROW(
		"55.5",
		"55.6123") "\n"
			   "\t\t\t\t],\n"
			   "\t\t\t\t\"name\" : \"host_to_device_memcpy_ce\",\n"
			   "\t\t\t\t\"status\" : \"Passed\",\n"
			   "\t\t\t\t\"sum\" : 111.1123456\n"
			   "\t\t\t},\n"
			   "\t\t\t{\n"
			   "\t\t\t\t\"name\" : \"device_to_device_memcpy_read_ce\",\n"
			   "\t\t\t\t\"status\" : \"Waived\"\n"
			   "\t\t\t},\n"
			   "\t\t\t{\n"
			   "\t\t\t\t\"bandwidth_description\" : \"memcpy CE GPU(row) <- "
			   "GPU(column) bandwidth (GB/s)\",\n"
			   "\t\t\t\t\"bandwidth_matrix\" : \n"
			   "\t\t\t\t[\n" JSON_ROW("N/A", "26") ",\n" JSON_ROW(
				   "1.23457e+06",
				   "N/A") "\n"
					  "\t\t\t\t],\n"
					  "\t\t\t\t\"name\" : "
					  "\"device_to_device_memcpy_write_ce\",\n"
					  "\t\t\t\t\"status\" : \"Passed\",\n"
					  "\t\t\t\t\"sum\" : 1234593.0\n"
					  "\t\t\t},\n"
					  "\t\t\t{\n"
					  "\t\t\t\t\"bandwidth_description\" : \"memcpy CE "
					  "GPU(row) <-> GPU(column) Total bandwidth (GB/s)\",\n"
					  "\t\t\t\t\"bandwidth_matrix\" : \n"
					  "\t\t\t\t[\n" /* 40: device 0 moves 10 of it */
	JSON_ROW("N/A", "30") ",\n" JSON_ROW("10", "N/A") ",\n" JSON_ROW("N/A", "10") ",\n" JSON_ROW(
		"30",
		"N/A") ",\n" JSON_ROW("N/A",
				      "40") ",\n" JSON_ROW("40",
							   "N/A") "\n"
								  "\t\t\t\t],\n"
								  "\t\t\t\t\"name\" : "
								  "\"device_to_device_bidirectional_memcpy_write_ce\",\n"
								  "\t\t\t\t\"status\" : "
								  "\"Passed\",\n"
								  "\t\t\t\t\"sum\" : 80.0\n"
								  "\t\t\t},\n"
								  "\t\t\t{\n"
								  "\t\t\t\t\"error\" : \"Data of "
								  "device 0 for device 1 is wrong "
								  "in 7 words\",\n"
								  "\t\t\t\t\"name\" : "
								  "\"device_to_device_memcpy_write_sm\",\n"
								  "\t\t\t\t\"status\" : \"Error\"\n"
								  "\t\t\t}\n" JSON_TAIL;

static void test_nvbandwidth(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct made *m = make();
	struct p2p_cell *c;

	(void)state;
	add(m, "write-ce", 0, 1, 26);
	add(m, "write-ce", 1, 0, 1234567);
	add(m, "h2d-ce", 0, -1, 55.5);
	add(m, "h2d-ce", 1, -1, 55.6123456);
	add(m, "read-ce", 0, 1, 0)->value = (struct summary){0};
	add(m, "both-ce", 0, 1, 40)->share = 0.25;
	add(m, "round-trip", 0, 1, 3); /* it has no such test */
	c = add(m, "write-sm", 0, 1, 20);
	c->data = P2P_WRONG;
	c->wrong_words = 7;
	format_nvbandwidth(&m->r, "here", &b);
	assert_string_equal(strbuf_str(&b), nvb_text);
	drop(m);
}

/* ---- for people ---- */

static char *text_of(const struct p2p_report *r)
{
	const struct text_format format = {.width = 200};
	struct document *d = document_new();
	struct figures *f = p2p_figures(r->result, r->paths, r->devices, r->n);
	struct p2p_report whole = *r;
	struct strbuf b = {0};

	whole.figures = f;
	report_p2p(d, &whole);
	figures_free(f);
	document_write_text(d, &format, &b);
	document_free(d);
	return b.text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

static void test_expected(void **state)
{
	struct link_seen links[2] = {{0}, {2500, 16000}};
	struct made *m = make();
	AUTO_FREE char *plain = NULL, *with_links = NULL, *with_staged = NULL, *with_latency = NULL;

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		paths_pair(m->paths, i, !i)->expected_gbps = 26;
	snprintf(paths_pair(m->paths, 1, 0)->reason, PATH_REASON_SIZE, "x8 link at 0000:41:00.0");
	plan(m, "write-ce");
	add(m, "write-ce", 0, 1, 25.5);
	add(m, "write-ce", 1, 0, 13);
	m->r.links = NULL;
	plain = text_of(&m->r);
	assert_has(plain, "expected 26.0; measured 50 to 98 % of it");
	/* The link is in the expected rate, so it is no reason to be below. */
	assert_has(plain,
		   "GPU1 -> GPU0 (13.0 of 26.0): less than what the path allows (x8 link at");
	assert_null(strstr(plain, "GPU0 -> GPU1 ("));
	assert_has(plain, "2 rounds (at least 2 needed), 0.5 s");
	assert_has(plain, "correct in all 2 checked cells");
	assert_has(plain,
		   "2 of 2 ordered pairs measured: 13 to 25.5 GB/s; 1 below what is expected.");
	assert_true(strstr(plain, "2 of 2 ordered pairs") < strstr(plain, "(write-ce)"));
	m->r.links = links;
	with_links = text_of(&m->r);
	assert_has(with_links, "link of GPU1 at 2.5 of 16.0 GT/s while copying");
	add(m, "write-ce-staged", 1, 0, 12.5);
	with_staged = text_of(&m->r);
	assert_has(with_staged, "no faster than with P2P off");
	/* As fast, and tiny transfers are faster: P2P is used, and the link is narrow. */
	add(m, "latency-write-staged", 1, 0, 15);
	add(m, "latency-write", 1, 0, 1.5);
	with_latency = text_of(&m->r);
	assert_null(strstr(with_latency, "no faster than with P2P off"));
	drop(m);
}

/* The GPU is the initiator of either; the name tells which way the data goes. */
static void test_directions(void **state)
{
	static const char *const words[][2] = {{"h2d-ce", "host -> GPU1"},
					       {"d2h-ce", "GPU1 -> host"},
					       {"latency-host", "GPU1 -> host"}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct made *m = make();
		AUTO_FREE char *text = NULL;

		plan(m, words[i][0]);
		add(m, words[i][0], 1, -1, 25);
		m->r.verbose = true;
		text = text_of(&m->r);
		assert_has(text, words[i][1]);
		drop(m);
	}
}

static void test_shared_link(void **state)
{
	struct made *m = make();
	AUTO_FREE char *text = NULL;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		paths_pair(m->paths, i, !i)->expected_gbps = 26;
		assert_int_equal(link_list_add(&paths_pair(m->paths, i, !i)->links, 7), 0);
	}
	plan(m, "all-to-all-ce");
	add(m, "all-to-all-ce", 0, 1, 13);
	add(m, "all-to-all-ce", 1, 0, 12.9);
	text = text_of(&m->r);
	assert_has(text, "expected 13.0; measured 99 to 100 % of it");
	assert_null(strstr(text, "short"));
	drop(m);
}

/* "107 to 107 % of it" and "1 samples" read like faults. */
static void test_alike(void **state)
{
	struct made *m = make();
	AUTO_FREE char *one = NULL, *two = NULL, *unstable = NULL;

	(void)state;
	plan(m, "write-ce");
	paths_pair(m->paths, 0, 1)->expected_gbps = paths_pair(m->paths, 1, 0)->expected_gbps = 100;
	add(m, "write-ce", 0, 1, 107.1)->gate_timeouts = 1;
	add(m, "write-ce", 1, 0, 106.9);
	one = text_of(&m->r);
	assert_has(one, "107 % of the expected 100.0");
	assert_has(one, "; 1 sample discarded");
	assert_null(strstr(one, "measured 107"));
	paths_pair(m->paths, 1, 0)->expected_gbps = 50;
	m->result.cells[1].value.median = 53.5;
	two = text_of(&m->r);
	assert_has(two, "107 % of the expected 50.0 to 100.0");
	m->result.cells[1].value.low = 0.5;
	m->result.cells[1].value.high = 500;
	unstable = text_of(&m->r);
	assert_has(unstable, "; not stable: a median varies by more than 100 %");
	drop(m);
}

static void test_wrong_and_refused(void **state)
{
	struct made *m = make();
	struct p2p_cell *c;
	AUTO_FREE char *text = NULL;

	(void)state;
	m->r.simulated = true;
	m->r.verbose = true;
	m->r.ended = "the worker process of 0 1 died";
	m->result.stopped = true;
	plan(m, "write-ce");
	c = add(m, "write-ce", 0, 1, 25.5);
	c->data = P2P_WRONG;
	c->wrong_words = 5;
	c->checked_words = 1000;
	c->stop = STOP_BUDGET;
	c->gate_timeouts = 3;
	c = add(m, "write-ce", 1, 0, 0);
	c->value = (struct summary){0};
	c->data = P2P_NOT_CHECKED;
	snprintf(c->why, sizeof(c->why), "peer access of 1 to 0 is refused");
	text = text_of(&m->r);
	assert_has(text, "SIMULATED DEVICES: 2,");
	assert_has(text, "GPU1 -> GPU0: peer access of 1 to 0 is refused");
	assert_has(text, "stopped at the time limit: 1 of 1 (raise --time)");
	assert_has(text, "3 samples discarded");
	assert_has(text, "Data WRONG at the owner in 1 of 1 checked cells");
	assert_has(text, "1 of 2 ordered pairs measured: 25.5 GB/s.");
	assert_has(text, "GPU0 -> GPU1: 5 of 1000 words");
	assert_has(text, "Stopped");
	assert_has(text, "Ended early: the worker process");
	drop(m);
}

static void test_many_devices(void **state)
{
	enum { N = 12 };
	struct p2p_cell cells[N];
	struct device_info devices[N] = {0};
	const char *names[N];
	struct p2p_plan write = {p2p_metric_find("write-ce"), 16, 1, 1, 0.1};
	struct p2p_result result = {cells, N, &write, 1, false};
	struct p2p_report r = {.names = names, .devices = devices, .n = N, .result = &result};
	AUTO_FREE char *text = NULL;

	(void)state;
	for (int i = 0; i < N; i++) {
		names[i] = i == 3 ? "GPU3 x" : "GPU x";
		cells[i] = (struct p2p_cell){.metric = write.metric,
					     .bytes = 16,
					     .initiator = i,
					     .target = (i + 1) % N,
					     .value = {.n = 1, .median = i == 3 ? 1 : 20}};
	}
	assert_int_equal(paths_new(N, (struct paths **)&r.paths), 0);
	text = text_of(&r);
	assert_has(text, "12 cells: median 20, least 1 (GPU3 -> GPU), most 20");
	paths_free((struct paths *)r.paths);
}

static void test_figures(void **state)
{
	struct made *m = make();
	struct figures *f;
	const struct figure *row;

	(void)state;
	add(m, "both-ce", 0, 1, 50);
	add(m, "h2d-ce", 1, -1, 25);
	add(m, "write-ce", 0, 1, 25)->data = P2P_WRONG;
	add(m, "read-ce", 0, 1, 0)->value = (struct summary){0};
	f = p2p_figures(&m->result, m->paths, m->devices, 2);
	assert_int_equal(f->row_n, 3);
	assert_int_equal(f->gpu_n, 2);
	assert_string_equal(f->gpus[1].pci, "0001:c1:00.0");
	row = figures_find(f, "both-ce", 1, 0, 64 << 20);
	assert_non_null(row);
	assert_true(row->median == 50 && row->higher_is_better && row->samples == 9);
	assert_non_null(figures_find(f, "h2d-ce", 1, -1, 64 << 20));
	figures_free(f);
	drop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unmeasured_is_a_dash), cmocka_unit_test(test_p2p_test),
		cmocka_unit_test(test_p2p_test_reads),  cmocka_unit_test(test_nvbandwidth),
		cmocka_unit_test(test_expected),        cmocka_unit_test(test_shared_link),
		cmocka_unit_test(test_alike),           cmocka_unit_test(test_wrong_and_refused),
		cmocka_unit_test(test_many_devices),    cmocka_unit_test(test_directions),
		cmocka_unit_test(test_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
