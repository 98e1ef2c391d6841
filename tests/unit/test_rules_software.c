/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of host, kernel log, RDMA and NCCL: what they tell apart, and where they must stay silent.
 */
#include "base/alloc.h"
#include "diagnose/diagnose.h"
#include "diagnose/variables.h"

#include "build_machine.h"

#include <cmocka.h>
#include <string.h>

#define MIB  ((int64_t)1 << 20)
#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char here[] = "built by a test";

/* ---- judging ---- */

struct judged {
	struct topology *t;
	struct diagnosis *d;
	enum verdict verdict;
	const struct finding *first; /* of the rule */
	size_t n;
};

static struct judged judge(const struct machine *m, const char *id)
{
	struct judged j = {.t = topology_new(m)};

	j.d = diagnose(j.t);
	j.verdict = VERDICT_N;
	for (size_t i = 0; i < j.d->outcome_n; i++)
		if (!strcmp(j.d->outcomes[i].rule->id, id))
			j.verdict = j.d->outcomes[i].verdict;
	if (j.verdict == VERDICT_N)
		fail_msg("there is no rule %s", id);
	for (size_t i = 0; i < j.d->finding_n; i++) {
		const struct finding *f = &j.d->findings[i];

		if (strcmp(f->rule->id, id))
			continue;
		if (!j.first)
			j.first = f;
		j.n++;
		assert_true(*f->subject && *f->sentence && *f->remedy && f->evidence_n);
	}
	return j;
}

static void judged_free(struct judged *j)
{
	diagnosis_free(j->d);
	topology_free(j->t);
}

static void assert_verdict(const struct machine *m, const char *id, enum verdict want)
{
	struct judged j = judge(m, id);

	if (j.verdict != want)
		fail_msg("%s is %s instead of %s%s%s", id, verdict_word(j.verdict),
			 verdict_word(want), j.first ? ": " : "", j.first ? j.first->sentence : "");
	judged_free(&j);
}

/* The rule's first finding has this severity, and sentence or remedy hold the text. */
static void assert_finds(const struct machine *m, const char *id, enum severity severity,
			 const char *text)
{
	struct judged j = judge(m, id);

	if (!j.first) {
		fail_msg("%s finds nothing: %s", id, verdict_word(j.verdict));
		return;
	}
	if (j.first->severity != severity)
		fail_msg("%s is %s: %s", id, severity_word(j.first->severity), j.first->sentence);
	if (!strstr(j.first->sentence, text) && !strstr(j.first->remedy, text))
		fail_msg("%s: '%s' is neither in '%s' nor in '%s'", id, text, j.first->sentence,
			 j.first->remedy);
	judged_free(&j);
}

/* ---- machines ---- */

static struct rdma_port *add_port(struct machine *m, struct rdma_device *d, const char *layer,
				  int64_t rate_mbps)
{
	d->ports = arena_alloc(m->arena, 1, sizeof(*d->ports));
	d->port_n = 1;
	d->ports[0] = (struct rdma_port){
		.number = 1,
		.state = fact_str("ACTIVE", here),
		.phys_state = fact_str("LinkUp", here),
		.link_layer = fact_str(layer, here),
		.rate_mbps = fact_int(rate_mbps, here),
	};
	return &d->ports[0];
}

#define LOCAL  "fe80:0000:0000:0000:0000:0000:0000:0001"
#define IPV4   "0000:0000:0000:0000:0000:ffff:c000:0201"
#define GLOBAL "2001:0db8:0000:0000:0000:0000:0000:0001"

static void add_gid(struct machine *m, struct rdma_port *p, unsigned index, enum gid_type type,
		    const char *text)
{
	struct rdma_gid *g = ARENA_PUSH(m->arena, p->gids, p->gid_n);

	*g = (struct rdma_gid){index, fact_str(text, here), fact_int(type, here)};
	p->gids_listed = fact_int(1, here);
}

/* Two workstation cards and a NIC below one switch; GPUDirect RDMA works. */
static struct machine *with_nic(void)
{
	struct machine *m = build_machine();
	struct pci_function *root = build_port(m, "0000:20:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *up = build_port(m, "0000:21:00.0", root, PCI_PORT_UPSTREAM);
	struct pci_function *a = build_port(m, "0000:22:00.0", up, PCI_PORT_DOWNSTREAM);
	struct pci_function *b = build_port(m, "0000:22:01.0", up, PCI_PORT_DOWNSTREAM);
	struct pci_function *c = build_port(m, "0000:22:02.0", up, PCI_PORT_DOWNSTREAM);

	build_gpu(m, "0000:23:00.0", a);
	build_gpu(m, "0000:24:00.0", b);
	for (size_t i = 0; i < 2; i++)
		build_model(&m->gpus[i], "NVIDIA RTX 6000 Ada Generation", 89);
	add_port(m, build_nic(m, "0000:25:00.0", c, "mlx5_0"), "InfiniBand", 200000);
	m->peermem.loaded = m->peermem.registered = m->peermem.listed = fact_int(1, here);
	m->peermem.legacy_loaded = fact_int(0, here);
	m->peermem.depends = fact_str("nvidia,ib_core", here);
	m->peermem.ofed = m->peermem.ofed_running = fact_str("24.10-1.1.4", here);
	m->peermem.ofed_modules = fact_int(1, here);
	m->peermem.api_in_kernel = fact_int(1, here);
	m->kernel.hypervisor = m->kernel.container = fact_str_absent(here);
	return m;
}

static struct log_line *add_line(struct machine *m, enum log_kind kind, struct pci_function *f,
				 const char *text)
{
	struct log_line *l;

	build_log(m, kind, f);
	l = &m->log[m->log_n - 1];
	l->text = text;
	l->time_us = (int64_t)m->log_n * 1000000;
	return l;
}

static void add_xid(struct machine *m, struct pci_function *f, int code, const char *text)
{
	add_line(m, LOG_XID, f, text)->code = fact_int(code, here);
}

/* ---- the table of variables ---- */

static void variables_are_in_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < variable_n; i++) {
		const struct variable *v = &variable_table[i];

		assert_true(!i || strcmp(v[-1].name, v->name) < 0);
		assert_true(library_of_variable(v->name) < LIBRARY_N);
		assert_true(library_of_variable(v->name) == LIBRARY_NCCL || v->use);
		assert_true(!v->use || v->use->does);
		assert_true(!v->use || !v->use->before == !v->use->changed);
		assert_ptr_equal(variable_find(v->name), v);
		assert_false(nccl_variable_is_foreign(v->name));
		assert_true(!v->until || v->until > v->since);
		assert_true(!v->deprecated || (v->deprecated > v->since && v->note));
	}
	assert_null(variable_find("NCCL_"));
	assert_null(variable_find("NCCL_P2P_LEVELS"));
}

static void defaults_have_versions(void **state)
{
	const struct variable *timeout = variable_find("NCCL_IB_TIMEOUT");

	(void)state;
	assert_string_equal(variable_normal(timeout, NCCL_RELEASE(2, 22, 3)), "18");
	assert_string_equal(variable_normal(timeout, NCCL_RELEASE(2, 23, 4)), "20");
	assert_null(variable_normal(timeout, 0)); /* the version is not known */
	assert_string_equal(variable_normal(variable_find("NCCL_IB_RETRY_CNT"), 0), "7");
	assert_null(variable_normal(variable_find("NCCL_P2P_LEVEL"), 0));
	assert_null(variable_normal(variable_find("NCCL_ALGO"), 0));
	assert_int_equal(library_of_variable("UCX_TLS=rc"), LIBRARY_UCX);
	assert_int_equal(library_of_variable("OMPI_MCA_pml"), LIBRARY_OPEN_MPI);
	assert_int_equal(library_of_variable("OMPI_MCA_pml_base_verbose"), LIBRARY_N);
	assert_int_equal(library_of_variable("nccl_debug"), LIBRARY_NCCL);
	assert_int_equal(library_of_variable("HOME=/root"), LIBRARY_N);
}

static void names_have_distances(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned distance;
	} pairs[] = {
		{"", "", 0},
		{"PHB", "PHB", 0},
		{"PHB", "PBH", 1},
		{"PHB", "PH", 1},
		{"PHB", "PHBB", 1},
		{"PHB", "SYS", 3},
		{"", "PXB", 3},
		{"NCCL_DEBUG", "CCL_DEBUG", 1},
		{"NCLC_DEBGU", "NCCL_DEBUG", 2},
	};

	(void)state;
	for (size_t i = 0; i < N(pairs); i++) {
		assert_int_equal(nccl_name_distance(pairs[i].a, pairs[i].b), pairs[i].distance);
		assert_int_equal(nccl_name_distance(pairs[i].b, pairs[i].a), pairs[i].distance);
	}
}

