/* SPDX-License-Identifier: Apache-2.0 */
/* --require: whether all pairs that somebody depends on are direct, as an exit code. */
#pragma once

#include "cli/command.h"
#include "report/report.h"

enum requirement { REQUIRE_DIRECT, REQUIRE_RDMA, REQUIREMENT_N };

/* The choices of --require for a table of options, by enum requirement. */
extern const char *const requirement_words[];

struct requirement_result {
	bool asked;
	enum exit_code code;
	size_t pairs, direct, undecided; /* ordered pairs of the kind required */
};

struct requirements {
	struct requirement_result each[REQUIREMENT_N];
	enum exit_code code; /* of all that were asked for */
};

/*
 * EXIT_OK: all such pairs are direct; EXIT_FINDING: one is known not to be; EXIT_NOT_JUDGED: that
 * is unknown, or there is no such pair. `words`: what was asked for, of requirement_words. `list`:
 * of these GPUs only, named as device_choice.h says; NULL: of all. 0, or -EINVAL and a sentence:
 * something in the list is not a GPU.
 */
int judge_requirements(const struct topology *t, const struct string_list *words, const char *list,
		       struct requirements *ret);
/* For each that was asked for: whether it holds, and its pairs. A new reference. */
struct json_t *requirements_json(const struct requirements *r);
/* "Required: all 2 GPU pairs direct: 1 is not." */
void report_requirements(struct document *out, const struct requirements *r);
