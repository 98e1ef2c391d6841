/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose/: the table, needs, order of findings, the verdict sentence. */
#include "base/alloc.h"
#include "base/array.h"
#include "diagnose/ask.h"
#include "machine/observed.h"

#include "build_machine.h"
#include "check_text.h"
#include "judged.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char here[] = "built by a test";

static const struct outcome *outcome_of(const struct diagnosis *d, const char *id)
{
	for (size_t i = 0; i < d->outcome_n; i++)
		if (!strcmp(d->outcomes[i].rule->id, id))
			return &d->outcomes[i];
	fail_msg("no rule %s", id);
	return NULL;
}

static void assert_sentence(struct machine *m, const char *wanted)
{
	struct judged j = judge_built(m);
	char buf[512];

	assert_string_equal(diagnosis_verdict(j.d, buf, sizeof(buf)), wanted);
	judged_done(&j);
}

/* ---- the table ---- */

static bool is_id(const char *s)
{
	return *s && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(s);
}

static void rows_are_whole(void **state)
{
	(void)state;
	FOR_EACH_RULE (r) {
		assert_true(is_id(r->id));
		assert_non_null(r->probe);
		assert_true(r->title && *r->title && r->title[strlen(r->title) - 1] != '.');
		assert_true(r->why && r->why[strlen(r->why) - 1] == '.');
		assert_true(r->remedy && *r->remedy);
		if (bare_command(r->remedy))
			fail_msg("%s: %s", r->id, bare_command(r->remedy));
		assert_true(r->reference && *r->reference);
		assert_true(r->severity < SEVERITY_N);
		assert_ptr_equal(rule_find(r->id), r); /* ids are unique */
	}
	assert_null(rule_find("no-such-rule"));
	assert_null(rule_find(""));
}

/* ---- needs ---- */

/* JSON leaves out a finding whose subject has no word. */
static void every_kind_of_subject_has_a_word(void **state)
{
	(void)state;
	for (enum subject_kind k = 0; k < SUBJECT_KIND_N; k++)
		assert_non_null(subject_word(k));
}

static void no_gpu(void **state)
{
	struct judged j = judge_built(build_machine());

	(void)state;
	assert_int_equal(outcome_of(j.d, "driver-loaded")->verdict, VERDICT_NA);
	assert_int_equal(outcome_of(j.d, "acs-redirect")->verdict, VERDICT_NA);
	assert_null(outcome_of(j.d, "acs-redirect")->why);
	judged_done(&j);
}

static void nothing_known(void **state)
{
	struct machine *m = build_machine();
	struct judged j;

	(void)state;
	m->pci_listed = fact_int_unknown("not in the recording");
	j = judge_built(m);
	assert_int_equal(outcome_of(j.d, "driver-loaded")->verdict, VERDICT_UNKNOWN);
	assert_non_null(strstr(outcome_of(j.d, "driver-loaded")->why, "not in the recording"));
	judged_done(&j);
}

static void one_gpu_has_no_pairs(void **state)
{
	struct machine *m = build_machine();
	struct judged j;

	(void)state;
	build_gpu(m, "0000:01:00.0", NULL);
	j = judge_built(m);
	assert_int_equal(outcome_of(j.d, "cross-socket")->verdict, VERDICT_NA);
	judged_done(&j);
}

static void nvml_is_needed(void **state)
{
	struct machine *m = build_two_root_ports();
	struct judged j;

	(void)state;
	m->driver.nvml = fact_str_unknown("libnvidia-ml.so.1 is not installed");
	j = judge_built(m);
	assert_int_equal(outcome_of(j.d, "p2p-chipset")->verdict, VERDICT_UNKNOWN);
	assert_non_null(strstr(outcome_of(j.d, "p2p-chipset")->why, "libnvidia-ml"));
	assert_false(outcome_of(j.d, "p2p-chipset")->root_would_tell);
	judged_done(&j);
}

static void root_would_tell(void **state)
{
	struct machine *m = build_switch();
	struct judged j;

	(void)state;
	m->root = fact_int(0, here);
	for (size_t i = 0; i < m->pci_n; i++) {
		m->pci[i].config_size = 64;
		if (!fact_absent(m->pci[i].acs_ctl))
			m->pci[i].acs_ctl = fact_int_unknown("needs root: config");
	}
	j = judge_built(m);
	assert_int_equal(outcome_of(j.d, "acs-redirect")->verdict, VERDICT_UNKNOWN);
	assert_true(outcome_of(j.d, "acs-redirect")->root_would_tell);
	assert_non_null(strstr(outcome_of(j.d, "acs-redirect")->why, "2 switch ports"));
	assert_int_equal(outcome_of(j.d, "atomics-routed")->verdict, VERDICT_UNKNOWN);
	assert_true(outcome_of(j.d, "atomics-routed")->root_would_tell);
	judged_done(&j);
}

