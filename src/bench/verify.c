/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/verify.h"

#include "base/err.h"
#include "kernels/pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define WORD sizeof(u64)
#define KIB  1024ul
#define MIB  (1024 * KIB)
/* What is looked at on both sides of a range: the largest GPU page. */
#define GUARD (2 * MIB)
/* The target's bytes are so much further on than the origin's, which spoils every alignment. */
#define SKEW_MAX 64ul
#define REPEATS  2

/* ---- what is transferred ---- */

/*
 * Where in the owner's memory. `bytes` shrink to what fits; what does not fit at all is left out.
 */
static const struct transfer_case {
	uint64_t bytes, offset;
	unsigned skew; /* of the origin against the target, bytes, a multiple of 8 */
	bool high;     /* offset counts from the end of the last memory there is */
} cases[] = {
	{16, 0, 0, false},
	{16, 4 * KIB - 8, 8, false}, /* across a page */
	{4 * KIB + 16, 8, 0, false}, /* 8-byte aligned only */
	{64 * KIB, 64 * KIB, 0, false},
	{64 * KIB, 64 * KIB - 24, 40, false}, /* across a 64 KiB page, unlike alignment */
	{2 * MIB + 8 * KIB, 2 * MIB - 4 * KIB, 0, false}, /* across two 2 MiB pages */
	{16, 16, 0, true},                                /* the very end */
	{64 * KIB + 8, 64 * KIB + 8, 0, true},
	{2 * MIB + 8 * KIB, 3 * MIB, 16, true},
	{64 * MIB, 4 * MIB, 0, false}, /* the largest: also timed */
};

#define CASE_N (sizeof(cases) / sizeof(cases[0]))

/* A run over one pair. */
struct run {
	const struct bench_device *initiator, *owner;
	u64 round;
	struct area window, high; /* the owner's, as the initiator sees them */
	struct pair_result *result;
};

/* One transfer, resolved: places are bytes within the two areas, `lo` to `hi` is looked at. */
struct transfer {
	const struct transfer_case *what;
	enum way way;
	uint64_t bytes, at, lo, hi;
	const struct area *far_owned, *far_seen; /* by the owner, by the initiator */
	u64 data, poison;
};

static bool is_write(enum way w)
{
	return w == WAY_WRITE_COPY || w == WAY_WRITE_KERNEL;
}

static bool is_copy(enum way w)
{
	return w == WAY_WRITE_COPY || w == WAY_READ_COPY;
}

static u64 tag_of(const struct run *v, bool poison)
{
	return pattern_tag_make((u64)bench_device_info(v->owner)->number,
				(u64)bench_device_info(v->initiator)->number, v->round, poison);
}

/* False: it does not fit. The initiator's own memory holds lo to hi at its start. */
static bool resolve(struct run *v, const struct transfer_case *c, enum way way,
		    struct transfer *ret)
{
	const struct area *owned = c->high ? &v->owner->high : &v->owner->window;
	uint64_t size = owned->memory.size, room = v->initiator->local.memory.size - SKEW_MAX;
	struct transfer t = {.what = c, .way = way, .bytes = c->bytes};

	t.far_owned = owned;
	t.far_seen = c->high ? &v->high : &v->window;
	if (!size || c->offset >= size)
		return false;
	t.at = c->high ? size - c->offset : c->offset;
	if (t.bytes > size - t.at)
		t.bytes = size - t.at;
	if (t.bytes > room)
		t.bytes = room;
	t.lo = t.at > GUARD ? t.at - GUARD : 0;
	t.hi = size - t.at - t.bytes > GUARD ? t.at + t.bytes + GUARD : size;
	if (t.at - t.lo + t.bytes > room) /* give up guard words first */
		t.lo = t.at;
	if (t.hi - t.lo > room)
		t.hi = t.lo + room;
	t.data = tag_of(v, false);
	t.poison = tag_of(v, true);
	*ret = t;
	return t.bytes >= 16;
}

