/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_device.h"

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

const struct device_info *bench_device_info(const struct bench_device *s)
{
	return &s->set->info[s->device];
}

/* ---- memory ---- */

/* Memory that is the device's now, with its address; freed where it has none. */
static int hold(const struct bench_device *s, const struct memory *memory, struct area *ret)
{
	struct area a = {.memory = *memory, .held = true};
	int r = s->set->ops->address(s->set, memory, s->device, &a.at);

	if (r < 0)
		s->set->ops->free(s->set, memory);
	else
		*ret = a;
	return r;
}

int bench_device_alloc(const struct bench_device *s, enum memory_kind kind, uint64_t size,
		       struct area *ret)
{
	struct memory memory;
	int r = s->set->ops->alloc(s->set, s->device, kind, size, &memory);

	return r < 0 ? r : hold(s, &memory, ret);
}

void bench_device_free(const struct bench_device *s, struct area *a)
{
	if (a->held)
		s->set->ops->free(s->set, &a->memory);
	*a = (struct area){0};
}

static int reach_in_set(const struct bench_device *s, const struct bench_device *owner,
			const struct area *of, struct area *ret)
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

/* How the window and the flags are handed over. */
static enum export_kind export_kind_of(const struct bench_device *s)
{
	return s->set->caps & DEVICE_EXPORT_FD ? EXPORT_FD : EXPORT_IPC;
}

/* Exportable memory is what another process can be given; where there is none, plain memory. */
enum memory_kind bench_device_memory_kind(enum export_kind kind)
{
	return kind == EXPORT_FD ? MEMORY_EXPORTABLE : MEMORY_DEVICE;
}

int bench_device_take(const struct bench_device *s, const struct memory_export *e, struct area *ret)
{
	struct memory memory;
	int r = s->set->ops->import(s->set, s->device, e, &memory);

	return r < 0 ? r : hold(s, &memory, ret);
}

int bench_device_reach_by(const struct bench_device *s, const struct bench_device *owner,
			  const struct area *of, enum export_kind kind, struct area *ret)
{
	struct memory_export e = {.fd = -1};
	int r;

	if (s->set == owner->set)
		return reach_in_set(s, owner, of, ret);
	r = owner->set->ops->export(owner->set, &of->memory, kind, &e);
	if (r < 0)
		return r;
	r = bench_device_take(s, &e, ret);
	if (e.fd >= 0)
		close(e.fd);
	return r;
}

int bench_device_reach(const struct bench_device *s, const struct bench_device *owner,
		       const struct area *of, struct area *ret)
{
	return bench_device_reach_by(s, owner, of, export_kind_of(owner), ret);
}

/* ---- kernels ---- */

int bench_device_launch(const struct bench_device *s, enum device_kernel kernel, const void *args,
			size_t size, unsigned blocks)
{
	const struct device_info *info = bench_device_info(s);
	struct launch l = {.kernel = kernel,
			   .blocks = blocks ? blocks : info->blocks,
			   .threads = info->threads < THREADS ? info->threads : THREADS,
			   .args = args,
			   .args_size = size};

	return s->set->ops->launch(s->set, s->stream, &l);
}

int bench_device_wait(const struct bench_device *s)
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

static enum memory_kind shared_kind(const struct bench_device *s)
{
	return bench_device_memory_kind(export_kind_of(s));
}

/*
 * Allocators hand out addresses in some order of their own; the last piece before the memory ends
 * is as far up as one gets. Running out earlier than planned is not an error: another program needs
 * it.
 */
static int find_high(struct bench_device *s, uint64_t left)
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
	while (got < n && bench_device_alloc(s, shared_kind(s), size, &pieces[got]) == 0)
		got++;
	if (got)
		s->high = pieces[got - 1];
	for (size_t i = 0; i + 1 < got; i++)
		bench_device_free(s, &pieces[i]);
	free(pieces);
	return 0;
}

static int allocate(struct bench_device *s, uint64_t memory_bytes)
{
	uint64_t window = least(round_down(memory_bytes / 4, ALIGNMENT), STATION_WINDOW);
	int r;

	if (window < WINDOW_MIN)
		return err_set(ENOMEM,
			       "%s: a test needs at least %lu KiB of memory, it may use %lu KiB",
			       bench_device_info(s)->name, 4 * WINDOW_MIN >> 10,
			       (unsigned long)(memory_bytes >> 10));
	r = bench_device_alloc(s, MEMORY_DEVICE, STATION_SCRATCH, &s->scratch);
	if (r == 0)
		r = bench_device_alloc(s, MEMORY_PINNED, 4096, &s->abort);
	if (r == 0)
		r = s->set->ops->write(s->set, &s->abort.memory, 0, &(u32){0}, sizeof(u32));
	if (r == 0)
		r = bench_device_alloc(s, shared_kind(s), STATION_FLAGS, &s->flags);
	if (r == 0)
		r = bench_device_alloc(s, MEMORY_DEVICE, window, &s->local);
	if (r == 0)
		r = bench_device_alloc(s, shared_kind(s), window, &s->window);
	return r < 0 ? r : find_high(s, memory_bytes - 2 * window);
}

static int open_queue(struct bench_device *s)
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

int bench_device_open(struct device_set *set, int device, uint64_t memory_bytes, uint64_t limit_us,
		      struct bench_device *ret)
{
	struct bench_device s = {.set = set, .device = device, .limit_us = limit_us};
	uint64_t half = set->info[device].free_bytes / STATION_MEMORY_SHARE;
	int r = open_queue(&s);

	if (r < 0)
		return r;
	r = allocate(&s, memory_bytes ? least(memory_bytes, set->info[device].free_bytes) : half);
	if (r < 0) {
		char why[BENCH_SENTENCE];

		bench_sentence(why);
		bench_device_close(&s);
		return err_set(-r, "%s", why);
	}
	*ret = s;
	return 0;
}

void bench_device_close(struct bench_device *s)
{
	struct area *areas[] = {&s->high, &s->window, &s->local, &s->flags, &s->scratch, &s->abort};
	const struct device_ops *ops;

	if (!s->set)
		return;
	ops = s->set->ops;
	for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++)
		bench_device_free(s, areas[i]);
	ops->event_free(s->set, s->from);
	ops->event_free(s->set, s->to);
	ops->stream_free(s->set, s->stream);
	*s = (struct bench_device){0};
}
