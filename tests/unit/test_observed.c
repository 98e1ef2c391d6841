/* SPDX-License-Identifier: Apache-2.0 */
/* machine/observed.c: what onehop test found is weighed, as long as nothing was started again. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "bench/test_figures.h"
#include "ingest/text.h"
#include "machine/observed.h"
#include "open_recording.h"
#include "result/figures_json.h"
#include "session/store.h"
#include "topology/topology.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MACHINE "tests/machines/h200x2"
#define BOOT    "11111111-2222-3333-4444-555555555555"
#define BOOT_ID "proc/sys/kernel/random/boot_id"

static const struct machine_request all = {.parts = MACHINE_TO_JUDGE};

struct setup {
	struct source *map;
	char driver[64], gpu[2][PCI_ADDRESS_LEN];
};

/* A copy of a recorded machine that files can be put into. */
static int set_up(void **state)
{
	struct setup *s = xcalloc(1, sizeof(*s));
	struct source *recording, *tee;
	struct machine *m;

	s->map = source_new_map(MACHINE);
	assert_int_equal(open_recording(MACHINE, &recording), 0);
	tee = source_new_tee(recording, s->map);
	m = machine_read(tee, &all);
	assert_int_equal(m->gpu_n, 2);
	assert_true(fact_known(m->driver.module_version));
	snprintf(s->driver, sizeof(s->driver), "%s", m->driver.module_version.value);
	for (int i = 0; i < 2; i++)
		snprintf(s->gpu[i], sizeof(s->gpu[i]), "%s", m->gpus[i].pci->name);
	machine_free(m);
	source_free(tee);
	source_free(recording);
	source_put_file(s->map, BOOT_ID, BOOT "\n", strlen(BOOT) + 1);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct setup *s = *state;

	source_free(s->map);
	free(s);
	return 0;
}

static void put(struct setup *s, const char *text)
{
	source_put_file(s->map, "observed.json", text, strlen(text));
}

/* One pair, GPU0 to GPU1. */
static struct machine *read_with(struct setup *s, const char *boot, const char *driver,
				 const char *pair)
{
	AUTO_FREE char *text = xprintf(
		"{\"version\": 1, \"boot_id\": \"%s\", \"driver_version\": \"%s\", \"date\": "
		"\"2026-01-02T03:04:05Z\", \"pairs\": [{\"initiator\": \"%s\", \"target\": \"%s\", "
		"%s}]}",
		boot, driver, s->gpu[0], s->gpu[1], pair);

	put(s, text);
	return machine_read(s->map, &all);
}

static void a_failing_pair_is_blocked(void **state)
{
	struct setup *s = *state;
	struct machine *m = read_with(s, BOOT, s->driver, "\"ok\": false, \"kind\": \"shifted\"");
	struct topology *t = topology_new(m);
	const struct path *p = topology_path(t, 0, 1);
	char sentence[512];

	assert_int_equal(p->verdict, PAIR_BLOCKED);
	assert_int_equal(p->first_bad, CHAIN_OBSERVED);
	chain_explain(p, &p->chain[CHAIN_OBSERVED], sentence, sizeof(sentence));
	assert_non_null(strstr(sentence, "onehop test of 2026-01-02T03:04:05Z: shifted"));
	assert_int_equal(topology_path(t, 1, 0)->verdict, PAIR_DIRECT);
	topology_free(t);
	machine_free(m);
}

static void the_pattern_is_named(void **state)
{
	struct setup *s = *state;
	struct machine *m =
		read_with(s, BOOT, s->driver,
			  "\"ok\": false, \"kind\": \"old-data\", \"pattern\": \"reread\"");
	struct topology *t = topology_new(m);
	const struct path *p = topology_path(t, 0, 1);
	char sentence[512];

	assert_int_equal(p->verdict, PAIR_BLOCKED);
	chain_explain(p, &p->chain[CHAIN_OBSERVED], sentence, sizeof(sentence));
	assert_non_null(strstr(sentence, "2026-01-02T03:04:05Z: old-data, pattern reread"));
	topology_free(t);
	machine_free(m);
}

