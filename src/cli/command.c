/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands; picks one, parses its words, runs it. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/nccl_log.h"
#include "report/document.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static int print_help(const struct command *c, const struct common_options *common)
{
	struct document *d = document_new();

	if (c)
		command_help_text(d, c);
	else
		program_help_text(d);
	return show_document(d, common, EXIT_OK);
}

/* The command behind options, as in `onehop --json check`; NULL: none. */
static const char *command_behind(char *const *words, size_t n)
{
	size_t used;

	for (size_t i = 1; i < n && words[0][0] == '-'; i++) {
		const struct command *c =
			command_find((const char *const *)words + i, n - i, &used);

		if (c && !c->hidden)
			return c->name;
	}
	return NULL;
}

/* Only of a regular file: standard input and pipes would be waited for. */
static bool is_nccl_log(const char *path)
{
	struct nccl_log *l = NULL;
	struct stat st;
	bool is_log = stat(path, &st) == 0 && S_ISREG(st.st_mode) && nccl_log_open(path, &l) == 0;

	nccl_log_free(l);
	return is_log;
}

/* An option that is a command by itself: `onehop --formats`; NULL: there is none among the words. */
static const char *lone_option(char *const *words, size_t n)
{
	static const char *const lone[] = {"--formats", "--version"};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(lone) / sizeof(*lone); k++)
			if (strcmp(words[i], lone[k]) == 0)
				return lone[k];
	return NULL;
}

/* The error of command_parse, with the command that reads the file that was not expected; NULL: an option is wrong. */
static int refuse_words(const struct command *c, const char *unexpected)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	if (unexpected && strcmp(unexpected, "-") != 0 && is_nccl_log(unexpected))
		return fail(EXIT_REFUSED, "unexpected argument '%s' (to read a log: onehop log %s)",
			    unexpected, unexpected);
	return fail(EXIT_REFUSED, "%s (see: onehop %s --help)", why, c->name);
}

