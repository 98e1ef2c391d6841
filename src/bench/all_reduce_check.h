/* SPDX-License-Identifier: Apache-2.0 */
/* A sum over all devices whose every value is known beforehand, over P2P and around it. */
#pragma once

#include "bench/verify.h"

enum arm { ARM_P2P, ARM_STAGED, ARM_N }; /* STAGED: all goes through the host's memory */

struct arm_result {
	enum pair_state state;
	enum wrong_kind kind; /* REFUSED, HANG, DIED, FAULT, GARBAGE: wrong sums */
	bool sets_lost;
	uint64_t values;      /* checked, over all devices and rounds */
	uint64_t wrong;       /* of them */
	int first_device;     /* number of one with wrong sums, -1: none */
	uint64_t first_wrong; /* index of a wrong value there */
	char sentence[BENCH_SENTENCE];
};

const char *arm_word(enum arm a); /* "p2p", "staged" */

/*
 * All devices share no set, or all one. Several rounds, each with other values, for at least
 * `seconds`.
 */
void all_reduce_check(const struct bench_device *const *devices, size_t n, enum arm arm,
		      double seconds, struct arm_result *ret);
