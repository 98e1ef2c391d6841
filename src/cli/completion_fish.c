/* SPDX-License-Identifier: Apache-2.0 */
/* Completions for fish, made from the tables of commands and options. */
#include "cli/completion.h"

#include "base/strbuf.h"

/* Inside single quotes. */
static void add_fish_text(struct strbuf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			strbuf_putc(out, '\\');
		strbuf_putc(out, *s);
	}
}

static void add_fish_words(struct strbuf *out, enum words words)
{
	if (word_lists[words].commas)
		strbuf_printf(out, " -xa '(__fish_append , (onehop completion %s 2>/dev/null))'",
			      word_lists[words].name);
	else
		strbuf_printf(out, " -xa '(onehop completion %s 2>/dev/null)'",
			      word_lists[words].name);
}

static const struct completion_values values = {
	.file = " -rF",
	.choices = " -xa '",
	.choices_end = "'",
	.other = " -x",
	.add_words = add_fish_words,
};

static void add_fish_value(struct strbuf *out, const struct option *o)
{
	if (o->kind == OPTION_FLAG || o->optional)
		strbuf_puts(out, " -f");
	else
		completion_add_value(out, o, &values);
}

/* The words of a command's name, as conditions: fish knows one at a time. */
static void add_fish_condition(struct strbuf *out, const struct command *c)
{
	size_t n = completion_first_word(c);

	strbuf_printf(out, "complete -c onehop -n '__fish_seen_subcommand_from %.*s", (int)n,
		      c->name);
	if (c->name[n])
		strbuf_printf(out, "; and __fish_seen_subcommand_from %s", c->name + n + 1);
	strbuf_puts(out, "'");
}

static void add_fish_option(struct strbuf *out, const struct command *c, const struct option *o)
{
	add_fish_condition(out, c);
	strbuf_printf(out, " -%c %s", o->one_dash ? 'o' : 'l', o->name);
	if (o->letter)
		strbuf_printf(out, " -s %c", o->letter);
	add_fish_value(out, o);
	strbuf_puts(out, " -d '");
	add_fish_text(out, o->help);
	strbuf_puts(out, "'\n");
}

static void add_fish_command(struct strbuf *out, const struct command *c)
{
	size_t n = completion_first_word(c);

	if (c->name[n])
		strbuf_printf(
			out,
			"complete -c onehop -f -n '__fish_seen_subcommand_from %.*s' -a %s -d '",
			(int)n, c->name, c->name + n + 1);
	else
		strbuf_printf(out, "complete -c onehop -f -n __fish_use_subcommand -a %s -d '",
			      c->name);
	add_fish_text(out, c->summary);
	strbuf_puts(out, "'\n");
	if (c->words == WORDS_FILES) {
		add_fish_condition(out, c);
		strbuf_puts(out, " -F\n");
	} else if (word_lists[c->words].name) {
		add_fish_condition(out, c);
		add_fish_words(out, c->words);
		strbuf_putc(out, '\n');
	}
	for (const struct option *o = c->options; o->name; o++)
		if (!o->hidden)
			add_fish_option(out, c, o);
}

void completion_fish(struct strbuf *out)
{
	strbuf_puts(out, "# SPDX-License-Identifier: Apache-2.0\n"
			 "# Completion of onehop for fish; made by tools/generate.\n"
			 "complete -c onehop -f\n");
	for (const struct command *const *c = commands; *c; c++) {
		if (completion_opens_group(c)) {
			strbuf_printf(out,
				      "complete -c onehop -f -n __fish_use_subcommand -a %.*s -d '",
				      (int)completion_first_word(*c), (*c)->name);
			completion_add_group(out, *c);
			strbuf_puts(out, "'\n");
		}
		if (!(*c)->hidden)
			add_fish_command(out, *c);
	}
}
