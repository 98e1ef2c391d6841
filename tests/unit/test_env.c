/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose/advice.c and what report/ makes of it: what to set, and where it says so. */
#include "base/err.h"
#include "base/strbuf.h"
#include "build_machine.h"
#include "diagnose/advice.h"
#include "ingest/ingest.h"
#include "json_schema.h"
#include "judged.h"
#include "report/report_env.h"

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MACHINES "tests/machines"

static const char from[] = "test";

static struct judged read_machine(const char *name)
{
	struct machine *m = NULL;
	char path[512];
	const char *const paths[] = {path};

	snprintf(path, sizeof(path), MACHINES "/%s", name);
	if (ingest_machine(paths, 1, NULL, 0, MACHINE_TO_JUDGE, &m) < 0)
		fail_msg("%s: %s", name, err_msg());
	return judge_read(m);
}

/*
 * Each variable and each setting names findings that check prints, and the JSON is as documented.
 */
static void check_machine(const char *name)
{
	struct judged j = read_machine(name);
	struct advice *a = advice_new(j.d);
	struct env_unread unread = {0};
	struct strbuf trouble = {0};
	json_t *json = report_env_json(j.d, a, &unread);

	for (size_t i = 0; i < a->variable_n; i++) {
		const struct advice_variable *v = &a->variables[i];

		assert_non_null(v->variable);
		assert_true(v->finding_n > 0);
		for (size_t k = 0; k < v->finding_n; k++)
			assert_true(v->findings[k] >= j.d->findings &&
				    v->findings[k] < j.d->findings + j.d->finding_n);
	}
	for (size_t i = 0; i < a->setting_n; i++)
		assert_true(a->settings[i]->setting->in_force);
	json_schema_check(json, "env.schema.json", &trouble);
	if (trouble.len)
		fail_msg("%s: %s", name, strbuf_str(&trouble));
	json_decref(json);
	judged_done(&j);
}

static void every_machine(void **state)
{
	DIR *folder = opendir(MACHINES);
	const struct dirent *e;
	size_t n = 0;

	(void)state;
	assert_non_null(folder);
	while ((e = readdir(folder))) {
		char note[512];

		snprintf(note, sizeof(note), MACHINES "/%s/note.txt", e->d_name);
		if (access(note, F_OK) != 0)
			continue;
		check_machine(e->d_name);
		n++;
	}
	closedir(folder);
	assert_true(n > 100);
}

/* Where NCCL's and the others' defaults are right. */
static void nothing_to_set(void **state)
{
	static const char *const names[] = {"h200x1", "h200x2", "h200x4", "made-up-rdma"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct judged j = read_machine(names[i]);

		assert_int_equal(advice_new(j.d)->variable_n, 0);
		judged_done(&j);
	}
}

/* ---- built machines ---- */

/*
 * Three GPUs that the driver lets talk, on root ports of their own, and an NCCL that stops at
 * switches.
 */
static struct machine *far_machine(void)
{
	struct machine *m = build_root_ports(3, 1, 1);

	m->nccl.version = fact_int(22809, from);
	return m;
}

static const struct advice_variable *variable(const struct advice *a, const char *name)
{
	for (size_t i = 0; i < a->variable_n; i++)
		if (strcmp(a->variables[i].variable->name, name) == 0)
			return &a->variables[i];
	return NULL;
}

static void measured(struct machine *m, double value, double off)
{
	struct observed *o;

	build_observed(m, OBSERVED_BANDWIDTH, 0, 1, true);
	o = &m->observed[m->observed_n - 1];
	o->value = value;
	o->off = off;
}

static void level(void **state)
{
	struct machine *m = far_machine();
	struct judged j;
	const struct advice_variable *v;

	(void)state;
	measured(m, 26.3, 11);
	j = judge_built(m);
	v = variable(advice_new(j.d), "NCCL_P2P_LEVEL");
	assert_non_null(v);
	assert_string_equal(v->value, "PHB");
	assert_string_equal(v->findings[0]->rule->id, "nccl-level");
	assert_true(v->sure);
	assert_null(v->set);
	assert_non_null(v->measured);
	assert_true(v->measured->off == 11);
	judged_done(&j);
}

