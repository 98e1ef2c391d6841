/* SPDX-License-Identifier: Apache-2.0 */
/* onehop history: what fixes were made on this system, and what became of them. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cli/fix_context.h"

#include <string.h>

struct history_options {
	struct common_options common;
	const char *root;
};

/* clang-format off */
#define AT(member) offsetof(struct history_options, member)
static const struct option history_table[] = {
	COMMON_ROOT(struct history_options),
	COMMON_JSON(struct history_options),
	COMMON_CSV(struct history_options),
	COMMON_PAGE(struct history_options),
	COMMON_COLOR(struct history_options),
	COMMON_WIDTH(struct history_options),
	OPT_FLAG("verbose", common.verbose, "with N: show whole files", .letter = 'v'),
	COMMON_HELP(struct history_options),
	OPTIONS_END,
};
/* clang-format on */

/* The lines of a fix's log, each an object; a last line that a power cut tore is left out. */
static json_t *read_log(struct fix_context *s, unsigned number)
{
	AUTO_FREE char *path = xprintf(JOURNAL_FOLDER "/fixes/%u/log.jsonl", number), *text = NULL;
	json_t *all = json_array();
	size_t size;

	if (host_read(&s->session.host, path, &text, &size) < 0)
		return all;
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");
		json_t *one = json_loadb(line, n, 0, NULL);

		if (one)
			json_array_append_new(all, one);
		line += n + (line[n] == '\n');
	}
	return all;
}

/* What is damaged is shown, and makes the result not a success. */
static enum exit_code judge(const struct history_report *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->entries[i].damage && !journal_is_over(&r->entries[i]))
			return EXIT_NOT_JUDGED;
	return EXIT_OK;
}

static int print_history(struct fix_context *s, const struct history_report *r, unsigned number)
{
	const struct journal_entry *e = number ? change_session_entry(&s->session, number) : NULL;
	struct history_report one = *r;
	AUTO_STRBUF struct strbuf csv = {0};
	struct document *d;

	if (number && !e)
		return fail(EXIT_REFUSED, "there is no fix %u (see: onehop history)", number);
	if (e) {
		one.entries = e;
		one.logs = &r->logs[e - r->entries];
		one.n = 1;
	}
	if (s->common->json)
		return print_json(report_history_json(&one), judge(&one));
	if (prints_data(s->common)) {
		report_history_csv(&csv, &one);
		return print_text(&csv, judge(&one));
	}
	d = new_document(s->common);
	if (e)
		report_history_entry(d, &one, 0);
	else
		report_history(d, &one);
	return show_document(d, s->common, judge(&one));
}

static int show_history(struct fix_context *s, unsigned number, const void *options)
{
	struct history_report r = {.root = s->session.root,
				   .boot_id = s->session.boot_id,
				   .verbose = s->common->verbose};
	AUTO_FREE json_t **logs = NULL;
	int code;

	(void)options;
	if (change_session_read_journal(&s->session) < 0)
		return fail(EXIT_REFUSED, "%s", s->session.journal_unread);
	r.entries = s->session.journal;
	r.n = s->session.journal_n;
	logs = xcalloc(r.n + 1, sizeof(json_t *));
	for (size_t i = 0; i < r.n; i++)
		logs[i] = read_log(s, r.entries[i].number);
	r.logs = logs;
	code = print_history(s, &r, number);
	for (size_t i = 0; i < r.n; i++)
		json_decref(logs[i]);
	return code;
}

static int run_history(const void *options, const char *const *args)
{
	const struct history_options *o = options;

	return fix_context_with_number(&o->common, o->root, args[0], show_history, NULL);
}

const struct command command_history = {
	.name = "history",
	.args = "[N]",
	.words = WORDS_FIXES,
	.summary = "list the fixes and their state",
	.about = "Lists the fixes, or shows all of fix N: each step with the old and the new "
		 "content, its result, and what programs printed.",
	.options = history_table,
	.size = sizeof(struct history_options),
	.max_args = 1,
	.run = run_history,
};