/* ---- one transfer ---- */

/* The two ends: where the bytes come from and where they go, as their devices see them. */
struct end {
	const struct bench_device *device;
	const struct memory *memory; /* as the initiator names it */
	u64 at;                      /* of `lo`, as the device's own kernels see it */
	u64 offset;                  /* of `lo` in `memory` */
	u64 seen;                    /* of `lo`, as the initiator's kernels see it */
};

static void ends(const struct run *v, const struct transfer *t, struct end *origin,
		 struct end *target)
{
	uint64_t skew = t->what->skew;
	bool write = is_write(t->way);
	struct end far = {v->owner, &t->far_seen->memory, t->far_owned->at + t->lo, t->lo,
			  t->far_seen->at + t->lo};
	struct end near = {v->initiator, &v->initiator->local.memory, v->initiator->local.at + skew,
			   skew, v->initiator->local.at + skew};

	*origin = write ? near : far;
	*target = write ? far : near;
}

static int fill(const struct end *e, const struct transfer *t, u64 tag)
{
	int r = BENCH_DEVICE_RUN(e->device, fill, .target = e->at, .words = (t->hi - t->lo) / WORD,
				 .first = t->lo / WORD, .tag = tag);

	return r < 0 ? r : bench_device_wait(e->device);
}

static int move(const struct run *v, const struct transfer *t, const struct end *origin,
		const struct end *target)
{
	const struct bench_device *s = v->initiator;
	uint64_t into = t->at - t->lo;
	int r;

	if (is_copy(t->way))
		r = s->set->ops->copy(s->set, s->stream, target->memory, target->offset + into,
				      origin->memory, origin->offset + into, t->bytes);
	else
		r = BENCH_DEVICE_RUN(s, copy, .target = target->seen + into,
				     .origin = origin->seen + into, .bytes = t->bytes);
	return r < 0 ? r : bench_device_wait(s);
}

static int clear_reports(const struct bench_device *s)
{
	struct check_report empty[PART_N] = {0};

	for (size_t i = 0; i < PART_N; i++)
		empty[i].first_wrong = CHECK_NONE;
	return s->set->ops->write(s->set, &s->scratch.memory, 0, empty, sizeof(empty));
}

/* The owner of the target looks: the range for the data, what is around it for the poison. */
static int look(const struct end *target, const struct transfer *t, struct range_check *ret)
{
	const struct bench_device *s = target->device;
	const struct {
		uint64_t from, to;
		u64 tag;
	} parts[PART_N] = {
		[PART_RANGE] = {t->at, t->at + t->bytes, t->data},
		[PART_BEFORE] = {t->lo, t->at, t->poison},
		[PART_BEHIND] = {t->at + t->bytes, t->hi, t->poison},
	};
	int r = clear_reports(s);

	ret->data_tag = t->data;
	for (size_t i = 0; r == 0 && i < PART_N; i++) {
		ret->words[i] = (parts[i].to - parts[i].from) / WORD;
		if (ret->words[i])
			r = BENCH_DEVICE_RUN(s, check,
					     .origin = target->at + (parts[i].from - t->lo),
					     .words = ret->words[i], .first = parts[i].from / WORD,
					     .tag = parts[i].tag,
					     .report = s->scratch.at +
						       i * sizeof(struct check_report));
	}
	if (r == 0)
		r = bench_device_wait(s);
	if (r == 0)
		r = s->set->ops->read(s->set, &s->scratch.memory, 0, ret->reports,
				      sizeof(ret->reports));
	return r;
}

static int transfer(const struct run *v, const struct transfer *t, struct wrong *ret)
{
	struct range_check found = {0};
	struct end origin, target;
	int r;

	ends(v, t, &origin, &target);
	r = fill(&target, t, t->poison);
	if (r == 0)
		r = fill(&origin, t, t->data);
	if (r == 0)
		r = move(v, t, &origin, &target);
	if (r == 0)
		r = look(&target, t, &found);
	if (r == 0)
		*ret = classify(&found);
	return r;
}