static void versions_are_compared_in_one_form(void **state)
{
	char buf[32];

	(void)state;
	assert_int_equal(nccl_version_number(2803), NCCL_RELEASE(2, 8, 3));
	assert_int_equal(nccl_version_number(22809), NCCL_RELEASE(2, 28, 9));
	assert_string_equal(nccl_version_format(22809, buf, sizeof(buf)), "2.28.9");
	assert_string_equal(nccl_version_format(NCCL_RELEASE(2, 8, 3), buf, sizeof(buf)), "2.8.3");
}

/* ---- NCCL settings ---- */

/* What a rule says of one setting on a healthy machine: NULL: nothing. */
struct setting_case {
	const char *rule, *name, *value;
	const char *text; /* in sentence or remedy */
	enum severity severity;
};

static const struct setting_case settings[] = {
	{"nccl-number", "NCCL_SHM_DISABLE", "true", "nothing is disabled", SEVERITY_WARNING},
	{"nccl-number", "NCCL_CUMEM_ENABLE", "on", "the opposite", SEVERITY_WARNING},
	{"nccl-number", "NCCL_P2P_DISABLE", "yes", "NCCL_P2P_DISABLE=1", SEVERITY_WARNING},
	{"nccl-number", "NCCL_BUFFSIZE", "4M", "NCCL_BUFFSIZE=4194304", SEVERITY_WARNING},
	{"nccl-number", "NCCL_BUFFSIZE", "1MiB", "NCCL_BUFFSIZE=1048576", SEVERITY_WARNING},
	{"nccl-number", "NCCL_IB_TIMEOUT", "022", "reads 18", SEVERITY_WARNING},
	{"nccl-number", "NCCL_IB_TC", "99999999999999999999", "uses its default", SEVERITY_WARNING},
	{"nccl-number", "NCCL_SHM_DISABLE", "false", NULL, 0},
	{"nccl-number", "NCCL_SHM_DISABLE", "1", NULL, 0},
	{"nccl-number", "NCCL_SHM_DISABLE", "", NULL, 0},
	{"nccl-number", "NCCL_SHM_DISABLE", "0", NULL, 0},
	{"nccl-number", "NCCL_BUFFSIZE", "0x400000", NULL, 0},
	{"nccl-number", "NCCL_IB_GID_INDEX", "-1", NULL, 0},
	{"nccl-number", "NCCL_IB_GID_INDEX", "3 ", NULL, 0},
	{"nccl-number", "NCCL_P2P_LEVEL", "true", NULL, 0},
	{"nccl-number", "NCCL_DEBUG", "INFO", NULL, 0},
	{"nccl-number", "NCCL_NOT_KNOWN", "true", NULL, 0},
	{"nccl-range", "NCCL_P2P_DISABLE", "2", "only 1 disables", SEVERITY_WARNING},
	{"nccl-range", "NCCL_IB_TIMEOUT", "32", "5 bits", SEVERITY_WARNING},
	{"nccl-range", "NCCL_IB_TIMEOUT", "22", NULL, 0},
	{"nccl-range", "NCCL_IB_QPS_PER_CONNECTION", "4", NULL, 0},
	{"nccl-level-name", "NCCL_P2P_LEVEL", "sys", "NCCL_P2P_LEVEL=SYS", SEVERITY_WARNING},
	{"nccl-level-name", "NCCL_P2P_LEVEL", "NODE", "NCCL_P2P_LEVEL=PHB", SEVERITY_WARNING},
	{"nccl-level-name", "NCCL_NET_GDR_LEVEL", "PBH", "NCCL_NET_GDR_LEVEL=PHB",
	 SEVERITY_WARNING},
	{"nccl-level-name", "NCCL_P2P_LEVEL", "everything", "NCCL has no level", SEVERITY_WARNING},
	{"nccl-level-name", "NCCL_P2P_LEVEL", "PXB", NULL, 0},
	{"nccl-level-name", "NCCL_P2P_LEVEL", "4", NULL, 0},
	{"nccl-level-name", "NCCL_P2P_LEVEL", "", NULL, 0},
	{"nccl-level-number", "NCCL_P2P_LEVEL", "1", "means PIX", SEVERITY_INFO},
	{"nccl-level-number", "NCCL_P2P_LEVEL", "5", "means SYS", SEVERITY_INFO},
	{"nccl-level-number", "NCCL_P2P_LEVEL", "0", NULL, 0},
	{"nccl-level-number", "NCCL_P2P_LEVEL", "PIX", NULL, 0},
	{"nccl-unknown-variable", "NCCL_P2P_LEVLE", "SYS", "NCCL_P2P_LEVEL=SYS", SEVERITY_WARNING},
	{"nccl-unknown-variable", "CCL_NET_GDR_LEVEL", "PHB", "NCCL_NET_GDR_LEVEL",
	 SEVERITY_WARNING},
	{"nccl-unknown-variable", "nccl_debug", "INFO", "NCCL_DEBUG=INFO", SEVERITY_WARNING},
	{"nccl-unknown-variable", "NCCL_DEBUG ", "INFO", "NCCL_DEBUG=INFO", SEVERITY_WARNING},
	{"nccl-unknown-variable", "NCCL_TURBO", "1", "that onehop knows of", SEVERITY_INFO},
	{"nccl-unknown-variable", "NCCL_IB_OF_A_LATER_RELEASE", "1", NULL, 0},
	{"nccl-unknown-variable", "NCCL_VERSION", "2.28.9-1", NULL, 0},
	{"nccl-unknown-variable", "NCCL_TESTS_DEVICE", "0", NULL, 0},
	{"nccl-unknown-variable", "NCCL_ASYNC_ERROR_HANDLING", "1", NULL, 0},
	{"nccl-unknown-variable", "RCCL_P2P_LEVEL", "1", NULL, 0},
	{"nccl-unknown-variable", "CUDA_VISIBLE_DEVICES", "0", NULL, 0},
	{"nccl-list-marks", "NCCL_IB_HCA", "^=mlx5_8,^=mlx5_14",
	 "NCCL_IB_HCA=^=", SEVERITY_WARNING},
	{"nccl-list-marks", "NCCL_IB_HCA", "^=mlx5_8,mlx5_14", NULL, 0},
	{"nccl-list-marks", "NCCL_SOCKET_IFNAME", "=eth0,=eth1", "are recognized only once",
	 SEVERITY_WARNING},
	{"nccl-ib-hca", "NCCL_IB_HCA", "mlx5_1", "(mlx5_0:1)", SEVERITY_WARNING},
	{"nccl-ib-hca", "NCCL_IB_HCA", "=mlx5", "excludes every RDMA port", SEVERITY_WARNING},
	{"nccl-ib-hca", "NCCL_IB_HCA", "=^mlx5", "excludes every RDMA port", SEVERITY_WARNING},
	{"nccl-ib-hca", "NCCL_IB_HCA", "==mlx5_0", "excludes every RDMA port", SEVERITY_WARNING},
	{"nccl-ib-hca", "NCCL_IB_HCA", "=mlx5_0:9", "excludes every RDMA port", SEVERITY_WARNING},
	{"nccl-ib-hca", "NCCL_IB_HCA", "^=mlx5_0", "excludes every RDMA port", SEVERITY_WARNING},
	{"nccl-ib-hca", "NCCL_IB_HCA", "^mlx5", "excludes every RDMA port", SEVERITY_WARNING},
	{"nccl-ib-hca", "NCCL_IB_HCA", "^", "excludes every RDMA port", SEVERITY_WARNING},
	{"nccl-ib-hca", "NCCL_IB_HCA", "", NULL, 0},
	{"nccl-ib-hca", "NCCL_IB_HCA", ",", NULL, 0},
	{"nccl-ib-hca", "NCCL_IB_HCA", "^=mlx5_0:2", NULL, 0},
	{"nccl-ib-hca", "NCCL_IB_HCA", "mlx5", NULL, 0},
	{"nccl-ib-hca", "NCCL_IB_HCA", "=mlx5_7,mlx5_0:1", NULL, 0},
	{"nccl-ib-hca", "NCCL_IB_HCA", "^mlx5_7", NULL, 0},
	{"nccl-ib-disabled", "NCCL_IB_DISABLE", "1", "TCP sockets", SEVERITY_WARNING},
	{"nccl-ib-disabled", "NCCL_IB_DISABLE", "0", NULL, 0},
	{"nccl-shm-disabled", "NCCL_SHM_DISABLE", "1", "0 GPU pairs", SEVERITY_INFO},
	{"nccl-shm-disabled", "NCCL_SHM_DISABLE", "true", NULL, 0},
	{"nccl-p2p-disabled", "NCCL_P2P_DISABLE", "1", "P2P is disabled", SEVERITY_WARNING},
	{"nccl-p2p-disabled", "NCCL_P2P_DISABLE", "true", NULL, 0},
	{"nccl-topo-file", "NCCL_TOPO_FILE", "/x.xml", "/x.xml", SEVERITY_WARNING},
	{"nccl-proto", "NCCL_PROTO", "LL,ll128", "forces LL128", SEVERITY_WARNING},
	{"nccl-proto", "NCCL_PROTO", "^LL128", NULL, 0},
	{"nccl-proto", "NCCL_PROTO", "Simple", NULL, 0},
	{"nccl-deprecated", "NCCL_MAX_NCHANNELS", "8", "NCCL_MAX_CTAS", SEVERITY_INFO},
	{"nccl-deprecated", "NCCL_MAX_CTAS", "8", NULL, 0},
};

