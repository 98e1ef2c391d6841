// SPDX-License-Identifier: Apache-2.0
#include "collective/comm.h"

#include "base/clock.h"
#include "base/err.h"
#include "collective/comm_impl.h"
#include "collective/live.h"
#include "collective/operation.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART      65536u /* of one write (device/device.h) */
#define COMM_WHAT 40     /* "5 (all_reduce)" */

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
	agree_board_free(shared->board);
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

/* ---- groups of ranks ---- */

void comm_near(struct device_set *s, int device, unsigned n, const char (*pci)[16], unsigned me,
	       enum nearness *ret)
{
	groups_near(n, pci, me, "/sys", ret);
	for (unsigned i = 0; i < n; i++) {
		bool nvlink = false;

		if (i != me && ret[i] != NEAR_UNKNOWN &&
		    s->ops->atomics(s, device, pci[i], &nvlink) < 0)
			ret[i] = NEAR_UNKNOWN;
		else if (nvlink || i == me)
			ret[i] = NEAR_NVLINK;
	}
}

void comm_place(struct comm_facts *f, const enum nearness *near, const struct comm_options *o)
{
	comm_facts_place(f, near, o->groups);
	if (tuned_is_older(&f->times, f))
		memset(&f->times, 0,
		       sizeof(f->times)); /* the estimates compare them with the others */
}

/* ---- a rank ---- */

int comm_new(struct comm_set *shared, int device, u32 me, const struct comm_facts *f,
	     const struct comm_options *o, struct onehop_comm **ret)
{
	struct onehop_comm *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(ENOMEM, "no memory for rank %u of a communicator", me);
	if (live_add(c) < 0) {
		free(c);
		return -EMFILE;
	}
	c->shared = shared;
	c->device = device;
	c->me = me;
	c->facts = *f;
	operation_count(&c->facts);
	c->options = *o;
	shared->open++;
	*ret = c;
	return 0;
}

static int alloc(struct onehop_comm *c, int device, enum memory_kind kind, u64 size,
		 struct memory *ret, u64 *ret_address)
{
	struct device_set *s = c->shared->set;
	int r = s->ops->alloc(s, device, kind, size, ret);

	if (r == 0)
		r = s->ops->address(s, ret, c->device, ret_address);
	if (r == 0)
		*(device < 0 ? &c->host_bytes : &c->device_bytes) += size;
	return r;
}

int comm_zero(struct device_set *set, const struct memory *m, u64 size)
{
	static const unsigned char zeros[PART];
	int r = 0;

	for (u64 at = 0; r == 0 && at < size; at += PART)
		r = set->ops->write(set, m, at, zeros, size - at < PART ? size - at : PART);
	return r;
}

void comm_count_slots(struct onehop_comm *c, const struct slots *s)
{
	c->device_bytes += s->inbox.size;
	if (c->me == 0)
		c->host_bytes += s->host.size + comm_words_bytes(c->facts.n);
}

/* Parts of one piece of memory, one after the other. */
struct layout {
	u64 pairs, size;
	unsigned blocks;
};

static struct layout lay_out(const struct comm_facts *f)
{
	struct layout l = {.blocks = f->flagged_blocks > f->piped_blocks ? f->flagged_blocks
									 : f->piped_blocks};

	l.pairs = 2ul * l.blocks * sizeof(struct collective_state);
	l.size = l.pairs + (u64)f->n * f->pair_blocks * sizeof(struct pair_progress);
	return l;
}

/* Device memory of this rank's kernels: states of blocks, which are zero at first. */
static int make_scratch(struct onehop_comm *c)
{
	const struct layout l = lay_out(&c->facts);
	struct device_set *s = c->shared->set;
	struct memory m;
	u64 at = 0;
	int r = alloc(c, c->device, MEMORY_DEVICE, l.size, &m, &at);

	if (r == 0)
		r = comm_zero(s, &m, l.size);
	c->flagged_state = at;
	c->piped_state = at + l.blocks * sizeof(struct collective_state);
	c->pairs_state = at + l.pairs;
	return r;
}