static void driver_is_needed(void **state)
{
	struct machine *m = build_two_root_ports();
	struct judged j;

	(void)state;
	m->driver.loaded = fact_int(0, here);
	j = judge_built(m);
	assert_int_equal(outcome_of(j.d, "driver-library-version")->verdict, VERDICT_NA);
	judged_done(&j);
}

/* ---- order ---- */

static int rank(const struct finding *f)
{
	return f->severity > SEVERITY_INFO ? (int)f->rule->blocks : (int)BLOCKS_NOTHING;
}

static void assert_ordered(const struct diagnosis *d)
{
	for (size_t i = 1; i < d->finding_n; i++) {
		const struct finding *a = &d->findings[i - 1], *b = &d->findings[i];

		assert_true(rank(a) >= rank(b));
		if (rank(a) != rank(b))
			continue;
		assert_true(a->severity >= b->severity);
		if (a->severity != b->severity)
			continue;
		assert_true(a->pairs >= b->pairs);
		if (a->pairs == b->pairs)
			assert_true(a->confidence <= b->confidence);
	}
}

/* A machine with much wrong at once. */
static void what_blocks_most_comes_first(void **state)
{
	struct machine *m = build_switch();
	struct judged j;

	(void)state;
	m->driver.nvml = fact_str("12.580.159.04", here);
	m->driver.library_version = fact_str("570.10", here);
	m->gpus[1].pci->link_width = fact_int(4, here);
	m->gpus[1].compute_mode = fact_int(3, here);
	m->pci[2].acs_ctl = fact_int(PCI_ACS_SV | PCI_ACS_RR, here);
	m->pci[3].acs_ctl = fact_int(PCI_ACS_RR, here);
	j = judge_built(m);
	assert_true(j.d->finding_n >= 5);
	assert_string_equal(j.d->findings[0].rule->id, "driver-library-version");
	assert_string_equal(j.d->findings[1].rule->id, "acs-redirect");
	assert_string_equal(j.d->findings[1].subject, "port 0000:22:00.0");
	assert_string_equal(j.d->findings[2].subject, "port 0000:22:01.0");
	assert_ordered(j.d);
	judged_done(&j);
}

/* ---- verdict sentence ---- */

static void sentence_without_gpus(void **state)
{
	struct machine *m = build_machine();

	(void)state;
	assert_sentence(build_machine(), "No NVIDIA GPU found");
	m->pci_listed = fact_int_unknown("not in the recording");
	assert_sentence(m, "Undecided: PCI devices could not be listed (not in the recording)");
	m = build_machine();
	build_gpu(m, "0000:01:00.0", NULL);
	assert_sentence(m, "GPU P2P: only one GPU, so no pairs");
}

static void sentence_direct(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	assert_sentence(build_switch(), "GPU P2P: both pairs direct over PCIe");
	build_setting(m, "NCCL_P2P_DISABLE", "1");
	assert_sentence(
		m,
		"GPU P2P: both pairs direct over PCIe (NCCL's settings exclude them). But see nccl-p2p-disabled");
	m = build_two_root_ports();
	for (size_t i = 0; i < 2; i++) {
		build_model(&m->gpus[i], "NVIDIA H200", 90);
		build_nvlinks(&m->gpus[i], 18, NVLINK_REMOTE_SWITCH, "0000:00:00.0");
	}
	assert_sentence(m, "GPU P2P: both pairs direct over NVLink (NV18)");
}

static void sentence_blocked(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_CHIPSET_NOT_SUPPORTED);
	for (size_t i = 0; i < 2; i++)
		m->gpus[i].bar1_bytes = fact_int(256 << 20, here);
	assert_sentence(
		m, "GPU P2P: 0 of 2 pairs direct. The driver blocks both; so does BAR1 (256 MiB)");
	m = build_switch();
	m->pci[2].acs_ctl = fact_int(PCI_ACS_RR, here);
	assert_sentence(m, "GPU P2P: 1 of 2 pairs direct over PCIe. ACS redirect blocks 1");
}

static void sentence_open(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	for (size_t k = 0; k < 4; k++)
		m->pairs[k].p2p[P2P_READ] = fact_int_unknown("no NVML");
	assert_sentence(m,
			"GPU P2P: 0 of 2 pairs direct, 2 undecided. Unknown: the driver's answer");
	m = build_two_root_ports();
	build_iommu(m, "DMA");
	assert_sentence(m,
			"GPU P2P: 0 of 2 pairs direct, 2 doubtful. Possible obstacle: the IOMMU");
}

/* What was seen to work is not blocked, whatever the registers say. */
static void sentence_observed(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->pci[2].acs_ctl = fact_int(PCI_ACS_RR, here);
	build_observed(m, OBSERVED_PEER_COPY, -1, -1, true);
	assert_sentence(m, "GPU P2P: both pairs direct over PCIe");
}