static void a_right_pair_is_seen_to_work(void **state)
{
	struct setup *s = *state;
	struct machine *m = read_with(s, BOOT, s->driver, "\"ok\": true, \"latency_us\": 2.8");
	struct topology *t = topology_new(m);

	assert_int_equal(topology_path(t, 0, 1)->chain[CHAIN_OBSERVED].reason,
			 REASON_OBSERVED_WORKS);
	assert_int_equal(m->observed_n, 2);
	assert_int_equal(m->observed[1].kind, OBSERVED_LATENCY);
	assert_true(m->observed[1].value > 2.7 && m->observed[1].value < 2.9);
	topology_free(t);
	machine_free(m);
}

static void refused_is_a_matter_of_access(void **state)
{
	struct setup *s = *state;
	struct machine *m = read_with(s, BOOT, s->driver, "\"ok\": false, \"kind\": \"refused\"");

	assert_int_equal(m->observed_n, 1);
	assert_int_equal(m->observed[0].kind, OBSERVED_PEER_ACCESS);
	assert_false(m->observed[0].ok);
	machine_free(m);
}

static void assert_ignored(struct machine *m, size_t troubles)
{
	assert_int_equal(m->observed_n, 0);
	assert_int_equal(m->trouble_n, troubles);
	machine_free(m);
}

static void of_another_time(void **state)
{
	struct setup *s = *state;

	assert_ignored(read_with(s, "another", s->driver, "\"ok\": false"), 0);
	assert_ignored(read_with(s, BOOT, "1.2.3", "\"ok\": false"), 0);
	source_drop(s->map, BOOT_ID);
	assert_ignored(read_with(s, BOOT, s->driver, "\"ok\": false"), 0);
}

/* A file of another release may mean other things by the same words. */
static void of_another_version(void **state)
{
	static const char *const versions[] = {"2", "1.5", "\"1\"", "null"};
	struct setup *s = *state;

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		AUTO_FREE char *text = xprintf(
			"{\"version\": %s, \"boot_id\": \"%s\", \"driver_version\": \"%s\", "
			"\"pairs\": [{\"initiator\": \"%s\", \"target\": \"%s\", \"ok\": false}]}",
			versions[i], BOOT, s->driver, s->gpu[0], s->gpu[1]);

		put(s, text);
		assert_ignored(machine_read(s->map, &all), 1);
	}
}

static void right_and_wrong_at_once_is_neither(void **state)
{
	struct setup *s = *state;

	assert_ignored(read_with(s, BOOT, s->driver, "\"ok\": true, \"kind\": \"mirror\""), 1);
}

static void garbage(void **state)
{
	static const char *const texts[] = {"",      "{",
					    "[]",    "{\"pairs\": 7}",
					    "\"x\"", "{\"pairs\": {}}"};
	struct setup *s = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put(s, texts[i]);
		assert_ignored(machine_read(s->map, &all), 1);
	}
	assert_ignored(read_with(s, BOOT, s->driver, "\"ok\": 1"), 0);
	assert_ignored(read_with(s, BOOT, s->driver, "\"target\": 1, \"kind\": []"), 1);
}

/* Rows that name no GPU, or none that there is, and a check that both passed and failed. */
static void odd_rows(void **state)
{
	static const char *const rows[] = {
		"{\"what\": \"pair-verified\", \"median\": 0}",
		"{\"what\": \"pair-verified\", \"median\": 0, \"initiator\": 0, \"target\": 0}",
		"{\"what\": \"gpu-verified\", \"median\": 0}",
		"{\"what\": \"all-verified\", \"median\": 0, \"gpus\": [0, 2]}",
		"{\"what\": \"gpu-verified\", \"median\": 0, \"initiator\": 2, \"target\": 2}",
		"{\"what\": \"warp-drive\", \"median\": 0, \"initiator\": 0, \"target\": 1}",
		("{\"what\": \"pair-verified\", \"median\": 1, \"initiator\": 0, \"target\": 1, "
		 "\"kind\": \"mirror\"}"),
	};
	struct setup *s = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_FREE char *text = xprintf(
			"{\"schema\": \"onehop-figures\", \"version\": 2, \"boot_id\": \"%s\", "
			"\"driver_version\": \"%s\", \"gpus\": [{\"pci\": \"%s\"}, {\"pci\": "
			"\"%s\"}, {\"pci\": \"0000:ff:00.0\"}], \"figures\": [%s]}",
			BOOT, s->driver, s->gpu[0], s->gpu[1], rows[i]);

		put(s, text);
		assert_ignored(machine_read(s->map, &all), strstr(rows[i], "mirror") != NULL);
	}
}

