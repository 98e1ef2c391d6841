/* SPDX-License-Identifier: Apache-2.0 */
/* The real NCCL: where it is, and its functions. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define REAL_EXPORT __attribute__((visibility("default")))

struct real_row {
	const char *name; /* "pncclAllReduce"; without the p it is the name for everybody */
	int version;      /* 22807: of NCCL that has it first */
	bool taken;
};

/* By enum nccl_function. */
extern const struct real_row real_rows[];
extern const unsigned real_row_n;

extern _Atomic(void *) real_pointers[];

void *real_find(unsigned function);

/* NULL: there is no NCCL yet, or it has no such function. */
static inline void *real_function(unsigned function)
{
	void *p = atomic_load_explicit(&real_pointers[function], memory_order_acquire);

	return __builtin_expect(p != NULL, 1) ? p : real_find(function);
}

/* Why there is no such function, for the answer of those that answer a text. */
const char *real_reason(void);
/* Says so, once for each function. */
void real_missing(unsigned function);
