/* SPDX-License-Identifier: Apache-2.0 */
/* ingest/observe.c and rules_observed.c: results become observed facts of the right GPUs, or are
 * refused, and rules judge them. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "build_machine.h"
#include "diagnose/diagnose.h"
#include "ingest/figures_open.h"
#include "ingest/nccl_log.h"
#include "ingest/observe.h"
#include "report/report.h"
#include "result/figures.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIGURES "tests/figures/"

static void assert_error(int r, const char *part)
{
	assert_true(r == -EINVAL || r == -ENODEV);
	if (!strstr(err_msg(), part))
		fail_msg("no \"%s\" in: %s", part, err_msg());
}

static void assert_row(const struct machine *m, size_t i, enum observed_kind kind, int initiator,
		       int target, bool ok)
{
	const struct observed *o = &m->observed[i];

	assert_true(i < m->observed_n);
	assert_int_equal(o->kind, kind);
	assert_int_equal(o->initiator, initiator);
	assert_int_equal(o->target, target);
	assert_int_equal(o->ok, ok);
}

/* ---- which GPU is which ---- */

static void by_address(void **state)
{
	struct machine *m = build_two_root_ports();
	struct figures *f = figures_new("x", "onehop bench p2p");

	(void)state;
	figures_need_gpus(f, 2);
	f->gpus[0].pci = m->gpus[1].pci->name; /* another order */
	f->gpus[1].pci = m->gpus[0].pci->name;
	figures_add(f, "pair-verified", 0, 1, 0);
	figures_add(f, "write-ce", 1, 0, 25.5);
	figures_add(f, "write-ce", 1, 0, 2.5)->bytes = 4096; /* slow by nature */
	figures_add(f, "h2d-ce", 0, -1, 25.5);
	figures_add(f, "write-ce", 0, 0, 900);
	assert_int_equal(figures_observe(f, m), 2);
	assert_int_equal(m->observed_n, 2);
	assert_row(m, 0, OBSERVED_PEER_COPY, 1, 0, false);
	assert_row(m, 1, OBSERVED_BANDWIDTH, 0, 1, true);
	assert_true(m->observed[1].value > 25 && m->observed[1].value < 26);
	f->gpus[1].pci = "0000:ff:00.0";
	assert_error(figures_observe(f, m), "0000:ff:00.0, which this machine does not have");
	assert_int_equal(m->observed_n, 2);
	figures_free(f);
	build_free(m);
}

static void by_number(void **state)
{
	struct machine *m = build_two_root_ports();
	struct figures *f = figures_new("x", "nvbandwidth");

	(void)state;
	figures_need_gpus(f, 2);
	for (int i = 0; i < 2; i++) {
		f->gpus[i].cuda_ordinal = i;
		m->gpus[i].cuda_ordinal = fact_int(1 - i, "CUDA_VISIBLE_DEVICES=1,0");
		m->gpus[i].nvml_index = fact_int(i, "nvml");
	}
	figures_add(f, "write-ce", 0, 1, 25.5);
	assert_int_equal(figures_observe(f, m), 1);
	assert_row(m, 0, OBSERVED_BANDWIDTH, 1, 0, true);
	f->gpus[0].nvml_index = 0; /* outweighs CUDA's number */
	f->gpus[1].nvml_index = 1;
	assert_int_equal(figures_observe(f, m), 1);
	assert_row(m, 1, OBSERVED_BANDWIDTH, 0, 1, true);
	f->gpus[1].nvml_index = -1;
	m->gpus[0].cuda_ordinal = fact_int_absent("CUDA_VISIBLE_DEVICES=0");
	assert_error(figures_observe(f, m), "without a PCI address its GPU");
	figures_free(f);
	build_free(m);
}

/* Where nobody knows CUDA's numbers they follow the addresses, if the cards are of one model. */
static void by_order(void **state)
{
	struct machine *m = build_two_root_ports();
	struct figures *f = figures_new("x", "p2pBandwidthLatencyTest");

	(void)state;
	figures_need_gpus(f, 2);
	f->gpus[0].cuda_ordinal = 0;
	f->gpus[1].cuda_ordinal = 1;
	m->gpus[0].cuda_ordinal = m->gpus[1].cuda_ordinal = fact_int_unknown("not collected");
	figures_add(f, "p2p-access", 0, 1, 1);
	assert_int_equal(figures_observe(f, m), 1);
	assert_row(m, 0, OBSERVED_PEER_ACCESS, 0, 1, true);
	m->pci[m->gpus[1].pci->index].device = fact_int(0x1234, "config");
	assert_error(figures_observe(f, m), "without a PCI address its GPU");
	figures_need_gpus(f, 3);
	assert_error(figures_observe(f, m), "is of 3 GPUs and lacks PCI addresses");
	figures_free(f);
	build_free(m);
}