static void settings_are_judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(settings); i++) {
		const struct setting_case *c = &settings[i];
		struct machine *m = with_nic();

		build_setting(m, c->name, c->value);
		if (c->text)
			assert_finds(m, c->rule, c->severity, c->text);
		else
			assert_verdict(m, c->rule, VERDICT_OK);
		build_free(m);
	}
}

static void overridden_settings_are_not_judged(void **state)
{
	struct machine *m = with_nic();

	(void)state;
	build_setting(m, "NCCL_SHM_DISABLE", "true");
	m->nccl.settings[0].in_force = false;
	m->nccl.settings[0].from = "/etc/nccl.conf:3";
	build_setting(m, "NCCL_SHM_DISABLE", "0");
	assert_verdict(m, "nccl-number", VERDICT_OK);
	m->nccl.settings[0].in_force = true;
	m->nccl.settings[1].in_force = false;
	{
		struct judged j = judge(m, "nccl-number");

		assert_string_equal(j.first->subject, "NCCL_SHM_DISABLE (/etc/nccl.conf:3)");
		judged_free(&j);
	}
	build_free(m);
}

static void variables_of_other_versions_are_told(void **state)
{
	static const struct {
		const char *name;
		int version; /* 0: unknown */
		const char *text;
		enum severity severity;
	} cases[] = {
		{"NCCL_SHM_USE_CUDA_MEMCPY", 22809, NULL, 0},
		{"NCCL_SHM_USE_CUDA_MEMCPY", 23004, NULL, 0},
		{"NCCL_SHM_USE_CUDA_MEMCPY", 23007, "has no effect from NCCL 2.30.7 on",
		 SEVERITY_WARNING},
		{"NCCL_SHM_MEMCPY_MODE", 23007, "no replacement", SEVERITY_WARNING},
		{"NCCL_SHM_USE_CUDA_MEMCPY", 0, "is unknown", SEVERITY_INFO},
		{"NCCL_NVLS_ENABLE", 21605, "supported from NCCL 2.17.1 on", SEVERITY_WARNING},
		{"NCCL_NVLS_ENABLE", 0, NULL, 0},
		{"NCCL_IB_QPS_PER_CONNECTION", 2803, "this is NCCL 2.8.3", SEVERITY_WARNING},
		{"NCCL_IB_HCA", 2803, NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct machine *m = with_nic();

		m->nccl.version = cases[i].version ? fact_int(cases[i].version, here)
						   : fact_int_unknown("no libnccl");
		build_setting(m, cases[i].name, "1");
		if (cases[i].text)
			assert_finds(m, "nccl-variable-version", cases[i].severity, cases[i].text);
		else
			assert_verdict(m, "nccl-variable-version", VERDICT_OK);
		build_free(m);
	}
}

/* Without NVML's answer nobody knows whether the driver allows P2P. */
static void answer(struct machine *m)
{
	m->driver.nvml = fact_str("12.580.159.04", here);
}

static void level_is_told_apart_from_the_driver(void **state)
{
	struct machine *m = build_root_ports(8, 8, 2);

	(void)state;
	answer(m);
	m->nccl.version = fact_int(22809, here);
	assert_finds(m, "nccl-level", SEVERITY_WARNING, "NCCL_P2P_LEVEL=SYS");
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_CHIPSET_NOT_SUPPORTED);
	assert_verdict(m, "nccl-level", VERDICT_OK);
	build_free(m);
}

static void level_depends_on_the_version(void **state)
{
	struct machine *m = build_root_ports(8, 1, 1);

	(void)state;
	answer(m);
	m->nccl.version = fact_int(22203, here);
	assert_verdict(m, "nccl-level", VERDICT_OK);
	m->nccl.version = fact_int_unknown("no libnccl");
	assert_finds(m, "nccl-level", SEVERITY_INFO, "2.23");
	m->nccl.version = fact_int(22809, here);
	assert_finds(m, "nccl-level", SEVERITY_WARNING, "NCCL_P2P_LEVEL=PHB");
	build_setting(m, "NCCL_P2P_LEVEL", "SYS");
	assert_verdict(m, "nccl-level", VERDICT_OK);
	build_free(m);
}

static void reversed_level_counts_where_it_narrows(void **state)
{
	struct machine *m = build_root_ports(4, 1, 1);

	(void)state;
	build_setting(m, "NCCL_P2P_LEVEL", "1");
	assert_finds(m, "nccl-level-number", SEVERITY_WARNING, "calls it SYS");
	m->nccl.settings[0].value = "3";
	assert_finds(m, "nccl-level-number", SEVERITY_INFO, "means PHB");
	build_free(m);
}

static void disabled_counts_less_where_the_driver_denies(void **state)
{
	struct machine *m = build_root_ports(2, 1, 1);

	(void)state;
	build_setting(m, "NCCL_P2P_DISABLE", "1");
	assert_finds(m, "nccl-p2p-disabled", SEVERITY_WARNING, "unset");
	m->nccl.settings[0].name = "NCCL_P2P_LEVEL";
	m->nccl.settings[0].value = "LOC";
	assert_finds(m, "nccl-level", SEVERITY_WARNING, "LOC allows no pair");
	m->nccl.settings[0].name = "NCCL_P2P_DISABLE";
	m->nccl.settings[0].value = "1";
	build_status(m, P2P_READ, P2P_GPU_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_GPU_NOT_SUPPORTED);
	assert_finds(m, "nccl-p2p-disabled", SEVERITY_INFO, "denies it anyway");
	build_setting(m, "NCCL_SHM_DISABLE", "1");
	assert_finds(m, "nccl-shm-disabled", SEVERITY_WARNING, "2 GPU pairs");
	build_setting(m, "NCCL_IGNORE_DISABLED_P2P", "1");
	assert_finds(m, "nccl-ignore-disabled", SEVERITY_WARNING, "2 GPU pairs");
	build_free(m);
}

static void gid_index_is_checked_against_the_ports(void **state)
{
	struct machine *m = with_nic();
	struct rdma_port *p = add_port(m, &m->rdma[0], "Ethernet", 100000);

	(void)state;
	add_gid(m, p, 0, GID_ROCE_V1, LOCAL);
	add_gid(m, p, 1, GID_ROCE_V2, LOCAL);
	add_gid(m, p, 3, GID_ROCE_V2, IPV4);
	m->nccl.version = fact_int(22809, here);
	assert_verdict(m, "nccl-gid-index", VERDICT_OK);
	m->nccl.version = fact_int(22005, here);
	assert_finds(m, "nccl-gid-index", SEVERITY_WARNING, "automatic from 2.21 on");
	assert_finds(m, "nccl-gid-index", SEVERITY_WARNING, "set NCCL_IB_GID_INDEX=3");
	build_setting(m, "NCCL_IB_GID_INDEX", "3");
	assert_verdict(m, "nccl-gid-index", VERDICT_OK);
	m->nccl.version = fact_int(22809, here);
	assert_finds(m, "nccl-gid-index", SEVERITY_INFO, "a fixed setting");
	m->nccl.settings[0].value = "5";
	assert_finds(m, "nccl-gid-index", SEVERITY_WARNING, "is empty");
	m->nccl.settings[0].value = "1";
	assert_finds(m, "nccl-gid-index", SEVERITY_WARNING, "link-local v2 GID");
	assert_finds(m, "nccl-gid-index", SEVERITY_WARNING, "the routed v2 GID is index 3");
	build_setting(m, "NCCL_IB_HCA", "^mlx5_0");
	assert_finds(m, "nccl-gid-index", SEVERITY_INFO, "a fixed setting");
	m->nccl.setting_n--;
	p->gids_listed = fact_int_unknown("needs root");
	assert_finds(m, "nccl-gid-index", SEVERITY_WARNING, "link-local v2 GID");
	m->nccl.settings[0].value = "9"; /* it may be among those that are not shown */
	assert_finds(m, "nccl-gid-index", SEVERITY_INFO, "a fixed setting");
	build_free(m);
}

/*
 * A connection that failed tells of two networks only as far as its line shows them, and nobody
 * answered.
 */