/*
 * The owner has nothing of what was written. If the writer finds it when it reads it back, there is
 * a copy that only the writer sees.
 */
static int reads_back(const struct run *v, const struct transfer *written, bool *ret)
{
	struct transfer back = *written;
	struct range_check found = {0};
	struct end origin, target;
	int r;

	back.way = is_copy(written->way) ? WAY_READ_COPY : WAY_READ_KERNEL;
	ends(v, &back, &origin, &target);
	r = fill(&target, &back, back.poison);
	if (r == 0)
		r = move(v, &back, &origin, &target);
	if (r == 0)
		r = look(&target, &back, &found);
	if (r == 0)
		*ret = !found.reports[PART_RANGE].wrong;
	return r;
}

/* ---- one way: all cases, each twice ---- */

/* A second time at the same place with other data: what is left of the first time is recognised. */
static int run_case(struct run *v, const struct transfer_case *c, enum way way)
{
	struct way_result *w = &v->result->ways[way];
	struct wrong wrong[REPEATS] = {0};
	struct transfer t;
	bool mirrored = false;
	int r = 0;

	for (size_t i = 0; i < REPEATS; i++) {
		v->round++;
		if (!resolve(v, c, way, &t))
			return 0;
		r = transfer(v, &t, &wrong[i]);
		if (r < 0)
			return r;
		w->checks++;
		w->bytes += t.bytes;
	}
	if (wrong[0].kind == WRONG_NOTHING && wrong[1].kind == WRONG_NOTHING)
		return 0;
	w->wrong = wrong[1].kind == WRONG_NOTHING ? wrong[0] : wrong[1];
	if (is_write(way) && (w->wrong.kind == WRONG_LOST || w->wrong.kind == WRONG_OLD ||
			      w->wrong.kind == WRONG_ZEROS))
		r = reads_back(v, &t, &mirrored);
	if (mirrored)
		w->wrong.kind = WRONG_MIRROR;
	w->kind = w->wrong.kind;
	w->high = c->high;
	w->case_bytes = t.bytes;
	w->offset = t.at;
	return r;
}

static int run_way(struct run *v, enum way way)
{
	struct way_result *w = &v->result->ways[way];
	int r = 0;

	for (size_t i = 0; r == 0 && i < CASE_N && w->kind == WRONG_NOTHING; i++)
		r = run_case(v, &cases[i], way);
	w->done = r == 0;
	return r;
}

/* ---- what errors mean ---- */

/* clang-format off */
static const struct {
	int error;
	enum wrong_kind kind;
	bool lost;
} meanings[] = {
	{EACCES,     WRONG_REFUSED, false},
	{ETIMEDOUT,  WRONG_HANG,    true},
	{ESRCH,      WRONG_DIED,    true},
	{EPROTO,     WRONG_DIED,    true},
	{EIO,        WRONG_FAULT,   true},
	{EOWNERDEAD, WRONG_NOTHING, true}, /* which is not the pair's doing */
};
/* clang-format on */

enum pair_state verify_untested(enum pair_state before)
{
	return before == PAIR_RIGHT ? PAIR_INCOMPLETE : PAIR_NOT_TESTED;
}

/* An error of which nothing is known says nothing of the pair either. */
enum wrong_kind verify_error(struct pair_result *p, int error)
{
	bench_sentence(p->sentence);
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (meanings[i].error != -error)
			continue;
		p->sets_lost |= meanings[i].lost;
		if (meanings[i].kind == WRONG_NOTHING)
			break;
		p->state = PAIR_WRONG;
		return meanings[i].kind;
	}
	p->state = verify_untested(p->state);
	return WRONG_NOTHING;
}

/* ---- sentences ---- */

