/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/tune_session: a run on simulated devices, the table that it leaves, and who may use it;
 * faults leave none.
 */
#include "base/cleanup.h"
#include "base/err.h"
#include "json_schema.h"
#include "report/report_collective.h"
#include "session/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TABLE "tune-simulated.txt"

static char folder[] = "/tmp/test_tune.XXXXXX";
static unsigned notes;

static void hear(void *context, enum session_word w, const char *text)
{
	(void)context;
	(void)text;
	notes += w == SESSION_NOTE;
}

static const struct session_ear ear = {NULL, hear};

static void table_path(char *buf, size_t size)
{
	snprintf(buf, size, "%s/onehop/" TABLE, folder);
}

static void drop_table(void)
{
	char path[128];

	table_path(path, sizeof(path));
	unlink(path);
}

/* A budget of which nothing is left after the first size. */
static void begin(struct tune_session *s, const char *device)
{
	static struct tune_choice o;

	o = (struct tune_choice){.devices.device = device, .budget_s = 1, .deadline_s = 120};
	if (tune_session_begin(s, &o, &ear) < 0)
		fail_msg("%s", err_msg());
	s->run.program = getenv("ONEHOP");
	s->run.plan.max_bytes = 256;
}

static bool find(const char *device, struct tune_use *ret)
{
	const struct device_options o = {.device = device};
	struct devices d;
	int r;

	assert_int_equal(devices_choose(&o, NULL, 0, &d), 0);
	r = tune_find(&d, (unsigned)d.request.n, ret);
	devices_done(&d);
	assert_int_equal(r, 0);
	return ret->found;
}

static void check_json(const struct tune_session *s)
{
	json_t *json = report_tune_json(s);
	AUTO_STRBUF struct strbuf trouble = {0};

	json_schema_check(json, "tune.schema.json", &trouble);
	if (trouble.len)
		fail_msg("%s", trouble.text);
	assert_true(json_array_size(json_object_get(json, "times")) > 0);
	json_decref(json);
}

static void a_run_leaves_a_table_for_its_devices(void **state)
{
	struct tune_session s;
	static struct tune_use use;

	(void)state;
	drop_table();
	assert_false(find("host:2", &use));
	assert_string_equal(use.why, "");
	begin(&s, "host:2");
	if (tune_session_run(&s) < 0)
		fail_msg("%s", err_msg());
	assert_true(s.measured[TUNED_DIRECT] && s.measured[TUNED_HOST]);
	assert_true(find("host:2", &use));
	assert_memory_equal(&use.table, &s.table, sizeof(s.table));
	assert_string_equal(use.path, s.path);
	for (unsigned o = 0; o < OPERATION_N; o++)
		for (unsigned k = 0; k < TUNED_KIND_N; k++)
			assert_int_equal(use.table.times[k].ns[o][PIPED_ONE][0] > 0,
					 k != TUNED_MIXED);
	assert_false(find("host:3", &use));
	assert_non_null(strstr(use.why, "it was measured with 2 devices, and this run has 3"));
	check_json(&s);
	tune_session_done(&s);
}

/* One refused pair: only its data goes through the host's memory, and then all. */
static void some_p2p_is_measured_too(void **state)
{
	struct tune_session s;

	(void)state;
	begin(&s, "host:2");
	s.run.devices.host.fault = (struct fault){FAULT_REFUSE, 0, 1};
	assert_int_equal(tune_session_run(&s), 0);
	assert_false(s.measured[TUNED_DIRECT]);
	assert_true(s.measured[TUNED_MIXED] && s.measured[TUNED_HOST]);
	tune_session_done(&s);
}