static u64 words_of(const struct onehop_comm *c, u32 rank)
{
	return c->words + rank * sizeof(struct comm_words);
}

int comm_connect(struct onehop_comm *c, const struct slots *s, const struct slots_seen *seen,
		 u64 words)
{
	const struct comm_facts *f = &c->facts;

	c->words = words;
	c->report = words_of(c, c->me) + offsetof(struct comm_words, report);
	c->abort = words_of(c, c->me) + offsetof(struct comm_words, abort);
	agree_start(&c->agree, c->shared->board, c->me);
	slots_ways(f, s, AREA_FLAGGED_FIRST, false, c->me, seen, &c->flagged.pair);
	slots_ways(f, s, AREA_FLAGGED_FIRST, true, c->me, seen, &c->flagged.all);
	slots_ways(f, s, AREA_FLAGGED_SECOND, true, c->me, seen, &c->flagged.second);
	c->flagged.hosts = slots_host_rows(f, s, c->me, seen, &c->flagged.host_rows);
	slots_ways(f, s, AREA_FIRST, false, c->me, seen, &c->routes.pair.first);
	slots_ways(f, s, AREA_SECOND, true, c->me, seen, &c->routes.pair.second);
	slots_ways(f, s, AREA_FLAGS, true, c->me, seen, &c->routes.pair.flags);
	c->routes.all = c->routes.pair;
	slots_ways(f, s, AREA_FIRST, true, c->me, seen, &c->routes.all.first);
	slots_ways(f, s, AREA_PAIR_FLAGS, false, c->me, seen, &c->routes.pairs.flags);
	slots_ways(f, s, AREA_MESSAGES, false, c->me, seen, &c->routes.pairs.sets);
	slots_ways(f, s, AREA_PAIRS, false, c->me, seen, &c->routes.pairs.slots);
	return make_scratch(c);
}

/* ---- how operations end ---- */

uint64_t comm_limit_us(const struct onehop_comm *c)
{
	return device_kernel_limit_us(&c->shared->set->info[c->device], c->options.limit_us);
}

/*
 * Pinned and shared memory have one address for the host and all devices of a process. So these
 * words are used without the set of devices, which a thread may hold that waits in a launch.
 */
static u32 load_word(u64 address)
{
	return __atomic_load_n((const u32 *)address, __ATOMIC_ACQUIRE);
}

/* How a rank's operation ended that gave up. */
static struct collective_report report_of(const struct onehop_comm *c, u32 rank)
{
	const u64 at = words_of(c, rank) + offsetof(struct comm_words, report);
	struct collective_report ret = {
		.end = load_word(at + offsetof(struct collective_report, end))};

	ret.rank = load_word(at + offsetof(struct collective_report, rank));
	ret.number = load_word(at + offsetof(struct collective_report, number));
	return ret;
}

/* NULL: it is too long ago. */
static const struct comm_recent *find_recent(const struct onehop_comm *c, u32 number)
{
	if (c->number - number > COMM_RECENT || c->number == number)
		return NULL;
	return &c->recent[number % COMM_RECENT];
}

/* "5", or "5 (all_reduce)" if it is recent. */
static const char *describe(const struct onehop_comm *c, u32 number, char *buf, size_t size)
{
	const struct comm_recent *recent = find_recent(c, number);

	if (!recent)
		snprintf(buf, size, "%u", number);
	else
		snprintf(buf, size, "%u (%s)", number,
			 recent->what == COMM_PAIRS ? "send and recv"
			 : recent->what == COMM_BARRIER
				 ? "barrier"
				 : operation_word((enum operation)recent->what));
	return buf;
}

static bool hears_all(const struct comm_recent *r)
{
	return r->what == COMM_BARRIER ||
	       (r->what != COMM_PAIRS && !operation_has_root((enum operation)r->what));
}

