/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose/symptom.c: what the facts of recorded machines show, leave open and exclude. */
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "diagnose/symptom.h"
#include "judged.h"
#include "open_recording.h"

#include <string.h>

#include <cmocka.h>

static struct judged judge(const char *machine)
{
	static const struct machine_request everything = {.parts = MACHINE_ALL};
	AUTO_STRBUF struct strbuf path = {0};
	struct source *s = NULL;
	struct machine *m;

	strbuf_printf(&path, "tests/machines/%s", machine);
	if (open_recording(strbuf_str(&path), &s) < 0)
		fail_msg("%s", err_msg());
	m = machine_read(s, &everything);
	source_free(s);
	return judge_read(m);
}

/* "acs:acs-redirect iommu:? program": what is found by which rule, and what is open. */
static void add_suspects(const struct diagnosis *d, enum symptom s, int a, int b,
			 struct strbuf *out)
{
	struct suspect suspects[SUSPECTS_MAX];
	size_t n = diagnosis_suspects(d, s, a, b, suspects);

	for (size_t i = 0; i < n; i++) {
		const struct suspect *x = &suspects[i];

		strbuf_printf(out, "%s%s", i ? " " : "", x->id);
		if (x->finding)
			strbuf_printf(out, ":%s", x->finding->rule->id);
		else if (x->open)
			strbuf_puts(out, ":?");
	}
}

static const struct {
	const char *machine;
	enum symptom symptom;
	int a, b;
	const char *suspects;
} cases[] = {
	/* Both are shown; the registers of a switch that redirects are certain. */
	{"guest-switch2-intel", SYMPTOM_HANG, -1, -1,
	 "iommu:iommu-translating acs:acs-redirect program"},
	/* The same machine without an IOMMU and without ACS: both are excluded. */
	{"guest-switch2-none", SYMPTOM_HANG, -1, -1, "program"},
	{"made-up-switch", SYMPTOM_HANG, -1, -1, "gpu-fault:? program"},
	{"made-up-iommu", SYMPTOM_HANG, -1, -1, "iommu:iommu-translating gpu-fault:? program"},
	/*
	 * Pairs that NVLink joins do not pass through bridges, and cards without NVLink have no
	 * fabric.
	 */
	{"h200x2", SYMPTOM_WRONG_DATA, 0, 1, "program"},
	{"rtx4090x8-before", SYMPTOM_REFUSED, 0, 1,
	 "driver-refuses:p2p-geforce bar1:bar1-small gpu-mode:?"},
	/* Nothing that needs peer traffic, where the driver refuses it. */
	{"rtx4090x8-before", SYMPTOM_HANG, 0, 1, "gpu-fault:? nic:? program"},
	{"made-up-switch", SYMPTOM_SLOW, -1, -1, ""},
	{"made-up-no-driver", SYMPTOM_REFUSED, -1, -1, "driver:driver-loaded"},
	{"made-up-unbound", SYMPTOM_CRASH, -1, -1,
	 "driver:driver-bound gpu-fault:? shared-memory:? program"},
};

static void suspects(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct judged j = judge(cases[i].machine);
		AUTO_STRBUF struct strbuf text = {0};

		add_suspects(j.d, cases[i].symptom, cases[i].a, cases[i].b, &text);
		if (strcmp(strbuf_str(&text), cases[i].suspects) != 0)
			fail_msg("%s, %s: '%s'", cases[i].machine, symptom_words[cases[i].symptom],
				 strbuf_str(&text));
		judged_done(&j);
	}
}

/* A finding about other pairs is none of this one. */
static void of_a_pair(void **state)
{
	struct judged j = judge("made-up-two-generations");
	size_t refused = 0;

	(void)state;
	/* Each pair of GPUs by itself: those of one generation are not refused for it. */
	for (int a = 0; a < (int)j.m->gpu_n; a++)
		for (int b = a + 1; b < (int)j.m->gpu_n; b++) {
			AUTO_STRBUF struct strbuf text = {0};
			bool apart = topology_path(j.t, (size_t)a, (size_t)b)
					     ->chain[CHAIN_DRIVER]
					     .reason == REASON_DRIVER_GENERATION;

			add_suspects(j.d, SYMPTOM_REFUSED, a, b, &text);
			assert_int_equal(strstr(strbuf_str(&text), "p2p-generation") != NULL,
					 apart);
			refused += apart;
		}
	assert_true(refused > 0);
	judged_done(&j);
}

/*
 * Each cause has a way to decide, and each rule of the table exists: an unknown one would never
 * show it.
 */
static void every_cause(void **state)
{
	struct judged j = judge("guest-nogpu");

	(void)state;
	for (enum symptom s = 0; s < SYMPTOM_N; s++) {
		struct suspect list[SUSPECTS_MAX];
		size_t n = diagnosis_suspects(j.d, s, -1, -1, list);

		assert_non_null(symptom_words[s]);
		for (size_t i = 0; i < n; i++)
			assert_true(*list[i].decide.command && *list[i].decide.tells);
	}
	assert_null(symptom_words[SYMPTOM_N]);
	judged_done(&j);
}

static void rules_exist(void **state)
{
	const char *rule;

	(void)state;
	for (size_t i = 0; (rule = symptom_rule(i)); i++)
		if (!rule_find(rule))
			fail_msg("there is no rule %s", rule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suspects),
		cmocka_unit_test(of_a_pair),
		cmocka_unit_test(every_cause),
		cmocka_unit_test(rules_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