static void simulated_devices_are_not_gpus(void **state)
{
	struct machine *m = build_two_root_ports();
	struct figures *f = figures_new("x", "onehop bench p2p");

	(void)state;
	figures_need_gpus(f, 2);
	f->gpus[0].cuda_ordinal = 0;
	f->gpus[1].cuda_ordinal = 1;
	figures_add(f, "write-ce", 0, 1, 5);
	assert_error(figures_observe(f, m), "is not of GPUs");
	figures_free(f);
	build_free(m);
}

/* ---- onehop test --json ---- */

#define PAIR(i, j, rest) "{\"initiator\": \"GPU" #i "\", \"target\": \"GPU" #j "\", " rest "}"

static int observe_text(const char *text, struct machine *m)
{
	struct figures *f = NULL;
	int r = figures_parse_each(text, strlen(text), "t.json", &f);

	if (r == 0)
		r = figures_observe(f, m);
	figures_free(f);
	return r;
}

static int observe_test(struct machine *m, const char *device, const char *pairs)
{
	AUTO_FREE char *text = xprintf(
		"{\"onehop\": {\"schema\": 1}, \"command\": \"test\", \"device\": \"%s\", "
		"\"devices\": [{\"name\": \"GPU0\", \"pci\": \"%s\", \"cuda_ordinal\": 0}, "
		"{\"name\": \"GPU1\", \"pci\": \"%s\", \"nvml_index\": null}], \"pairs\": [%s]}",
		device, m->gpus[0].pci->name, m->gpus[1].pci->name, pairs);

	return observe_text(text, m);
}

#define MIRROR  PAIR(0, 1, "\"state\": \"failed\", \"kind\": \"mirror\", \"copy_gbps\": 25")
#define SLOW    PAIR(1, 0, "\"state\": \"failed\", \"kind\": \"slow\", \"copy_gbps\": 1.5")
#define REFUSED PAIR(0, 1, "\"state\": \"failed\", \"kind\": \"refused\"")
#define RIGHT   PAIR(1, 0, "\"state\": \"ok\", \"kind\": null, \"copy_gbps\": 1.5")

static void own_tests(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	assert_int_equal(observe_test(m, "cuda", MIRROR "," SLOW), 3);
	assert_row(m, 0, OBSERVED_PEER_COPY, 0, 1, false);
	assert_string_equal(m->observed[0].from, "t.json: pairs[0]: mirror");
	assert_row(m, 1, OBSERVED_PEER_COPY, 1, 0, true);
	assert_row(m, 2, OBSERVED_BANDWIDTH, 1, 0, true);
	assert_int_equal(observe_test(m, "cuda", REFUSED "," RIGHT), 2);
	assert_row(m, 3, OBSERVED_PEER_ACCESS, 0, 1, false);
	assert_row(m, 4, OBSERVED_PEER_COPY, 1, 0, true);
	build_free(m);
}

static void own_tests_that_show_nothing(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	assert_error(observe_test(m, "host:2", MIRROR),
		     "is not of GPUs: a test of simulated devices");
	assert_error(observe_test(m, "cuda", PAIR(0, 1, "\"state\": \"not-tested\"")),
		     "no pair in it was tested");
	assert_error(observe_test(m, "cuda", PAIR(0, 1, "\"state\": \"incomplete\"")),
		     "no pair in it was tested"); /* right copies alone prove nothing */
	assert_error(observe_test(m, "cuda", PAIR(0, 7, "\"state\": \"ok\"") ", 7, {}, []"),
		     "no pair in it was tested");
	assert_int_equal(m->observed_n, 0);
	build_free(m);
}

#define WRONG PAIR(1, 0, "\"state\": \"failed\", \"kind\": \"mirror\", \"copy_gbps\": 25")

