/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands; picks one, parses its words, runs it. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
const struct command *const commands[] = {
	&command_check,
	&command_fix,
	&command_undo,
	&command_history,
	&command_unlock,
	&command_test,
	&command_topo,
	&command_record,
	&command_bench_p2p,
	&command_bench_nccl,
	&command_bench_collective,
	&command_bench_rdma,
	&command_tune,
	&command_compare,
	&command_report,
	&command_fleet,
	&command_log,
	&command_env,
	&command_help,
	&command_version,
	&command_completion,
	&command_worker,
	&command_nccl_worker,
	&command_rdma_worker,
	NULL,
};
/* clang-format on */

bool command_in_group(const struct command *c, const char *group, const char **ret_rest)
{
	size_t n = strlen(group);

	if (strncmp(c->name, group, n) != 0 || c->name[n] != ' ')
		return false;
	*ret_rest = c->name + n + 1;
	return true;
}

const struct command *command_find(const char *const *words, size_t n, size_t *ret_used)
{
	const char *rest;

	for (const struct command *const *c = commands; n > 0 && *c; c++) {
		*ret_used = 1;
		if (strcmp((*c)->name, words[0]) == 0)
			return *c;
		*ret_used = 2;
		if (n > 1 && command_in_group(*c, words[0], &rest) && strcmp(rest, words[1]) == 0)
			return *c;
	}
	return NULL;
}

static int too_few(const struct command *c)
{
	return err_set(EINVAL, "%s needs %zu %s: onehop %s %s", c->name, c->min_args,
		       text_plural(c->min_args, "argument", "arguments"), c->name, c->args);
}

int command_parse(const struct command *c, char *const *words, size_t n, void *values,
		  const char **args)
{
	const struct common_options *common = values;
	int r = options_parse(c->options, words, n, values, args, c->max_args);

	if (r >= 0 && (size_t)r < c->min_args && !common->help)
		return too_few(c);
	return r;
}

/* Of options that mean the same wherever they occur. */
static const struct option_rule common_rules[] = {
	{"json format", .not_with = "json format html markdown"},
	{"host", .needs = "from", .why = ", whose texts it selects"},
	{"keep-identifiers", .needs = "html markdown"},
	{0},
};

/* `named`: by a word, and not because there is none. */
static int run_command(const struct command *c, bool named, char *const *words, size_t n)
{
	AUTO_FREE void *values = xcalloc(1, c->size);
	struct common_options *common = values;
	const char *args[MAX_ARGS + 1] = {0};
	int r = command_parse(c, words, n, values, args);

	common->command = c;
	if (r < 0)
		r = refuse_words(c, named, words, n, r == -E2BIG ? args[c->max_args] : NULL);
	else if (common->help)
		r = print_help(c, common);
	else if (options_check(c->options, values, common_rules) < 0 ||
		 options_check(c->options, values, c->rules) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = c->run(values, args);
	options_done(c->options, values);
	return r;
}

/* ---- the program ---- */

static bool is_word(const char *word, const char *name, const char *letter)
{
	return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

/*
 * Whoever starts onehop with 0, 1 or 2 closed must not make the next file that it opens one of
 * them: messages would be written into a driver's sources or a journal. Reading from 0 and writing
 * to 1 and 2 fail as before.
 */
static bool fill_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* The lowest number that is free: this one. Programs that it starts get it too. */
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return false;
	}
	return true;
}

/* No command at all means check: `onehop`, `onehop --json`. */
int cli_main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	size_t after = argc > 2 ? (size_t)argc - 2 : 0; /* words behind the first */
	const struct common_options plain = {0};
	const struct command *c;
	size_t used;

	if (!fill_standard_files())
		return EXIT_NOT_JUDGED;      /* there is nowhere to say so */
	json_set_alloc_funcs(xmalloc, free); /* else JSON without memory lacks a part in silence */
	if (is_word(word, "--version", "-V"))
		return run_command(&command_version, true, argv + 2, after);
	if (is_word(word, "--formats", "--formats=markdown"))
		return print_formats(strchr(word, '=') != NULL);
	if (is_word(word, "--help", "-h"))
		return run_command(&command_help, true, argv + 2, after);
	if (argc < 2 || word[0] == '-')
		return run_command(&command_check, false, argv + 1,
				   argc > 1 ? (size_t)argc - 1 : 0);
	c = command_find((const char *const *)argv + 1, (size_t)argc - 1, &used);
	if (!c && argc > 2 && command_is_group(word) && is_word(argv[2], "--help", "-h"))
		return print_group_help(word, &plain);
	return c ? run_command(c, true, argv + 1 + used, (size_t)argc - 1 - used)
		 : refuse_command((const char *const *)argv + 1, (size_t)argc - 1);
}
