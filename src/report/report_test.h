/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop test` prints. */
#pragma once

#include "bench/test_figures.h"
#include "report/report.h"
#include "session/test_session.h"

struct test_report {
	const char *device; /* "cuda", "host" */
	const char *inject; /* the fault that the back end shows on purpose, NULL: none */
	const struct test_result *result;  /* NULL: nothing could be tested */
	const char *const *names;          /* of its devices: "GPU0 0000:41:00.0", "host0" */
	const int *gpus;                   /* machine.gpus indexes of its devices; NULL: no GPUs */
	const struct diagnosis *diagnosis; /* of the machine with the GPUs; NULL: none */
	const struct device_skip *skips;
	size_t skip_n;
	const struct test_log_line *log;
	size_t log_n;
	const char *log_unread;        /* why the kernel log could not be read; NULL: it was */
	const char *note;              /* of an earlier run, for JSON; NULL: none */
	const struct figures *figures; /* of the result, for JSON; NULL: none */
	bool verbose;
};

/* Of a session that ran, or had no devices; keeps it by pointer. */
struct test_report test_report_of(const struct test_session *s, bool verbose);
void report_test(struct document *out, const struct test_report *r);
json_t *report_test_json(const struct test_report *r);

/*
 * Findings of check that concern one pair or all, each rule once; the array is the caller's to
 * free.
 */
const struct rule **report_test_explanations(const struct test_report *r, size_t initiator,
					     size_t target, size_t *ret_n);
/* Whether the driver says that a pair has atomics: 1, 0, or -1 for unknown. */
int report_test_offers_atomics(const struct test_report *r, size_t initiator, size_t target);
/*
 * Where a peer's access to compressible memory was seen to go astray: what to do, the caller's to
 * free; NULL: nowhere, or not tested.
 */
char *report_test_danger(const struct test_report *r);
/* The result in one sentence. */
const char *report_test_verdict(const struct test_report *r, char *buf, size_t size);