/* Two results of one pair are two: their mean would be a success. */
static void the_worst_counts(void **state)
{
	struct machine *m = build_two_root_ports();
	struct figures *f;

	(void)state;
	assert_int_equal(observe_test(m, "cuda", RIGHT "," WRONG "," RIGHT), 3);
	assert_row(m, 0, OBSERVED_PEER_COPY, 1, 0, true);
	assert_row(m, 1, OBSERVED_PEER_COPY, 1, 0, false);
	assert_string_equal(m->observed[1].from, "t.json: pairs[1]: mirror");
	assert_row(m, 2, OBSERVED_PEER_COPY, 1, 0, true);
	f = figures_new("x", "onehop bench p2p");
	figures_need_gpus(f, 2);
	for (int i = 0; i < 2; i++)
		f->gpus[i].pci = m->gpus[i].pci->name;
	figures_add(f, "p2p-access", 0, 1, 1)->low = 0;
	assert_int_equal(figures_observe(f, m), 1);
	assert_row(m, 3, OBSERVED_PEER_ACCESS, 0, 1, false);
	figures_free(f);
	build_free(m);
}

#define CONNECTIVITY(yes)                                                                          \
	"P2P Connectivity Matrix\n     D\\D     0     1\n     0       1     " yes                  \
	"\n     1       " yes "     1\n"

static void each_run_counts(void **state)
{
	struct machine *m = build_two_root_ports();
	AUTO_FREE char *text = NULL;
	const char *a = m->gpus[0].pci->name + 5, *b = m->gpus[1].pci->name + 5;

	(void)state;
	text = xprintf("Device: 0, A, pciBusID: %.2s, pciDeviceID: 0, pciDomainID:0\n"
		       "Device: 1, A, pciBusID: %.2s, pciDeviceID: 0, pciDomainID:0\n" CONNECTIVITY(
			       "1") CONNECTIVITY("0") CONNECTIVITY("1"),
		       a, b);
	assert_int_equal(observe_text(text, m), 6);
	for (size_t i = 0; i < 6; i++)
		assert_row(m, i, OBSERVED_PEER_ACCESS, i % 2, !(i % 2), i / 2 != 1);
	build_free(m);
}

/* ---- of another machine, or of this one before ---- */

static struct figures *of_two(const struct machine *m, const char *what, double value)
{
	struct figures *f = figures_new("x", "onehop bench p2p");

	for (size_t i = 0; i < 2; i++)
		figures_add_gpu(f, m->gpus[i].pci->name, fact_str_or(m->gpus[i].model, ""), -1);
	figures_add(f, what, 0, 1, value);
	return f;
}

static void another_model(void **state)
{
	struct machine *m = build_two_root_ports();
	struct figures *f;

	(void)state;
	m->gpus[0].model = m->gpus[1].model = fact_str("NVIDIA H200", "t");
	f = of_two(m, "write-ce", 25.5);
	m->gpus[1].model = fact_str("NVIDIA H100 PCIe", "t");
	assert_error(figures_observe(f, m), "x: is of other GPUs than this machine's: GPU1 0000:");
	assert_error(figures_observe(f, m), "is NVIDIA H200 there and NVIDIA H100 PCIe here");
	assert_int_equal(m->observed_n + m->weighed_n, 0);
	f->gpus[1].name = "H100 PCIe"; /* as drivers of 2020 say */
	assert_int_equal(figures_observe(f, m), 1);
	figures_free(f);
	build_free(m);
}

static void another_driver_or_boot(void **state)
{
	struct machine *m = build_two_root_ports();
	struct figures *f = of_two(m, "write-ce", 25.5);

	(void)state;
	m->driver.module_version = fact_str("580.1", "t");
	m->kernel.boot_id = fact_str("b", "t");
	assert_int_equal(figures_observe(f, m), 1); /* it does not say */
	f->conditions[CONDITION_BOOT] = "a";
	assert_int_equal(figures_observe(f, m), 1);
	f->conditions[CONDITION_DRIVER] = "570.2";
	assert_int_equal(figures_observe(f, m), 1);
	assert_int_equal(m->weighed_n, 3);
	assert_int_equal(m->weighed[0].changed.what, CONDITION_N);
	assert_int_equal(m->weighed[1].changed.what, CONDITION_BOOT);
	assert_int_equal(m->weighed[2].changed.what, CONDITION_DRIVER);
	assert_string_equal(m->weighed[2].changed.was, "570.2");
	assert_string_equal(m->weighed[2].changed.is, "580.1");
	assert_int_equal(m->observed_n, 3);
	figures_free(f);
	build_free(m);
}

static size_t slow_findings(const struct diagnosis *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->finding_n; i++)
		n += strcmp(d->findings[i].rule->id, "observed-slow") == 0;
	return n;
}

