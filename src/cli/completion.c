/* SPDX-License-Identifier: Apache-2.0 */
/* onehop completion: a person's, and the one that tools/generate and the completion files run. */
#include "cli/completion.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <string.h>

/* ---- what the shells want to know ---- */

size_t completion_first_word(const struct command *c)
{
	return strcspn(c->name, " ");
}

bool completion_opens_group(const struct command *const *c)
{
	size_t n = completion_first_word(*c);

	if (!(*c)->name[n] || (*c)->hidden)
		return false;
	for (const struct command *const *other = commands; other < c; other++)
		if (completion_first_word(*other) == n &&
		    strncmp((*other)->name, (*c)->name, n) == 0)
			return false;
	return true;
}

bool completion_is_offered(const struct command *const *c)
{
	return !(*c)->hidden &&
	       (!(*c)->name[completion_first_word(*c)] || completion_opens_group(c));
}

void completion_add_group(struct strbuf *out, const struct command *opener)
{
	const char *separator = "";

	for (const struct command *const *c = commands; *c; c++) {
		if (completion_first_word(*c) != completion_first_word(opener) ||
		    !(*c)->name[completion_first_word(*c)] ||
		    strncmp((*c)->name, opener->name, completion_first_word(opener)) != 0)
			continue;
		strbuf_printf(out, "%s%s", separator, (*c)->name + completion_first_word(*c) + 1);
		separator = " ";
	}
}

void completion_add_value(struct strbuf *out, const struct option *o,
			  const struct completion_values *values)
{
	/* Lists may be of files, too. */
	if (o->kind == OPTION_FILE || (o->kind == OPTION_LIST && strcmp(o->arg, "FILE") == 0)) {
		strbuf_puts(out, values->file);
	} else if (word_lists[o->words].name) {
		values->add_words(out, o->words);
	} else if (o->choices) {
		strbuf_puts(out, values->choices);
		for (size_t i = 0; o->choices[i]; i++)
			strbuf_printf(out, "%s%s", i ? " " : "", o->choices[i]);
		strbuf_puts(out, values->choices_end);
	} else if (values->other) {
		strbuf_puts(out, values->other);
	}
}

/* ---- the command ---- */

struct completion_options {
	struct common_options common;
};

static const struct option completion_table[] = {COMMON_HELP(struct completion_options),
						 OPTIONS_END};

static int run_completion(const void *options, const char *const *args)
{
	const struct word_list *list = word_list_find(args[0]);
	AUTO_STRBUF struct strbuf b = {0};

	(void)options;
	if (strcmp(args[0], "bash") == 0)
		completion_bash(&b);
	else if (strcmp(args[0], "zsh") == 0)
		completion_zsh(&b);
	else if (strcmp(args[0], "fish") == 0)
		completion_fish(&b);
	else if (list)
		list->print(&b);
	else
		return fail(EXIT_REFUSED, "completion: must be bash, zsh or fish, not '%s'",
			    args[0]);
	return print_text(&b, EXIT_OK);
}

const struct command command_completion = {
	.name = "completion",
	.args = "bash|zsh|fish|LIST",
	.summary = "print completions for a shell",
	.about = "Prints the completion file for a shell, or the words that these files ask for: "
		 "rules, gpus and others.",
	.options = completion_table,
	.size = sizeof(struct completion_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_completion,
};
