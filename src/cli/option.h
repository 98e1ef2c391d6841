/* SPDX-License-Identifier: Apache-2.0 */
/* Options as tables: the parser, --help, the completions and a test of the manuals all read them.
 */
#pragma once

#include "base/texts.h"

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

enum option_kind {
	OPTION_FLAG,   /* bool */
	OPTION_TEXT,   /* const char * */
	OPTION_FILE,   /* const char *, completed as a file name */
	OPTION_NUMBER, /* int, 1 or more */
	OPTION_CHOICE, /* int: 1 + index in choices; 0: not given */
	OPTION_LIST, /* struct texts that point into argv, once per value; each in choices, if any */
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

/* clang-format off */
/*
 * Rows of a table: the option's name, its member in the command's struct (which the file's AT()
 * finds), what stands for its value, the help, and then other members by their names: .letter =
 * 'v'.
 */
#define OPT_ROW(NAME, KIND, MEMBER, ...) {.name = NAME, .kind = KIND, .offset = AT(MEMBER), __VA_ARGS__}
#define OPT_FLAG(NAME, MEMBER, ...)      OPT_ROW(NAME, OPTION_FLAG, MEMBER, .help = __VA_ARGS__)
#define OPT_TEXT(NAME, MEMBER, ARG, ...) OPT_ROW(NAME, OPTION_TEXT, MEMBER, .arg = ARG, .help = __VA_ARGS__)
#define OPT_FILE(NAME, MEMBER, ARG, ...) OPT_ROW(NAME, OPTION_FILE, MEMBER, .arg = ARG, .help = __VA_ARGS__)
#define OPT_LIST(NAME, MEMBER, ARG, ...) OPT_ROW(NAME, OPTION_LIST, MEMBER, .arg = ARG, .help = __VA_ARGS__)
#define OPT_NUMBER(NAME, MEMBER, ARG, ...) \
	OPT_ROW(NAME, OPTION_NUMBER, MEMBER, .arg = ARG, .help = __VA_ARGS__)
#define OPT_CHOICE(NAME, MEMBER, ARG, CHOICES, ...) \
	OPT_ROW(NAME, OPTION_CHOICE, MEMBER, .arg = ARG, .choices = CHOICES, .help = __VA_ARGS__)
/* clang-format on */

/* The row that n characters name; `dashes` is how many precede them. NULL: none. */
const struct option *option_find(const struct option *options, const char *name, size_t n,
				 size_t dashes);

/*
 * Parses words into the struct at `values`, which must be zeroed. Words that are not options go to
 * `args`, which has room for max_args + 1. Returns their number, or with a sentence -EINVAL, or
 * -E2BIG if there are more than max_args: then args[max_args] is the first that is too many.
 */
int options_parse(const struct option *options, char *const *words, size_t n, void *values,
		  const char **args, size_t max_args);

/*
 * Which options go together. Names are separated by spaces. A table of them ends with a row of
 * NULL.
 */
struct option_rule {
	const char *options; /* of these only one at a time is compared, the first that was given */
	const char *not_with; /* none of these may be given too; NULL: any may */
	const char *
		needs; /* one of these must be given too, if the command has any; NULL: none must */
	const char *why; /* ends the sentence: ", whose texts it selects"; NULL: nothing does */
};

/* 0, or -EINVAL and a sentence about the first rule that is broken. */
int options_check(const struct option *options, const void *values,
		  const struct option_rule *rules);

/*
 * " --long 60 --json": of the options with these names those that were given, as a shell reads
 * them.
 */
void options_given(const struct option *options, const void *values, const char *names,
		   struct strbuf *b);
/* Frees what lists hold. */
void options_done(const struct option *options, void *values);