static void rails_are_claimed_only_as_far_as_shown(void **state)
{
#define TIMED_OUT "Call to ibv_modify_qp failed with 110 Connection timed out"
#define MASKED    "unless their mask is shorter than /24"
	static const struct {
		const char *own, *peer, *what, *sentence, *without;
	} rows[] = {
		{"fec0:0:0:1::1", "fec0:0:0:2::1", TIMED_OUT, "two networks", MASKED},
		{"::ffff:10.1.0.1", "::ffff:10.1.1.2", TIMED_OUT, MASKED, "only NICs of"},
		{"::ffff:10.1.0.1", "::ffff:10.1.0.2", TIMED_OUT, NULL, NULL},
		{"::ffff:10.1.0.1", "fec0:0:0:2::1", TIMED_OUT, NULL, NULL},
		{"::ffff:10.1.0.1", "nothing", TIMED_OUT, NULL, NULL},
		{"fec0:0:0:1::1", "fec0:0:0:2::1", "NET/IB: Got completion with status=12 opcode=0",
		 "two networks", MASKED},
		{"fec0:0:0:1::1", "fec0:0:0:2::1",
		 "Got completion with status=IBV_WC_RETRY_EXC_ERR(12)", "two networks", MASKED},
		{"fec0:0:0:1::1", "fec0:0:0:2::1", "NET/IB: Got completion with status=5 opcode=0",
		 NULL, NULL},
		{"fec0:0:0:1::1", "fec0:0:0:2::1",
		 "Call to ibv_modify_qp failed with 22 Invalid argument", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		struct machine *m = with_nic();
		struct judged j;

		build_observed(m, OBSERVED_RUN_FAILURE, -1, -1, false);
		m->observed[0].text = "";
		m->observed[0].failure = (struct run_failure){.own_gid = rows[i].own,
							      .peer_gid = rows[i].peer,
							      .what = rows[i].what};
		j = judge(m, "nccl-rails");
		if (!rows[i].sentence != !j.first)
			fail_msg("row %zu: %s", i, j.first ? j.first->sentence : "nothing");
		if (j.first && (!strstr(j.first->sentence, rows[i].sentence) ||
				strstr(j.first->sentence, rows[i].without)))
			fail_msg("row %zu: %s", i, j.first->sentence);
		judged_free(&j);
		build_free(m);
	}
#undef MASKED
#undef TIMED_OUT
}

/* Ports whose addresses are of two families show nothing of their networks. */
static void settings_cross_rails_where_addresses_show_some(void **state)
{
	static const struct {
		const char *second, *sentence;
	} rows[] = {
		{"0000:0000:0000:0000:0000:ffff:c000:0301",
		 "unless their mask is shorter than /24"},
		{"0000:0000:0000:0000:0000:ffff:c000:0202", NULL},
		{GLOBAL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		struct machine *m = with_nic();
		struct rdma_port *p = add_port(m, &m->rdma[0], "Ethernet", 100000);
		struct pci_function *f = build_port(m, "0000:30:01.0", NULL, PCI_PORT_ROOT);

		add_gid(m, p, 0, GID_ROCE_V2, IPV4);
		p = add_port(m, build_nic(m, "0000:31:00.0", f, "mlx5_1"), "Ethernet", 100000);
		add_gid(m, p, 0, GID_ROCE_V2, rows[i].second);
		build_setting(m, "NCCL_CROSS_NIC", "1");
		if (rows[i].sentence)
			assert_finds(m, "nccl-rails", SEVERITY_WARNING, rows[i].sentence);
		else
			assert_verdict(m, "nccl-rails", VERDICT_OK);
		build_free(m);
	}
}

static void gloo_takes_whole_names_of_network_devices(void **state)
{
	static const struct {
		const char *value, *sentence; /* NULL: nothing is found */
	} rows[] = {
		{"eth0", NULL},        {"eth0,eth1", NULL}, {"", NULL},
		{"^lo", "NCCL's"},     {"=eth0", "NCCL's"}, {"eth0,^lo", "NCCL's"},
		{"mlx5_0", "an RDMA"}, {"mlx5_01", NULL},   {"eth0,mlx5_0", "an RDMA"},
		{"eth0,", "empty"},    {",eth0", "empty"},
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		struct machine *m = with_nic();
		struct setting s = {.name = "GLOO_SOCKET_IFNAME",
				    .value = rows[i].value,
				    .from = "environment",
				    .in_force = true};

		m->settings = &s;
		m->setting_n = 1;
		if (rows[i].sentence)
			assert_finds(m, "gloo-ifname", SEVERITY_WARNING, rows[i].sentence);
		else
			assert_verdict(m, "gloo-ifname", VERDICT_OK);
		m->settings = NULL;
		m->setting_n = 0;
		build_free(m);
	}
}

/* From 2.21 on NCCL looks for an IPv4 address unless told. */
static void ports_with_ipv6_only_are_told(void **state)
{
	struct machine *m = with_nic();
	struct rdma_port *p = add_port(m, &m->rdma[0], "Ethernet", 100000);

	(void)state;
	add_gid(m, p, 0, GID_ROCE_V1, LOCAL);
	add_gid(m, p, 3, GID_ROCE_V2, GLOBAL);
	m->nccl.version = fact_int(22809, here);
	assert_finds(m, "nccl-gid-index", SEVERITY_WARNING, "NCCL_IB_ADDR_FAMILY=AF_INET6");
	build_setting(m, "NCCL_IB_ADDR_FAMILY", "AF_INET6");
	assert_verdict(m, "nccl-gid-index", VERDICT_OK);
	build_free(m);
}

static void old_nccl_misses_peermem(void **state)
{
	struct machine *m = with_nic();

	(void)state;
	m->nccl.version = fact_int(22203, here);
	assert_verdict(m, "nccl-old-peermem", VERDICT_OK);
	m->peermem.listed = fact_int(0, here);
	assert_finds(m, "nccl-old-peermem", SEVERITY_INFO, "2.23.4");
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, here); /* exports no dma-buf */
	assert_finds(m, "nccl-old-peermem", SEVERITY_WARNING, "2.23.4");
	m->nccl.version = fact_int(22304, here);
	assert_verdict(m, "nccl-old-peermem", VERDICT_OK);
	m->nccl.version = fact_int_unknown("no libnccl");
	assert_verdict(m, "nccl-old-peermem", VERDICT_UNKNOWN);
	m->nccl.version = fact_int(22203, here);
	m->peermem.listed = fact_int_unknown("not in the text");
	assert_verdict(m, "nccl-old-peermem", VERDICT_UNKNOWN);
	build_observed(m, OBSERVED_NCCL_GDR_OFF, -1, -1, false);
	assert_finds(m, "nccl-old-peermem", SEVERITY_WARNING, "2.23.4");
	build_free(m);
}

/* A release with a bug, on a machine that it concerns, on another, and on one that is unknown. */
static void bugs_of_nccl(void **state)
{
	struct machine *m = with_nic();

	(void)state;
	m->nccl.version = fact_int(22902, here);
	assert_verdict(m, "nccl-known-bug", VERDICT_OK);
	m->cpu.vendor = fact_int_unknown("not in the text");
	assert_verdict(m, "nccl-known-bug", VERDICT_UNKNOWN);
	m->cpu.vendor = fact_int(CPU_ARM, here);
	assert_finds(m, "nccl-known-bug", SEVERITY_WARNING, "2.29.3");
	m->nccl.version = fact_int(22903, here);
	assert_verdict(m, "nccl-known-bug", VERDICT_OK);

	m->nccl.version = fact_int(22501, here);
	assert_verdict(m, "nccl-known-bug", VERDICT_OK);
	build_model(&m->gpus[0], "NVIDIA GeForce RTX 5090", 120);
	assert_finds(m, "nccl-known-bug", SEVERITY_WARNING, "2.26.2");
	m->nccl.version = fact_int_unknown("no libnccl");
	assert_verdict(m, "nccl-known-bug", VERDICT_UNKNOWN);
	build_free(m);
}

/* The NIC shares its switch with one GPU, or with both. */
static void bug_of_nccl_beside_a_nic(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->nccl.version = fact_int(21801, here);
	m->rdma_listed = fact_int(0, here);
	assert_verdict(m, "nccl-known-bug", VERDICT_OK);
	m->rdma_listed = fact_int_unknown("not in the text");
	assert_verdict(m, "nccl-known-bug", VERDICT_UNKNOWN);
	build_nic(m, "0000:7f:00.0", m->gpus[1].pci->parent, "mlx5_0");
	assert_finds(m, "nccl-known-bug", SEVERITY_WARNING, "NCCL_PROTO=^LL128");
	m->nccl.version = fact_int(21803, here);
	assert_verdict(m, "nccl-known-bug", VERDICT_OK);
	build_free(m);
}

/* ---- host ---- */

static void guest_is_no_fault_with_nvlink(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	assert_verdict(m, "virtual-machine", VERDICT_UNKNOWN);
	m->kernel.hypervisor = fact_str("kvm", here);
	assert_finds(m, "virtual-machine", SEVERITY_INFO, "on the host");
	for (size_t i = 0; i < 2; i++)
		build_nvlinks(&m->gpus[i], 4, NVLINK_REMOTE_GPU, m->gpus[1 - i].pci->name);
	assert_finds(m, "virtual-machine", SEVERITY_INFO, "NVLink does not need them");
	build_free(m);
}

static void container_tells_missing_nodes(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->kernel.container = fact_str("docker", here);
	m->driver.device_nodes = fact_int(1, here);
	m->driver.gpus_in_proc = fact_int(2, here);
	assert_finds(m, "container", SEVERITY_INFO, "1 of 2 GPUs");
	m->driver.device_nodes = fact_int(2, here);
	assert_finds(m, "container", SEVERITY_INFO, "runs in a docker container");
	m->kernel.container = fact_str("docker", "./.dockerenv");
	assert_finds(m, "container", SEVERITY_INFO,
		     "may be a container: the file /.dockerenv exists");
	m->kernel.container = fact_str_absent(here);
	assert_verdict(m, "container", VERDICT_OK);
	build_free(m);
}

static void shm_is_measured_by_the_gpus(void **state)
{
	struct machine *m = build_root_ports(8, 1, 1);

	(void)state;
	assert_verdict(m, "shm-size", VERDICT_UNKNOWN);
	m->limits.shm_bytes = m->limits.shm_free_bytes = fact_int(1024 * MIB, here);
	assert_verdict(m, "shm-size", VERDICT_OK);
	m->limits.shm_free_bytes = fact_int(10 * MIB, here);
	assert_finds(m, "shm-size", SEVERITY_WARNING, "/dev/shm/nccl-*");
	m->limits.shm_bytes = fact_int(64 * MIB, here);
	m->kernel.container = fact_str_unknown(here); /* as in a text: a container is likelier */
	assert_finds(m, "shm-size", SEVERITY_WARNING, "--shm-size");
	m->kernel.container = fact_str_absent(here);
	assert_finds(m, "shm-size", SEVERITY_WARNING, "remount");
	m->kernel.container = fact_str("docker", here);
	assert_finds(m, "shm-size", SEVERITY_WARNING, "--shm-size");
	build_setting(m, "NCCL_SHM_DISABLE", "1");
	assert_verdict(m, "shm-size", VERDICT_NA);
	build_free(m);
}

static void root_is_exempt_from_memlock(void **state)
{
	struct machine *m = with_nic();

	(void)state;
	m->limits.memlock_bytes = fact_int(65536, here);
	assert_finds(m, "memlock", SEVERITY_INFO, "root itself is exempt");
	m->root = fact_int(0, here);
	assert_finds(m, "memlock", SEVERITY_WARNING, "64 KiB");
	m->limits.memlock_bytes = fact_int(-1, here);
	assert_verdict(m, "memlock", VERDICT_OK);
	m->rdma_n = 0;
	assert_verdict(m, "memlock", VERDICT_NA);
	build_free(m);
}

static void acs_override_is_judged_by_the_kernel(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->kernel.cmdline = fact_str("root=/dev/sda1 pcie_acs_override=downstream ro", here);
	m->kernel.cmdline_whole = fact_int(1, here);
	assert_finds(m, "acs-override", SEVERITY_WARNING, "a stock kernel ignores it");
	add_line(m, LOG_ACS, NULL, "Warning: PCIe ACS overrides enabled; This may allow ...");
	assert_finds(m, "acs-override", SEVERITY_WARNING, "is patched");
	m->log[0].text = "Unknown kernel command line parameters \"pcie_acs_override=downstream\"";
	assert_finds(m, "acs-override", SEVERITY_INFO, "does not support it");
	m->kernel.cmdline = fact_str("root=/dev/sda1 ro", here);
	assert_verdict(m, "acs-override", VERDICT_OK);
	build_free(m);
}

static void building_matters_where_a_driver_is_built(void **state)
{
	struct machine *m = with_nic();

	(void)state;
	m->kernel.headers = fact_int(0, here);
	m->kernel.compiler_major = fact_int(13, here);
	m->kernel.compiler_family = fact_str("gcc", here);
	m->kernel.installed_compiler_major = fact_int(11, here);
	assert_verdict(m, "kernel-headers", VERDICT_NA);
	assert_verdict(m, "kernel-compiler", VERDICT_NA);
	m->driver.loaded = fact_int(0, here);
	assert_finds(m, "kernel-headers", SEVERITY_INFO, "not installed");
	assert_finds(m, "kernel-compiler", SEVERITY_INFO, "gcc-13");
	m->kernel.exact_compiler = fact_int(1, here);
	assert_verdict(m, "kernel-compiler", VERDICT_OK);
	m->kernel.exact_compiler = fact_int(0, here);
	m->kernel.installed_compiler_major = fact_int_absent(here);
	assert_finds(m, "kernel-compiler", SEVERITY_INFO, "no gcc is installed");
	build_free(m);
}

static void lockdown_and_secure_boot_are_told_apart(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->kernel.lockdown = fact_int(LOCKDOWN_INTEGRITY, here);
	assert_finds(m, "secure-boot", SEVERITY_INFO, "lockdown=integrity");
	m->kernel.lockdown = fact_int(LOCKDOWN_NONE, here);
	assert_verdict(m, "secure-boot", VERDICT_OK);
	m->kernel.secure_boot = fact_int(1, here);
	assert_finds(m, "secure-boot", SEVERITY_INFO, "Secure Boot is on");
	build_free(m);
}

/* ---- the kernel log ---- */

static void unread_log_is_unknown(void **state)
{
	static const char *const ids[] = {"xid-bus",       "xid-fault",        "iommu-fault",
					  "aer-corrected", "unlock-half-done", "driver-start"};
	struct machine *m = build_two_root_ports();

	(void)state;
	for (size_t i = 0; i < N(ids); i++)
		assert_verdict(m, ids[i], VERDICT_OK);
	m->log_read = fact_int_unknown("needs root: /dev/kmsg");
	for (size_t i = 0; i < N(ids); i++)
		assert_verdict(m, ids[i], VERDICT_UNKNOWN);
	build_free(m);
}

static void xids_are_grouped_by_device_and_code(void **state)
{
	struct machine *m = build_two_root_ports();
	struct judged j;

	(void)state;
	add_xid(m, m->gpus[0].pci, 13, "NVRM: Xid (PCI:0000:01:00): 13, first");
	add_xid(m, m->gpus[1].pci, 13, "NVRM: Xid (PCI:0000:02:00): 13, other");
	add_xid(m, m->gpus[0].pci, 13, "NVRM: Xid (PCI:0000:01:00): 13, last");
	add_xid(m, m->gpus[0].pci, 45, "NVRM: Xid (PCI:0000:01:00): 45");
	add_xid(m, m->gpus[0].pci, 999, "NVRM: Xid (PCI:0000:01:00): 999");
	j = judge(m, "xid-fault");
	assert_int_equal(j.n, 3);
	assert_string_equal(j.first->subject, "GPU0 0000:01:00.0");
	assert_non_null(strstr(j.first->sentence, "2 times, last 3.0 s after boot"));
	assert_non_null(strstr(j.first->evidence[0].value, "first"));
	assert_non_null(strstr(j.first->evidence[1].value, "last"));
	judged_free(&j);
	assert_finds(m, "xid-other", SEVERITY_WARNING, "does not know this code");
	assert_verdict(m, "xid-bus", VERDICT_OK);
	build_free(m);
}

static void half_an_unlock_is_no_bug_of_the_program(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	add_xid(m, m->gpus[0].pci, 31,
		"MMU Fault: ENGINE CE3 ... FAULT_INFO_TYPE_UNSUPPORTED_KIND");
	assert_verdict(m, "xid-fault", VERDICT_OK);
	assert_finds(m, "unlock-half-done", SEVERITY_ERROR, "change nothing");
	m->log[0].text = "MMU Fault: ENGINE GRAPHICS ... FAULT_PDE";
	assert_verdict(m, "unlock-half-done", VERDICT_OK);
	assert_finds(m, "xid-fault", SEVERITY_WARNING, "MMU fault");
	build_free(m);
}

static void aer_lines_of_one_error_count_once(void **state)
{
	static const char *const lines[] = {
		"pcieport: AER: Corrected error received", "PCIe Bus Error: severity=Corrected",
		"  device [10de:2684] error status/mask=00000001/0000a000"};
	struct machine *m = build_two_root_ports();

	(void)state;
	for (size_t i = 0; i < N(lines); i++)
		add_line(m, LOG_AER, m->gpus[0].pci, lines[i])->severity = "corrected";
	m->log[2].code = fact_int(1, here);
	assert_finds(m, "aer-corrected", SEVERITY_INFO, "errors once");
	for (size_t i = 0; i < 10; i++)
		add_line(m, LOG_AER, m->gpus[0].pci, lines[1])->severity = "corrected";
	assert_finds(m, "aer-corrected", SEVERITY_WARNING, "11 times");
	assert_verdict(m, "aer-uncorrected", VERDICT_OK);
	build_free(m);
}

static void aer_counts_on_the_way_to_a_gpu(void **state)
{
	struct machine *m = build_two_root_ports();
	struct pci_function *disk = build_endpoint(m, "0000:05:00.0", NULL);

	(void)state;
	disk->class_code = fact_int(0x010802, here);
	add_line(m, LOG_AER, m->gpus[1].pci->parent, "PCIe Bus Error: severity=...")->severity =
		"fatal";
	assert_finds(m, "aer-uncorrected", SEVERITY_ERROR, "lost or corrupted");
	add_line(m, LOG_AER, m->gpus[1].pci->parent, "   [21] ACSViol (First)")->severity = "fatal";
	assert_finds(m, "aer-uncorrected", SEVERITY_ERROR, "because of ACS");
	m->log_n = 1;
	m->log[0].pci = disk;
	assert_finds(m, "aer-uncorrected", SEVERITY_INFO, "lost or corrupted");
	build_free(m);
}

static void iommu_faults_count_for_peers(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	add_line(m, LOG_IOMMU_FAULT, m->gpus[0].pci, "AMD-Vi: Event logged [IO_PAGE_FAULT ...]");
	assert_finds(m, "iommu-fault", SEVERITY_ERROR, "writes vanish");
	m->log[0].pci = NULL;
	assert_finds(m, "iommu-fault", SEVERITY_INFO, "blocked accesses");
	build_free(m);
}

static void bars_that_found_a_place_later_are_no_fault(void **state)
{
	struct machine *m = build_two_root_ports();
	struct pci_function *f = m->gpus[0].pci;

	(void)state;
	add_line(m, LOG_BAR, f, "pci 0000:01:00.0: BAR 1: can't assign; no space");
	assert_finds(m, "bar-assignment", SEVERITY_WARNING, "no room");
	f->bars_known = true;
	f->bars[0] = (struct pci_bar){.start = 0x1000000, .size = 0x1000, .assigned = true};
	f->bars[1] = (struct pci_bar){.start = 0x1000, .size = 0x1000, .assigned = true};
	assert_finds(m, "bar-assignment", SEVERITY_INFO, "has an address now");
	f->bars[1].assigned = false;
	assert_finds(m, "bar-assignment", SEVERITY_WARNING, "no room");
	build_free(m);
}

static void switch_errors_are_fatal_or_not(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	add_line(m, LOG_FABRIC, NULL,
		 "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, x")
		->code = fact_int(12028, here);
	assert_finds(m, "nvswitch-sxid", SEVERITY_WARNING, "SXid 12028");
	m->log[0].text = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, x";
	assert_finds(m, "nvswitch-sxid", SEVERITY_ERROR, "fatal");
	m->log[0].text = "nvidia-nvswitch3: open (major=510)";
	assert_verdict(m, "nvswitch-sxid", VERDICT_OK);
	build_free(m);
}

static void peermem_symbols_belong_to_rdma(void **state)
{
	struct machine *m = with_nic();

	(void)state;
	add_line(m, LOG_PEERMEM, NULL,
		 "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)");
	assert_verdict(m, "module-symbols", VERDICT_OK);
	add_line(m, LOG_MODULE, NULL, "nvidia: disagrees about version of symbol module_layout");
	assert_finds(m, "module-symbols", SEVERITY_WARNING, "another kernel");
	build_free(m);
}

/* ---- peer memory ---- */

static const char *const peermem_rules[] = {
	"peermem-not-loaded", "peermem-not-registered", "peermem-no-api",     "peermem-before-ofed",
	"peermem-conflict",   "peermem-symbols",        "peermem-inbox-core", "peermem-modprobe",
};

static void no_api(struct machine *m)
{
	m->peermem.depends = fact_str("", here);
	m->peermem.ofed = fact_str_absent(here);
	m->peermem.api_in_kernel = fact_int(0, here);
}

static void before_ofed(struct machine *m)
{
	m->peermem.depends = fact_str("", here);
}

static void conflict(struct machine *m)
{
	m->peermem.legacy_loaded = fact_int(1, here);
	add_line(m, LOG_PEERMEM, NULL,
		 "nvidia-peermem nv_mem_client_init:471 ERROR nv_mem_client_init -- error while "
		 "registering nc client");
}

static void symbols(struct machine *m)
{
	add_line(
		m, LOG_PEERMEM, NULL,
		"nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client");
	add_line(m, LOG_PEERMEM, NULL,
		 "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)");
}

static void inbox_core(struct machine *m)
{
	add_line(m, LOG_PEERMEM, NULL,
		 "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)");
}

static void installed_as_false(struct machine *m)
{
	struct modprobe_line *l = ARENA_PUSH(m->arena, m->modprobe, m->modprobe_n);

	*l = (struct modprobe_line){MODPROBE_INSTALL, "nvidia_peermem", "/bin/false",
				    "/etc/modprobe.d/x.conf", 4};
}

static void bad_parameter(struct machine *m)
{
	add_line(
		m, LOG_PEERMEM, NULL,
		"nvidia-peermem nv_mem_param_conf_check:100 ERROR invalid peerdirect_support param "
		"value 7");
}

static void just_not_loaded(struct machine *m)
{
	(void)m;
}

/* Every cause ends in "Invalid argument"; exactly one row names it. */
static const struct {
	void (*break_it)(struct machine *m);
	const char *rule, *text;
} peermem_causes[] = {
	{just_not_loaded, "peermem-not-loaded", "modprobe nvidia-peermem"},
	{no_api, "peermem-no-api", "kernel logs nothing"},
	{before_ofed, "peermem-before-ofed", "was built before it"},
	{conflict, "peermem-conflict", "could not register with it loaded"},
	{symbols, "peermem-symbols", "another OFED"},
	{inbox_core, "peermem-inbox-core", "openibd"},
	{installed_as_false, "peermem-modprobe", "remove line 4 of /etc/modprobe.d/x.conf"},
	{bad_parameter, "peermem-modprobe", "peerdirect_support"},
};

static void peermem_causes_are_told_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(peermem_causes); i++) {
		struct machine *m = with_nic();

		m->driver.flavor = fact_int(DRIVER_PROPRIETARY, here);
		m->peermem.loaded = m->peermem.registered = fact_int(0, here);
		peermem_causes[i].break_it(m);
		for (size_t k = 0; k < N(peermem_rules); k++)
			if (!strcmp(peermem_rules[k], peermem_causes[i].rule))
				assert_finds(m, peermem_rules[k], SEVERITY_WARNING,
					     peermem_causes[i].text);
			else
				assert_verdict(m, peermem_rules[k],
					       strcmp(peermem_rules[k], "peermem-not-registered")
						       ? VERDICT_OK
						       : VERDICT_NA);
		/* Open modules can hand out dma-buf instead. */
		m->driver.flavor = fact_int(DRIVER_OPEN, here);
		assert_finds(m, peermem_causes[i].rule, SEVERITY_INFO, peermem_causes[i].text);
		build_free(m);
	}
}

