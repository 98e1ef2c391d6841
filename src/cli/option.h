/* SPDX-License-Identifier: Apache-2.0 */
/* Options as tables: the parser, --help, the completions and a test of the manuals all read them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
	OPTION_FLAG,   /* bool */
	OPTION_TEXT,   /* const char * */
	OPTION_FILE,   /* const char *, completed as a file name */
	OPTION_NUMBER, /* int, 1 or more */
	OPTION_CHOICE, /* int: 1 + index in choices; 0: not given */
	OPTION_LIST,   /* struct string_list, once per value; each in choices, if any */
};

/* What a value or an argument may be. The shells complete it; cli/words.c holds the words. */
enum words {
	WORDS_NONE,
	WORDS_FILES,
	WORDS_COMMANDS,
	WORDS_RULES,
	WORDS_GPUS,
	WORDS_NICS,
	WORDS_P2P_METRICS,
	WORDS_RDMA_METRICS,
	WORDS_MEMORY,
	WORDS_FAULTS,
	WORDS_VARIABLES,
	WORDS_FIXES,
	WORDS_N
};

/* Values point into argv. */
struct string_list {
	const char **items;
	size_t n;
};

struct option {
	const char *name;
	char letter; /* 'v': -v is the same; 0: none */
	enum option_kind kind;
	size_t offset;   /* of its member in the command's struct */
	const char *arg; /* what stands for the value in --help; NULL for flags */
	const char *help;
	const char *const *choices; /* NULL-ended */
	bool one_dash;              /* -NAME VALUE, as nvidia-smi writes it; --NAME works too */
	bool optional;              /* --NAME alone is the first choice, --NAME=VALUE another */
	bool hidden;
	enum words words;
};

/*
 * Parses words into the struct at `values`, which must be zeroed. Words that are not options go to
 * `args`, which has room for max_args + 1. Returns their number, or with a sentence -EINVAL, or
 * -E2BIG if there are more than max_args: then args[max_args] is the first that is too many.
 */
int options_parse(const struct option *options, char *const *words, size_t n, void *values,
		  const char **args, size_t max_args);
/* "--long 60", "--json": a flag, text or number as it was given, the caller's to free; NULL: it was not. */
char *option_given(const struct option *o, const void *values);
/* Frees what lists hold. */
void options_done(const struct option *options, void *values);
