/* SPDX-License-Identifier: Apache-2.0 */
#include "session/log_watch.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "capture/live.h"
#include "machine/machine.h"

#include <string.h>

static bool matters(const struct log_line *l)
{
	return l->kind == LOG_XID || l->kind == LOG_AER || l->kind == LOG_IOMMU_FAULT;
}

/* "0000:41:00", as NVRM writes it, is in "0000:41:00.0". */
static bool names_device(const struct log_watch *w, const char *text, int device)
{
	const char *key = w->keys[device];
	AUTO_FREE char *address = xstrndup(key, strcspn(key, "."));

	return strstr(text, address) != NULL;
}

static bool names_any(const struct log_watch *w, const char *text)
{
	for (size_t i = 0; i < w->n; i++)
		if (names_device(w, text, (int)i))
			return true;
	return false;
}

/* Tied to what ran: the steps whose devices it names, or all where it names none of the run. */
static void tie_line(struct log_watch *w, const char *text)
{
	bool named = names_any(w, text);

	for (size_t i = 0; i < w->running_n; i++) {
		const struct test_step *s = &w->running[i];
		bool all = s->initiator < 0;

		if (named && !all && !names_device(w, text, s->initiator) &&
		    !names_device(w, text, s->target))
			continue;
		*ARENA_PUSH(w->arena, w->lines, w->line_n) =
			(struct test_log_line){s->initiator, s->target,
					       arena_strdup(w->arena, text)};
	}
}

/* `tie` false: lines that are already there are not reported. */
static void read_log(struct log_watch *w, bool tie)
{
	const struct machine_request request = {.parts = MACHINE_LOG};
	struct source *s;
	struct machine *m;
	int64_t newest = w->time_us;

	if (!w->n || w->unread || machine_open_live(&request, &s) < 0)
		return;
	m = machine_read(s, &request);
	source_free(s);
	if (!fact_is(m->log_read, 1))
		w->unread = arena_strdup(w->arena,
					 m->log_read.from ? m->log_read.from : "not readable");
	for (size_t i = 0; i < m->log_n; i++) {
		const struct log_line *l = &m->log[i];
		bool fresh = l->time_us >= 0 ? l->time_us > w->time_us : i >= w->seen;

		if (tie && fresh && matters(l))
			tie_line(w, l->text);
		if (l->time_us > newest)
			newest = l->time_us;
	}
	w->seen = m->log_n;
	w->time_us = newest;
	machine_free(m);
}

void log_watch_open(struct log_watch *w, const char *const *keys, size_t n)
{
	*w = (struct log_watch){.keys = keys, .n = n, .time_us = -1, .arena = arena_new()};
	read_log(w, false);
}

void log_watch_begins(struct log_watch *w, const struct test_step *step)
{
	if (w->running_n < DEVICE_MAX)
		w->running[w->running_n++] = *step;
}

void log_watch_ended(struct log_watch *w, const struct test_step *step)
{
	read_log(w, true);
	for (size_t i = 0; i < w->running_n; i++) {
		if (w->running[i].phase != step->phase ||
		    w->running[i].initiator != step->initiator ||
		    w->running[i].target != step->target)
			continue;
		w->running[i] = w->running[--w->running_n];
		break;
	}
}

void log_watch_done(struct log_watch *w)
{
	arena_free(w->arena);
}
