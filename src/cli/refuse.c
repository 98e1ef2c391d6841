/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines that cannot be run, and what was probably meant. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/nccl_log.h"

#include <string.h>
#include <sys/stat.h>

/* ---- words of a command ---- */

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

/*
 * An option that is a command by itself: `onehop --formats`; NULL: there is none among the words.
 */
static const char *lone_option(char *const *words, size_t n)
{
	static const char *const lone[] = {"--formats", "--version"};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(lone) / sizeof(*lone); k++)
			if (strcmp(words[i], lone[k]) == 0)
				return lone[k];
	return NULL;
}

/*
 * The error of command_parse, with the command that reads the file that was not expected; NULL: an
 * option is wrong.
 */
static int refuse_parsed(const struct command *c, const char *unexpected)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	if (unexpected && strcmp(unexpected, "-") != 0 && is_nccl_log(unexpected))
		return fail(EXIT_REFUSED, "unexpected argument '%s' (to read a log: onehop log %s)",
			    unexpected, unexpected);
	return fail(EXIT_REFUSED, "%s (see: onehop %s --help)", why, c->name);
}

int refuse_words(const struct command *c, bool named, char *const *words, size_t n,
		 const char *unexpected)
{
	const char *lone = lone_option(words, n);
	const char *behind = named ? NULL : command_behind(words, n);

	if (lone)
		return fail(EXIT_REFUSED, "%s goes with no command: onehop %s", lone, lone);
	if (behind)
		return fail(EXIT_REFUSED, "options go after the command: onehop %s [OPTION]...",
			    behind);
	return refuse_parsed(c, unexpected);
}

/* ---- no command ---- */

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

bool command_is_group(const char *name)
{
	AUTO_FREE char *names = group_names(name);

	return names != NULL;
}

/*
 * The command whose name is nearest to the word, or of a group the second word; NULL: none is near.
 */
static const char *nearest_command(const char *word, const char *group)
{
	AUTO_FREE const char **names = NULL;
	size_t n = 0;

	for (const struct command *const *c = commands; *c; c++) {
		const char *name = (*c)->name;

		if ((*c)->hidden || (group && !command_in_group(*c, group, &name)))
			continue;
		names = xrealloc(names, n + 1, sizeof(*names));
		names[n++] = name;
	}
	return nearest_name(word, names, n);
}

/* `second` follows the name of a group; NULL: nothing does. */
static int refuse_in_group(const char *group, const char *second)
{
	AUTO_FREE char *known = group_names(group);
	const char *nearest;

	if (!second || second[0] == '-')
		return fail(EXIT_REFUSED, "%s needs a second word: %s (see: onehop help)", group,
			    known);
	nearest = nearest_command(second, group);
	if (nearest)
		return fail(EXIT_REFUSED,
			    "unknown command '%s %s'; did you mean %s %s? (see: onehop help)",
			    group, second, group, nearest);
	return fail(EXIT_REFUSED, "unknown command '%s %s'; there are %s (see: onehop help)", group,
		    second, known);
}

int refuse_command(const char *const *words, size_t n)
{
	const char *nearest, *name = words[0];

	if (command_is_group(name))
		return refuse_in_group(name, n > 1 ? words[1] : NULL);
	nearest = nearest_command(name, NULL);
	if (nearest)
		return fail(EXIT_REFUSED,
			    "unknown command '%s'; did you mean %s? (see: onehop help)", name,
			    nearest);
	return fail(EXIT_REFUSED, "unknown command '%s' (see: onehop help)", name);
}
