/* SPDX-License-Identifier: Apache-2.0 */
/* The table of Xid codes. */
#include "machine/xid.h"

#include <cmocka.h>
#include <string.h>

#define LAST_CODE 200

static void rows_are_complete_and_in_order(void **state)
{
	const struct xid *before = NULL;

	(void)state;
	for (int code = 0; code <= LAST_CODE; code++) {
		const struct xid *x = xid_find(code);

		if (!x || x == before)
			continue;
		assert_int_equal(x->first, code);
		assert_true(x->last >= x->first);
		assert_true(!before || before->last < x->first);
		assert_true(x->class < XID_CLASS_N && x->severity < SEVERITY_N);
		assert_true(*x->name && *x->meaning && *x->remedy);
		assert_false(strchr(".;:", x->meaning[strlen(x->meaning) - 1]));
		assert_false(x->peer && strchr(".;:", x->peer[strlen(x->peer) - 1]));
		before = x;
	}
	assert_non_null(before);
}

static void codes_are_of_their_class(void **state)
{
	static const struct {
		int code;
		enum xid_class class;
		enum severity severity;
	} want[] = {
		{13, XID_FAULT, SEVERITY_WARNING},    {31, XID_FAULT, SEVERITY_WARNING},
		{43, XID_FAULT, SEVERITY_INFO},       {45, XID_FAULT, SEVERITY_INFO},
		{48, XID_MEMORY, SEVERITY_ERROR},     {61, XID_FIRMWARE, SEVERITY_WARNING},
		{62, XID_FIRMWARE, SEVERITY_WARNING}, {63, XID_MEMORY, SEVERITY_WARNING},
		{64, XID_MEMORY, SEVERITY_ERROR},     {74, XID_NVLINK, SEVERITY_ERROR},
		{79, XID_BUS, SEVERITY_ERROR},        {92, XID_MEMORY, SEVERITY_WARNING},
		{94, XID_MEMORY, SEVERITY_WARNING},   {95, XID_MEMORY, SEVERITY_ERROR},
		{119, XID_FIRMWARE, SEVERITY_ERROR},  {120, XID_FIRMWARE, SEVERITY_ERROR},
		{121, XID_NVLINK, SEVERITY_WARNING},  {136, XID_NVLINK, SEVERITY_ERROR},
		{140, XID_MEMORY, SEVERITY_ERROR},    {149, XID_NVLINK, SEVERITY_ERROR},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct xid *x = xid_find(want[i].code);

		assert_non_null(x);
		assert_int_equal(x->class, want[i].class);
		assert_int_equal(x->severity, want[i].severity);
	}
}

/* The table alone says what a line proves: those of usable.h that are no text of the driver's. */
static void codes_prove_what_the_table_says(void **state)
{
	static const struct {
		int code;
		const char *text;
		enum log_proof proof;
	} want[] = {
		{79, "GPU has fallen off the bus.", PROOF_GPU_LOST},
		{31, "MMU Fault: ENGINE CE3 FAULT_INFO_TYPE_UNSUPPORTED_KIND", PROOF_PEER_KIND},
		{31, "MMU Fault: ENGINE CE3 FAULT_PDE", PROOF_NONE},
		{13, "FAULT_INFO_TYPE_UNSUPPORTED_KIND", PROOF_NONE},
		{999, "", PROOF_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct log_line l = {.kind = LOG_XID,
				     .code = fact_int(want[i].code, "test"),
				     .text = want[i].text};

		assert_int_equal(log_line_proof(&l), want[i].proof);
		l.kind = LOG_AER; /* the same number, and no Xid */
		assert_int_equal(log_line_proof(&l), PROOF_NONE);
	}
}

static void other_codes_are_unknown(void **state)
{
	static const int64_t codes[] = {-1, 0, 91, 152, 153, 177, 999, INT64_MAX, INT64_MIN};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		assert_null(xid_find(codes[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_complete_and_in_order),
		cmocka_unit_test(codes_are_of_their_class),
		cmocka_unit_test(codes_prove_what_the_table_says),
		cmocka_unit_test(other_codes_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