/*
 * The last operation before that one which was not captured; false: there is none, or it is too
 * long ago. In operations without a root each rank hears from all others, with or without data:
 * what this rank has ended, all of them took part in. With a root, a rank that only sends can end
 * first.
 */
static bool find_ended(const struct onehop_comm *c, u32 number, u32 *ret_number)
{
	for (u32 i = 1; i <= COMM_RECENT && i <= number; i++) {
		const struct comm_recent *recent = find_recent(c, number - i);

		*ret_number = number - i;
		if (!recent)
			return false;
		if (hears_all(recent) && recent->order == AGREE_EAGER)
			return true;
	}
	return false;
}

/*
 * How far the rank is that did not take part in an operation, or "" if unknown: which message it
 * takes part in next, or which graph it launches, is not shared.
 */
static const char *describe_progress(const struct onehop_comm *c, u32 rank, u32 number, char *buf,
				     size_t size)
{
	const struct comm_recent *missed = find_recent(c, number);
	char what[COMM_WHAT];
	u32 calls, last = 0;
	bool called;

	*buf = '\0';
	if (!missed || missed->what == COMM_PAIRS || missed->order != AGREE_EAGER ||
	    rank >= c->facts.n)
		return buf;
	calls = agree_calls_of(&c->agree, AGREE_EAGER, rank);
	called = (int)(calls - missed->call) > 0;
	if (find_ended(c, number, &last))
		snprintf(buf, size, "%s called it; before, it took part in operation %s",
			 called ? ", but has" : ", and has not",
			 describe(c, last, what, sizeof(what)));
	else
		snprintf(buf, size, "%s",
			 called  ? ", but has called it"
			 : calls ? ", and has not called it"
				 : "; it has not called any operation yet");
	return buf;
}

void comm_count(struct onehop_comm *c, unsigned what)
{
	c->recent[c->number % COMM_RECENT] =
		(struct comm_recent){.what = (unsigned char)what,
				     .order = (unsigned char)c->order,
				     .call = c->agree.calls[c->order].stored - 1};
	c->number++;
}

static const char *order_word(const struct agree_finding *f)
{
	return f->order == AGREE_CAPTURED ? "captured " : "";
}

static int say_disagreement(const struct onehop_comm *c, const struct agree_finding *f)
{
	char a[OPERATION_TEXT], b[OPERATION_TEXT];

	if (f->message)
		return err_set(EPROTO,
			       "rank %u: of %smessage %u from rank %u to rank %u, %lu bytes are "
			       "sent and %lu are to be received",
			       c->me, order_word(f), f->number, f->rank[0], f->rank[1],
			       f->call[0].count, f->call[1].count);
	return err_set(EPROTO, "rank %u: %soperation %u is %s on rank %u, but %s on rank %u", c->me,
		       order_word(f), f->number, operation_text(&f->call[0], a, sizeof(a)),
		       f->rank[0], operation_text(&f->call[1], b, sizeof(b)), f->rank[1]);
}

static int say_late(const struct onehop_comm *c, u32 rank, u32 number)
{
	char what[COMM_WHAT], progress[3 * COMM_WHAT];

	return err_set(ETIMEDOUT,
		       "rank %u: rank %u did not take part in operation %s within %.3g s%s", c->me,
		       rank, describe(c, number, what, sizeof(what)),
		       (double)comm_limit_us(c) / 1e6,
		       describe_progress(c, rank, number, progress, sizeof(progress)));
}

/*
 * Another rank has given up: operations of this one may still end, but no later one can. Its
 * numbers of operations are its own where ranks send and receive, so its operation is not named.
 */
static int check_others(const struct onehop_comm *c)
{
	char late[24] = "this rank";

	for (u32 r = 0; r < c->facts.n; r++) {
		const struct collective_report other = report_of(c, r);

		if (r == c->me || other.end != WAIT_TIMED_OUT)
			continue;
		if (other.rank != c->me)
			snprintf(late, sizeof(late), "rank %u", other.rank);
		return err_set(
			ETIMEDOUT,
			"rank %u: rank %u gave up its operation %u, because %s did not take part "
			"within %.3g s",
			c->me, r, other.number, late, (double)comm_limit_us(c) / 1e6);
	}
	return 0;
}

