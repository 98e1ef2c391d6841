/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/station.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE_MIN  (4ul << 20)
#define PIECE_MAX  (1ul << 30)
#define PIECES     64
#define WINDOW_MIN (256ul << 10)
#define ALIGNMENT  (64ul << 10)
#define THREADS    512

void bench_sentence(char to[static BENCH_SENTENCE])
{
	snprintf(to, BENCH_SENTENCE, "%s", err_msg());
}

const struct device_info *station_info(const struct station *s)
{
	return &s->set->info[s->device];
}

/* ---- memory ---- */

/* Memory that is the station's now, with its address; freed where it has none. */
static int hold(const struct station *s, const struct memory *memory, struct area *ret)
{
	struct area a = {.memory = *memory, .held = true};
	int r = s->set->ops->address(s->set, memory, s->device, &a.at);

	if (r < 0)
		s->set->ops->free(s->set, memory);
	else
		*ret = a;
	return r;
}

int station_alloc(const struct station *s, enum memory_kind kind, uint64_t size, struct area *ret)
{
	struct memory memory;
	int r = s->set->ops->alloc(s->set, s->device, kind, size, &memory);

	return r < 0 ? r : hold(s, &memory, ret);
}

void station_free(const struct station *s, struct area *a)
{
	if (a->held)
		s->set->ops->free(s->set, &a->memory);
	*a = (struct area){0};
}

static int reach_in_set(const struct station *s, const struct station *owner, const struct area *of,
			struct area *ret)
{
	struct area a = {.memory = of->memory};
	int r = 0;

	if (s->device != owner->device)
		r = s->set->ops->peer_access(s->set, s->device, owner->device, true);
	if (r == 0)
		r = s->set->ops->address(s->set, &a.memory, s->device, &a.at);
	if (r < 0)
		return r;
	*ret = a;
	return 0;
}

enum export_kind station_export_kind(const struct station *s)
{
	return s->set->caps & DEVICE_EXPORT_FD ? EXPORT_FD : EXPORT_IPC;
}

/* Exportable memory is what another process can be given; where there is none, plain memory. */
enum memory_kind station_memory_kind(enum export_kind kind)
{
	return kind == EXPORT_FD ? MEMORY_EXPORTABLE : MEMORY_DEVICE;
}

int station_take(const struct station *s, const struct memory_export *e, struct area *ret)
{
	struct memory memory;
	int r = s->set->ops->import(s->set, s->device, e, &memory);

	return r < 0 ? r : hold(s, &memory, ret);
}

int station_reach_by(const struct station *s, const struct station *owner, const struct area *of,
		     enum export_kind kind, struct area *ret)
{
	struct memory_export e = {.fd = -1};
	int r;

	if (s->set == owner->set)
		return reach_in_set(s, owner, of, ret);
	r = owner->set->ops->export(owner->set, &of->memory, kind, &e);
	if (r < 0)
		return r;
	r = station_take(s, &e, ret);
	if (e.fd >= 0)
		close(e.fd);
	return r;
}

int station_reach(const struct station *s, const struct station *owner, const struct area *of,
		  struct area *ret)
{
	return station_reach_by(s, owner, of, station_export_kind(owner), ret);
}

/* ---- kernels ---- */

int station_launch(const struct station *s, enum device_kernel kernel, const void *args,
		   size_t size, unsigned blocks)
{
	const struct device_info *info = station_info(s);
	struct launch l = {.kernel = kernel,
			   .blocks = blocks ? blocks : info->blocks,
			   .threads = info->threads < THREADS ? info->threads : THREADS,
			   .args = args,
			   .args_size = size};

	return s->set->ops->launch(s->set, s->stream, &l);
}

int station_wait(const struct station *s)
{
	return s->set->ops->wait(s->set, s->stream, s->limit_us);
}

/* ---- opening ---- */