static void sentence_with_nics(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *up, *down[2];

	(void)state;
	up = build_port(m, "0000:21:00.0", build_port(m, "0000:20:01.0", NULL, PCI_PORT_ROOT),
			PCI_PORT_UPSTREAM);
	down[0] = build_port(m, "0000:22:00.0", up, PCI_PORT_DOWNSTREAM);
	down[1] = build_port(m, "0000:22:01.0", up, PCI_PORT_DOWNSTREAM);
	build_gpu(m, "0000:23:00.0", down[0]);
	build_nic(m, "0000:24:00.0", down[1], "mlx5_0");
	assert_sentence(
		m, "GPU P2P: only one GPU, so no pairs. GPUDirect RDMA: not available on GeForce "
		   "cards (see gdr-geforce)");
}

static void sentence_is_cut_to_size(void **state)
{
	struct judged j = judge_built(build_switch());
	char buf[10];

	(void)state;
	assert_string_equal(diagnosis_verdict(j.d, buf, sizeof(buf)), "GPU P2P: ");
	judged_done(&j);
}

/* Remedies have one style: a full stop only after several sentences. */
static void remedies_have_one_style(void **state)
{
	(void)state;
	FOR_EACH_RULE (r) {
		const char *s = r->remedy;
		bool several = strstr(s, ". ") != NULL;

		if (isupper((unsigned char)s[0]) && islower((unsigned char)s[1]))
			fail_msg("%s: the remedy begins with a capital: %s", r->id, s);
		if ((s[strlen(s) - 1] == '.') != several)
			fail_msg("%s: full stop of the remedy: %s", r->id, s);
		if (r->title[strlen(r->title) - 1] == '.')
			fail_msg("%s: the title ends in a full stop", r->id);
	}
}

/* A finding that no path shows is named behind the count. */
static void sentence_names_what_paths_do_not_show(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->driver.library_version = m->driver.module_version;
	m->driver.nvml_library = fact_str("570.10", "test");
	assert_sentence(m, "GPU P2P: both pairs direct over PCIe. But see driver-library-version");
}

static void sentence_names_unusable_devices(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	pci_find(m, m->gpus[1].pci->address)->driver = fact_str("vfio-pci", "test");
	assert_sentence(m, "GPU P2P: 0 of 2 pairs direct. Unusable devices block both");
}

/* Blocked pairs must not end in exit code 0 because no rule found the cause. */
static void blocked_without_a_finding_is_told(void **state)
{
	struct machine *m = build_switch();
	struct judged j;

	(void)state;
	pci_find(m, m->gpus[0].pci->parent->address)->acs_ctl = fact_int(0x1d, "test");
	j = judge_built(m);
	assert_true(j.d->finding_n > 0);
	assert_false(diagnosis_unexplained(j.d));
	for (size_t i = 0; i < j.d->finding_n; i++)
		j.d->findings[i].severity = SEVERITY_INFO;
	assert_true(diagnosis_unexplained(j.d));
	j.d->finding_n = 0;
	assert_true(diagnosis_unexplained(j.d));
	judged_done(&j);
	j = judge_built(build_switch());
	assert_false(diagnosis_unexplained(j.d));
	judged_done(&j);
}

/* ---- what to ask for ---- */

static void assert_asked(struct machine *m, size_t n, const char *first)
{
	struct judged j = judge_built(m);
	struct question q[QUESTIONS_MAX];

	assert_int_equal(diagnosis_ask(j.d, q), n);
	if (first)
		assert_non_null(strstr(q[0].command, first));
	judged_done(&j);
}

static void what_is_known_is_not_asked(void **state)
{
	(void)state;
	assert_asked(build_two_root_ports(), 0, NULL);
}

static void the_missing_fact_is_asked(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->kernel.iommus = fact_int_unknown(here);
	for (size_t i = 0; i < m->pci_n; i++)
		m->pci[i].iommu_group = fact_int_unknown(here);
	for (size_t i = 0; i < m->pci_n; i++)
		m->pci[i].iommu_type = fact_str_unknown(here);
	assert_asked(m, 1, "/proc/cmdline");

	m = build_two_root_ports();
	m->driver.registry_dwords = fact_str_unknown(here);
	assert_asked(m, 1, "/proc/driver/nvidia/params");

	m = build_two_root_ports();
	m->peermem.loaded = fact_int_unknown(here);
	assert_asked(m, 0, NULL); /* nothing is said of a network */
	m = build_two_root_ports();
	m->peermem.loaded = fact_int_unknown(here);
	build_setting(m, "NCCL_IB_HCA", "mlx5_0");
	assert_asked(m, 1, "lsmod");
}