/* 0.00 GB/s, and a test that calls the copies too slow and does not say how slow. */
static void a_rate_of_nothing(void **state)
{
	static const char *const metrics_of_it[] = {"write-ce", "pair-rate"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct machine *m = build_two_root_ports();
		struct figures *f = of_two(m, metrics_of_it[i], 0);
		struct diagnosis *d;
		struct topology *t;
		char sentence[512];

		figures_add(f, "pair-verified", 0, 1, 1);
		figures_add(f, "pair-verified", 1, 0, 1);
		figures_add(f, "pair-rate", 1, 0, 1);
		assert_int_equal(figures_observe(f, m), 3);
		t = topology_new(m);
		assert_int_equal(topology_path(t, 0, 1)->chain[CHAIN_OBSERVED].reason,
				 REASON_OBSERVED_SLOW);
		assert_int_not_equal(topology_path(t, 0, 1)->verdict, PAIR_DIRECT);
		assert_int_equal(topology_path(t, 1, 0)->verdict, PAIR_DIRECT);
		d = diagnose(t);
		assert_non_null(strstr(
			diagnosis_verdict(d, sentence, sizeof(sentence)),
			"1 of 2 pairs direct over PCIe. Copies much slower than expected on 1"));
		assert_int_equal(slow_findings(d), 1);
		diagnosis_free(d);
		topology_free(t);
		figures_free(f);
		build_free(m);
	}
}

/* ---- NCCL's log ---- */

static void ways_as_figures(void **state)
{
	static const char log[] =
		"n:1:1 [0] NCCL INFO ncclCommInitRank comm 0xa0 rank 0 nranks 2 cudaDev 0 nvmlDev "
		"0 busId 91000 commId 0x7 - Init COMPLETE\n"
		"n:2:2 [1] NCCL INFO ncclCommInitRank comm 0xa1 rank 1 nranks 2 cudaDev 1 nvmlDev "
		"1 busId 92000 commId 0x7 - Init COMPLETE\n"
		"n:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n"
		"n:2:2 [1] NCCL INFO Channel 00 : 1[1] -> 0[0] via P2P/CUMEM\n"
		"n:2:2 [1] NCCL INFO NCCL_P2P_LEVEL set by environment to SYS\n";

	(void)state;
	for (int told = 0; told < 2; told++) {
		struct figures *f = figures_new("", "onehop bench nccl");
		size_t n = told ? sizeof(log) - 1
				: (size_t)(strstr(log, "n:2:2 [1] NCCL INFO NCCL_") - log);
		struct nccl_log *l = NULL;

		assert_int_equal(nccl_log_parse(log, n, "log", &l), 0);
		figures_add_gpu(f, "0000:92:00.0", "", 1);
		figures_add_gpu(f, "0000:91:00.0", "", 0);
		nccl_log_add_figures(l, f);
		assert_int_equal(f->row_n, told ? 0 : 2);
		for (size_t i = 0; i < f->row_n; i++) {
			bool p2p = f->rows[i].initiator == 0;

			assert_string_equal(f->rows[i].what, METRIC_NCCL_P2P);
			assert_int_equal(f->rows[i].median, p2p);
			assert_string_equal(f->rows[i].kind,
					    p2p ? "P2P/CUMEM" : "SHM/direct/direct");
		}
		nccl_log_free(l);
		figures_free(f);
	}
}

static void transports(void **state)
{
	static const char text[] =
		"n:1:1 [0] NCCL INFO ncclCommInitRank comm 0xa0 rank 0 nranks 2 cudaDev 0 nvmlDev "
		"0 busId 91000 commId 0x7 - Init COMPLETE\n"
		"n:2:2 [1] NCCL INFO ncclCommInitRank comm 0xa1 rank 1 nranks 2 cudaDev 1 nvmlDev "
		"1 busId 92000 commId 0x7 - Init COMPLETE\n"
		"n:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n"
		"n:2:2 [1] NCCL INFO Channel 00 : 1[1] -> 0[0] via P2P/CUMEM\n";
	struct machine *m = build_two_root_ports();
	struct nccl_log *l = NULL;

	(void)state;
	assert_int_equal(nccl_log_parse(text, sizeof(text) - 1, "log", &l), 0);
	assert_int_equal(l->device_n, 2);
	assert_error(nccl_log_observe(l, m), "0000:91:00.0, which this machine does not have");
	l->devices[0].pci = m->gpus[1].pci->name;
	l->devices[1].pci = m->gpus[0].pci->name;
	assert_int_equal(nccl_log_observe(l, m), 2);
	assert_row(m, 0, OBSERVED_NCCL_TRANSPORT, 1, 0, false);
	assert_string_equal(m->observed[0].text, "SHM/direct/direct");
	assert_string_equal(m->observed[0].from, "log:3");
	assert_row(m, 1, OBSERVED_NCCL_TRANSPORT, 0, 1, true);
	l->devices[1].host = "elsewhere";
	assert_error(nccl_log_observe(l, m), "is a log of several hosts");
	nccl_log_free(l);
	build_free(m);
}