static uint64_t round_down(uint64_t value, uint64_t to)
{
	return value - value % to;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static enum memory_kind shared_kind(const struct station *s)
{
	return station_memory_kind(station_export_kind(s));
}

/*
 * Allocators hand out addresses in some order of their own; the last piece before the memory ends is
 * as far up as one gets. Running out earlier than planned is no error: somebody else needs it.
 */
static int find_high(struct station *s, uint64_t left)
{
	uint64_t size = round_down(left / PIECES, PIECE_MIN), n;
	struct area *pieces;
	size_t got = 0;

	size = size < PIECE_MIN ? PIECE_MIN : least(size, PIECE_MAX);
	n = left / size;
	if (!n)
		return 0;
	pieces = calloc(n, sizeof(*pieces));
	if (!pieces)
		return err_set(ENOMEM, "no memory for a list of %zu pieces", (size_t)n);
	while (got < n && station_alloc(s, shared_kind(s), size, &pieces[got]) == 0)
		got++;
	if (got)
		s->high = pieces[got - 1];
	for (size_t i = 0; i + 1 < got; i++)
		station_free(s, &pieces[i]);
	free(pieces);
	return 0;
}

static int allocate(struct station *s, uint64_t memory_bytes)
{
	uint64_t window = least(round_down(memory_bytes / 4, ALIGNMENT), STATION_WINDOW);
	int r;

	if (window < WINDOW_MIN)
		return err_set(ENOMEM, "%s: %lu KiB of memory are too few to check anything",
			       station_info(s)->name, (unsigned long)(memory_bytes >> 10));
	r = station_alloc(s, MEMORY_DEVICE, STATION_SCRATCH, &s->scratch);
	if (r == 0)
		r = station_alloc(s, MEMORY_PINNED, 4096, &s->abort);
	if (r == 0)
		r = s->set->ops->write(s->set, &s->abort.memory, 0, &(u32){0}, sizeof(u32));
	if (r == 0)
		r = station_alloc(s, shared_kind(s), STATION_FLAGS, &s->flags);
	if (r == 0)
		r = station_alloc(s, MEMORY_DEVICE, window, &s->local);
	if (r == 0)
		r = station_alloc(s, shared_kind(s), window, &s->window);
	return r < 0 ? r : find_high(s, memory_bytes - 2 * window);
}

static int open_queue(struct station *s)
{
	const struct device_ops *ops = s->set->ops;
	int r = ops->stream_new(s->set, s->device, &s->stream);

	if (r < 0)
		return r;
	r = ops->event_new(s->set, s->device, &s->from);
	if (r == 0) {
		r = ops->event_new(s->set, s->device, &s->to);
		if (r < 0)
			ops->event_free(s->set, s->from);
	}
	if (r < 0)
		ops->stream_free(s->set, s->stream);
	return r;
}

int station_open(struct device_set *set, int device, uint64_t memory_bytes, uint64_t limit_us,
		 struct station *ret)
{
	struct station s = {.set = set, .device = device, .limit_us = limit_us};
	uint64_t half = set->info[device].free_bytes / STATION_MEMORY_SHARE;
	int r = open_queue(&s);

	if (r < 0)
		return r;
	r = allocate(&s, memory_bytes ? least(memory_bytes, set->info[device].free_bytes) : half);
	if (r < 0) {
		char why[BENCH_SENTENCE];

		bench_sentence(why);
		station_close(&s);
		return err_set(-r, "%s", why);
	}
	*ret = s;
	return 0;
}

void station_close(struct station *s)
{
	struct area *areas[] = {&s->high, &s->window, &s->local, &s->flags, &s->scratch, &s->abort};
	const struct device_ops *ops;

	if (!s->set)
		return;
	ops = s->set->ops;
	for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++)
		station_free(s, areas[i]);
	ops->event_free(s->set, s->from);
	ops->event_free(s->set, s->to);
	ops->stream_free(s->set, s->stream);
	*s = (struct station){0};
}
