/* SPDX-License-Identifier: Apache-2.0 */
/* session/test_session: what is refused before anything runs. */
#include "session/test_session.h"
#include "base/array.h"
#include "base/err.h"
#include "base/source.h"
#include "judged.h"
#include "recording/recording.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

/* Where the driver carries an edit that leads a peer astray there, or nobody could see whether it does. */
static void compressible_memory_is_refused(void **state)
{
	static const struct {
		const char *machine;
		const char *says; /* NULL: it is not refused */
	} rows[] = {
		{"h200x2", NULL},
		{"rtx4090x8-before", NULL},
		{"made-up-unlock", NULL},
		{"made-up-unlock-managed", "the driver carries an old edit"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct judged j = judge_recorded(rows[i].machine);
		int r = test_check_compressible(j.d);

		if (r != (rows[i].says ? -EPERM : 0))
			fail_msg("%s: %d", rows[i].machine, r);
		if (rows[i].says && !strstr(err_msg(), rows[i].says))
			fail_msg("%s: \"%s\"", rows[i].machine, err_msg());
		judged_done(&j);
	}
}

/* The same where the modules could not be read. */
static void unknown_edits_are_refused(void **state)
{
	struct judged j = judge_recorded("made-up-unlock");

	(void)state;
	j.m->driver.uvm_gate.loaded = (struct fact_int){.state = FACT_UNKNOWN, .from = "not read"};
	diagnosis_free(j.d);
	j.d = diagnose(j.t);
	assert_int_equal(test_check_compressible(j.d), -EPERM);
	assert_non_null(strstr(err_msg(), "is not known; with one"));
	judged_done(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressible_memory_is_refused),
		cmocka_unit_test(unknown_edits_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
