/* SPDX-License-Identifier: Apache-2.0 */
/* Completions for bash, made from the tables of commands and options. */
#include "cli/completion.h"

#include "base/strbuf.h"

static void add_flag(struct strbuf *b, const struct option *o)
{
	if (o->letter)
		strbuf_printf(b, " -%c", o->letter);
	strbuf_printf(b, " %s%s", o->one_dash ? "-" : "--", o->name);
}

static void add_bash_words(struct strbuf *out, enum words words)
{
	strbuf_printf(out, " _onehop_%s \"$1\" %s \"$cur\";",
		      word_lists[words].commas ? "list" : "words", word_lists[words].name);
}

static const struct completion_values values = {
	.file = " COMPREPLY=($(compgen -f -- \"$cur\"));",
	.choices = " COMPREPLY=($(compgen -W '",
	.choices_end = "' -- \"$cur\"));",
	.add_words = add_bash_words,
};

static void add_bash_value(struct strbuf *out, const struct command *c, const struct option *o)
{
	if (o->kind == OPTION_FLAG || o->optional || o->hidden)
		return;
	strbuf_printf(out, "\t'%s',%s%s)", c->name, o->one_dash ? "-" : "--", o->name);
	completion_add_value(out, o, &values);
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

static void add_names(struct strbuf *out)
{
	for (const struct command *const *c = commands; *c; c++) {
		if (completion_is_offered(c))
			strbuf_printf(out, "%s%.*s", c == commands ? "" : " ",
				      (int)completion_first_word(*c), (*c)->name);
	}
}

static void add_bash_groups(struct strbuf *out)
{
	for (const struct command *const *c = commands; *c; c++) {
		if (!completion_opens_group(c))
			continue;
		strbuf_printf(out,
			      "\tif [ \"$command\" = %.*s ]; then\n"
			      "\t\tcommand=\"$command ${COMP_WORDS[2]}\"\n"
			      "\t\tif [ \"$COMP_CWORD\" = 2 ]; then\n"
			      "\t\t\tCOMPREPLY=($(compgen -W '",
			      (int)completion_first_word(*c), (*c)->name);
		completion_add_group(out, *c);
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