/* One end decides as the other does, or the log shows which host does not. */
static void ends_of_connections_are_compared(void **state)
{
	static const char text[] =
		"a:1:1 [0] NCCL INFO Channel 00/0 : 0[1000] -> 8[1000] [send] via NET/IB/0/GDRDMA\n"
		"b:1:1 [0] NCCL INFO Channel 00/0 : 0[1000] -> 8[1000] [receive] via NET/IB/0\n"
		"a:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'\n";
	static const char same[] =
		"a:1:1 [0] NCCL INFO Channel 00/0 : 0[1000] -> 8[1000] [send] via NET/IB/0/GDRDMA\n"
		"b:1:1 [0] NCCL INFO Channel 00/0 : 0[1000] -> 8[1000] [receive] via NET/IB/0/GDRDMA\n";
	struct machine *m = build_two_root_ports();
	struct nccl_log *l = NULL;

	(void)state;
	assert_int_equal(nccl_log_parse(text, sizeof(text) - 1, "log", &l), 0);
	assert_true(nccl_log_observe(l, m) > 0);
	assert_int_equal(m->observed_n, 2);
	assert_int_equal(m->observed[0].kind, OBSERVED_NCCL_GDR_OFF);
	assert_string_equal(m->observed[0].from, "log:3");
	assert_int_equal(m->observed[1].kind, OBSERVED_NCCL_GDR_HALF);
	assert_string_equal(m->observed[1].text, "b");
	assert_string_equal(m->observed[1].from, "log:2");
	nccl_log_free(l);
	assert_int_equal(nccl_log_parse(same, sizeof(same) - 1, "log", &l), 0);
	assert_error(nccl_log_observe(l, m), "is a log of several hosts");
	assert_int_equal(m->observed_n, 2);
	nccl_log_free(l);
	build_free(m);
}

/* ---- files ---- */

static void files(void **state)
{
	static const char *const before[] = {FIGURES
					     "rtx4090x8/p2pBandwidthLatencyTest-before.txt"};
	static const char *const bad[][2] = {
		{FIGURES "rtx4090x8/nccl-all_reduce-after.txt", "without figures for single pairs"},
		{FIGURES "logs/two-hosts.txt", "several hosts"},
		{FIGURES "failed/log-wrong-values.txt", "which this machine does not have"},
		{"tests/machines/made-up-switch/config-space.txt",
		 "is a text with outputs of other tools"},
		{"tests/machines/made-up-switch/note.txt", "not a result of onehop"},
		{"/dev/null", "/dev/null: empty"},
		{"/proc/self/cmdline", "/proc/self/cmdline: binary, not a result of"},
	};
	struct machine *m = build_root_ports(8, 2, 2);

	(void)state;
	assert_int_equal(observe_files(before, 1, m), 0);
	assert_int_equal(m->observed_n, 56 * 3); /* access, writes, latency */
	assert_row(m, 0, OBSERVED_PEER_ACCESS, 0, 1, false);
	assert_string_equal(m->observed[0].from,
			    FIGURES "rtx4090x8/p2pBandwidthLatencyTest-before.txt:3");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *path = bad[i][0];

		assert_error(observe_files(&path, 1, m), bad[i][1]);
	}
	assert_int_equal(m->observed_n, 56 * 3);
	build_free(m);
}

/* ---- rules ---- */

static const struct finding *find(const struct diagnosis *d, const char *rule)
{
	for (size_t i = 0; i < d->finding_n; i++)
		if (strcmp(d->findings[i].rule->id, rule) == 0)
			return &d->findings[i];
	return NULL;
}

static enum verdict outcome(const struct diagnosis *d, const char *rule)
{
	for (size_t i = 0; i < d->outcome_n; i++)
		if (strcmp(d->outcomes[i].rule->id, rule) == 0)
			return d->outcomes[i].verdict;
	return VERDICT_N;
}

static void measure(struct machine *m, int i, int j, double gbps)
{
	build_observed(m, OBSERVED_BANDWIDTH, i, j, true);
	m->observed[m->observed_n - 1].value = gbps;
}