static void say_way(struct pair_result *p, enum way way)
{
	const struct way_result *w = &p->ways[way];
	char what[128];

	wrong_say(&w->wrong, what, sizeof(what));
	snprintf(p->sentence, sizeof(p->sentence), "%s, %" PRIu64 " bytes at %s%" PRIu64 ": %s",
		 way_text(way), w->case_bytes, w->high ? "the end of memory, offset " : "offset ",
		 w->offset, what);
}

/* ---- a pair ---- */

static int reach(struct run *v)
{
	int r = bench_device_reach(v->initiator, v->owner, &v->owner->window, &v->window);

	if (r == 0 && v->owner->high.memory.size)
		r = bench_device_reach(v->initiator, v->owner, &v->owner->high, &v->high);
	return r;
}

static void let_go(struct run *v)
{
	if (!v->result->sets_lost) {
		bench_device_free(v->initiator, &v->high);
		bench_device_free(v->initiator, &v->window);
	}
}

/* The fastest of three writes by copy engine, of what fits at both ends. */
static int measure(struct run *v)
{
	const struct bench_device *s = v->initiator;
	uint64_t there = v->owner->window.memory.size, here = s->local.memory.size;
	uint64_t bytes = there < here ? there : here;
	double us = 0;
	int r;

	for (int i = 0; i < 3; i++) {
		r = s->set->ops->event_record(s->set, s->stream, s->from);
		if (r == 0)
			r = s->set->ops->copy(s->set, s->stream, &v->window.memory, 0,
					      &s->local.memory, 0, bytes);
		if (r == 0)
			r = s->set->ops->event_record(s->set, s->stream, s->to);
		if (r == 0)
			r = bench_device_wait(s);
		if (r == 0)
			r = s->set->ops->event_elapsed(s->set, s->from, s->to, &us);
		if (r < 0)
			return r;
		if (us > 0 && (double)bytes / us / 1e3 > v->result->copy_gbps)
			v->result->copy_gbps = (double)bytes / us / 1e3;
	}
	return 0;
}

/* The first failing way names the pair; the others are looked at too, as far as the sets hold. */
static int run_ways(struct run *v)
{
	struct pair_result *p = v->result;
	int r = 0;

	for (int w = 0; r == 0 && w < WAY_N; w++) {
		r = run_way(v, (enum way)w);
		if (p->kind == WRONG_NOTHING && p->ways[w].kind != WRONG_NOTHING) {
			p->kind = p->ways[w].kind;
			say_way(p, (enum way)w);
		}
		if (r < 0 && p->kind == WRONG_NOTHING)
			p->ways[w].kind = p->kind = verify_error(p, r);
		else if (r < 0)
			p->sets_lost = true;
	}
	return r;
}

bool verify_loses_sets(int error)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].error == -error)
			return meanings[i].lost;
	return false;
}

void verify_pair(const struct bench_device *initiator, const struct bench_device *owner,
		 struct pair_result *ret)
{
	struct run v = {.initiator = initiator, .owner = owner, .result = ret};
	int r;

	*ret = (struct pair_result){0};
	r = reach(&v);
	if (r < 0)
		ret->kind = verify_error(ret, r);
	else
		r = run_ways(&v);
	if (r == 0 && ret->kind == WRONG_NOTHING) {
		r = measure(&v);
		if (r < 0)
			ret->kind = verify_error(ret, r);
	}
	if (ret->state == PAIR_NOT_RUN)
		ret->state = ret->kind == WRONG_NOTHING ? PAIR_RIGHT : PAIR_WRONG;
	let_go(&v);
}

void verify_rate(const struct bench_device *initiator, const struct bench_device *owner,
		 struct pair_result *ret)
{
	struct run v = {.initiator = initiator, .owner = owner, .result = ret};
	int r = reach(&v);

	if (r == 0)
		r = measure(&v);
	if (r < 0)
		ret->kind = verify_error(ret, r);
	let_go(&v);
}
