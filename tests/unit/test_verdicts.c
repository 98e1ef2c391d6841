/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of recorded machines: the verdict, and the link of the chain that it comes from. */
#include "base/source.h"
#include "judged.h"
#include "recording/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ALL SIZE_MAX /* every other endpoint that a pair is judged with */

/* Said of both directions between the two. */
static const struct {
	const char *machine;
	size_t a, b;
	enum chain_step step;
	enum chain_reason reason;
	enum pair_verdict verdict;
} expected[] = {
	{"made-up-switch", 0, 1, CHAIN_DEVICE, REASON_DEVICES_USABLE, PAIR_DIRECT},
	{"made-up-off-the-bus", 1, ALL, CHAIN_DEVICE, REASON_DEVICE_OFF_BUS, PAIR_BLOCKED},
	{"made-up-nova", 1, ALL, CHAIN_DEVICE, REASON_DEVICE_OTHER_DRIVER, PAIR_BLOCKED},
	{"made-up-unbound", 1, ALL, CHAIN_DEVICE, REASON_DEVICE_NO_DRIVER, PAIR_BLOCKED},
	{"made-up-set-aside", 1, ALL, CHAIN_DEVICE, REASON_DEVICE_SET_ASIDE, PAIR_BLOCKED},
	{"guest-vfio", 0, ALL, CHAIN_DEVICE, REASON_DEVICE_SET_ASIDE, PAIR_BLOCKED},
	{"made-up-excluded", 1, ALL, CHAIN_DEVICE, REASON_DEVICE_EXCLUDED, PAIR_BLOCKED},
	{"made-up-mig", 1, ALL, CHAIN_DEVICE, REASON_DEVICE_MIG, PAIR_BLOCKED},
	{"made-up-compute-mode", 1, ALL, CHAIN_DEVICE, REASON_DEVICE_PROHIBITED, PAIR_BLOCKED},
	{"made-up-fabric", 0, ALL, CHAIN_DEVICE, REASON_DEVICE_FABRIC_NOT_READY, PAIR_BLOCKED},
	{"made-up-gpu-lost", 0, ALL, CHAIN_DEVICE, REASON_DEVICE_OFF_BUS, PAIR_BLOCKED},
	{"made-up-48g-proven", 0, 4, CHAIN_OBSERVED, REASON_OBSERVED_WORKS, PAIR_DIRECT},
	{"made-up-unlock-570", 0, 1, CHAIN_EXPOSURE, REASON_EXPOSED_BAR1, PAIR_DIRECT},
	{"made-up-hgx", 0, 1, CHAIN_PATH, REASON_NVLINK_UP, PAIR_DIRECT},
	{"made-up-hgx-lspci", 0, 1, CHAIN_PATH, REASON_NVLINK_UNKNOWN, PAIR_UNDECIDED},
	{"made-up-irdma", 0, 2, CHAIN_DRIVER, REASON_RDMA_NIC_DRIVER, PAIR_BLOCKED},
	{"made-up-altra", 0, 2, CHAIN_DRIVER, REASON_RDMA_READY, PAIR_UNDECIDED}, /* one switch */
	{"made-up-altra", 0, 3, CHAIN_DRIVER, REASON_RDMA_GATE, PAIR_BLOCKED},
	{"made-up-no-driver", 0, 1, CHAIN_DRIVER, REASON_DRIVER_ABSENT, PAIR_BLOCKED},
};

static struct judged judge_recorded(const char *name)
{
	const struct machine_request request = {.parts = MACHINE_TO_JUDGE};
	struct source *s = NULL;
	struct machine *m;
	char path[128];

	snprintf(path, sizeof(path), "tests/machines/%s", name);
	assert_int_equal(recording_open(path, &s), 0);
	m = machine_read(s, &request);
	source_free(s);
	return judge_read(m);
}

static void expect_pair(const struct topology *t, size_t k, size_t i, size_t j)
{
	const struct path *p = topology_path(t, i, j);
	const struct chain_link *l = &p->chain[expected[k].step];

	if (l->reason == expected[k].reason && p->verdict == expected[k].verdict)
		return;
	fail_msg("%s: %s->%s is %s, %s: %s", expected[k].machine, t->endpoints[i].name,
		 t->endpoints[j].name, pair_verdict_word(p->verdict),
		 chain_step_word(expected[k].step), chain_reason_word(l->reason));
}

static void pairs_of_recorded_machines(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(expected) / sizeof(expected[0]); k++) {
		struct judged j = judge_recorded(expected[k].machine);
		size_t a = expected[k].a, b = expected[k].b;

		for (size_t i = 0; i < j.t->endpoint_n; i++) {
			if (i == a || (b != ALL && i != b))
				continue;
			expect_pair(j.t, k, a, i);
			expect_pair(j.t, k, i, a);
		}
		judged_done(&j);
	}
}

static const struct finding *find(const struct diagnosis *d, const char *id)
{
	for (size_t i = 0; i < d->finding_n; i++)
		if (strcmp(d->findings[i].rule->id, id) == 0)
			return &d->findings[i];
	return NULL;
}

/* BAR1 smaller than the memory is no error beside checked copies of all pairs. */
static void findings_give_way_to_proof(void **state)
{
	struct judged j = judge_recorded("made-up-48g-proven");
	const struct finding *f = find(j.d, "bar1-small");
	char verdict[256];

	(void)state;
	assert_non_null(f);
	assert_int_equal(f->severity, SEVERITY_INFO);
	diagnosis_verdict(j.d, verdict, sizeof(verdict));
	assert_non_null(strstr(verdict, "GPU P2P: all 56 pairs direct over PCIe. "));
	judged_done(&j);
}

/*
 * Where the NIC's driver takes no dma-buf, nothing is left but nvidia-peermem, and the rules say
 * so.
 */
static void rules_know_what_nics_take(void **state)
{
	struct judged j = judge_recorded("made-up-irdma");
	const struct finding *peermem = find(j.d, "peermem-not-loaded");

	(void)state;
	assert_non_null(peermem);
	assert_int_equal(peermem->severity, SEVERITY_WARNING);
	assert_non_null(find(j.d, "dma-buf"));
	judged_done(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_of_recorded_machines),
		cmocka_unit_test(findings_give_way_to_proof),
		cmocka_unit_test(rules_know_what_nics_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
