/* SPDX-License-Identifier: Apache-2.0 */
#include "session/rdma_log.h"

#include "base/alloc.h"
#include "base/source.h"
#include "capture/live.h"

static void add(struct rdma_log *l, const char *text)
{
	if (l->n < RDMA_LOG_MAX)
		l->lines[l->n++] = arena_strdup(l->arena, text);
	else
		l->more++;
}

void rdma_log_take(struct rdma_log *l, const struct machine *m, bool old)
{
	int64_t newest = l->newest_us;

	if (!l->arena)
		l->arena = arena_new();
	if (!fact_is(m->log_read, 1) && !l->unread)
		l->unread = arena_strdup(l->arena,
					 m->log_read.from ? m->log_read.from : "not readable");
	for (size_t i = 0; i < m->log_n; i++) {
		const struct log_line *line = &m->log[i];
		bool fresh = line->time_us >= 0 ? line->time_us > l->newest_us : i >= l->seen;

		if (!old && fresh)
			add(l, line->text);
		if (line->time_us > newest)
			newest = line->time_us;
	}
	l->seen = m->log_n;
	l->newest_us = newest;
}

static void look(struct rdma_log *l, bool old)
{
	const struct machine_request request = {.parts = MACHINE_LOG};
	struct source *s;
	struct machine *m;

	if (l->unread || machine_open_live(&request, &s) < 0)
		return;
	m = machine_read(s, &request);
	source_free(s);
	rdma_log_take(l, m, old);
	machine_free(m);
}

void rdma_log_open(struct rdma_log *l)
{
	*l = (struct rdma_log){.opened = true, .newest_us = -1, .arena = arena_new()};
	look(l, true);
}

void rdma_log_read(struct rdma_log *l)
{
	if (l->opened)
		look(l, false);
}

void rdma_log_done(struct rdma_log *l)
{
	arena_free(l->arena);
	*l = (struct rdma_log){0};
}