/* The log tells of earlier tries; the module that runs is what counts. */
static void peermem_that_runs_failed_only_before(void **state)
{
	static const char *const lines[] = {
		"nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
		"nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)",
		("nvidia-peermem nv_mem_param_conf_check ERROR invalid peerdirect_support param "
		 "value"),
	};

	(void)state;
	for (size_t i = 0; i < N(lines); i++) {
		struct machine *m = with_nic();

		add_line(m, LOG_PEERMEM, NULL, lines[i]);
		for (size_t k = 0; k < N(peermem_rules); k++)
			assert_verdict(m, peermem_rules[k], VERDICT_OK);
		build_free(m);
	}
}

static void peermem_is_silent_where_all_is_well_or_geforce(void **state)
{
	struct machine *m = with_nic();

	(void)state;
	for (size_t k = 0; k < N(peermem_rules); k++)
		assert_verdict(m, peermem_rules[k], VERDICT_OK);
	assert_verdict(m, "gdr-geforce", VERDICT_OK);
	m->peermem.loaded = fact_int(0, here);
	for (size_t i = 0; i < m->gpu_n; i++)
		build_model(&m->gpus[i], "NVIDIA GeForce RTX 4090", 89);
	for (size_t k = 0; k < N(peermem_rules); k++)
		assert_verdict(m, peermem_rules[k], VERDICT_NA);
	assert_finds(m, "gdr-geforce", SEVERITY_INFO, "-22");
	m->peermem.loaded = fact_int_unknown("not in the recording");
	build_model(&m->gpus[0], "NVIDIA H100", 90);
	assert_verdict(m, "peermem-not-loaded", VERDICT_UNKNOWN);
	build_free(m);
}

