/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective/tuned: the text form of the table of onehop tune, what is refused, and when a table no
 * longer holds.
 */
#include "collective/tuned.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "collective/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOOD                                                                                       \
	"onehop-tune 1\n"                                                                          \
	"# a comment\n"                                                                            \
	"measured 2026-11-24T00:10:20Z\n"                                                          \
	"driver 580.159.04\n"                                                                      \
	"device 0000:41:00.0 GPU-a\n"                                                              \
	"device 0000:61:00.0 -\n"                                                                  \
	"path 0 1 NV18\n"                                                                          \
	"path 1 0 PIX\n"                                                                           \
	"time direct all_reduce 16 flagged-1 2310 piped-2 6000\n"                                  \
	"time host all_to_all 67108864 piped-1 4294967295\n"                                       \
	"end\n"

static int parse(const char *text, struct tuned *ret)
{
	return tuned_parse(text, strlen(text), "table", ret);
}

static void read_good(struct tuned *ret)
{
	if (parse(GOOD, ret) < 0)
		fail_msg("%s", err_msg());
}

static void a_table_is_read(void **state)
{
	struct tuned t;

	(void)state;
	read_good(&t);
	assert_string_equal(t.date, "2026-11-24T00:10:20Z");
	assert_string_equal(t.identity.driver, "580.159.04");
	assert_int_equal(t.identity.n, 2);
	assert_string_equal(t.identity.device[0].uuid, "GPU-a");
	assert_string_equal(t.identity.device[1].key, "0000:61:00.0");
	assert_string_equal(t.identity.device[1].uuid, "");
	assert_string_equal(t.identity.path[0][1], "NV18");
	assert_string_equal(t.identity.path[1][0], "PIX");
	assert_int_equal(t.times[TUNED_DIRECT].ns[OPERATION_ALL_REDUCE][FLAGGED_ONE][0], 2310);
	assert_int_equal(t.times[TUNED_DIRECT].ns[OPERATION_ALL_REDUCE][PIPED_TWO][0], 6000);
	assert_int_equal(t.times[TUNED_DIRECT].ns[OPERATION_ALL_REDUCE][FLAGGED_TWO][0], 0);
	assert_int_equal(t.times[TUNED_HOST].ns[OPERATION_ALL_TO_ALL][PIPED_ONE][TUNED_SIZES - 1],
			 4294967295u);
}

/* The fullest table there can be. */
static void make_full(struct tuned *ret)
{
	uint32_t next = 1;

	memset(ret, 0, sizeof(*ret));
	memcpy(ret->date, "2026-11-24T00:10:20Z", DATE_SIZE);
	ret->identity.n = COLLECTIVE_RANKS_MAX;
	for (unsigned i = 0; i < COLLECTIVE_RANKS_MAX; i++) {
		memset(ret->identity.device[i].key, 'a' + (int)i, TUNED_WORD_SIZE - 1);
		for (unsigned j = 0; j < COLLECTIVE_RANKS_MAX; j++)
			if (i != j)
				memset(ret->identity.path[i][j], 'x', TUNED_WORD_SIZE - 1);
	}
	for (unsigned k = 0; k < TUNED_KIND_N; k++)
		for (unsigned o = 0; o < OPERATION_N; o++)
			for (unsigned a = 0; a < ALGORITHM_N; a++)
				for (unsigned s = 0; s < TUNED_SIZES; s++)
					if (operation_can_use((enum operation)o, (enum algorithm)a))
						ret->times[k].ns[o][a][s] = 4294960000u + next++;
}

static void what_is_written_is_read_back(void **state)
{
	AUTO_FREE char *text = NULL;
	struct tuned t, again;
	size_t n = 0;
	FILE *f;

	(void)state;
	make_full(&t);
	f = open_memstream(&text, &n);
	assert_non_null(f);
	tuned_write(&t, f);
	fclose(f);
	assert_true(n < TUNED_TEXT_MAX);
	if (tuned_parse(text, n, "table", &again) < 0)
		fail_msg("%s", err_msg());
	assert_memory_equal(&t, &again, sizeof(t));
}