/* ---- tests of a GPU by itself, and of several at once ---- */

static struct topology *judge_with(struct setup *s, const char *wholes)
{
	AUTO_FREE char *text = xprintf(
		"{\"version\": 1, \"boot_id\": \"%s\", \"driver_version\": \"%s\", \"pairs\": [], "
		"%s}",
		BOOT, s->driver, wholes);

	put(s, text);
	return topology_new(machine_read(s->map, &all));
}

static void done(struct topology *t)
{
	struct machine *m = (struct machine *)t->machine;

	topology_free(t);
	machine_free(m);
}

static void a_failed_all_reduce_doubts_its_pairs(void **state)
{
	struct setup *s = *state;
	AUTO_FREE char *wrong =
		xprintf("\"all_reduce\": [{\"gpus\": [\"%s\", \"%s\"], \"ok\": false, \"kind\": "
			"\"garbage\"}]",
			s->gpu[0], s->gpu[1]);
	AUTO_FREE char *right =
		xprintf("\"all_reduce\": [{\"gpus\": [\"%s\", \"%s\"], \"ok\": true}]", s->gpu[0],
			s->gpu[1]);
	struct topology *t = judge_with(s, wrong);

	assert_int_equal(topology_path(t, 0, 1)->verdict, PAIR_SUSPECT);
	assert_int_equal(topology_path(t, 1, 0)->verdict, PAIR_SUSPECT);
	assert_int_equal(t->machine->observed[0].failure.kind, RUN_TEST_FAILED);
	done(t);
	t = judge_with(s, right);
	assert_int_equal(topology_path(t, 0, 1)->verdict, PAIR_DIRECT);
	assert_int_equal(t->machine->observed_n, 0);
	done(t);
}

static void wrong_own_memory_doubts_both_ways(void **state)
{
	struct setup *s = *state;
	AUTO_FREE char *own = xprintf(
		"\"own_memory\": [{\"gpus\": [\"%s\"], \"ok\": false, \"kind\": \"garbage\"}]",
		s->gpu[1]);
	struct topology *t = judge_with(s, own);

	assert_int_equal(t->machine->observed_n, 1);
	assert_int_equal(t->machine->observed[0].initiator, 1);
	assert_int_equal(topology_path(t, 0, 1)->chain[CHAIN_OBSERVED].reason,
			 REASON_OBSERVED_DOUBTS);
	assert_int_equal(topology_path(t, 1, 0)->verdict, PAIR_SUSPECT);
	done(t);
}

/* What a run with these results keeps is what check reads; a later run replaces it. */
static struct topology *keep_and_judge(struct setup *s, enum pair_state own, enum pair_state arm)
{
	const char *const names[] = {s->gpu[0], s->gpu[1]};
	struct test_device devices[2] = {{.local.state = PAIR_RIGHT}, {.local.state = own}};
	struct pair_result pairs[4] = {[1].state = PAIR_RIGHT, [2].state = PAIR_RIGHT};
	struct test_result r = {.n = 2, .devices = devices, .pairs = pairs};
	AUTO_STRBUF struct strbuf text = {0};
	AUTO_FREE char *path = xprintf("%s/onehop/observed.json", getenv("XDG_STATE_HOME"));
	struct figures *f;

	/* For information: such a pair is right. */
	pairs[1].patterns[PATTERN_ATOMICS] =
		(struct pattern_result){.done = true, .kind = WRONG_LOST, .lost = 5};
	devices[1].local.kind = own == PAIR_WRONG ? WRONG_GARBAGE : WRONG_NOTHING;
	r.arms[ARM_P2P].state = arm;
	r.arms[ARM_P2P].kind = arm == PAIR_WRONG ? WRONG_GARBAGE : WRONG_NOTHING;
	r.arms[ARM_STAGED].state = PAIR_RIGHT;
	f = test_figures(&r, names, names);
	f->when = "2026-01-02T03:04:05Z";
	f->conditions[CONDITION_BOOT] = BOOT;
	f->conditions[CONDITION_DRIVER] = s->driver;
	assert_int_equal(store_keep(f), 0);
	figures_free(f);
	assert_int_equal(text_read_file(path, SOURCE_MAX_FILE, &text), 0);
	put(s, strbuf_str(&text));
	return topology_new(machine_read(s->map, &all));
}