static void old_parts_are_named(void **state)
{
	struct machine *m = with_nic();

	(void)state;
	m->driver.module_version = fact_str("460.106.00", here);
	assert_finds(m, "gdr-driver-old", SEVERITY_INFO, "older than 470"); /* dma-buf serves */
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, here);
	m->peermem.loaded = m->peermem.registered = fact_int(0, here);
	assert_finds(m, "gdr-driver-old", SEVERITY_WARNING, "older than 470");
	assert_verdict(m, "peermem-not-loaded", VERDICT_OK); /* there is nothing to load */
	assert_finds(m, "dma-buf", SEVERITY_INFO, "proprietary");
	assert_verdict(m, "driver-open-modules", VERDICT_OK); /* said once */
	m->peermem.legacy_loaded = fact_int(1, here);
	assert_verdict(m, "gdr-driver-old", VERDICT_OK);
	m->rdma[0].pci->device = fact_int(0x1003, here);
	assert_verdict(m, "gdr-nic-old", VERDICT_OK); /* nv_peer_mem serves it */
	m->peermem.legacy_loaded = fact_int(0, here);
	assert_finds(m, "gdr-nic-old", SEVERITY_WARNING, "15b3:1003");
	m->rdma[0].pci->device = fact_int(0x1013, here);
	assert_verdict(m, "gdr-nic-old", VERDICT_OK);
	m->peermem.ofed = m->peermem.ofed_running = fact_str("4.9-6.0.6", here);
	assert_finds(m, "gdr-ofed-old", SEVERITY_WARNING, "4.9");
	m->peermem.registered = fact_int(1, here); /* loaded with peerdirect_support=1 */
	assert_verdict(m, "gdr-ofed-old", VERDICT_OK);
	m->peermem.ofed_running = fact_str_absent("the kernel's own mlx5_core");
	assert_verdict(m, "gdr-ofed-old", VERDICT_NA);
	m->peermem.ofed_running = fact_str("24.10-1.1.4", here);
	assert_verdict(m, "gdr-ofed-old", VERDICT_OK);
	m->gpus[1].compute_capability = fact_int(30, here);
	assert_finds(m, "gdr-gpu-old", SEVERITY_WARNING, "3.0");
	build_free(m);
}

