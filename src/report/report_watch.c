/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_watch.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/date.h"
#include "base/markup.h"
#include "base/strbuf.h"
#include "fleet/fleet.h"
#include "report/json_layout.h"
#include "report/report_fleet.h"

/* Takes the object. */
static void add_object(struct strbuf *out, json_t *o)
{
	char when[DATE_SIZE];

	date_now(when);
	json_object_set_new(o, "time", json_string(when));
	if (json_line(out, o) == 0)
		strbuf_putc(out, '\n');
	json_decref(o);
}

static void add_line(struct strbuf *out, const char *text)
{
	AUTO_FREE char *clean = xstrdup(text);
	char when[DATE_SIZE];

	text_clean(clean);
	date_now(when);
	strbuf_printf(out, "%s %s\n", when, clean);
}

void report_watch_begin(struct strbuf *out, const json_t *now, bool json)
{
	json_t *verdict = json_object_get(now, "verdict");

	if (json)
		add_object(out, json_pack("{s:O}", "verdict", verdict));
	else
		add_line(out, json_string_value(json_object_get(verdict, "sentence")));
}

static void add_change(struct strbuf *out, const struct fleet_change *c, bool json)
{
	AUTO_STRBUF struct strbuf line = {0};

	if (json) {
		add_object(out, report_change_json(c));
		return;
	}
	report_change(&line, c);
	add_line(out, strbuf_str(&line));
}

static void add_facts(struct strbuf *out, const json_t *last, const json_t *now, bool json)
{
	struct fleet *f = fleet_new();
	struct fleet_change *changes;
	size_t n = 0;

	if (fleet_add_check(f, "before", last) == 0 && fleet_add_check(f, "now", now) == 0) {
		changes = fleet_changes(f, fleet_host(f, "before"), fleet_host(f, "now"), &n);
		for (size_t i = 0; i < n; i++)
			add_change(out, &changes[i], json);
	}
	fleet_free(f);
}

void report_watch_changes(struct strbuf *out, const json_t *last, const json_t *now, bool json)
{
	const json_t *log;
	size_t i = fleet_new_log(last, now, &log);

	add_facts(out, last, now, json);
	for (; i < json_array_size(log); i++) {
		json_t *line = json_array_get(log, i);

		if (json)
			add_object(out, json_pack("{s:O}", "log", line));
		else
			add_line(out, json_string_value(json_object_get(line, "text")));
	}
}

void report_watch_error(struct strbuf *out, const char *error, bool json)
{
	AUTO_FREE char *line = error ? xprintf("cannot be read: %s", error) : NULL;

	if (json)
		add_object(out, json_pack("{s:s?}", "error", error));
	else
		add_line(out, line ? line : "can be read again");
}
