/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_watch.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "report/report_watch.h"
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

/* 0, or -EPIPE if the reader went away, or another negative errno. */
static int print(const struct strbuf *lines)
{
	bool written = fwrite(strbuf_str(lines), 1, lines->len, stdout) == lines->len;

	return written && fflush(stdout) == 0 ? 0 : -(errno ? errno : EPIPE);
}

/* What cannot be read is said once, however many looks that lasts. */
static bool is_news(const struct watch *w, const char *error)
{
	return error ? !w->error || strcmp(error, w->error) != 0 : w->error != NULL;
}

static int look_again(struct watch *w)
{
	AUTO_STRBUF struct strbuf lines = {0};
	json_t *now = look(w);
	const char *error = now ? NULL : err_msg();

	if (!now && !w->last)
		return fail(EXIT_NOT_JUDGED, "%s", error), NOTHING_READ;
	if (is_news(w, error)) {
		report_watch_error(&lines, error, w->common->json);
		free(w->error);
		w->error = error ? xstrdup(error) : NULL;
	}
	if (now && w->last)
		report_watch_changes(&lines, w->last, now, w->common->json);
	else if (now)
		report_watch_begin(&lines, now, w->common->json);
	if (now) {
		json_decref(w->last);
		w->last = now;
	}
	return lines.len ? print(&lines) : 0;
}

/* False: it is time to stop. */
static bool wait_for(int stop, int seconds)
{
	/*
	 * Of the output no event is wanted, so only an error is reported: nobody reads it any more.
	 */
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