/* `from` in the good table becomes `to`. */
static void damage(const char *from, const char *to, char *ret, size_t size)
{
	const char *at = strstr(GOOD, from);

	assert_non_null(at);
	snprintf(ret, size, "%.*s%s%s", (int)(at - GOOD), GOOD, to, at + strlen(from));
}

static void damage_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} rows[] = {
		{"onehop-tune 1", "onehop-tune 2",
		 "table:1: the first line must be 'onehop-tune 1'"},
		{"# a comment", "a comment", "table:2: there is no kind of line 'a'"},
		{"# a comment", "", "table:2: the kind of line is missing"},
		{"# a comment", " end", "table:2: the line starts with a blank"},
		{"2026-11-24T", "2026-11-24 ", "table:3: '2026-11-24' is not a date like"},
		{"2026-11-24", "2999-02-30", "table:3: '2999-02-30T00:10:20Z' is not a date like"},
		{"2026-11-24", "2026-02-29", "table:3: '2026-02-29T00:10:20Z' is not a date like"},
		{"2026-11-24", "2026-00-24", "table:3: '2026-00-24T00:10:20Z' is not a date like"},
		{"2026-11-24", "2026-13-24", "table:3: '2026-13-24T00:10:20Z' is not a date like"},
		{"00:10:20", "24:00:00", "table:3: '2026-11-24T24:00:00Z' is not a date like"},
		{"# a comment", "measured 2026-11-24T00:10:20Z", "table:3: there is a second date"},
		{"# a comment", "driver 1", "table:4: there is a second driver"},
		{"580.159.04", "580.159.04 x", "table:4: there is more than belongs in the line"},
		{"580.159.04", "", "table:4: the driver's version is missing"},
		{"580.159.04", "580\t1", "table:4: the driver's version contains a character"},
		{"GPU-a", "GPU-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 "table:5: the device's UUID has more than 47 characters"},
		{"GPU-a", "", "table:5: the device's UUID is missing"},
		{"0000:61:00.0", "0000:41:00.0", "table:6: there is a second device 0000:41:00.0"},
		{"path 0 1", "path 0 2",
		 "table:7: the second device of a path must be a number from 0 to 1, not '2'"},
		{"path 0 1", "path 1 1", "table:7: a path from device 1 to itself"},
		{"path 1 0", "path 0 1",
		 "table:8: there is a second path from device 0 to device 1"},
		{"direct all", "dirict all", "table:9: there is no kind of path 'dirict'"},
		{"all_reduce", "all_reduse", "table:9: there is no operation 'all_reduse'"},
		{"all_reduce 16", "all_reduce 17", "table:9: 17 bytes is not a size of the table"},
		{"all_reduce 16", "all_reduce 0",
		 "table:9: the size must be a number from 16 to 67108864, not '0'"},
		{"flagged-1", "flagged-3", "table:9: there is no algorithm 'flagged-3'"},
		{"2310", "-2310", "table:9: the time must be a number"},
		{"2310", "2.31", "table:9: the time must be a number"},
		{"2310", "", "table:9: the time is missing"},
		{"2310", "0", "table:9: the time must be a number from 1 to 4294967295, not '0'"},
		{"2310", "99999999999999999999999999", "table:9: the time must be a number"},
		{"2310", "4294967296", "table:9: the time must be a number from 1 to 4294967295"},
		{"piped-2 6000", "flagged-1 6000", "table:9: there is a second time of flagged-1"},
		{" 6000", "", "table:9: the time is missing"},
		{"all_reduce 16 flagged-1 2310", "all_gather 16 flagged-1 2310",
		 "table:9: all_gather cannot run as piped-2"},
		{"direct all_reduce 16 flagged-1", "direct broadcast 16 levels",
		 "table:9: broadcast cannot run as levels"},
		{"direct all_reduce 16 flagged-1", "direct all_reduce 16 chain",
		 "table:9: all_reduce cannot run as chain"},
		{"host all_to_all 67108864 piped-1", "direct all_reduce 16 flagged-1",
		 "table:10: there is a second time of flagged-1"},
		{"end\n", "end\nend\n", "table:12: there is a line after 'end'"},
		{"end\n", "", "table:11: the last line, 'end', is missing"},
		{"end\n", "en", "table:11: the text ends within the line"},
		{"measured 2026-11-24T00:10:20Z", "#", "there is no date"},
		{"device 0000:61:00.0 -\npath 0 1 NV18\npath 1 0 PIX\n", "",
		 "there must be at least 2 devices, not 1"},
	};
	struct tuned t = {.identity.n = 77};
	char text[2048];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		damage(rows[i].from, rows[i].to, text, sizeof(text));
		assert_int_equal(parse(text, &t), -EINVAL);
		assert_int_equal(t.identity.n, 77);
		if (!strstr(err_msg(), rows[i].says))
			fail_msg("row %zu: '%s' does not say '%s'", i, err_msg(), rows[i].says);
	}
}