/* Of options that mean the same wherever they occur. */
static const struct option_rule common_rules[] = {
	{"json format", .not_with = "json format html markdown"},
	{"host", .needs = "from", .why = ", whose texts it selects"},
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
	if (r < 0 && lone_option(words, n))
		r = fail(EXIT_REFUSED, "%s goes with no command: onehop %s", lone_option(words, n),
			 lone_option(words, n));
	else if (r < 0 && !named && command_behind(words, n))
		r = fail(EXIT_REFUSED, "options go after the command: onehop %s [OPTION]...",
			 command_behind(words, n));
	else if (r < 0)
		r = refuse_words(c, r == -E2BIG ? args[c->max_args] : NULL);
	else if (common->help)
		r = print_help(c, common);
	else if (options_check(c->options, values, common_rules) < 0 ||
		 options_check(c->options, values, c->rules) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else if (common->keep_identifiers && !page_wanted(common))
		r = fail(EXIT_REFUSED, "--keep-identifiers needs --html or --markdown");
	else
		r = c->run(values, args);
	options_done(c->options, values);
	return r;
}

/* ---- help ---- */

struct help_options {
	struct common_options common;
};

static const struct option help_table[] = {COMMON_COLOR(struct help_options),
					   COMMON_WIDTH(struct help_options),
					   COMMON_HELP(struct help_options), OPTIONS_END};

/* "bench" alone: its commands; NULL if it is not a group. */
static char *group_names(const char *name)
{
	AUTO_STRBUF struct strbuf b = {0};
	const char *rest;

	for (const struct command *const *c = commands; *c; c++)
		if (command_in_group(*c, name, &rest))
			strbuf_printf(&b, "%s%s", b.len ? ", " : "", (*c)->name);
	return b.len ? xstrdup(b.text) : NULL;
}

static bool is_group(const char *name)
{
	AUTO_FREE char *names = group_names(name);

	return names != NULL;
}

/* `second` follows the name of a group; NULL: nothing does. */
static int no_group_command(const char *group, const char *second)
{
	const char *names[sizeof(commands) / sizeof(commands[0])] = {0};
	AUTO_FREE char *known = group_names(group);
	const char *nearest;
	size_t n = 0;

	if (!second || second[0] == '-')
		return fail(EXIT_REFUSED, "%s needs a second word: %s (see: onehop help)", group,
			    known);
	for (const struct command *const *c = commands; *c; c++)
		n += command_in_group(*c, group, &names[n]) && !(*c)->hidden;
	nearest = nearest_name(second, names, n);
	if (nearest)
		return fail(EXIT_REFUSED,
			    "unknown command '%s %s'; did you mean %s %s? (see: onehop help)",
			    group, second, group, nearest);
	return fail(EXIT_REFUSED, "unknown command '%s %s'; there are %s (see: onehop help)", group,
		    second, known);
}

/* No row has the first one or two of these words as its name. */
static int no_command(const char *const *words, size_t n_words)
{
	const char *names[sizeof(commands) / sizeof(commands[0])] = {0};
	const char *nearest, *name = words[0];
	size_t n = 0;

	if (is_group(name))
		return no_group_command(name, n_words > 1 ? words[1] : NULL);
	for (const struct command *const *c = commands; *c; c++)
		names[n++] = (*c)->hidden ? NULL : (*c)->name;
	nearest = nearest_name(name, names, n);
	if (nearest)
		return fail(EXIT_REFUSED,
			    "unknown command '%s'; did you mean %s? (see: onehop help)", name,
			    nearest);
	return fail(EXIT_REFUSED, "unknown command '%s' (see: onehop help)", name);
}

static int print_group_help(const char *group, const struct common_options *common)
{
	struct document *d = document_new();

	group_help_text(d, group);
	return show_document(d, common, EXIT_OK);
}

static int run_help(const void *options, const char *const *args)
{
	const struct help_options *o = options;
	size_t used, n = args[0] ? 1 + (args[1] != NULL) : 0;
	const struct command *c = command_find(args, n, &used);

	if (n == 1 && !c && is_group(args[0]))
		return print_group_help(args[0], &o->common);
	return args[0] && !c ? no_command(args, n) : print_help(c, &o->common);
}

const struct command command_help = {
	.name = "help",
	.args = "[COMMAND]",
	.words = WORDS_COMMANDS,
	.summary = "explain a command, or list all commands",
	.about = "Prints what --help prints.",
	.options = help_table,
	.size = sizeof(struct help_options),
	.max_args = 2,
	.run = run_help,
};

/* ---- the program ---- */

static int run_version(const void *options, const char *const *args)
{
	const struct help_options *o = options;
	struct document *d = document_new();

	(void)args;
	document_paragraph(d, STYLE_PLAIN, 0, "onehop %s%s", ONEHOP_VERSION, ONEHOP_BUILD);
	return show_document(d, &o->common, EXIT_OK);
}

const struct command command_version = {
	.name = "version",
	.args = "",
	.summary = "print the version of onehop",
	.about = "Prints what --version prints.",
	.options = help_table,
	.size = sizeof(struct help_options),
	.run = run_version,
};

/* `markdown`: as docs/texts.md has it. */
static int print_formats(bool markdown)
{
	struct strbuf b AUTO_STRBUF = {0};
	const struct common_options plain = {0};
	struct document *d;

	if (markdown) {
		report_formats_markdown(&b);
		return print_text(&b, EXIT_OK);
	}
	d = document_new();
	report_formats(d);
	return show_document(d, &plain, EXIT_OK);
}

static bool is_word(const char *word, const char *name, const char *letter)
{
	return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

/*
 * Whoever starts onehop with 0, 1 or 2 closed must not make the next file that it opens one of them: messages would be
 * written into a driver's sources or a journal. Reading from 0 and writing to 1 and 2 fail as before.
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
	if (!c && argc > 2 && is_group(word) && is_word(argv[2], "--help", "-h"))
		return print_group_help(word, &plain);
	return c ? run_command(c, true, argv + 1 + used, (size_t)argc - 1 - used)
		 : no_command((const char *const *)argv + 1, (size_t)argc - 1);
}
