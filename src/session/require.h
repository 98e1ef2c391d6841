/* SPDX-License-Identifier: Apache-2.0 */
/* --require: whether all pairs that somebody depends on are direct. */
#pragma once

#include "base/texts.h"
#include "diagnose/diagnose.h"

enum requirement { REQUIRE_DIRECT, REQUIRE_RDMA, REQUIREMENT_N };

/* The choices of --require for a table of options, by enum requirement. */
extern const char *const requirement_words[];

struct requirement_result {
	bool asked;
	enum verdict
		verdict; /* BAD: one pair is known not to be direct; UNKNOWN: that, or there is no such pair */
	size_t pairs, direct, undecided; /* ordered pairs of the kind required */
};

struct requirements {
	struct requirement_result each[REQUIREMENT_N];
	enum verdict verdict; /* of all that were asked for; NA: none was */
};

/*
 * `words`: what was asked for, of requirement_words. `list`: of these GPUs only, named as
 * device_choice.h says; NULL: of all. 0, or -EINVAL and a sentence: something in the list is not a
 * GPU.
 */
int judge_requirements(const struct topology *t, const struct texts *words, const char *list,
		       struct requirements *ret);
