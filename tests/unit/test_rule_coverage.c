/* SPDX-License-Identifier: Apache-2.0 */
/* tests/machines/rules.txt: for each rule a machine where it is bad and one where it is not. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "check_text.h"
#include "diagnose/diagnose.h"
#include "ingest/ingest.h"
#include "ingest/observe.h"
#include "open_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MACHINES "tests/machines"
#define RESULTS  "tests/figures"
#define MAX_ROWS 512

/* Of a real machine or a guest with a real kernel, so that rules are not only tested by what their
 * author imagined. */
#define REAL_BAD_CASES 15

struct row {
	char rule[64], bad[96], good[96];
	unsigned line;
};

static struct row rows[MAX_ROWS];
static size_t row_n;

/* What is wrong, all of it, so that one run tells everything. */
static struct strbuf problems;

static void problem(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void problem(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_puts(&problems, "\n  ");
	strbuf_vprintf(&problems, fmt, ap);
	va_end(ap);
}

static void assert_no_problems(void)
{
	bool any = problems.len;

	if (any)
		print_error("%s\n", problems.text);
	strbuf_done(&problems); /* fail() does not return */
	if (any)
		fail();
}

static int load_rows(void **state)
{
	AUTO_FREE char *text = NULL;
	struct source *s = NULL;
	const char *line = NULL;
	unsigned number = 0;
	size_t size, n;

	(void)state;
	if (source_open_root(".", NULL, NULL, &s) < 0)
		return -1;
	source_read(s, &text, &size, MACHINES "/rules.txt");
	source_free(s);
	if (!text)
		return -1;
	while (text_next_line(&line, &n, text)) {
		struct row *r = &rows[row_n];
		char buf[256];

		number++;
		text_copy(buf, sizeof(buf), line, n);
		if (!*text_trim(buf) || buf[0] == '#')
			continue;
		if (row_n == MAX_ROWS ||
		    sscanf(buf, "%63s %95s %95s", r->rule, r->bad, r->good) != 3) {
			print_error(MACHINES
				    "/rules.txt:%u: is not 'rule-id bad-machine good-machine'\n",
				    number);
			return -1;
		}
		r->line = number;
		row_n++;
	}
	return 0;
}

static const struct row *row_of(const char *rule)
{
	for (size_t i = 0; i < row_n; i++)
		if (strcmp(rows[i].rule, rule) == 0)
			return &rows[i];
	return NULL;
}

/* ---- a machine's diagnosis ---- */

struct judged {
	struct machine *machine;
	struct topology *topology;
	struct diagnosis *diagnosis;
};

/* "MACHINE+FILE": with what a result or log shows besides. */
static char *machine_path(const char *name)
{
	return xprintf(MACHINES "/%.*s", (int)strcspn(name, "+"), name);
}

static int observe(const char *name, struct machine *m)
{
	const char *file = strchr(name, '+');
	AUTO_FREE char *path = file ? xprintf(RESULTS "/%s", file + 1) : NULL;

	return path ? observe_files((const char *const[]){path}, 1, m) : 0;
}

static int judge(const char *name, struct judged *ret)
{
	AUTO_FREE char *path = machine_path(name);
	const char *const from[] = {path};
	int r = ingest_machine(from, 1, NULL, 0, MACHINE_ALL, &ret->machine);

	if (r < 0)
		return r;
	r = observe(name, ret->machine);
	if (r < 0) {
		machine_free(ret->machine);
		return r;
	}
	ret->topology = topology_new(ret->machine);
	ret->diagnosis = diagnose(ret->topology);
	return 0;
}

static void judged_free(struct judged *j)
{
	diagnosis_free(j->diagnosis);
	topology_free(j->topology);
	machine_free(j->machine);
}

static const struct outcome *outcome_of(const struct diagnosis *d, const char *rule)
{
	for (size_t i = 0; i < d->outcome_n; i++)
		if (strcmp(d->outcomes[i].rule->id, rule) == 0)
			return &d->outcomes[i];
	return NULL;
}

static void compare(const struct row *r, const char *machine, bool want_bad)
{
	const struct outcome *o;
	struct judged j;

	if (judge(machine, &j) < 0) {
		problem("rules.txt:%u: %s", r->line, err_msg());
		return;
	}
	o = outcome_of(j.diagnosis, r->rule);
	if (o && (o->verdict == VERDICT_BAD) != want_bad)
		problem("rules.txt:%u: %s is %s on %s%s%s", r->line, r->rule,
			verdict_word(o->verdict), machine, o->why ? ": " : "",
			o->why ? o->why : "");
	if (o && !want_bad && o->verdict != VERDICT_OK)
		problem("rules.txt:%u: %s should be ok on %s, and is %s%s%s", r->line, r->rule,
			machine, verdict_word(o->verdict), o->why ? ": " : "",
			o->why ? o->why : "");
	judged_free(&j);
}

/* ---- tests ---- */

static void every_rule_has_machines(void **state)
{
	(void)state;
	FOR_EACH_RULE (r)
		if (!row_of(r->id))
			problem("%s has no line in rules.txt", r->id);
	for (size_t i = 0; i < row_n; i++)
		if (!rule_find(rows[i].rule))
			problem("rules.txt:%u: there is no rule %s", rows[i].line, rows[i].rule);
	assert_no_problems();
}

static void rules_are_bad_where_they_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < row_n; i++)
		compare(&rows[i], rows[i].bad, true);
	assert_no_problems();
}

