/* SPDX-License-Identifier: Apache-2.0 */
#include "session/log_tail.h"

#include "base/alloc.h"
#include "base/source.h"
#include "capture/live.h"

void log_tail_open(struct log_tail *t)
{
	*t = (struct log_tail){.newest_us = -1, .arena = arena_new()};
}

void log_tail_take(struct log_tail *t, const struct machine *m, log_tail_hear *hear, void *context)
{
	int64_t newest = t->newest_us;

	if (!fact_is(m->log_read, 1))
		t->unread = arena_strdup(t->arena,
					 m->log_read.from ? m->log_read.from : "not readable");
	for (size_t i = 0; i < m->log_n; i++) {
		const struct log_line *l = &m->log[i];

		if (hear && (l->time_us >= 0 ? l->time_us > t->newest_us : i >= t->seen))
			hear(context, l);
		if (l->time_us > newest)
			newest = l->time_us;
	}
	t->seen = m->log_n;
	t->newest_us = newest;
}

void log_tail_read(struct log_tail *t, log_tail_hear *hear, void *context)
{
	const struct machine_request request = {.parts = MACHINE_LOG};
	struct source *s;
	struct machine *m;

	if (t->unread || machine_open_live(&request, &s) < 0)
		return;
	m = machine_read(s, &request);
	source_free(s);
	log_tail_take(t, m, hear, context);
	machine_free(m);
}

void log_tail_done(struct log_tail *t)
{
	arena_free(t->arena);
	*t = (struct log_tail){0};
}