static bool has_evidence(const struct finding *f, const char *part)
{
	AUTO_STRBUF struct strbuf all = {0};

	for (size_t i = 0; i < f->evidence_n; i++) {
		report_evidence(&all, &f->evidence[i]);
		strbuf_putc(&all, '\n');
	}
	return strstr(strbuf_str(&all), part);
}

/*
 * A result file may say both that the data arrived and what cannot be; the verdict stays, the doubt
 * is told.
 */
static void checked_copies_that_cannot_be(void **state)
{
	static const struct {
		const char *rule;
		double rate;
		enum observed_gain gain;
	} rows[] = {{"observed-implausible", 301, OBSERVED_GAIN_UNKNOWN},
		    {"observed-no-gain", 20, OBSERVED_GAINS_NOTHING}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct machine *m = build_switch();
		const struct finding *f;
		struct diagnosis *d;
		struct topology *t;

		measure(m, 0, 1, rows[i].rate);
		m->observed[m->observed_n - 1].gain = rows[i].gain;
		build_observed(m, OBSERVED_PEER_COPY, 0, 1, true);
		t = topology_new(m);
		d = diagnose(t);
		f = find(d, rows[i].rule);
		assert_non_null(f);
		assert_int_equal(f->severity, SEVERITY_INFO);
		assert_non_null(strstr(f->sentence, "though their data arrives: 1 of 2 pairs"));
		assert_int_equal(topology_path(t, 0, 1)->verdict, PAIR_DIRECT);
		diagnosis_free(d);
		topology_free(t);
		build_free(m);
	}
}

/* 25.8 GB/s are expected; 15.5 are 60 % of that. */
static void slow_pairs(void **state)
{
	struct machine *m = build_switch();
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	const struct finding *f;

	(void)state;
	assert_int_equal(outcome(d, "observed-slow"), VERDICT_NA);
	diagnosis_free(d);
	topology_free(t);
	measure(m, 0, 1, 15.6);
	t = topology_new(m);
	d = diagnose(t);
	assert_int_equal(outcome(d, "observed-slow"), VERDICT_OK);
	diagnosis_free(d);
	topology_free(t);
	measure(m, 1, 0, 15.3);
	build_iommu(m, "DMA");
	t = topology_new(m);
	d = diagnose(t);
	f = find(d, "observed-slow");
	assert_non_null(f);
	assert_int_equal(f->pairs, 1);
	assert_string_equal(
		f->sentence,
		"copies reached 15.3 GB/s, but the path (PIX) should give 25.8: 1 of 2 pairs "
		"(GPU1->GPU0)");
	assert_true(has_evidence(f, "GPU1->GPU0: 15.3 GB/s (output.txt:7)"));
	assert_true(has_evidence(f, "the IOMMU translates"));
	diagnosis_free(d);
	topology_free(t);
	build_free(m);
}

static void assert_slow(struct machine *m, size_t pairs, const char *sentence)
{
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	const struct finding *f = find(d, "observed-slow");

	if (!sentence)
		assert_null(f);
	else if (!f || f->pairs != pairs || !strstr(f->sentence, sentence))
		fail_msg("%s", f ? f->sentence : "no finding");
	diagnosis_free(d);
	topology_free(t);
}

/* What is healthy one way between the sockets of EPYC Milan is not the other way, and what is read
 * comes the other way. */
static void slow_between_sockets(void **state)
{
	struct machine *m = build_root_ports(2, 2, 2);

	(void)state;
	m->cpu.family = fact_int(25, "test");
	m->cpu.model = fact_int(1, "test");
	measure(m, 0, 1, 21.9);
	measure(m, 1, 0, 9.8);
	assert_slow(m, 0, NULL);
	measure(m, 0, 1, 9.8);
	m->observed[m->observed_n - 1].pulled = true;
	assert_slow(m, 0, NULL);
	m->observed[m->observed_n - 1].pulled = false;
	assert_slow(m, 1, "copies reached 9.8 GB/s, but the path (SYS) should give 22");
	build_free(m);
}

/* Where nobody knows what to expect, the other pairs tell, and only of the worst. */
static void slow_beside_others(void **state)
{
	struct machine *m = build_root_ports(3, 1, 1);

	(void)state;
	for (int i = 0; i < 3; i++)
		m->gpus[i].pci->link_width = fact_int_unknown("test");
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			if (i != j)
				measure(m, i, j, i == 2 && j == 1 ? 3 : 25);
	for (size_t i = 0; i < m->pci_n; i++)
		m->pci[i].link_width = fact_int_unknown("test");
	assert_slow(m, 0, NULL);
	m->observed[m->observed_n - 1].value = 2;
	assert_slow(m, 1, "copies reached 2 GB/s where other pairs reach 25");
	build_free(m);
}