/* What is set already is not advised. */
static void p2p_that_is_off_is_no_remedy(void **state)
{
	static const struct run_failure refused = {.kind = RUN_CUDA_ERROR, .code = 217, .what = ""};

	(void)state;
	for (int off = 0; off < 2; off++) {
		struct machine *m = build_two_root_ports();
		struct judged j;

		observed_add(m, OBSERVED_RUN_FAILURE, -1, -1, "log:1")->failure = refused;
		if (off)
			build_setting(m, "NCCL_P2P_DISABLE", "1");
		j = judge_built(m);
		assert_string_equal(j.d->findings[0].rule->id, "observed-run");
		assert_int_equal(!!strstr(j.d->findings[0].remedy, "until then use no P2P"), !off);
		assert_int_equal(!!strstr(j.d->findings[0].remedy, "disable-custom-all-reduce"),
				 off);
		judged_done(&j);
	}
}

/* A text without GPUs: what failed decides what to ask for. */
static void what_failed_is_asked(void **state)
{
	static const struct {
		struct run_failure failure;
		const char *first; /* NULL: nothing */
	} rows[] = {
		{{.kind = RUN_TIMED_OUT, .code = -1, .waits = RUN_WAITS_SAME, .what = ""},
		 "dmesg -T"},
		{{.kind = RUN_TIMED_OUT, .code = -1, .waits = RUN_WAITS_MIXED, .what = ""}, NULL},
		{{.kind = RUN_CUDA_ERROR, .code = 719, .what = ""}, "dmesg -T"},
		{{.kind = RUN_CUDA_ERROR, .code = 217, .what = ""}, "nvidia-smi topo -p2p r"},
		{{.kind = RUN_CUDA_ERROR, .code = 802, .what = ""}, "nvidia-fabricmanager"},
		{{.kind = RUN_CUDA_ERROR, .code = 34, .what = ""}, NULL},
		{{.kind = RUN_NCCL_ERROR, .code = -1, .what = "Got completion with error 12,"},
		 "ibv_devinfo"},
		{{.kind = RUN_NCCL_ERROR, .code = -1, .what = "No space left on device"}, NULL},
		{{.kind = RUN_RDMA_ERROR, .code = -1, .what = "Couldn't allocate MR"}, "lsmod"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine *m = build_machine();
		struct question q[QUESTIONS_MAX];
		struct judged j;
		size_t n;

		m->pci_listed = m->kernel.iommus = m->peermem.loaded = fact_int_unknown(here);
		m->log_read = fact_int_unknown(here);
		observed_add(m, OBSERVED_RUN_FAILURE, -1, -1, "log:1")->failure = rows[i].failure;
		j = judge_built(m);
		n = diagnosis_ask(j.d, q);
		if (rows[i].first && (!n || !strstr(q[0].command, rows[i].first)))
			fail_msg("%zu: %s", i, n ? q[0].command : "nothing");
		if (!rows[i].first && n)
			fail_msg("%zu: %s", i, q[0].command);
		judged_done(&j);
	}
}

static void three_are_asked_at_most(void **state)
{
	struct machine *m = build_machine();

	(void)state;
	m->pci_listed = fact_int_unknown(here);
	m->kernel.iommus = fact_int_unknown(here);
	m->peermem.loaded = fact_int_unknown(here);
	build_setting(m, "NCCL_IB_HCA", "mlx5_0");
	assert_asked(m, QUESTIONS_MAX, "lsmod");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_whole),
		cmocka_unit_test(every_kind_of_subject_has_a_word),
		cmocka_unit_test(no_gpu),
		cmocka_unit_test(nothing_known),
		cmocka_unit_test(one_gpu_has_no_pairs),
		cmocka_unit_test(nvml_is_needed),
		cmocka_unit_test(root_would_tell),
		cmocka_unit_test(driver_is_needed),
		cmocka_unit_test(what_blocks_most_comes_first),
		cmocka_unit_test(sentence_without_gpus),
		cmocka_unit_test(remedies_have_one_style),
		cmocka_unit_test(sentence_names_what_paths_do_not_show),
		cmocka_unit_test(sentence_names_unusable_devices),
		cmocka_unit_test(blocked_without_a_finding_is_told),
		cmocka_unit_test(sentence_direct),
		cmocka_unit_test(sentence_blocked),
		cmocka_unit_test(sentence_open),
		cmocka_unit_test(sentence_observed),
		cmocka_unit_test(sentence_with_nics),
		cmocka_unit_test(sentence_is_cut_to_size),
		cmocka_unit_test(what_is_known_is_not_asked),
		cmocka_unit_test(the_missing_fact_is_asked),
		cmocka_unit_test(p2p_that_is_off_is_no_remedy),
		cmocka_unit_test(what_failed_is_asked),
		cmocka_unit_test(three_are_asked_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