static void rules_are_fine_where_they_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < row_n; i++)
		compare(&rows[i], rows[i].good, false);
	assert_no_problems();
}

static bool is_real(const char *machine)
{
	AUTO_FREE char *path = machine_path(machine);
	AUTO_FREE char *note = NULL;
	struct source *s = NULL;
	size_t size;
	bool real = false;

	if (strchr(machine, '+') || open_recording(path, &s) < 0)
		return false;
	if (source_read(s, &note, &size, "note.txt") == 0)
		real = text_starts_with(note, "origin: real") ||
		       text_starts_with(note, "origin: guest");
	source_free(s);
	return real;
}

static void enough_bad_cases_are_real(void **state)
{
	size_t real = 0;

	(void)state;
	for (size_t i = 0; i < row_n; i++)
		real += is_real(rows[i].bad);
	if (real < REAL_BAD_CASES)
		fail_msg(
			"%zu rules have their bad case from a real or guest machine; %d are wanted",
			real, REAL_BAD_CASES);
}

/* A rule that finds something says all that a person needs. */
static void findings_are_complete(void **state)
{
	(void)state;
	for (size_t i = 0; i < row_n; i++) {
		struct judged j;

		if (judge(rows[i].bad, &j) < 0)
			continue;
		for (size_t k = 0; k < j.diagnosis->finding_n; k++) {
			const struct finding *f = &j.diagnosis->findings[k];

			if (strcmp(f->rule->id, rows[i].rule) != 0)
				continue;
			if (!f->subject || !f->sentence || !f->remedy || !*f->sentence ||
			    !*f->remedy)
				problem("%s on %s: a finding lacks subject, sentence or remedy",
					f->rule->id, rows[i].bad);
			if (f->remedy && bare_command(f->remedy))
				problem("%s on %s: a command without backquotes: %s", f->rule->id,
					rows[i].bad, bare_command(f->remedy));
			if (!f->evidence_n)
				problem("%s on %s: a finding without evidence", f->rule->id,
					rows[i].bad);
		}
		judged_free(&j);
	}
	assert_no_problems();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_has_machines),
		cmocka_unit_test(rules_are_bad_where_they_should),
		cmocka_unit_test(rules_are_fine_where_they_should),
		cmocka_unit_test(enough_bad_cases_are_real),
		cmocka_unit_test(findings_are_complete),
	};

	return cmocka_run_group_tests(tests, load_rows, NULL);
}
