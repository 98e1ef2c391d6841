/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forwarded WAY VERSION LIBRARY [SHIM]: every function of NCCL's interface is called as an
 * application calls it, and arrives in a stand-in for NCCL of that version with its arguments and
 * its answer intact. TAP. WAY:
 *
 * local    the shim is preloaded, the stand-in is loaded here with local scope, as Python does
 * next     the shim and then the stand-in are preloaded
 * dropin   SHIM, loaded by name, is in NCCL's place; ONEHOP_NCCL_LIBRARY names the stand-in
 * late     as dropin, but the stand-in is loaded after the first call, by somebody else
 */
#include "nccl_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned number;
static bool failed;

static void check(bool right, const char *what, const char *name)
{
	printf("%sok %u - %s%s\n", right ? "" : "not ", ++number, name, what);
	failed |= !right;
}

void calls_make(struct calls_record *want, void *value, size_t size, unsigned function,
		unsigned argument)
{
	unsigned char *bytes = value;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(17 + function * 31 + argument * 7 + i * 3);
	memcpy(want->bytes + want->size, value, size);
	want->size += size;
	want->arguments++;
}

#define ARGUMENTS 16u
#define FUNCTIONS 128u

void calls_point(struct calls_record *want, void **value, unsigned function, unsigned argument)
{
	static char memory[FUNCTIONS * ARGUMENTS][128];

	*value = memory[function % FUNCTIONS * ARGUMENTS + argument % ARGUMENTS];
	memcpy(want->bytes + want->size, value, sizeof(*value));
	want->size += sizeof(*value);
	want->arguments++;
}

static void *open_library(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		printf("Bail out! %s\n", dlerror());
	return handle;
}

/* What a program that needs libnccl.so.2 gets: a function of a preloaded library goes first. */
static void *find_function(void *library, const char *prefix, const char *name)
{
	char symbol[64];
	void *function;

	snprintf(symbol, sizeof(symbol), "%s%s", prefix, name);
	function = dlsym(RTLD_DEFAULT, symbol);
	return function ? function : dlsym(library, symbol);
}

static bool same(const struct calls_record *a, const struct calls_record *b)
{
	return a->name && b->name && strcmp(a->name, b->name) == 0 &&
	       a->arguments == b->arguments && a->size == b->size &&
	       memcmp(a->bytes, b->bytes, a->size) == 0;
}

static void check_forwarded(const struct calls_row *row, void *function,
			    const struct calls_record *last)
{
	struct calls_record want = {0};
	const unsigned before = last->count;
	bool answer = row->call(function, &want);

	check(answer, " answers what NCCL answers", row->name);
	check(last->count == before + 1, " arrives once", row->name);
	check(same(last, &want), " has its arguments", row->name);
}

/*
 * It does not arrive (the version that the message names is asked for), and the answer is not the
 * stand-in's.
 */
static void check_missing(const struct calls_row *row, void *function,
			  const struct calls_record *last)
{
	struct calls_record want = {0};
	bool answer = row->call(function, &want);

	check((row->kind == CALLS_VOID || !answer) &&
		      (!last->name || strcmp(last->name, row->name) != 0),
	      " is reported as missing", row->name);
}

static void check_row(const struct calls_row *row, int version, void *library, const char *prefix,
		      const struct calls_record *last)
{
	void *function = find_function(library, prefix, row->name);

	if (version >= row->version) {
		check(function != NULL, " is there", row->name);
		if (function)
			check_forwarded(row, function, last);
	} else if (function) {
		check_missing(row, function, last);
	} else {
		check(true, " is not there", row->name);
	}
}

/* The shim is asked before there is an NCCL. */
static void check_early(void *shim)
{
	int (*version)(int *) = (int (*)(int *))dlsym(shim, "ncclGetVersion");
	const char *(*text)(int) = (const char *(*)(int))dlsym(shim, "ncclGetErrorString");
	int got = 1;

	check(version && version(&got) == NCCL_INVALID_USAGE && got == 1, " before NCCL is loaded",
	      "GetVersion");
	check(text && strstr(text(NCCL_INVALID_USAGE), "libnccl.so.2 is not loaded"),
	      " says that NCCL is not loaded", "GetErrorString");
	setenv("ONEHOP_NCCL_LIBRARY", "/proc/version", 1);
	check(text && strstr(text(NCCL_INVALID_USAGE), "ONEHOP_NCCL_LIBRARY cannot be loaded"),
	      " says that the library cannot be loaded", "GetErrorString");
	unsetenv("ONEHOP_NCCL_LIBRARY");
}

int main(int argc, char **argv)
{
	const bool late = argc > 4 && strcmp(argv[1], "late") == 0;
	void *shim = argc > 4 ? open_library(argv[4]) : NULL, *standin;
	const struct calls_record *(*last)(void);

	if (argc < 4 || (argc > 4 && !shim))
		return 2;
	if (late)
		check_early(shim);
	standin = open_library(argv[3]);
	if (!standin)
		return 2;
	last = (const struct calls_record *(*)(void))dlsym(standin, "calls_last");
	for (size_t i = 0; last && i < calls_row_n; i++)
		check_row(&calls_rows[i], atoi(argv[2]), shim ? shim : standin, "nccl", last());
	for (size_t i = 0; last && shim && i < calls_row_n; i++)
		check_row(&calls_rows[i], atoi(argv[2]), shim, "pnccl", last());
	check(last != NULL, " is a stand-in", argv[3]);
	printf("1..%u\n", number);
	return failed;
}