/* All pairs are refused: what goes through the host's memory is measured once. */
static void without_p2p_there_is_one_part(void **state)
{
	struct tune_session s;

	(void)state;
	begin(&s, "host:2");
	s.run.devices.host.fault = (struct fault){FAULT_REFUSE, -1, -1};
	assert_int_equal(tune_session_run(&s), 0);
	assert_false(s.measured[TUNED_DIRECT]);
	assert_true(s.measured[TUNED_HOST] && !s.measured[TUNED_MIXED]);
	tune_session_done(&s);
}

/* Data that never arrives, memory that is not there: an error with its sentence, and no table. */
static void a_fault_leaves_no_table(void **state)
{
	static const struct {
		enum fault_kind fault;
		uint64_t memory_bytes;
		int error;
	} rows[] = {{FAULT_LOST, 0, -ETIMEDOUT}, {FAULT_NONE, 4096, -ENOMEM}};
	static struct tune_use use;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct tune_session s;

		drop_table();
		begin(&s, "host:2");
		s.run.limit_s = rows[i].fault ? 2 : 120;
		s.run.devices.host.fault = (struct fault){rows[i].fault, -1, -1};
		s.run.devices.host.memory_bytes = rows[i].memory_bytes;
		assert_int_equal(tune_session_run(&s), rows[i].error);
		assert_true(*err_msg());
		assert_string_equal(s.path, "");
		assert_false(find("host:2", &use));
		assert_string_equal(use.why, "");
		tune_session_done(&s);
	}
}

static void too_few_and_too_many_devices(void **state)
{
	static const struct {
		const char *device, *says;
	} rows[] = {{"host:1", "at least 2 devices, and there is 1"},
		    {"host:9", "at most 8 ranks, not 9"}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct tune_choice o = {.devices.device = rows[i].device};
		struct tune_session s;

		assert_int_equal(tune_session_begin(&s, &o, &ear), -ENODEV);
		if (!strstr(err_msg(), rows[i].says))
			fail_msg("'%s' does not say '%s'", err_msg(), rows[i].says);
		tune_session_done(&s);
	}
}

static void put_table(const char *text)
{
	if (store_write(TABLE, text) < 0)
		fail_msg("%s", err_msg());
}

/* One line of error that names file and line, and estimates instead. */
static void a_damaged_table_is_not_used(void **state)
{
	const struct device_options o = {.device = "host:2"};
	static struct tune_use use;
	struct devices d;
	char path[128];

	(void)state;
	table_path(path, sizeof(path));
	assert_int_equal(devices_choose(&o, NULL, 0, &d), 0);
	put_table("onehop-tune 1\nmeasured now\n");
	assert_int_equal(tune_find(&d, 2, &use), -EINVAL);
	assert_false(use.found);
	assert_non_null(strstr(use.why, TABLE ":2: 'now' is not a date like"));
	put_table("");
	assert_int_equal(tune_find(&d, 2, &use), -EINVAL);
	assert_non_null(strstr(use.why, TABLE ":1: the first line must be 'onehop-tune 1'"));
	chmod(path, 0666); /* others could decide what runs */
	assert_int_equal(tune_find(&d, 2, &use), -EINVAL);
	assert_non_null(strstr(use.why, "users other than its owner can write to it"));
	drop_table();
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(tune_find(&d, 2, &use), -EINVAL);
	assert_false(use.found);
	rmdir(path);
	devices_done(&d);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) && setenv("XDG_STATE_HOME", folder, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	char path[128];

	(void)state;
	drop_table();
	snprintf(path, sizeof(path), "%s/onehop", folder);
	rmdir(path);
	rmdir(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_leaves_a_table_for_its_devices),
		cmocka_unit_test(some_p2p_is_measured_too),
		cmocka_unit_test(without_p2p_there_is_one_part),
		cmocka_unit_test(a_fault_leaves_no_table),
		cmocka_unit_test(too_few_and_too_many_devices),
		cmocka_unit_test(a_damaged_table_is_not_used),
	};

	if (!getenv("ONEHOP")) { /* or each worker would be this test again */
		fprintf(stderr, "ONEHOP names the program that is started as worker\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
