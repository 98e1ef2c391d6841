// SPDX-License-Identifier: Apache-2.0
/* Faults between host devices that plain copies and single kernels do not meet: caches that live too long,
 * addresses of graphs, mappings that outlive their memory. */
#include "device/host_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- within a kernel ---- */

struct native_flaw host_flaw_of(const struct host_window *w, const struct host_op *op)
{
	struct native_flaw flaw = {NATIVE_FLAW_NONE, (u64)w->base, (u64)w->base + w->size};

	if (w->fault == FAULT_CACHED)
		flaw.kind = NATIVE_CACHED;
	else if (w->fault == FAULT_OVERTAKE)
		flaw.kind = NATIVE_OVERTAKE;
	else if (w->fault == FAULT_LOSSY)
		flaw.kind = NATIVE_LOSSY;
	else if (w->fault == FAULT_REPLAY && op->replayed)
		flaw.kind = NATIVE_ASTRAY;
	return flaw;
}

/* ---- from kernel to kernel ---- */

/* Pages that have not been read yet become what there is. */
static void read_pages(struct host_window *w, uint64_t at, uint64_t bytes)
{
	for (uint64_t page = at / HOST_PAGE; page * HOST_PAGE < at + bytes; page++) {
		if (w->was_read[page])
			continue;
		memcpy(w->late + page * HOST_PAGE, w->base + page * HOST_PAGE, HOST_PAGE);
		w->was_read[page] = 1;
	}
}

/* Where a kernel's arguments hold from where it reads. */
static const struct {
	bool there;
	size_t offset;
} origins[KERNEL_N] = {
	[KERNEL_copy] = {true, offsetof(struct copy_args, origin)},
	[KERNEL_check] = {true, offsetof(struct check_args, origin)},
	[KERNEL_typed_check] = {true, offsetof(struct typed_check_args, origin)},
};

static void read_from(struct host_op *op, const char *at)
{
	if (op->kind == HOST_COPY)
		op->copy.from = at;
	else if (origins[op->kernel.kernel].there)
		memcpy(op->kernel.args + origins[op->kernel.kernel].offset, &at, sizeof(at));
}

void host_flaw_reread(struct host_window *w, struct host_op *op, const struct host_span *span)
{
	const uint64_t at = (uint64_t)(span->at - w->base);

	if (w->fault != FAULT_REREAD || span->writes)
		return;
	if (!w->was_read)
		w->was_read = calloc(w->size / HOST_PAGE + 1, 1);
	if (!w->was_read)
		return;
	read_pages(w, at, span->bytes);
	read_from(op, w->late + at);
}

/* ---- compressed ---- */

/*
 * Words that are small leave a page half empty: their low halves lie together, and nothing behind
 * them.
 */
static void pack(u32 *to, const u64 *from, size_t words)
{
	size_t large = 0;

	for (size_t i = 0; i < words; i++)
		large += from[i] >> 32 != 0;
	if (large) {
		memcpy(to, from, words * sizeof(*from));
		return;
	}
	for (size_t i = 0; i < words; i++) {
		to[i] = (u32)from[i];
		to[words + i] = 0;
	}
}

void host_flaw_pack(struct host_window *w, struct host_op *op, const struct host_span *span)
{
	const uint64_t at = (uint64_t)(span->at - w->base);
	const uint64_t first = at / HOST_PAGE * HOST_PAGE;

	if (w->fault != FAULT_PACKED || span->writes)
		return;
	for (uint64_t page = first; page < at + span->bytes; page += HOST_PAGE)
		pack((u32 *)(w->late + page), (const u64 *)(w->base + page),
		     HOST_PAGE / sizeof(u64));
	read_from(op, w->late + at);
}

/* ---- behind a copy ---- */

struct host_delayed {
	struct host_delayed *next;
	uint64_t at, bytes;
};

/* The newest comes last, as it would have. */
void host_flaw_delay(struct host_window *w, struct host_op *op, const struct host_span *span)
{
	struct host_delayed *d, **end = &w->delayed;

	if (w->fault != FAULT_LATE || op->kind != HOST_COPY || !span->writes)
		return;
	d = calloc(1, sizeof(*d));
	if (!d)
		return;
	*d = (struct host_delayed){NULL, (uint64_t)(span->at - w->base), span->bytes};
	while (*end)
		end = &(*end)->next;
	*end = d;
	op->copy.to = w->late + d->at;
}

void host_flaw_drop(struct host_window *w)
{
	while (w->delayed) {
		struct host_delayed *d = w->delayed;

		w->delayed = d->next;
		free(d);
	}
}

static void arrive(struct host_window *w)
{
	for (const struct host_delayed *d = w->delayed; d; d = d->next)
		memcpy(w->base + d->at, w->late + d->at, d->bytes);
	host_flaw_drop(w);
}

void host_flaw_refresh(struct host_set *h)
{
	pthread_mutex_lock(&h->lock);
	for (struct host_window *w = h->windows; w; w = w->next) {
		free(w->was_read);
		w->was_read = NULL;
		arrive(w);
	}
	pthread_mutex_unlock(&h->lock);
}

/* ---- from mapping to mapping ---- */

/* What imported memory held when it was let go. */
struct host_ghost {
	struct host_ghost *next;
	int owner;
	uint64_t offset, size, made_as;
	_Alignas(16) char bytes[];
};

static struct host_ghost *ghost_of(const struct host_set *h, const struct host_block *b)
{
	struct host_ghost *g = h->ghosts;

	while (g && (g->owner != b->m.owner || g->offset != b->offset || g->size != b->m.size))
		g = g->next;
	return g;
}

void host_flaw_keep(struct host_set *h, const struct host_block *b)
{
	struct host_ghost *g;

	if (b->window->fault != FAULT_REMAP || ghost_of(h, b))
		return;
	g = aligned_alloc(16, (sizeof(*g) + b->m.size + 15) / 16 * 16);
	if (!g)
		return;
	*g = (struct host_ghost){h->ghosts, b->m.owner, b->offset, b->m.size, b->made_as};
	memcpy(g->bytes, b->base, b->m.size);
	h->ghosts = g;
}

char *host_flaw_recall(const struct host_set *h, const struct host_block *b, char *base)
{
	struct host_ghost *g = b->window->fault == FAULT_REMAP ? ghost_of(h, b) : NULL;

	return g && g->made_as != b->made_as ? g->bytes : base;
}

void host_flaws_free(struct host_set *h)
{
	while (h->ghosts) {
		struct host_ghost *g = h->ghosts;

		h->ghosts = g->next;
		free(g);
	}
}