/* What depends on a version that is not known is shown, and given to no program. */
static void not_sure(void **state)
{
	struct machine *m = far_machine();
	struct strbuf shell = {0}, k8s = {0};
	struct judged j;
	struct advice *a;

	(void)state;
	m->nccl.version = fact_int_unknown("not read");
	m->cpu.vendor = fact_int_unknown("not read");
	j = judge_built(m);
	a = advice_new(j.d);
	assert_non_null(variable(a, "NCCL_P2P_LEVEL"));
	assert_false(variable(a, "NCCL_P2P_LEVEL")->sure);
	format_env_shell(a, &shell);
	assert_string_equal(strbuf_str(&shell), "");
	format_env_k8s(a, &k8s);
	assert_string_equal(strbuf_str(&k8s), "env: []\n");
	strbuf_done(&shell);
	strbuf_done(&k8s);
	judged_done(&j);
}

static void forms(void **state)
{
	static const struct variable nccl = {.name = "NCCL_P2P_LEVEL"}, ucx = {.name = "UCX_TLS"};
	struct advice_variable variables[] = {
		{.variable = &nccl, .value = "SYS", .sure = true},
		{.variable = &ucx, .value = "it's; \"$(x)\"", .sure = true},
	};
	struct advice a = {.variables = variables, .variable_n = 2};
	struct strbuf b = {0};

	(void)state;
	format_env_shell(&a, &b);
	assert_string_equal(strbuf_str(&b), "export NCCL_P2P_LEVEL=SYS\n"
					    "export UCX_TLS='it'\\''s; \"$(x)\"'\n");
	strbuf_done(&b);
	format_env_conf(&a, &b);
	assert_string_equal(strbuf_str(&b), "NCCL_P2P_LEVEL=SYS\n");
	strbuf_done(&b);
	format_env_k8s(&a, &b);
	assert_string_equal(strbuf_str(&b), "env:\n- name: NCCL_P2P_LEVEL\n  value: \"SYS\"\n"
					    "- name: UCX_TLS\n  value: \"it's; \\\"$(x)\\\"\"\n");
	strbuf_done(&b);
}

/* Ranks are CUDA's numbers, CPUs Linux's. */
static void ranks(void **state)
{
	struct machine *m = build_two_root_ports();
	struct topology *t = topology_new(m);
	struct strbuf b = {0};

	(void)state;
	m->gpus[0].pci->local_cpus = fact_str("0-3,8-11", from);
	m->gpus[1].pci->local_cpus = fact_str("4-7,68", from);
	m->gpus[0].cuda_ordinal = fact_int(1, from);
	m->gpus[1].cuda_ordinal = fact_int(0, from);
	assert_int_equal(format_env_mpirun(t, &b), 0);
	assert_non_null(
		strstr(strbuf_str(&b), "\nrank 0=+n0 slot=4-7,68\nrank 1=+n0 slot=0-3,8-11\n"));
	strbuf_done(&b);
	assert_int_equal(format_env_srun(t, &b), 0);
	assert_string_equal(strbuf_str(&b), "--cpu-bind=mask_cpu:0x1000000000000000f0,0xf0f\n");
	strbuf_done(&b);
	m->gpus[0].cuda_ordinal = fact_int_absent("hidden"); /* so is its rank */
	assert_int_equal(format_env_srun(t, &b), 0);
	assert_string_equal(strbuf_str(&b), "--cpu-bind=mask_cpu:0x1000000000000000f0\n");
	strbuf_done(&b);
	m->gpus[1].pci->local_cpus = fact_str("4-", from);
	assert_int_equal(format_env_srun(t, &b), -EINVAL);
	m->gpus[1].pci->local_cpus = fact_str("1-99999999", from);
	assert_int_equal(format_env_srun(t, &b), -EINVAL);
	m->gpus[1].pci->local_cpus = fact_str_unknown("not read");
	m->gpus[1].pci->numa_node = fact_int(-1, from);
	assert_int_equal(format_env_mpirun(t, &b), -ENODATA);
	strbuf_done(&b);
	topology_free(t);
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_machine), cmocka_unit_test(nothing_to_set),
		cmocka_unit_test(level),         cmocka_unit_test(not_sure),
		cmocka_unit_test(forms),         cmocka_unit_test(ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
