// SPDX-License-Identifier: Apache-2.0
#include "collective/comm.h"

#include "base/err.h"
#include "collective/comm_impl.h"

#include <errno.h>
#include <stdlib.h>

#define PART 65536u /* of one write (device/device.h) */

/* ---- a set of devices ---- */

int comm_set_new(struct device_set *set, struct comm_set **ret)
{
	struct comm_set *shared = calloc(1, sizeof(*shared));

	if (!shared) {
		device_close(set);
		return err_set(ENOMEM, "no memory for a communicator");
	}
	pthread_mutex_init(&shared->lock, NULL);
	shared->set = set;
	*ret = shared;
	return 0;
}

static void set_free(struct comm_set *shared)
{
	device_close(shared->set); /* frees everything created in it */
	pthread_mutex_destroy(&shared->lock);
	free(shared);
}

void comm_set_leave(struct comm_set *shared)
{
	bool last;

	pthread_mutex_lock(&shared->lock);
	last = shared->open == 0 || --shared->open == 0;
	pthread_mutex_unlock(&shared->lock);
	if (last)
		set_free(shared);
}

/* ---- a rank ---- */

int comm_new(struct comm_set *shared, int device, u32 me, const struct comm_facts *f,
	     const struct comm_options *o, struct onehop_comm **ret)
{
	struct onehop_comm *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(ENOMEM, "no memory for rank %u of a communicator", me);
	c->shared = shared;
	c->device = device;
	c->me = me;
	c->facts = *f;
	c->options = *o;
	shared->open++;
	*ret = c;
	return 0;
}

static int alloc(const struct onehop_comm *c, int device, enum memory_kind kind, u64 size,
		 struct memory *ret, u64 *ret_address)
{
	struct device_set *s = c->shared->set;
	int r = s->ops->alloc(s, device, kind, size, ret);

	return r < 0 ? r : s->ops->address(s, ret, c->device, ret_address);
}

static int zero(struct device_set *set, const struct memory *m, u64 size)
{
	static const unsigned char zeros[PART];
	int r = 0;

	for (u64 at = 0; r == 0 && at < size; at += PART)
		r = set->ops->write(set, m, at, zeros, size - at < PART ? size - at : PART);
	return r;
}

int comm_clear(struct device_set *set, const struct memory *m, const struct slots *s)
{
	return zero(set, m, s->zeroed);
}

/* Device memory of this rank's kernels: states of blocks, and routes. */
static int make_scratch(struct onehop_comm *c, const struct collective_routes *pair,
			const struct collective_routes *all)
{
	const unsigned n = c->facts.flagged_blocks > c->facts.piped_blocks ? c->facts.flagged_blocks
									   : c->facts.piped_blocks;
	const u64 states = n * sizeof(struct collective_state);
	struct device_set *s = c->shared->set;
	struct memory m;
	u64 at = 0;
	int r = alloc(c, c->device, MEMORY_DEVICE, 2 * states + 2 * sizeof(*pair), &m, &at);

	if (r == 0)
		r = zero(s, &m, 2 * states);
	if (r == 0)
		r = s->ops->write(s, &m, 2 * states, pair, sizeof(*pair));
	if (r == 0)
		r = s->ops->write(s, &m, 2 * states + sizeof(*pair), all, sizeof(*all));
	c->flagged_state = at;
	c->piped_state = at + states;
	c->pair_routes = at + 2 * states;
	c->all_routes = at + 2 * states + sizeof(*pair);
	return r;
}

static int make_words(struct onehop_comm *c)
{
	const u64 size = sizeof(struct collective_report) + sizeof(u32);
	int r = alloc(c, -1, MEMORY_PINNED, size, &c->words, &c->report);

	if (r < 0)
		return r;
	c->abort = c->report + sizeof(struct collective_report);
	return zero(c->shared->set, &c->words, size);
}