static void assert_pairs(struct topology *t, enum pair_verdict verdict)
{
	assert_int_equal(topology_path(t, 0, 1)->verdict, verdict);
	assert_int_equal(topology_path(t, 1, 0)->verdict, verdict);
	done(t);
}

static void remove_folder(const char *folder)
{
	AUTO_FREE char *own = xprintf("%s/onehop", folder);

	rmdir(own);
	rmdir(folder);
}

static void what_a_test_keeps(void **state)
{
	char folder[] = "/tmp/onehop-observed-XXXXXX";
	AUTO_FREE char *own = NULL, *file = NULL;
	struct setup *s = *state;

	assert_non_null(mkdtemp(folder));
	setenv("XDG_STATE_HOME", folder, 1);
	assert_pairs(keep_and_judge(s, PAIR_RIGHT, PAIR_RIGHT), PAIR_DIRECT);
	assert_pairs(keep_and_judge(s, PAIR_RIGHT, PAIR_WRONG), PAIR_SUSPECT);
	assert_pairs(keep_and_judge(s, PAIR_RIGHT, PAIR_NOT_RUN), PAIR_SUSPECT); /* still */
	assert_pairs(keep_and_judge(s, PAIR_RIGHT, PAIR_RIGHT), PAIR_DIRECT);
	assert_pairs(keep_and_judge(s, PAIR_WRONG, PAIR_RIGHT), PAIR_SUSPECT);
	assert_pairs(keep_and_judge(s, PAIR_RIGHT, PAIR_RIGHT), PAIR_DIRECT);
	own = xprintf("%s/onehop", folder);
	file = xprintf("%s/observed.json", own);
	unlink(file);
	remove_folder(folder);
}

/* ---- what no longer holds ---- */

static void stamp(const struct machine *m, struct figures *f)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		figures_add_gpu(f, m->gpus[i].pci->name, "", -1);
	figures_stamp(f, m);
}

/* Of a bench of this machine, with one thing as it was not. */
static struct weighed judged_with(struct setup *s, const struct figures *f)
{
	json_t *doc = figures_to_json(f);
	AUTO_FREE char *text = json_dumps(doc, 0);
	struct weighed w = {0};
	struct machine *m;

	source_put_file(s->map, "observed-p2p.json", text, strlen(text));
	m = machine_read(s->map, &all);
	assert_int_equal(m->weighed_n, 1);
	w = m->weighed[0];
	assert_true(w.kept);
	assert_string_equal(w.run.tool, "onehop bench p2p");
	assert_int_equal(w.observed_n, m->observed_n);
	assert_int_equal(w.observed_n, w.changed.what == CONDITION_N && !w.ahead);
	w.changed.was = w.changed.is = w.from = NULL; /* the machine's */
	machine_free(m);
	json_decref(doc);
	return w;
}

static void stale_results_are_named(void **state)
{
	static const struct machine_request without = {.parts = MACHINE_TO_JUDGE &
								~MACHINE_OBSERVED};
	struct setup *s = *state;
	struct machine *m = machine_read(s->map, &all);
	struct figures *f = figures_new("", "onehop bench p2p");
	struct figure_port port = {"0000:ff:1f.0", 0};

	stamp(m, f);
	figures_add(f, METRIC_WRITE_CE, 0, 1, 25.5);
	machine_free(m);
	assert_int_equal(judged_with(s, f).changed.what, CONDITION_N);
	for (int c = 0; c < CONDITION_TEXTS; c++) {
		const char *was = f->conditions[c];

		assert_true(*was || c == CONDITION_BIOS || c == CONDITION_REGISTRY);
		f->conditions[c] = "another";
		assert_int_equal(judged_with(s, f).changed.what, *was ? c : CONDITION_N);
		f->conditions[c] = "";
		assert_int_equal(judged_with(s, f).changed.what,
				 c == CONDITION_DRIVER || c == CONDITION_BOOT ? c : CONDITION_N);
		f->conditions[c] = was;
	}
	f->when = "2999-01-02T03:04:05Z";
	assert_true(judged_with(s, f).ahead);
	f->when = "2026-01-02T03:04:05Z";
	assert_false(judged_with(s, f).ahead);
	f->gpus[1].name = "NVIDIA A100";
	assert_int_equal(judged_with(s, f).changed.what, CONDITION_GPU);
	f->gpus[1].name = "";
	f->gpus[1].ports = &port;
	f->gpus[1].port_n = 1;
	assert_int_equal(judged_with(s, f).changed.what, CONDITION_WIRING);
	m = machine_read(s->map, &without);
	assert_int_equal(m->weighed_n + m->observed_n, 0);
	machine_free(m);
	figures_free(f);
}