int comm_check(const struct onehop_comm *c)
{
	const struct collective_report own = report_of(c, c->me);
	struct agree_finding f;
	char what[COMM_WHAT];

	if (agree_failed(&c->agree, &f))
		return say_disagreement(c, &f);
	if (own.end == WAIT_ABORTED)
		return err_set(ECANCELED,
			       "rank %u: operation %s was cancelled, because the communicator was "
			       "aborted or closed",
			       c->me, describe(c, own.number, what, sizeof(what)));
	if (own.end == WAIT_DISAGREED)
		return err_set(EPROTO,
			       "rank %u: in operation %s, rank %u calls another function, or with "
			       "another count, type, reduction or root",
			       c->me, describe(c, own.number, what, sizeof(what)), own.rank);
	if (own.end > WAIT_DONE)
		return say_late(c, own.rank, own.number);
	if (load_word(c->abort))
		return err_set(ECANCELED, "rank %u: the communicator was aborted", c->me);
	return check_others(c);
}

static void stop(struct onehop_comm *c, u32 rank)
{
	const u64 word = words_of(c, rank) + offsetof(struct comm_words, abort);

	if (c->words)
		__atomic_store_n((u32 *)word, 1, __ATOMIC_RELEASE);
}

void comm_abort(struct onehop_comm *c)
{
	stop(c, c->me);
}

