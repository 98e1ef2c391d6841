/* SPDX-License-Identifier: Apache-2.0 */
/* Completions for zsh, made from the tables of commands and options. */
#include "cli/completion.h"

#include "base/strbuf.h"

#include <string.h>

/* Inside '...[help]': quotes end the word, brackets and colons the field. */
static void add_zsh_text(struct strbuf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '\'')
			strbuf_puts(out, "'\\''");
		else if (strchr("[]:\\", *s))
			strbuf_printf(out, "\\%c", *s);
		else
			strbuf_putc(out, *s);
	}
}

static void add_zsh_words(struct strbuf *out, enum words words)
{
	strbuf_printf(out,
		      word_lists[words].commas ? "_sequence _onehop_words - %s"
					       : "_onehop_words %s",
		      word_lists[words].name);
}

static const struct completion_values values = {
	.file = "_files",
	.choices = "(",
	.choices_end = ")",
	.add_words = add_zsh_words,
};

static void add_zsh_value(struct strbuf *out, const struct option *o)
{
	if (o->kind == OPTION_FLAG || o->optional)
		return;
	strbuf_puts(out, ":");
	add_zsh_text(out, o->arg);
	strbuf_puts(out, ":");
	completion_add_value(out, o, &values);
}

static void add_zsh_option(struct strbuf *out, const struct option *o)
{
	const char *repeat = o->kind == OPTION_LIST ? "*" : "";

	if (o->hidden)
		return;
	if (o->letter) {
		strbuf_printf(out, "\t\t\t'-%c[", o->letter);
		add_zsh_text(out, o->help);
		strbuf_puts(out, "]' \\\n");
	}
	strbuf_printf(out, "\t\t\t'%s%s%s[", repeat, o->one_dash ? "-" : "--", o->name);
	add_zsh_text(out, o->help);
	strbuf_putc(out, ']');
	add_zsh_value(out, o);
	strbuf_puts(out, "' \\\n");
}

static void add_zsh_command(struct strbuf *out, const struct command *c)
{
	strbuf_printf(out, "\t'%s')\n\t\t_arguments \\\n", c->name);
	for (const struct option *o = c->options; o->name; o++)
		add_zsh_option(out, o);
	if (c->words == WORDS_NONE) {
		strbuf_puts(out, "\t\t\t&& return\n");
	} else {
		strbuf_puts(out, "\t\t\t'*:");
		add_zsh_text(out, c->args);
		strbuf_puts(out, ":");
		if (c->words == WORDS_FILES)
			strbuf_puts(out, "_files");
		else if (c->words == WORDS_COMMANDS)
			strbuf_puts(out, "_onehop_commands");
		else
			add_zsh_words(out, c->words);
		strbuf_puts(out, "'\n");
	}
	strbuf_puts(out, "\t\t;;\n");
}

static void add_zsh_groups(struct strbuf *out)
{
	for (const struct command *const *c = commands; *c; c++) {
		if (!completion_opens_group(c))
			continue;
		strbuf_printf(out,
			      "\tif [[ $command == %.*s ]]; then\n"
			      "\t\tif (( CURRENT == 2 )); then\n"
			      "\t\t\tcompadd ",
			      (int)completion_first_word(*c), (*c)->name);
		completion_add_group(out, *c);
		strbuf_puts(out, "\n\t\t\treturn\n\t\tfi\n"
				 "\t\tcommand=\"$command $words[2]\"\n"
				 "\t\tshift words\n"
				 "\t\t(( CURRENT-- ))\n"
				 "\tfi\n");
	}
}

void completion_zsh(struct strbuf *out)
{
	strbuf_puts(
		out,
		"#compdef onehop\n"
		"# SPDX-License-Identifier: Apache-2.0\n"
		"# Completion of onehop for zsh; made by tools/generate.\n\n"
		"# The words of the program's list in the last argument; the others are compadd's.\n"
		"_onehop_words() {\n"
		"\tcompadd \"${@[1,-2]}\" -- ${${(f)\"$($service completion $@[-1] "
		"2>/dev/null)\"}%%$'\\t'*}\n"
		"}\n\n"
		"_onehop_commands() {\n"
		"\tlocal -a names=(\n");
	for (const struct command *const *c = commands; *c; c++) {
		if (!completion_is_offered(c))
			continue;
		strbuf_printf(out, "\t\t'%.*s:", (int)completion_first_word(*c), (*c)->name);
		if (completion_opens_group(c))
			completion_add_group(out, *c);
		else
			add_zsh_text(out, (*c)->summary);
		strbuf_puts(out, "'\n");
	}
	strbuf_puts(out, "\t)\n"
			 "\t_describe command names\n"
			 "}\n\n"
			 "_onehop() {\n"
			 "\tlocal command=check\n"
			 "\tif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
			 "\t\t_onehop_commands\n"
			 "\t\treturn\n"
			 "\tfi\n"
			 "\tif [[ $words[2] != -* ]]; then\n"
			 "\t\tcommand=$words[2]\n"
			 "\t\tshift words\n"
			 "\t\t(( CURRENT-- ))\n"
			 "\tfi\n");
	add_zsh_groups(out);
	strbuf_puts(out, "\tcase $command in\n");
	for (const struct command *const *c = commands; *c; c++) {
		if (!(*c)->hidden)
			add_zsh_command(out, *c);
	}
	strbuf_puts(out, "\tesac\n}\n\n_onehop \"$@\"\n");
}
