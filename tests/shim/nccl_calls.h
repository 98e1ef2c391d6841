/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls with known arguments, and a libnccl that writes down what arrives (make_functions standin,
 * calls).
 */
#pragma once

#include "nccl/abi.h"

#include <stdbool.h>
#include <string.h>

#define CALLS_EXPORT __attribute__((visibility("default")))

/* One call: its name, and its arguments in their order, byte by byte. */
struct calls_record {
	const char *name;
	unsigned count; /* of calls */
	size_t arguments, size;
	unsigned char bytes[512];
};

/* The stand-in's newest call. */
CALLS_EXPORT const struct calls_record *calls_last(void);
void calls_begin(const char *name);
void calls_add(const void *value, size_t size);

/* Fills an argument with bytes that no other argument has, and notes it. */
void calls_make(struct calls_record *want, void *value, size_t size, unsigned function,
		unsigned argument);
/* The same for a pointer, which leads to memory of its own. */
void calls_point(struct calls_record *want, void **value, unsigned function, unsigned argument);

enum calls_kind { CALLS_STATUS, CALLS_INT, CALLS_TEXT, CALLS_TEAM, CALLS_VOID };

struct calls_row {
	const char *name; /* without "nccl" */
	int version;
	bool taken;
	enum calls_kind kind;
	/* Calls `function`, and writes down how; whether its answer is the stand-in's. */
	bool (*call)(void *function, struct calls_record *want);
};

extern const struct calls_row calls_rows[];
extern const size_t calls_row_n;