static void dma_buf_needs_kernel_and_open_modules(void **state)
{
	struct machine *m = with_nic();

	(void)state;
	assert_verdict(m, "dma-buf", VERDICT_OK);
	m->kernel.dma_buf = fact_int(0, here);
	assert_finds(m, "dma-buf", SEVERITY_INFO, "older than 5.12");
	m->kernel.dma_buf = fact_int(1, here);
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, here);
	assert_finds(m, "dma-buf", SEVERITY_INFO, "proprietary");
	m->gpus[0].dma_buf = fact_int(1, here); /* CUDA's own word */
	assert_verdict(m, "dma-buf", VERDICT_OK);
	m->gpus[0].dma_buf = fact_int_unknown("not asked");
	m->driver.flavor = fact_int_unknown("not said");
	assert_verdict(m, "dma-buf", VERDICT_UNKNOWN);
	build_free(m);
}

/* ---- NICs and ports ---- */

/* One GPU and one NIC in each of two sockets. */
static struct machine *two_sockets(void)
{
	struct machine *m = build_machine();

	build_nodes(m, 2, 2);
	for (unsigned i = 0; i < 2; i++) {
		const char *bus = i ? "80" : "10", *gpu = i ? "81" : "11", *nic = i ? "82" : "12";
		struct arena *a = m->arena;
		struct pci_function *p, *q;

		p = build_port(m, arena_printf(a, "0000:%s:01.1", bus), NULL, PCI_PORT_ROOT);
		q = build_port(m, arena_printf(a, "0000:%s:02.1", bus), NULL, PCI_PORT_ROOT);
		p->numa_node = q->numa_node = fact_int(i, here);
		build_model(build_gpu(m, arena_printf(a, "0000:%s:00.0", gpu), p), "NVIDIA L40S",
			    89);
		add_port(m,
			 build_nic(m, arena_printf(a, "0000:%s:00.0", nic), q,
				   i ? "mlx5_1" : "mlx5_0"),
			 "InfiniBand", 200000);
	}
	return m;
}

static void each_gpu_has_its_nic(void **state)
{
	struct machine *m = two_sockets();
	struct judged j = judge(m, "nic-assignment");

	(void)state;
	assert_int_equal(j.verdict, VERDICT_BAD);
	assert_int_equal(j.first->evidence_n, 2);
	assert_string_equal(j.first->evidence[0].value, "mlx5_0 (PHB)");
	assert_string_equal(j.first->evidence[1].value, "mlx5_1 (PHB)");
	judged_free(&j);
	assert_verdict(m, "nic-far", VERDICT_OK);
	build_free(m);
}

static void far_nics_are_told(void **state)
{
	struct machine *m = two_sockets();

	(void)state;
	m->rdma[1].ports[0].state = fact_str("DOWN", here);
	assert_finds(m, "nic-far", SEVERITY_INFO, "the nearest with an active port is mlx5_0");
	build_setting(m, "NCCL_IB_HCA", "mlx5");
	assert_finds(m, "nic-far", SEVERITY_WARNING, "the nearest with an active port is mlx5_0");
	m->rdma_n = 1;
	assert_finds(m, "nic-far", SEVERITY_WARNING, "GPU1 reaches every NIC");
	build_model(&m->gpus[0], "NVIDIA GeForce RTX 4090", 89);
	build_model(&m->gpus[1], "NVIDIA GeForce RTX 4090", 89);
	assert_finds(m, "nic-far", SEVERITY_INFO, "GPU1 reaches every NIC");
	build_free(m);
}

static void ports_count_where_nccl_would_use_them(void **state)
{
	struct machine *m = two_sockets();
	struct rdma_port *p = &m->rdma[1].ports[0];

	(void)state;
	assert_verdict(m, "rdma-port-down", VERDICT_OK);
	p->state = fact_str("DOWN", here);
	p->phys_state = fact_str("Disabled", here);
	assert_finds(m, "rdma-port-down", SEVERITY_WARNING, "DOWN (Disabled)");
	build_setting(m, "NCCL_IB_HCA", "=mlx5_0");
	assert_finds(m, "rdma-port-down", SEVERITY_INFO, "DOWN (Disabled)");
	m->nccl.settings[0].value = "mlx5_1:2";
	assert_finds(m, "rdma-port-down", SEVERITY_INFO, "DOWN (Disabled)");
	m->nccl.settings[0].value = "mlx5_1:1";
	assert_finds(m, "rdma-port-down", SEVERITY_WARNING, "DOWN (Disabled)");
	m->nccl.settings[0].value = "^mlx5_1";
	assert_finds(m, "rdma-port-down", SEVERITY_INFO, "DOWN (Disabled)");
	m->nccl.setting_n = 0;
	p->state = fact_str("INIT", here);
	assert_finds(m, "rdma-port-down", SEVERITY_WARNING, "subnet manager");
	p->state = m->rdma[0].ports[0].state = fact_str("DOWN", here);
	assert_finds(m, "rdma-port-down", SEVERITY_WARNING, "nobody has opened");
	m->rdma[0].ports[0].phys_state = fact_str("Polling", here);
	assert_finds(m, "rdma-port-down", SEVERITY_WARNING, "it carries no traffic");
	build_setting(m, "NCCL_IB_DISABLE", "1");
	assert_finds(m, "rdma-port-down", SEVERITY_INFO, "it carries no traffic");
	m->nccl.setting_n = 0;
	p->state = m->rdma[0].ports[0].state = fact_str_unknown("no");
	assert_verdict(m, "rdma-port-down", VERDICT_UNKNOWN);
	build_free(m);
}

/* A card whose ports are devices of their own, as mlx5 makes them. */
static void a_spare_port_is_no_fault(void **state)
{
	struct machine *m = two_sockets();

	(void)state;
	m->rdma[1].pci->address = m->rdma[0].pci->address;
	m->rdma[1].pci->address.function = 1;
	m->rdma[1].ports[0].state = fact_str("DOWN", here);
	m->rdma[1].ports[0].phys_state = fact_str("Polling", here);
	assert_finds(m, "rdma-port-down", SEVERITY_INFO, "it carries no traffic");
	build_setting(m, "NCCL_IB_HCA", "mlx5_1");
	assert_finds(m, "rdma-port-down", SEVERITY_WARNING, "it carries no traffic");
	build_free(m);
}

static void slow_ports_are_compared_with_their_like(void **state)
{
	struct machine *m = two_sockets();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		m->rdma[i].board_id = fact_str("MT_0000000223", here);
		m->rdma[i].pci->device = fact_int(0x101b, here);
	}
	assert_verdict(m, "rdma-port-slow", VERDICT_OK);
	m->rdma[1].ports[0].rate_mbps = fact_int(100000, here);
	assert_finds(m, "rdma-port-slow", SEVERITY_WARNING, "the same card mlx5_0");
	m->rdma[1].board_id = fact_str("MT_0000000224", here);
	assert_finds(m, "rdma-port-slow", SEVERITY_INFO, "ConnectX-6");
	m->rdma[1].pci->link_width = fact_int(4, here); /* the slot carries no more anyway */
	assert_verdict(m, "rdma-port-slow", VERDICT_OK);
	build_free(m);
}

