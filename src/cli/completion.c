/* SPDX-License-Identifier: Apache-2.0 */
/* Completions for bash, zsh and fish, made from the tables of commands and options. */
#include "cli/command.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "cli/words.h"

#include <string.h>

/* ---- what the shells want to know ---- */

static void add_flag(struct strbuf *b, const struct option *o)
{
	if (o->letter)
		strbuf_printf(b, " -%c", o->letter);
	strbuf_printf(b, " %s%s", o->one_dash ? "-" : "--", o->name);
}

static void add_choices(struct strbuf *b, const struct option *o)
{
	for (size_t i = 0; o->choices[i]; i++)
		strbuf_printf(b, "%s%s", i ? " " : "", o->choices[i]);
}

/* Lists may be of files, too. */
static bool takes_file(const struct option *o)
{
	return o->kind == OPTION_FILE || (o->kind == OPTION_LIST && strcmp(o->arg, "FILE") == 0);
}

/* ---- bash ---- */

static void add_bash_words(struct strbuf *out, enum words words)
{
	strbuf_printf(out, " _onehop_%s \"$1\" %s \"$cur\";",
		      word_lists[words].commas ? "list" : "words", word_lists[words].name);
}

static void add_bash_value(struct strbuf *out, const struct command *c, const struct option *o)
{
	if (o->kind == OPTION_FLAG || o->optional || o->hidden)
		return;
	strbuf_printf(out, "\t'%s',%s%s)", c->name, o->one_dash ? "-" : "--", o->name);
	if (takes_file(o)) {
		strbuf_puts(out, " COMPREPLY=($(compgen -f -- \"$cur\"));");
	} else if (word_lists[o->words].name) {
		add_bash_words(out, o->words);
	} else if (o->choices) {
		strbuf_puts(out, " COMPREPLY=($(compgen -W '");
		add_choices(out, o);
		strbuf_puts(out, "' -- \"$cur\"));");
	}
	strbuf_puts(out, " return ;;\n");
}

static void add_bash_command(struct strbuf *out, const struct command *c)
{
	strbuf_printf(out, "\t'%s') words='", c->name);
	for (const struct option *o = c->options; o->name; o++) {
		if (!o->hidden)
			add_flag(out, o);
	}
	strbuf_puts(out, "' ;;\n");
}

/* What a command's arguments are; options have been left to the words that follow. */
static void add_bash_arguments(struct strbuf *out, const struct command *c)
{
	if (!word_lists[c->words].name && c->words != WORDS_FILES)
		return;
	strbuf_printf(out, "\t'%s')", c->name);
	if (c->words == WORDS_FILES)
		strbuf_puts(out, " COMPREPLY=($(compgen -f -- \"$cur\"));");
	else
		add_bash_words(out, c->words);
	strbuf_puts(out, " return ;;\n");
}

/* Characters of the name's first word. */
static size_t word_length(const struct command *c)
{
	return strcspn(c->name, " ");
}

/* Whether the name has two words, and no row before this one has the same first word. */
static bool opens_group(const struct command *const *c)
{
	size_t n = word_length(*c);

	if (!(*c)->name[n] || (*c)->hidden)
		return false;
	for (const struct command *const *other = commands; other < c; other++)
		if (word_length(*other) == n && strncmp((*other)->name, (*c)->name, n) == 0)
			return false;
	return true;
}

/* What is offered as the first word. */
static bool is_offered(const struct command *const *c)
{
	return !(*c)->hidden && (!(*c)->name[word_length(*c)] || opens_group(c));
}

static void add_names(struct strbuf *out)
{
	for (const struct command *const *c = commands; *c; c++) {
		if (is_offered(c))
			strbuf_printf(out, "%s%.*s", c == commands ? "" : " ", (int)word_length(*c),
				      (*c)->name);
	}
}

/* The second words of the group that the row opens. */
static void add_group_names(struct strbuf *out, const struct command *opener)
{
	const char *separator = "";

	for (const struct command *const *c = commands; *c; c++) {
		if (word_length(*c) != word_length(opener) || !(*c)->name[word_length(*c)] ||
		    strncmp((*c)->name, opener->name, word_length(opener)) != 0)
			continue;
		strbuf_printf(out, "%s%s", separator, (*c)->name + word_length(*c) + 1);
		separator = " ";
	}
}

static void add_bash_groups(struct strbuf *out)
{
	for (const struct command *const *c = commands; *c; c++) {
		if (!opens_group(c))
			continue;
		strbuf_printf(out,
			      "\tif [ \"$command\" = %.*s ]; then\n"
			      "\t\tcommand=\"$command ${COMP_WORDS[2]}\"\n"
			      "\t\tif [ \"$COMP_CWORD\" = 2 ]; then\n"
			      "\t\t\tCOMPREPLY=($(compgen -W '",
			      (int)word_length(*c), (*c)->name);
		add_group_names(out, *c);
		strbuf_puts(out, "' -- \"$cur\"))\n\t\t\treturn\n\t\tfi\n\tfi\n");
	}
}

