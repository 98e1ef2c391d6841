/* SPDX-License-Identifier: Apache-2.0 */
#include "session/rdma_log.h"

#include "base/alloc.h"

static void add(void *context, const struct log_line *line)
{
	struct rdma_log *l = context;

	if (l->n < RDMA_LOG_MAX)
		l->lines[l->n++] = arena_strdup(l->tail.arena, line->text);
	else
		l->more++;
}

void rdma_log_take(struct rdma_log *l, const struct machine *m)
{
	log_tail_take(&l->tail, m, add, l);
}

void rdma_log_open(struct rdma_log *l)
{
	*l = (struct rdma_log){.opened = true};
	log_tail_open(&l->tail);
	log_tail_read(&l->tail, NULL, NULL);
}

void rdma_log_read(struct rdma_log *l)
{
	if (l->opened)
		log_tail_read(&l->tail, add, l);
}

void rdma_log_done(struct rdma_log *l)
{
	log_tail_done(&l->tail);
	*l = (struct rdma_log){0};
}