static void slots_carry_their_ports(void **state)
{
	struct machine *m = two_sockets();
	struct pci_function *f = m->rdma[0].pci;

	(void)state;
	m->kernel.hypervisor = fact_str_absent(here);
	assert_verdict(m, "rdma-slot-slow", VERDICT_OK);
	f->link_speed = fact_int(8000, here);
	assert_finds(m, "rdma-slot-slow", SEVERITY_WARNING, "126 Gb/s");
	m->rdma[0].ports[0].rate_mbps = fact_int(100000, here);
	assert_verdict(m, "rdma-slot-slow", VERDICT_OK);
	m->kernel.hypervisor = fact_str("kvm", here);
	assert_verdict(m, "rdma-slot-slow", VERDICT_UNKNOWN);
	build_free(m);
}

static void two_ports_of_one_slot_are_good_to_know(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *root = build_port(m, "0000:10:01.1", NULL, PCI_PORT_ROOT);

	(void)state;
	m->kernel.hypervisor = fact_str_absent(here);
	add_port(m, build_nic(m, "0000:11:00.0", root, "mlx5_0"), "InfiniBand", 200000);
	add_port(m, build_nic(m, "0000:11:00.1", root, "mlx5_1"), "InfiniBand", 200000);
	assert_finds(m, "rdma-slot-slow", SEVERITY_INFO, "400 Gb/s");
	build_free(m);
}

static void roce_wants_a_v2_gid(void **state)
{
	struct machine *m = with_nic();
	struct rdma_port *p = &m->rdma[0].ports[0];

	(void)state;
	assert_verdict(m, "roce-gid", VERDICT_NA);
	p->link_layer = fact_str("Ethernet", here);
	assert_verdict(m, "roce-gid", VERDICT_UNKNOWN);
	add_gid(m, p, 0, GID_ROCE_V1, LOCAL);
	assert_finds(m, "roce-gid", SEVERITY_WARNING, "no v2 GID");
	add_gid(m, p, 1, GID_ROCE_V2, LOCAL);
	assert_finds(m, "roce-gid", SEVERITY_WARNING, "only link-local v2 GIDs");
	add_gid(m, p, 2, GID_ROCE_V2, "0000:0000:0000:0000:0000:ffff:a9fe:0001");
	assert_finds(m, "roce-gid", SEVERITY_WARNING, "only link-local v2 GIDs");
	add_gid(m, p, 3, GID_ROCE_V2, GLOBAL);
	assert_verdict(m, "roce-gid", VERDICT_OK);
	p->state = fact_str("DOWN", here);
	assert_verdict(m, "roce-gid", VERDICT_NA);
	build_free(m);
}

/* What helps against a refusal is asked of support, card by card. */
static const struct refusal {
	const char *model;
	int cc;
	struct machine *(*build)(void);
	const char *release, *rule;
	enum p2p_status status;
	const char *says, *not_says;
} refusals[] = {
	{"NVIDIA RTX 6000 Ada Generation", 89, build_two_root_ports, "580.105.08", "p2p-chipset",
	 P2P_CHIPSET_NOT_SUPPORTED, "below one PCIe switch", "do not"},
	{"NVIDIA RTX 6000 Ada Generation", 89, build_switch, "580.105.08", "p2p-chipset",
	 P2P_CHIPSET_NOT_SUPPORTED, "\"ForceP2P=0x211\"", "below one PCIe switch"},
	{"NVIDIA RTX 6000 Ada Generation", 89, build_switch, "550.90.07", "p2p-chipset",
	 P2P_CHIPSET_NOT_SUPPORTED, "\"ForceP2P=0x11\"", "0x211"},
	{"NVIDIA GeForce RTX 2080 Ti", 75, build_two_root_ports, "580.105.08", "p2p-chipset",
	 P2P_CHIPSET_NOT_SUPPORTED, "do not set ForceP2P", "below one PCIe switch"},
	{"NVIDIA CMP 170HX", 80, build_two_root_ports, "580.105.08", "p2p-chipset",
	 P2P_CHIPSET_NOT_SUPPORTED, "do not set ForceP2P", "0x211"},
	{"NVIDIA RTX 6000 Ada Generation", 89, build_switch, "580.105.08", "p2p-gpu",
	 P2P_GPU_NOT_SUPPORTED, "already of one model", "pair cards"},
	{"NVIDIA GeForce RTX 4090", 89, build_two_root_ports, "580.105.08", "p2p-geforce",
	 P2P_CHIPSET_NOT_SUPPORTED, "edited", "590"},
	{"NVIDIA GeForce RTX 5090", 120, build_two_root_ports, "570.211.01", "p2p-geforce",
	 P2P_CHIPSET_NOT_SUPPORTED, "install driver 590 or later", "edited"},
	{"NVIDIA GeForce RTX 5090", 120, build_two_root_ports, "590.44.01", "p2p-geforce",
	 P2P_CHIPSET_NOT_SUPPORTED, "set the driver's keys", "edited"},
};

static void refusals_are_answered_by_support(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];
		struct machine *m = r->build();
		struct judged j;

		for (size_t k = 0; k < m->gpu_n; k++)
			build_model(&m->gpus[k], r->model, r->cc);
		answer(m);
		m->driver.module_version = fact_str(r->release, here);
		build_status(m, P2P_READ, r->status);
		build_status(m, P2P_WRITE, r->status);
		j = judge(m, r->rule);
		assert_non_null(j.first);
		if (!strstr(j.first->remedy, r->says) || strstr(j.first->remedy, r->not_says))
			fail_msg("%s, %s: %s", r->model, r->release, j.first->remedy);
		judged_free(&j);
		build_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_are_answered_by_support),
		cmocka_unit_test(variables_are_in_order),
		cmocka_unit_test(defaults_have_versions),
		cmocka_unit_test(names_have_distances),
		cmocka_unit_test(versions_are_compared_in_one_form),
		cmocka_unit_test(settings_are_judged),
		cmocka_unit_test(overridden_settings_are_not_judged),
		cmocka_unit_test(variables_of_other_versions_are_told),
		cmocka_unit_test(level_is_told_apart_from_the_driver),
		cmocka_unit_test(level_depends_on_the_version),
		cmocka_unit_test(reversed_level_counts_where_it_narrows),
		cmocka_unit_test(disabled_counts_less_where_the_driver_denies),
		cmocka_unit_test(gid_index_is_checked_against_the_ports),
		cmocka_unit_test(gloo_takes_whole_names_of_network_devices),
		cmocka_unit_test(rails_are_claimed_only_as_far_as_shown),
		cmocka_unit_test(settings_cross_rails_where_addresses_show_some),
		cmocka_unit_test(ports_with_ipv6_only_are_told),
		cmocka_unit_test(old_nccl_misses_peermem),
		cmocka_unit_test(bugs_of_nccl),
		cmocka_unit_test(bug_of_nccl_beside_a_nic),
		cmocka_unit_test(guest_is_no_fault_with_nvlink),
		cmocka_unit_test(container_tells_missing_nodes),
		cmocka_unit_test(shm_is_measured_by_the_gpus),
		cmocka_unit_test(root_is_exempt_from_memlock),
		cmocka_unit_test(acs_override_is_judged_by_the_kernel),
		cmocka_unit_test(building_matters_where_a_driver_is_built),
		cmocka_unit_test(lockdown_and_secure_boot_are_told_apart),
		cmocka_unit_test(unread_log_is_unknown),
		cmocka_unit_test(xids_are_grouped_by_device_and_code),
		cmocka_unit_test(half_an_unlock_is_no_bug_of_the_program),
		cmocka_unit_test(aer_lines_of_one_error_count_once),
		cmocka_unit_test(aer_counts_on_the_way_to_a_gpu),
		cmocka_unit_test(iommu_faults_count_for_peers),
		cmocka_unit_test(bars_that_found_a_place_later_are_no_fault),
		cmocka_unit_test(switch_errors_are_fatal_or_not),
		cmocka_unit_test(peermem_symbols_belong_to_rdma),
		cmocka_unit_test(peermem_causes_are_told_apart),
		cmocka_unit_test(peermem_that_runs_failed_only_before),
		cmocka_unit_test(peermem_is_silent_where_all_is_well_or_geforce),
		cmocka_unit_test(old_parts_are_named),
		cmocka_unit_test(dma_buf_needs_kernel_and_open_modules),
		cmocka_unit_test(each_gpu_has_its_nic),
		cmocka_unit_test(far_nics_are_told),
		cmocka_unit_test(ports_count_where_nccl_would_use_them),
		cmocka_unit_test(a_spare_port_is_no_fault),
		cmocka_unit_test(slow_ports_are_compared_with_their_like),
		cmocka_unit_test(slots_carry_their_ports),
		cmocka_unit_test(two_ports_of_one_slot_are_good_to_know),
		cmocka_unit_test(roce_wants_a_v2_gid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