/* All of them at a fifth of what the link gives. */
static void slow_all_alike(void **state)
{
	struct machine *m = build_root_ports(3, 1, 1);

	(void)state;
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			if (i != j)
				measure(m, i, j, 5.2);
	assert_slow(m, 6, "all 6 pairs");
	build_free(m);
}

/* What the driver refuses goes through host memory, as fast as that may be. */
static void refused_pairs_are_not_slow(void **state)
{
	struct machine *m = build_switch();
	struct topology *t;
	struct diagnosis *d;

	(void)state;
	measure(m, 0, 1, 1);
	build_observed(m, OBSERVED_PEER_ACCESS, 0, 1, false);
	t = topology_new(m);
	d = diagnose(t);
	assert_int_equal(outcome(d, "observed-slow"), VERDICT_NA);
	assert_int_equal(find(d, "observed-refused")->severity, SEVERITY_ERROR);
	assert_null(find(d, "observed-fails"));
	diagnosis_free(d);
	topology_free(t);
	build_free(m);
}

static void failures(void **state)
{
	struct machine *m = build_switch();
	struct topology *t;
	struct diagnosis *d;
	const struct finding *f;

	(void)state;
	build_observed(m, OBSERVED_PEER_COPY, 0, 1, false);
	t = topology_new(m);
	d = diagnose(t);
	f = find(d, "observed-fails");
	assert_non_null(f);
	assert_string_equal(
		f->sentence,
		"transfers failed: 1 of 2 pairs (GPU0->GPU1) (first seen in output.txt:7)");
	assert_int_equal(f->severity, SEVERITY_ERROR);
	assert_int_equal(topology_path(t, 0, 1)->verdict, PAIR_BLOCKED);
	assert_int_equal(topology_path(t, 1, 0)->verdict, PAIR_DIRECT);
	assert_false(diagnosis_unexplained(d));
	diagnosis_free(d);
	topology_free(t);
	build_status(m, P2P_WRITE, P2P_CHIPSET_NOT_SUPPORTED);
	t = topology_new(m);
	d = diagnose(t);
	assert_int_equal(find(d, "observed-fails")->severity, SEVERITY_INFO);
	diagnosis_free(d);
	topology_free(t);
	build_free(m);
}

/* A policy of NCCL's, and no fault of the hardware: the pair stays direct. */
static void staged_by_nccl(void **state)
{
	struct machine *m = build_switch();
	struct topology *t;
	struct diagnosis *d;
	const struct finding *f;

	(void)state;
	build_observed(m, OBSERVED_NCCL_TRANSPORT, 0, 1, false);
	m->observed[0].text = "SHM/direct";
	t = topology_new(m);
	d = diagnose(t);
	f = find(d, "nccl-level");
	assert_non_null(f);
	assert_int_equal(f->pairs, 1);
	assert_true(has_evidence(f, "GPU0->GPU1: SHM/direct (output.txt:7)"));
	assert_int_equal(topology_path(t, 0, 1)->verdict, PAIR_DIRECT);
	assert_null(find(d, "observed-fails"));
	diagnosis_free(d);
	topology_free(t);
	build_free(m);
}

static size_t count(const struct diagnosis *d, const char *rule)
{
	size_t n = 0;

	for (size_t i = 0; i < d->finding_n; i++)
		n += strcmp(d->findings[i].rule->id, rule) == 0;
	return n;
}

/* Pairs that a log shows staged and pairs that it does not show are one finding where the level is known;
 * a log that shows P2P beyond it is of a run that had another. */
static void level_of_the_version(void **state)
{
	struct machine *m = build_root_ports(3, 1, 1);
	struct topology *t;
	struct diagnosis *d;
	const struct finding *f;

	(void)state;
	m->nccl.version = fact_int(22809, "run.log");
	build_observed(m, OBSERVED_NCCL_TRANSPORT, 0, 1, false);
	m->observed[0].text = "SHM/direct";
	t = topology_new(m);
	d = diagnose(t);
	f = find(d, "nccl-level");
	assert_int_equal(count(d, "nccl-level"), 1);
	assert_int_equal(f->pairs, 6);
	assert_int_equal(f->severity, SEVERITY_WARNING);
	assert_true(has_evidence(f, "NCCL version: 2.28.9 (run.log)"));
	assert_true(has_evidence(f, "GPU0->GPU1: SHM/direct (output.txt:7)"));
	diagnosis_free(d);
	topology_free(t);
	m->observed[0].ok = true;
	t = topology_new(m);
	d = diagnose(t);
	f = find(d, "nccl-level");
	assert_int_equal(f->pairs, 5);
	assert_int_equal(f->severity, SEVERITY_INFO);
	assert_non_null(strstr(f->sentence, "yet a run used P2P for GPU0->GPU1"));
	diagnosis_free(d);
	topology_free(t);
	build_free(m);
}