/* This rank found that others disagree: what they have enqueued would wait for it. */
static int stop_all(struct onehop_comm *c)
{
	for (u32 r = 0; r < c->facts.n; r++)
		stop(c, r);
	return comm_check(c);
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

static int tell(struct onehop_comm *c, enum agree_order o, const struct comm_shown *t,
		u32 *ret_behind)
{
	return t->call ? agree_call(&c->agree, o, t->call, ret_behind)
		       : agree_messages(&c->agree, o, t->messages, t->n, ret_behind);
}

static void undo(struct onehop_comm *c, enum agree_order o, const struct comm_shown *t)
{
	if (t->call)
		agree_undo_call(&c->agree, o);
	else
		agree_undo_messages(&c->agree, o, t->messages, t->n);
}

/* With the set's lock held. -EAGAIN: another rank is too far behind. */
static int launch(struct onehop_comm *c, void *native, const struct launch *l,
		  const struct comm_shown *t, u32 *ret_behind)
{
	struct device_set *s = c->shared->set;
	struct stream stream;
	bool captured = false;
	int r = find_stream(c, native, &stream);

	if (r == 0)
		r = s->ops->capturing(s, stream, &captured);
	c->order = captured ? AGREE_CAPTURED : AGREE_EAGER;
	if (r == 0)
		r = tell(c, c->order, t, ret_behind);
	if (r < 0)
		return r;
	r = s->ops->launch(s, stream, l);
	if (r < 0)
		undo(c, c->order, t);
	return r;
}

static int launch_once(struct onehop_comm *c, void *native, const struct launch *l,
		       const struct comm_shown *t, u32 *ret_behind)
{
	int r;

	pthread_mutex_lock(&c->shared->lock);
	r = launch(c, native, l, t, ret_behind);
	pthread_mutex_unlock(&c->shared->lock);
	return r;
}

/* -EAGAIN: another rank is too far behind; -EPROTO: it calls something else. */
static int try_launch(struct onehop_comm *c, void *native, const struct launch *l,
		      const struct comm_shown *shown, u32 *ret_behind)
{
	int r = comm_check(c);

	if (r < 0)
		return r;
	r = launch_once(c, native, l, shown, ret_behind);
	if (r == 0 || r == -EAGAIN || r == -EPROTO)
		return r;
	return err_wrap(r, "rank %u: %s", c->me, shown->name);
}

int comm_launch(struct onehop_comm *c, void *native, const struct launch *l,
		const struct comm_shown *shown)
{
	const uint64_t begin = clock_us();
	u32 behind = 0;
	int r;

	do
		r = try_launch(c, native, l, shown, &behind);
	while (r == -EAGAIN && clock_us() - begin < comm_limit_us(c) && sched_yield() == 0);
	if (r == -EAGAIN)
		return err_set(ETIMEDOUT,
			       "rank %u: rank %u is thousands of operations behind, and did not "
			       "follow within %.3g s",
			       c->me, behind, (double)comm_limit_us(c) / 1e6);
	return r == -EPROTO ? stop_all(c) : r;
}

/* ---- the caller's memory ---- */

static bool is_known(const struct onehop_comm *c, u64 address)
{
	for (unsigned i = 0; i < COMM_RANGES; i++)
		if (address >= c->ranges[i].begin && address < c->ranges[i].end)
			return true;
	return false;
}

int comm_usable(struct onehop_comm *c, u64 address)
{
	struct device_set *s = c->shared->set;
	const unsigned place = c->ranges_n % COMM_RANGES;
	u64 begin = 0, end = 0;
	int r;

	if (is_known(c, address))
		return 0;
	pthread_mutex_lock(&c->shared->lock);
	r = s->ops->memory_at(s, c->device, address, &begin, &end);
	pthread_mutex_unlock(&c->shared->lock);
	if (r < 0)
		return r == -EFAULT ? -EINVAL : r;
	c->ranges[place].begin = begin;
	c->ranges[place].end = end;
	c->ranges_n++;
	return 0;
}

#define WAIT_SLICE_US 200u
#define WAIT_LAST_US                                                                               \
	20000u /* after the limit: this process may have been stopped meanwhile, and then nobody has looked */

static int wait_once(struct onehop_comm *c, void *native, uint64_t us)
{
	struct device_set *s = c->shared->set;
	struct stream stream;
	int r;

	pthread_mutex_lock(&c->shared->lock);
	r = find_stream(c, native, &stream);
	if (r == 0)
		r = s->ops->wait(s, stream, us);
	pthread_mutex_unlock(&c->shared->lock);
	return r;
}

/*
 * In slices, because other ranks of this process need the set of devices to enqueue what is waited
 * for.
 */
int comm_wait(struct onehop_comm *c, void *native, uint64_t limit_us)
{
	const uint64_t end = clock_us() + limit_us;
	int r;

	while ((r = wait_once(c, native, WAIT_SLICE_US)) == -ETIMEDOUT && clock_us() < end)
		sched_yield();
	if (r == -ETIMEDOUT)
		r = wait_once(c, native, WAIT_LAST_US);
	if (r != -ETIMEDOUT)
		return r;
	r = comm_check(c);
	return r < 0 ? r
		     : err_set(ETIMEDOUT, "rank %u: the stream was still busy after %.3g s", c->me,
			       (double)limit_us / 1e6);
}

int comm_alloc(struct onehop_comm *c, uint64_t size, void **ret)
{
	struct memory m;
	u64 at = 0;
	int r;

	pthread_mutex_lock(&c->shared->lock);
	r = alloc(c, -1, MEMORY_PINNED, size, &m, &at);
	pthread_mutex_unlock(&c->shared->lock);
	if (r == 0)
		*ret = (void *)at;
	return r;
}

int comm_check_open(const struct onehop_comm *c, const char *function)
{
	if (!c)
		return err_set(EINVAL, "%s: no communicator", function);
	if (live_has(c))
		return 0;
	return err_set(EINVAL, "%s: the communicator %s", function,
		       live_was_forked(c) ? "was opened before fork() by the process that called it"
					  : "was closed");
}

void comm_close(struct onehop_comm *c)
{
	if (!live_remove(c))
		return;
	comm_abort(c);
	comm_set_leave(c->shared);
	free(c);
}