static double kept_value(const char *file, const char *what, int initiator, int target)
{
	AUTO_FREE char *path = xprintf("%s/onehop/%s", getenv("XDG_STATE_HOME"), file);
	json_t *doc = json_load_file(path, 0, NULL);
	const struct figure *row;
	struct figures *f;
	double value;

	assert_int_equal(figures_from_json(doc, file, &f), 0);
	row = figures_find(f, what, initiator, target, 0);
	value = row ? row->median : -1;
	figures_free(f);
	json_decref(doc);
	return value;
}

static void keep(const struct machine *m, const char *tool, const char *what, double value)
{
	struct figures *f = figures_new("", tool);

	stamp(m, f);
	figures_add(f, what, 0, 1, value);
	assert_int_equal(store_keep(f), 0);
	figures_free(f);
}

/* Each run has a file of its own, and the newest figure of each pair counts. */
static void what_runs_keep(void **state)
{
	static const char p2p[] = "onehop bench p2p", file[] = "observed-p2p.json";
	char folder[] = "/tmp/onehop-observed-XXXXXX";
	struct setup *s = *state;
	struct machine *m = machine_read(s->map, &all);

	assert_non_null(mkdtemp(folder));
	setenv("XDG_STATE_HOME", folder, 1);
	keep(m, p2p, METRIC_WRITE_CE, 25);
	keep(m, p2p, METRIC_READ_CE, 24);
	keep(m, "onehop test", METRIC_PAIR_VERIFIED, 1);
	keep(m, "onehop bench nccl", METRIC_NCCL_P2P, 1);
	assert_true(kept_value(file, METRIC_WRITE_CE, 0, 1) > 24.9);
	keep(m, p2p, METRIC_WRITE_CE, 20);
	assert_true(kept_value(file, METRIC_WRITE_CE, 0, 1) < 20.1);
	assert_true(kept_value(file, METRIC_READ_CE, 0, 1) > 23.9);
	assert_true(kept_value("observed.json", METRIC_PAIR_VERIFIED, 0, 1) > 0);
	assert_true(kept_value("observed-nccl.json", METRIC_NCCL_P2P, 0, 1) > 0);
	keep(m, p2p, METRIC_PAIR_VERIFIED, 0); /* wrong data: how fast it was says nothing */
	assert_true(kept_value(file, METRIC_WRITE_CE, 0, 1) < 0);
	keep(m, p2p, METRIC_READ_CE, 24);
	assert_true(kept_value(file, METRIC_PAIR_VERIFIED, 0, 1) < 0);
	m->kernel.release = fact_str("another", "test");
	keep(m, p2p, METRIC_WRITE_CE, 25);
	assert_true(kept_value(file, METRIC_READ_CE, 0, 1) < 0);
	machine_free(m);
	for (size_t i = 0; i < KEPT_RUN_N; i++) {
		AUTO_FREE char *path = xprintf("%s/onehop/%s", folder, kept_runs[i].file);

		assert_int_equal(unlink(path), 0);
	}
	remove_folder(folder);
}

static void gpus_that_are_gone_say_nothing(void **state)
{
	struct setup *s = *state;
	struct topology *t =
		judge_with(s, "\"own_memory\": [{\"gpus\": [\"0000:ff:00.0\"], \"ok\": false}]");

	assert_int_equal(t->machine->observed_n, 0);
	done(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_failing_pair_is_blocked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_pattern_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_right_pair_is_seen_to_work, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused_is_a_matter_of_access, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_another_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_another_version, set_up, tear_down),
		cmocka_unit_test_setup_teardown(right_and_wrong_at_once_is_neither, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(garbage, set_up, tear_down),
		cmocka_unit_test_setup_teardown(odd_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_failed_all_reduce_doubts_its_pairs, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(wrong_own_memory_doubts_both_ways, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_a_test_keeps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stale_results_are_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_runs_keep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(gpus_that_are_gone_say_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