/* The NCCL that ran decides, not the one that is installed, and the fact says so. */
static void version_of_the_log(void **state)
{
	static const char text[] = "NCCL version 2.28.9+cuda13.0\n"
				   "h:1:3 [0] NCCL WARN something is odd\n";
	struct machine *m = build_root_ports(3, 1, 1);
	struct nccl_log *l = NULL;

	(void)state;
	m->nccl.version = fact_int_unknown("no libnccl");
	assert_int_equal(nccl_log_parse(text, strlen(text), "run.log", &l), 0);
	assert_true(nccl_log_observe(l, m) > 0);
	assert_true(fact_is(m->nccl.version, 22809));
	assert_string_equal(m->nccl.version.from, "run.log");
	m->nccl.library = fact_str("/usr/lib/libnccl.so.2.20.5", "test");
	m->nccl.version = fact_int(22005, "test");
	assert_true(nccl_log_observe(l, m) > 0);
	assert_true(fact_is(m->nccl.version, 22809));
	assert_string_equal(m->nccl.version.from,
			    "run.log; /usr/lib/libnccl.so.2.20.5 is of another version");
	nccl_log_free(l);
	build_free(m);
}

/* What NCCL logged of its environment is what decides; what is set here was not in force then. */
static void settings_of_the_log(void **state)
{
	static const char text[] = "NCCL version 2.28.9+cuda13.0\n"
				   "h:1:2 [0] NCCL INFO NCCL_P2P_LEVEL set by environment to LOC\n"
				   "h:1:3 [0] NCCL WARN something is odd\n";
	static struct setting here = {"NCCL_P2P_LEVEL", "SYS", SETTING_ENVIRONMENT, "environment",
				      true};
	struct machine *m = build_root_ports(3, 1, 1);
	const struct setting *s;
	struct nccl_log *l = NULL;
	struct topology *t;
	struct diagnosis *d;

	(void)state;
	*ARENA_PUSH(m->arena, m->nccl.settings, m->nccl.setting_n) = here;
	assert_int_equal(nccl_log_parse(text, strlen(text), "run.log", &l), 0);
	assert_true(nccl_log_observe(l, m) > 0);
	s = machine_setting(m, "NCCL_P2P_LEVEL");
	assert_string_equal(s->value, "LOC");
	assert_string_equal(s->from, "run.log:2");
	t = topology_new(m);
	assert_int_equal(topology_path(t, 0, 1)->chain[CHAIN_NCCL].value2, NCCL_PATH_LOC);
	d = diagnose(t);
	assert_true(has_evidence(find(d, "nccl-level"), "NCCL_P2P_LEVEL=LOC (run.log:2)"));
	diagnosis_free(d);
	topology_free(t);
	nccl_log_free(l);
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_of_the_log),
		cmocka_unit_test(by_address),
		cmocka_unit_test(by_number),
		cmocka_unit_test(by_order),
		cmocka_unit_test(simulated_devices_are_not_gpus),
		cmocka_unit_test(own_tests),
		cmocka_unit_test(the_worst_counts),
		cmocka_unit_test(each_run_counts),
		cmocka_unit_test(own_tests_that_show_nothing),
		cmocka_unit_test(another_model),
		cmocka_unit_test(another_driver_or_boot),
		cmocka_unit_test(a_rate_of_nothing),
		cmocka_unit_test(checked_copies_that_cannot_be),
		cmocka_unit_test(ways_as_figures),
		cmocka_unit_test(transports),
		cmocka_unit_test(ends_of_connections_are_compared),
		cmocka_unit_test(files),
		cmocka_unit_test(slow_pairs),
		cmocka_unit_test(slow_between_sockets),
		cmocka_unit_test(slow_beside_others),
		cmocka_unit_test(slow_all_alike),
		cmocka_unit_test(refused_pairs_are_not_slow),
		cmocka_unit_test(failures),
		cmocka_unit_test(staged_by_nccl),
		cmocka_unit_test(level_of_the_version),
		cmocka_unit_test(version_of_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
