/* SPDX-License-Identifier: Apache-2.0 */
#include "session/log_watch.h"

#include "base/alloc.h"
#include "base/cleanup.h"

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
static void tie_line(void *context, const struct log_line *line)
{
	struct log_watch *w = context;
	bool named = names_any(w, line->text);

	if (!matters(line))
		return;
	for (size_t i = 0; i < w->running_n; i++) {
		const struct test_step *s = &w->running[i];
		bool all = s->initiator < 0;

		if (named && !all && !names_device(w, line->text, s->initiator) &&
		    !names_device(w, line->text, s->target))
			continue;
		*ARENA_PUSH(w->tail.arena, w->lines, w->line_n) =
			(struct test_log_line){s->initiator, s->target,
					       arena_strdup(w->tail.arena, line->text)};
	}
}

void log_watch_open(struct log_watch *w, const char *const *keys, size_t n)
{
	*w = (struct log_watch){.keys = keys, .n = n};
	log_tail_open(&w->tail);
	if (n)
		log_tail_read(&w->tail, NULL, NULL);
}

void log_watch_begins(struct log_watch *w, const struct test_step *step)
{
	if (w->running_n < DEVICE_MAX)
		w->running[w->running_n++] = *step;
}

void log_watch_ended(struct log_watch *w, const struct test_step *step)
{
	if (w->n)
		log_tail_read(&w->tail, tie_line, w);
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
	log_tail_done(&w->tail);
}