void completion_bash(struct strbuf *out)
{
	strbuf_puts(out, "# SPDX-License-Identifier: Apache-2.0\n"
			 "# Completion of onehop for bash; made by tools/generate.\n"
			 "# The words of the program's list $2 that begin with $3.\n"
			 "_onehop_words()\n{\n"
			 "\tCOMPREPLY=($(compgen -W \"$(\"$1\" completion \"$2\" 2>/dev/null | cut "
			 "-f1)\" -- \"$3\"))\n"
			 "}\n"
			 "# The same for the last word of a list with commas.\n"
			 "_onehop_list()\n{\n"
			 "\tlocal typed=\n\n"
			 "\tcase $3 in *,*) typed=${3%,*}, ;; esac\n"
			 "\t_onehop_words \"$1\" \"$2\" \"${3##*,}\"\n"
			 "\tCOMPREPLY=(\"${COMPREPLY[@]/#/$typed}\")\n"
			 "}\n"
			 "_onehop()\n{\n"
			 "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
			 "\tlocal command=${COMP_WORDS[1]} words=\n\n"
			 "\tCOMPREPLY=()\n"
			 "\t# --option=value is three words here.\n"
			 "\tif [ \"$cur\" = = ]; then\n"
			 "\t\tcur=\n"
			 "\telif [ \"$prev\" = = ]; then\n"
			 "\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
			 "\tfi\n"
			 "\tcase $command in -*) command=check ;; esac\n");
	add_bash_groups(out);
	strbuf_puts(out, "\tcase $command,$prev in\n");
	for (const struct command *const *c = commands; *c; c++) {
		for (const struct option *o = (*c)->options; !(*c)->hidden && o->name; o++)
			add_bash_value(out, *c, o);
	}
	strbuf_puts(out, "\thelp,help) COMPREPLY=($(compgen -W '");
	add_names(out);
	strbuf_puts(out, "' -- \"$cur\")); return ;;\n\tesac\n\tcase $command in\n");
	for (const struct command *const *c = commands; *c; c++) {
		if (!(*c)->hidden)
			add_bash_command(out, *c);
	}
	strbuf_puts(out, "\tesac\n"
			 "\tcase $COMP_CWORD,$cur in\n"
			 "\t1,* | *,-*) ;;\n"
			 "\t*) case $command in\n");
	for (const struct command *const *c = commands; *c; c++) {
		if (!(*c)->hidden)
			add_bash_arguments(out, *c);
	}
	strbuf_puts(out, "\tesac ;;\n"
			 "\tesac\n"
			 "\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
			 "\t\tcase $cur in -*) words+=' --version' ;; *) words='");
	add_names(out);
	strbuf_puts(out, "' ;; esac\n"
			 "\tfi\n"
			 "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
			 "}\n"
			 "complete -o filenames -F _onehop onehop\n");
}

/* ---- zsh ---- */

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

static void add_zsh_value(struct strbuf *out, const struct option *o)
{
	if (o->kind == OPTION_FLAG || o->optional)
		return;
	strbuf_puts(out, ":");
	add_zsh_text(out, o->arg);
	strbuf_puts(out, ":");
	if (takes_file(o)) {
		strbuf_puts(out, "_files");
	} else if (word_lists[o->words].name) {
		add_zsh_words(out, o->words);
	} else if (o->choices) {
		strbuf_puts(out, "(");
		add_choices(out, o);
		strbuf_puts(out, ")");
	}
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
		if (!opens_group(c))
			continue;
		strbuf_printf(out,
			      "\tif [[ $command == %.*s ]]; then\n"
			      "\t\tif (( CURRENT == 2 )); then\n"
			      "\t\t\tcompadd ",
			      (int)word_length(*c), (*c)->name);
		add_group_names(out, *c);
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
		if (!is_offered(c))
			continue;
		strbuf_printf(out, "\t\t'%.*s:", (int)word_length(*c), (*c)->name);
		if (opens_group(c))
			add_group_names(out, *c);
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

/* ---- fish ---- */

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

static void add_fish_value(struct strbuf *out, const struct option *o)
{
	if (o->kind == OPTION_FLAG || o->optional) {
		strbuf_puts(out, " -f");
	} else if (takes_file(o)) {
		strbuf_puts(out, " -rF");
	} else if (word_lists[o->words].name) {
		add_fish_words(out, o->words);
	} else if (o->choices) {
		strbuf_puts(out, " -xa '");
		add_choices(out, o);
		strbuf_putc(out, '\'');
	} else {
		strbuf_puts(out, " -x");
	}
}

/* The words of a command's name, as conditions: fish knows one at a time. */
static void add_fish_condition(struct strbuf *out, const struct command *c)
{
	size_t n = word_length(c);

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
	size_t n = word_length(c);

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
		if (opens_group(c)) {
			strbuf_printf(out,
				      "complete -c onehop -f -n __fish_use_subcommand -a %.*s -d '",
				      (int)word_length(*c), (*c)->name);
			add_group_names(out, *c);
			strbuf_puts(out, "'\n");
		}
		if (!(*c)->hidden)
			add_fish_command(out, *c);
	}
}

/* ---- the command: a person's, and the one that tools/generate and the completion files run ---- */

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