int comm_connect(struct onehop_comm *c, const struct slots *s, const u64 *seen)
{
	const struct comm_facts *f = &c->facts;
	struct collective_routes pair, all;
	int r;

	slots_ways(f, s, AREA_FLAGGED_FIRST, false, c->me, seen, &c->flagged.pair);
	slots_ways(f, s, AREA_FLAGGED_FIRST, true, c->me, seen, &c->flagged.all);
	slots_ways(f, s, AREA_FLAGGED_SECOND, true, c->me, seen, &c->flagged.second);
	slots_ways(f, s, AREA_FIRST, false, c->me, seen, &pair.first);
	slots_ways(f, s, AREA_SECOND, true, c->me, seen, &pair.second);
	slots_ways(f, s, AREA_FLAGS, true, c->me, seen, &pair.flags);
	all = pair;
	slots_ways(f, s, AREA_FIRST, true, c->me, seen, &all.first);
	r = make_words(c);
	return r < 0 ? r : make_scratch(c, &pair, &all);
}

/* ---- how operations end ---- */

uint64_t comm_limit_us(const struct onehop_comm *c)
{
	return device_kernel_limit_us(&c->shared->set->info[c->device], c->options.limit_us);
}

static int read_word(struct onehop_comm *c, u64 offset, u32 *ret)
{
	struct device_set *s = c->shared->set;

	return s->ops->read(s, &c->words, offset, ret, sizeof(*ret));
}

static int check(struct onehop_comm *c)
{
	u32 end, rank = 0, number = 0;
	int r = read_word(c, offsetof(struct collective_report, end), &end);

	if (r < 0 || end <= WAIT_DONE)
		return r;
	r = read_word(c, offsetof(struct collective_report, rank), &rank);
	if (r == 0)
		r = read_word(c, offsetof(struct collective_report, number), &number);
	if (r < 0)
		return r;
	if (end == WAIT_ABORTED)
		return err_set(ECANCELED,
			       "rank %u: operation %u was cancelled by closing the communicator",
			       c->me, number);
	return err_set(ETIMEDOUT,
		       "rank %u: rank %u did not take part in operation %u within %.3g s", c->me,
		       rank, number, (double)comm_limit_us(c) / 1e6);
}

int comm_check(struct onehop_comm *c)
{
	int r;

	pthread_mutex_lock(&c->shared->lock);
	r = check(c);
	pthread_mutex_unlock(&c->shared->lock);
	return r;
}

/* ---- launches ---- */

/* The oldest entry is replaced, so memory does not grow with the number of streams. */
static int find_stream(struct onehop_comm *c, void *native, struct stream *ret)
{
	struct device_set *s = c->shared->set;
	const unsigned n = c->streams_n < COMM_STREAMS ? c->streams_n : COMM_STREAMS;
	const unsigned place = c->streams_n % COMM_STREAMS;
	int r;

	for (unsigned i = 0; i < n; i++)
		if (c->streams[i].native == native) {
			*ret = c->streams[i].stream;
			return 0;
		}
	r = s->ops->stream_wrap(s, c->device, native, ret);
	if (r < 0)
		return r;
	if (n == COMM_STREAMS)
		s->ops->stream_free(s, c->streams[place].stream);
	c->streams[place].native = native;
	c->streams[place].stream = *ret;
	c->streams_n++;
	return 0;
}

int comm_launch(struct onehop_comm *c, void *native, const struct launch *l)
{
	struct device_set *s = c->shared->set;
	struct stream stream;
	int r;

	pthread_mutex_lock(&c->shared->lock);
	r = check(c);
	if (r == 0)
		r = find_stream(c, native, &stream);
	if (r == 0)
		r = s->ops->launch(s, stream, l);
	pthread_mutex_unlock(&c->shared->lock);
	return r;
}

void comm_close(struct onehop_comm *c)
{
	const u32 now = 1;
	struct device_set *s;

	if (!c)
		return;
	s = c->shared->set;
	pthread_mutex_lock(&c->shared->lock);
	if (c->abort)
		s->ops->write(s, &c->words, sizeof(struct collective_report), &now, sizeof(now));
	pthread_mutex_unlock(&c->shared->lock);
	comm_set_leave(c->shared);
	free(c);
}
