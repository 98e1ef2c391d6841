/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_print.h"

#include "base/alloc.h"
#include "base/date.h"
#include "base/err.h"
#include "diagnose/symptom.h"
#include "session/device_choice.h"

#include <limits.h>
#include <stdio.h>

/*
 * A recording does not state whose it is and when it was made, so that only the host itself has a
 * name and a time.
 */
static json_t *check_json(const struct check_session *s)
{
	json_t *json = report_check_json(s->diagnosis);
	char host[HOST_NAME_MAX + 1] = "", when[DATE_SIZE];

	if (s->machine->recorded)
		return json;
	this_host(host, sizeof(host));
	date_now(when);
	json_object_set_new(json, "host", json_string(host));
	json_object_set_new(json, "when", json_string(when));
	return json;
}

static int print_check_json(const struct check_session *s)
{
	json_t *json = check_json(s);

	if (s->o->require.n)
		json_object_set_new(json, "requirements",
				    report_requirements_json(&s->requirements));
	return print_json(json, verdict_code(s->verdict));
}

static void add_report(struct document *out, const struct check_session *s,
		       const struct planned *planned, const struct common_options *common,
		       bool quiet)
{
	const struct check_fixes fixes = {.plan = planned->plan,
					  .changes = &planned->changes,
					  .observed = s->from.observed.n > 0,
					  .no_store = s->from.no_store};

	if (quiet) {
		report_verdict(out, s->diagnosis);
		report_weighed(out, s->machine);
	} else {
		report_check(out, s->diagnosis, &fixes, common->verbose);
	}
	report_requirements(out, &s->requirements);
}

static int print_check(const struct check_session *s, const struct common_options *common,
		       bool quiet)
{
	struct planned planned = {0};
	struct document *out;
	int r;

	if (common->json)
		return print_check_json(s);
	if (check_session_plan(s, &planned) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	out = new_document(common);
	add_report(out, s, &planned, common, quiet);
	r = show_document(out, common, verdict_code(s->verdict));
	planned_done(&planned);
	return r;
}

static int print_questions(const struct check_session *s, const struct common_options *common)
{
	struct document *out = new_document(common);

	report_questions(out, s->diagnosis);
	return show_document(out, common, EXIT_OK);
}

static int print_symptom(const struct check_session *s, const struct common_options *common,
			 const struct check_view *v)
{
	int symptom = v->symptom - 1, pair[2] = {-1, -1};
	struct document *out;
	json_t *json;

	if (v->pair && name_pair(s->machine, "--pair", v->pair, pair) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (common->json) {
		json = check_json(s);
		json_object_set_new(json, "symptom",
				    report_symptom_json(s->diagnosis, symptom, pair[0], pair[1]));
		return print_json(json, EXIT_OK);
	}
	out = new_document(common);
	report_symptom(out, s->diagnosis, symptom, pair[0], pair[1]);
	return show_document(out, common, EXIT_OK);
}

static int print_session(struct check_session *s, const struct common_options *common,
			 const struct check_view *v)
{
	if (check_session_judge(s) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (v->ask)
		return print_questions(s, common);
	return v->symptom ? print_symptom(s, common, v) : print_check(s, common, v->quiet);
}

static int check_from(const struct check_choice *o, const struct machine_choice *from,
		      const struct common_options *common, const struct check_view *v,
		      struct arena *a, struct texts *ret_hosts)
{
	struct check_session s;
	int r = check_session_read(&s, o, from, a, ret_hosts);

	r = r < 0          ? fail(EXIT_NOT_JUDGED, "%s", err_msg())
	    : ret_hosts->n ? EXIT_OK
			   : print_session(&s, common, v);
	check_session_done(&s);
	return r;
}

/* Texts of several hosts: each is a machine by itself. */
static int check_each(const struct check_choice *o, const struct common_options *common,
		      const struct check_view *v, struct arena *a, const struct texts *hosts)
{
	struct machine_choice from = common->machine;
	int worst = EXIT_OK;
	struct texts none;

	for (size_t i = 0; i < hosts->n; i++) {
		from.host = hosts->items[i];
		if (i)
			putchar('\n');
		/* The whole report begins with its name. */
		if (v->quiet || v->ask || v->symptom)
			printf("%s:\n", hosts->items[i]);
		worst = worse_code(worst, check_from(o, &from, common, v, a, &none));
	}
	return worst;
}

int check_print(const struct check_choice *o, const struct common_options *common,
		const struct check_view *v)
{
	struct arena *a = arena_new();
	struct texts hosts = {0};
	int r = check_from(o, &common->machine, common, v, a, &hosts);

	if (hosts.n)
		r = check_each(o, common, v, a, &hosts);
	arena_free(a);
	return r;
}
