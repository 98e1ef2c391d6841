/* SPDX-License-Identifier: Apache-2.0 */
/* --help, help and version, made from the tables. */
#include "cli/command.h"

#include "base/strbuf.h"
#include "report/document.h"

static const char *const exit_codes[][2] = {
	{"0", "success"},
	{"1", "a finding of severity warning or above (--fail-on, --ignore), a pair that "
	      "--require names is not direct, something to do (fix, unlock), a pair without "
	      "P2P (log), a test failed, or a result regressed"},
	{"2", "wrong usage, refused, or stopped by Ctrl-C"},
	{"3", "nothing could be judged (--require: unknown), invalid input, or out of "
	      "memory"},
	{"4", "a change failed"},
};

static void add_usage(struct document *out, const struct command *c)
{
	document_paragraph(out, STYLE_STRONG, 0, "usage: onehop %s [OPTION]...%s%s", c->name,
			   *c->args ? " " : "", c->args);
}

static void add_option_row(struct document *out, const struct option *o)
{
	struct strbuf b AUTO_STRBUF = {0};

	if (o->letter)
		strbuf_printf(&b, "-%c, ", o->letter);
	strbuf_printf(&b, "%s%s", o->one_dash ? "-" : "--", o->name);
	if (o->arg)
		strbuf_printf(&b, o->optional ? "[=%s]" : " %s", o->arg);
	document_row(out);
	document_cell(out, STYLE_PLAIN, "%s", strbuf_str(&b));
	document_cell(out, STYLE_PLAIN, "%s", o->help);
}

static void add_command_help(struct document *out, const struct command *c)
{
	add_usage(out, c);
	document_blank(out);
	document_paragraph(out, STYLE_PLAIN, 0, "%s", c->about);
	document_blank(out);
	document_table(out, 2, 2, 2);
	for (const struct option *o = c->options; o->name; o++) {
		if (!o->hidden)
			add_option_row(out, o);
	}
}

/* All, or those of a group. */
static void add_commands(struct document *out, const char *group)
{
	const char *rest;

	document_table(out, 2, 2, 2);
	for (const struct command *const *c = commands; *c; c++) {
		if ((*c)->hidden || (group && !command_in_group(*c, group, &rest)))
			continue;
		document_row(out);
		document_cell(out, STYLE_STRONG, "%s", (*c)->name);
		document_cell(out, STYLE_PLAIN, "%s", (*c)->summary);
	}
}

static void add_group_help(struct document *out, const char *group)
{
	document_paragraph(out, STYLE_STRONG, 0, "usage: onehop %s COMMAND [OPTION]...", group);
	document_blank(out);
	add_commands(out, group);
}

static void add_program_help(struct document *out)
{
	document_paragraph(out, STYLE_STRONG, 0, "usage: onehop [COMMAND] [OPTION]...");
	document_blank(out);
	document_paragraph(
		out, STYLE_PLAIN, 0,
		"Shows whether the GPUs and RDMA NICs of a machine can access each other's "
		"memory directly, what blocks them, and what to do. Only fix --apply, fix "
		"--confirm, unlock --apply, unlock --tree DIR --revert and undo change anything. "
		"record, --html, --svg and --textfile write the file that they are given; test, "
		"bench and tune keep their results. Only unlock --download and runs over several "
		"hosts use the network. Without a command, onehop runs check.");
	document_blank(out);
	add_commands(out, NULL);
	document_blank(out);
	document_paragraph(out, STYLE_PLAIN, 0, "Exit codes:");
	document_table(out, 2, 2, 2);
	for (size_t i = 0; i < sizeof(exit_codes) / sizeof(exit_codes[0]); i++) {
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%s", exit_codes[i][0]);
		document_cell(out, STYLE_PLAIN, "%s", exit_codes[i][1]);
	}
	document_blank(out);
	document_paragraph(out, STYLE_PLAIN, 0,
			   "onehop COMMAND --help explains a command; onehop --formats lists "
			   "the texts and files that --from and other options read.");
}

/* ---- the commands ---- */

int print_help(const struct command *c, const struct common_options *common)
{
	struct document *d = document_new();

	if (c)
		add_command_help(d, c);
	else
		add_program_help(d);
	return show_document(d, common, EXIT_OK);
}

struct help_options {
	struct common_options common;
};

static const struct option help_table[] = {COMMON_COLOR(struct help_options),
					   COMMON_WIDTH(struct help_options),
					   COMMON_HELP(struct help_options), OPTIONS_END};

int print_group_help(const char *group, const struct common_options *common)
{
	struct document *d = document_new();

	add_group_help(d, group);
	return show_document(d, common, EXIT_OK);
}

static int run_help(const void *options, const char *const *args)
{
	const struct help_options *o = options;
	size_t used, n = args[0] ? 1 + (args[1] != NULL) : 0;
	const struct command *c = command_find(args, n, &used);

	if (n == 1 && !c && command_is_group(args[0]))
		return print_group_help(args[0], &o->common);
	return args[0] && !c ? refuse_command(args, n) : print_help(c, &o->common);
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

int print_formats(bool markdown)
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