/* Whatever a write that was cut short left. */
static void every_cut_is_refused(void **state)
{
	struct tuned t;

	(void)state;
	for (size_t n = 0; n < sizeof(GOOD) - 1; n++)
		assert_int_equal(tuned_parse(GOOD, n, "table", &t), -EINVAL);
}

static void it_holds_for_its_devices_only(void **state)
{
	struct tuned_identity now;
	char why[TUNED_WHY_SIZE];
	struct tuned t;

	(void)state;
	read_good(&t);
	now = t.identity;
	assert_false(tuned_differs(&t.identity, &now, why));
	now.driver[0] = '\0'; /* unknown */
	assert_false(tuned_differs(&t.identity, &now, why));
	strcpy(now.device[1].uuid, "GPU-b"); /* unknown then */
	assert_false(tuned_differs(&t.identity, &now, why));
	strcpy(now.path[1][0], "SYS");
	assert_true(tuned_differs(&t.identity, &now, why));
	assert_string_equal(why, "the path from device 1 to device 0 was PIX and is SYS");
	strcpy(now.device[0].uuid, "GPU-c");
	assert_true(tuned_differs(&t.identity, &now, why));
	assert_string_equal(why, "device 0000:41:00.0 was GPU-a and is GPU-c");
	strcpy(now.device[0].key, "0000:42:00.0");
	assert_true(tuned_differs(&t.identity, &now, why));
	assert_string_equal(why, "device 0 was 0000:41:00.0 and is 0000:42:00.0");
	strcpy(now.driver, "590.1");
	assert_true(tuned_differs(&t.identity, &now, why));
	assert_string_equal(why, "the driver was 580.159.04 and is 590.1");
	now.n = 4;
	assert_true(tuned_differs(&t.identity, &now, why));
	assert_string_equal(why, "it was measured with 2 devices, and this run has 4");
}

static void a_communicator_gets_the_times_of_its_paths(void **state)
{
	struct tuned_identity now;
	struct comm_facts f;
	struct tuned t;

	(void)state;
	read_good(&t);
	now = t.identity;
	comm_facts_make(2, true, 132, 1024, &f);
	tuned_apply(NULL, &now, &f);
	assert_int_equal(f.times.ns[OPERATION_ALL_REDUCE][FLAGGED_ONE][0], 0);
	tuned_apply(&t, &now, &f);
	assert_memory_equal(&f.times, &t.times[TUNED_DIRECT], sizeof(f.times));
	comm_facts_make(2, false, 132, 1024, &f);
	tuned_apply(&t, &now, &f);
	assert_memory_equal(&f.times, &t.times[TUNED_HOST], sizeof(f.times));
	comm_facts_make(2, false, 132, 1024, &f);
	strcpy(now.driver, "590.1");
	tuned_apply(&t, &now, &f);
	assert_int_equal(f.times.ns[OPERATION_ALL_TO_ALL][PIPED_ONE][TUNED_SIZES - 1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_read),
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(damage_is_refused_with_its_line),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(it_holds_for_its_devices_only),
		cmocka_unit_test(a_communicator_gets_the_times_of_its_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
