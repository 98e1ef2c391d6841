/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_watch.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/date.h"
#include "base/err.h"
#include "base/markup.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "fleet/fleet.h"
#include "report/json_layout.h"
#include "report/report_fleet.h"
#include "session/stop.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A longer wait is cut: a day. */
#define MOST_SECONDS 86400
#define NOTHING_READ 1 /* and the sentence is printed */

struct watch {
	const struct common_options *common;
	const struct check_choice *choice;
	json_t *last; /* what check --json said last */
	char *error;  /* why it could not be read at the last look; NULL: it could */
};

/* What check --json prints now; NULL with a sentence. */
static json_t *look(const struct watch *w)
{
	struct check_choice whole = *w->choice;
	struct check_session s;
	struct arena *a = arena_new();
	struct texts hosts;
	json_t *json = NULL;

	whole.whole = true;
	if (check_session_read(&s, &whole, &w->common->machine, a, &hosts) == 0 &&
	    check_session_judge(&s) == 0)
		json = report_check_json(s.diagnosis);
	check_session_done(&s);
	arena_free(a);
	return json;
}

/* ---- lines ---- */

/* 0, or -EPIPE if the reader went away, or another negative errno. */
static int flushed(bool written)
{
	return written && fflush(stdout) == 0 ? 0 : -(errno ? errno : EPIPE);
}

/* Takes the object. One line each, so that a reader can follow. */
static int print_object(json_t *o)
{
	AUTO_STRBUF struct strbuf line = {0};
	char when[DATE_SIZE];
	int r;

	date_now(when);
	json_object_set_new(o, "time", json_string(when));
	r = json_line(&line, o);
	json_decref(o);
	return flushed(r == 0 && puts(strbuf_str(&line)) >= 0);
}

static int print_line(const char *text)
{
	AUTO_FREE char *clean = xstrdup(text);
	char when[DATE_SIZE];

	text_clean(clean);
	date_now(when);
	return flushed(printf("%s %s\n", when, clean) >= 0);
}

static int print_change(const struct watch *w, const struct fleet_change *c)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (w->common->json)
		return print_object(report_change_json(c));
	report_change(&b, c);
	return print_line(strbuf_str(&b));
}

static int print_changes(const struct watch *w, const json_t *now)
{
	struct fleet *f = fleet_new();
	struct fleet_change *changes;
	size_t n = 0;
	int r = 0;

	if (fleet_add_check(f, "before", w->last) == 0 && fleet_add_check(f, "now", now) == 0) {
		changes = fleet_changes(f, fleet_host(f, "before"), fleet_host(f, "now"), &n);
		for (size_t i = 0; r == 0 && i < n; i++)
			r = print_change(w, &changes[i]);
	}
	fleet_free(f);
	return r;
}

static int print_log(const struct watch *w, const json_t *now)
{
	const json_t *lines;
	size_t i = fleet_new_log(w->last, now, &lines);
	int r = 0;

	for (; r == 0 && i < json_array_size(lines); i++) {
		json_t *line = json_array_get(lines, i);

		if (w->common->json)
			r = print_object(json_pack("{s:O}", "log", line));
		else
			r = print_line(json_string_value(json_object_get(line, "text")));
	}
	return r;
}

/* ---- the loop ---- */

static int print_verdict(const struct watch *w, json_t *now)
{
	json_t *verdict = json_object_get(now, "verdict");

	if (w->common->json)
		return print_object(json_pack("{s:O}", "verdict", verdict));
	return print_line(json_string_value(json_object_get(verdict, "sentence")));
}

/* NULL: it can be read again. Once, however many looks it lasts. */
static int print_error(struct watch *w, const char *error)
{
	AUTO_FREE char *line = error ? xprintf("cannot be read: %s", error) : NULL;

	if (error ? w->error && strcmp(error, w->error) == 0 : !w->error)
		return 0;
	free(w->error);
	w->error = error ? xstrdup(error) : NULL;
	if (w->common->json)
		return print_object(json_pack("{s:s?}", "error", error));
	return print_line(line ? line : "can be read again");
}

static int look_again(struct watch *w)
{
	json_t *now = look(w);
	int r;

	if (!now && !w->last)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg()), NOTHING_READ;
	if (!now)
		return print_error(w, err_msg());
	r = print_error(w, NULL);
	if (r == 0)
		r = w->last ? print_changes(w, now) : print_verdict(w, now);
	if (r == 0 && w->last)
		r = print_log(w, now);
	json_decref(w->last);
	w->last = now;
	return r;
}

/* False: it is time to stop. */
static bool wait_for(int stop, int seconds)
{
	/* Of the output no event is wanted, so only an error is reported: nobody reads it any more. */
	struct pollfd p[] = {{.fd = stop, .events = POLLIN}, {.fd = STDOUT_FILENO}};

	return poll(p, 2, (seconds < MOST_SECONDS ? seconds : MOST_SECONDS) * 1000) == 0;
}

int check_watch(int seconds, const struct common_options *common, const struct check_choice *choice)
{
	struct watch w = {.common = common, .choice = choice};
	AUTO_CLOSE int stop = stop_signals_open();
	int r;

	if (stop < 0)
		return fail(EXIT_NOT_JUDGED, "cannot wait for signals: %s", strerror(-stop));
	do
		r = look_again(&w);
	while (r == 0 && wait_for(stop, seconds));
	json_decref(w.last);
	free(w.error);
	/* Who reads it may go away: `onehop check --watch | head`. */
	if (r == 0 || r == -EPIPE)
		return EXIT_OK;
	return r == NOTHING_READ ? EXIT_NOT_JUDGED
				 : fail(EXIT_REFUSED, "cannot write the output: %s", strerror(-r));
}
