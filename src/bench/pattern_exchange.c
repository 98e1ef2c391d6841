/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of kernels that run at once and exchange data: pulled, in graphs, for long, with flags
 * elsewhere.
 */
#include "bench/pattern_impl.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>

#define KIB 1024ul
#define MIB (1024 * KIB)

/* ---- pull: 10,000 rounds that the host has no part in ---- */

static const struct {
	uint64_t bytes, gpu, host; /* rounds on either */
} sizes[] = {
	{KIB, 4500, 8}, {16 * KIB, 3000, 6}, {128 * KIB, 2000, 4}, {MIB, 440, 2}, {8 * MIB, 60, 1},
};

#define SIZE_N     (sizeof(sizes) / sizeof(sizes[0]))
#define VIEW_BYTES (64 * KIB)

static bool is_right(const struct pattern_pair *p)
{
	return p->results[0]->state == PAIR_RIGHT && p->results[1]->state == PAIR_RIGHT;
}

/* All sizes, one launch each, on both ends; nothing waits between them. Adds to *rounds. */
static int launch_sizes(struct meeting *m, uint64_t *rounds)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < SIZE_N; i++) {
		uint64_t n = pattern_rounds(m->pair, sizes[i].gpu, sizes[i].host);

		for (unsigned end = 0; r == 0 && end < 2; end++)
			r = meeting_launch(m, end, n, sizes[i].bytes);
		*rounds += n;
	}
	return r;
}

/*
 * What an end sees of the other is what the other wrote; else flags would go astray, and kernels
 * wait for them.
 */
static int check_views(const struct meeting *m)
{
	uint64_t bytes = VIEW_BYTES < m->stride ? VIEW_BYTES : m->stride;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < 2; i++) {
		const struct end *e = &m->ends[i], *owner = &m->ends[!i];
		u64 tag = pattern_tag_of(e->device, owner->device, 0);
		struct check_report report;

		r = pattern_fill(owner->device, owner->own->at + MEETING_DATA_AT, bytes, tag);
		if (r == 0)
			r = pattern_check(e->device, e->other.at + MEETING_DATA_AT, bytes, tag,
					  &report);
		if (r == 0)
			pattern_found(m->pair, i, m->pattern, &report, bytes / sizeof(u64), tag,
				      "before they run");
	}
	return r;
}

static int pull_once(struct meeting *m)
{
	uint64_t rounds = 0;
	int r = meeting_reset(m);

	if (r < 0)
		return r;
	m->words[0] = m->words[1] = 0;
	r = launch_sizes(m, &rounds);
	return meeting_end(m, r, rounds, "");
}

int pattern_pull(const struct pattern_pair *p, unsigned from)
{
	struct meeting m;
	int r = meeting_open(p, PATTERN_PULL, &m);

	(void)from;
	if (r == 0)
		r = check_views(&m);
	if (r == 0 && is_right(p))
		r = pull_once(&m);
	meeting_close(&m, r);
	return r;
}

int pattern_sustained(const struct pattern_pair *p, unsigned from)
{
	double until = clock_s() + p->long_s;
	struct meeting m;
	int r = meeting_open(p, PATTERN_SUSTAINED, &m);

	(void)from;
	do {
		if (r == 0)
			r = pull_once(&m);
	} while (r == 0 && is_right(p) && clock_s() < until);
	meeting_close(&m, r);
	return r;
}

/* ---- graph: a launch a round, captured; the host has no part in when each is run ---- */

#define GRAPH_ROUNDS 16 /* of a graph */

static int capture(struct meeting *m, unsigned end, struct graph *ret)
{
	const struct bench_device *s = m->ends[end].device;
	int r = s->set->ops->capture_begin(s->set, s->stream), ended;

	if (r < 0)
		return r;
	for (unsigned i = 0; r == 0 && i < GRAPH_ROUNDS; i++)
		r = meeting_launch(m, end, 1, sizes[i % (SIZE_N - 1)].bytes);
	ended = s->set->ops->capture_end(s->set, s->stream, ret);
	return r < 0 ? r : ended;
}

static int launch_graphs(const struct meeting *m, const struct graph *graphs, uint64_t times)
{
	int r = 0;

	for (uint64_t k = 0; r == 0 && k < times; k++) {
		for (unsigned end = 0; r == 0 && end < 2; end++) {
			const struct bench_device *s = m->ends[end].device;

			r = s->set->ops->graph_launch(s->set, s->stream, graphs[end]);
		}
	}
	return r;
}

static int run_graphs(struct meeting *m)
{
	uint64_t times = pattern_rounds(m->pair, 60, 2);
	struct graph graphs[2] = {0};
	unsigned made = 0;
	int r = 0;

	while (r == 0 && made < 2) {
		r = capture(m, made, &graphs[made]);
		made += r == 0;
	}
	if (r == 0) {
		r = launch_graphs(m, graphs, times);
		m->words[0] *= times;
		m->words[1] *= times;
		r = meeting_end(m, r, times * GRAPH_ROUNDS, "");
	}
	for (unsigned i = 0; !verify_loses_sets(r) && i < made; i++)
		m->ends[i].device->set->ops->graph_free(m->ends[i].device->set, graphs[i]);
	return r;
}

int pattern_graph(const struct pattern_pair *p, unsigned from)
{
	struct meeting m;
	int r;

	(void)from;
	if (!(p->ends[0]->set->caps & p->ends[1]->set->caps & DEVICE_GRAPHS))
		return err_set(ENOTSUP, "this driver cannot capture graphs");
	r = meeting_open(p, PATTERN_GRAPH, &m);
	if (r == 0)
		r = meeting_reset(&m);
	if (r == 0)
		r = run_graphs(&m);
	meeting_close(&m, r);
	return r;
}

/* ---- flags: one writes into the other's memory, the flag is elsewhere ---- */

#define FLAG_BYTES (64 * KIB)
/* Rounds of which each is enqueued by itself. */
#define ENQUEUED 32

/* Who writes. */
enum writer { BY_KERNEL, BY_ENGINE };

/* Where the flags of both are, as writer and owner see them; what has to be let go. */
struct flag_place {
	struct area seen[2]; /* as ends[i] sees them */
	uint64_t offset;
};

struct variant {
	const char *says;
	/* NULL: in the memory of who waits for them. An error: there is no such place here. */
	int (*place)(const struct meeting *m, unsigned from, struct flag_place *ret);
	enum writer data, flag;
};

/* The owner's; both import what it has made, or use it as it is. */
static int flags_on_host(const struct meeting *m, unsigned from, struct flag_place *ret)
{
	const struct bench_device *writer = m->ends[from].device, *owner = m->ends[!from].device;
	static const unsigned char zeros[PATTERN_THIRD_BYTES];
	struct flag_place place = {.offset = 0};
	int r = bench_device_alloc(owner, MEMORY_SHARED, sizeof(zeros), &place.seen[!from]);

	if (r == 0)
		r = owner->set->ops->write(owner->set, &place.seen[!from].memory, 0, zeros,
					   sizeof(zeros));
	if (r == 0)
		r = bench_device_reach_by(writer, owner, &place.seen[!from], EXPORT_FD,
					  &place.seen[from]);
	*ret = place;
	return r;
}

/* The third takes no part in it: its memory is zeroed from afar. */
static int flags_at_third(const struct meeting *m, unsigned from, struct flag_place *ret)
{
	struct flag_place place = {.offset = m->pair->third_at};
	const struct end *e = &m->ends[from];
	int r = 0;

	if (!m->pair->third)
		return err_set(ENOTSUP, "there is no third device");
	for (unsigned i = 0; r == 0 && i < 2; i++)
		r = bench_device_take(m->ends[i].device, m->pair->third, &place.seen[i]);
	if (r == 0)
		r = e->device->set->ops->copy(e->device->set, e->device->stream,
					      &place.seen[from].memory, place.offset,
					      &e->own->memory, MEETING_ZEROS_AT,
					      PATTERN_THIRD_BYTES);
	if (r == 0)
		r = bench_device_wait(e->device);
	*ret = place;
	return r;
}

static const struct variant variants[] = {
	{"the flag in the owner's memory", NULL, BY_KERNEL, BY_KERNEL},
	{"the flag in host memory", flags_on_host, BY_KERNEL, BY_KERNEL},
	{"the flag on a third device", flags_at_third, BY_KERNEL, BY_KERNEL},
	{"data by copy engine, the flag by a kernel", NULL, BY_ENGINE, BY_KERNEL},
	{"data by copy engine, the flag in host memory", flags_on_host, BY_ENGINE, BY_KERNEL},
	{"data by a kernel, the flag by copy engine", NULL, BY_KERNEL, BY_ENGINE},
};

/* Two flags of each block: the writer's, then the owner's answer. */
static void use_place(struct meeting *m, unsigned from, const struct flag_place *place)
{
	const uint64_t answer = PATTERN_THIRD_BYTES / 2;

	for (unsigned i = 0; i < 2; i++) {
		u64 at = place->seen[i].at + place->offset;

		m->ends[i].args.post = at + (i == from ? 0 : answer);
		m->ends[i].args.poll = at + (i == from ? answer : 0);
	}
}

/* The owner reads its own memory, where the other writes. */
static void push(struct meeting *m, unsigned from)
{
	struct exchange_args *writer = &m->ends[from].args, *owner = &m->ends[!from].args;

	writer->produce = m->ends[from].other.at + MEETING_DATA_AT;
	owner->consume = m->ends[!from].own->at + MEETING_DATA_AT;
	writer->consume = owner->produce = 0;
	writer->produce_tag = owner->consume_tag =
		pattern_tag_of(m->ends[from].device, m->ends[!from].device, m->pattern);
	m->blame[!from] = from;
}

/* This round's data by copy engine, from the writer's own memory. */
static int copy_data(const struct meeting *m, unsigned from, unsigned round, uint64_t bytes)
{
	const struct end *e = &m->ends[from];
	const struct bench_device *s = e->device;
	uint64_t at = MEETING_DATA_AT + round % MEETING_PLACES * m->stride;
	int r = BENCH_DEVICE_RUN(s, fill, .target = e->own->at + at, .words = bytes / sizeof(u64),
				 .tag = pattern_tag_of(s, m->ends[!from].device,
						       m->pattern + round));

	return r < 0 ? r
		     : s->set->ops->copy(s->set, s->stream, &e->other.memory, at, &e->own->memory,
					 at, bytes);
}

/* What the kernel would have stored, for its one block; what it stores itself goes nowhere. */
static int copy_flags(const struct meeting *m, unsigned from, unsigned round)
{
	const struct end *e = &m->ends[from];
	const struct bench_device *s = e->device;

	return s->set->ops->copy(s->set, s->stream, &e->other.memory, MEETING_FLAGS_AT,
				 &e->own->memory, MEETING_VALUES_AT + round * sizeof(u32),
				 sizeof(u32));
}

/* The owner's kernel runs all the while; the writer's work is in its stream, round after round. */
static int enqueue_rounds(struct meeting *m, const struct variant *v, unsigned from,
			  uint64_t rounds)
{
	uint64_t bytes = FLAG_BYTES < m->stride ? FLAG_BYTES : m->stride;
	struct exchange_args *a = &m->ends[from].args;
	const struct bench_device *s = m->ends[from].device, *owner = m->ends[!from].device;
	int r = meeting_launch(m, !from, rounds, bytes);

	if (v->flag == BY_ENGINE)
		a->post = s->scratch.at + STATION_SCRATCH - 4096;
	a->produce = 0;
	for (unsigned i = 0; r == 0 && i < rounds; i++) {
		if (v->data == BY_ENGINE)
			r = copy_data(m, from, i, bytes);
		else
			r = BENCH_DEVICE_RUN(s, fill,
					     .target = m->ends[from].other.at + MEETING_DATA_AT +
						       i % MEETING_PLACES * m->stride,
					     .words = bytes / sizeof(u64),
					     .tag = pattern_tag_of(s, owner, m->pattern + i));
		if (r == 0 && v->flag == BY_ENGINE)
			r = copy_flags(m, from, i);
		if (r == 0)
			r = meeting_launch(m, from, 1, 0);
	}
	return r;
}

/* The flag past both meetings of round i. */
static int write_values(const struct meeting *m, unsigned from)
{
	const struct end *e = &m->ends[from];
	u32 values[ENQUEUED];

	for (u32 i = 0; i < ENQUEUED; i++)
		values[i] = 2 * (i + 1);
	return e->device->set->ops->write(e->device->set, &e->own->memory, MEETING_VALUES_AT,
					  values, sizeof(values));
}

static int run_variant(struct meeting *m, const struct variant *v, unsigned from)
{
	bool enqueued = v->data == BY_ENGINE || v->flag == BY_ENGINE;
	uint64_t rounds =
		enqueued ? pattern_rounds(m->pair, ENQUEUED, 8) : pattern_rounds(m->pair, 500, 8);
	int r = write_values(m, from);

	if (r < 0)
		return r;
	if (enqueued)
		return meeting_end(m, enqueue_rounds(m, v, from, rounds), rounds, v->says);
	for (unsigned end = 0; r == 0 && end < 2; end++)
		r = meeting_launch(m, end, rounds, FLAG_BYTES);
	return meeting_end(m, r, rounds, v->says);
}

/* Each with a meeting of its own, because it changes what launches have in common. */
static int try_variant(const struct pattern_pair *p, const struct variant *v, unsigned from)
{
	struct flag_place place = {0};
	bool here = true;
	struct meeting m;
	int r = meeting_open(p, PATTERN_FLAGS, &m);

	m.blocks = v->flag == BY_ENGINE ? 1 : m.blocks;
	if (r == 0)
		r = meeting_reset(&m);
	if (r == 0 && v->place) {
		r = v->place(&m, from, &place);
		here = r == 0 || verify_loses_sets(r);
	}
	if (r == 0) {
		push(&m, from);
		if (v->place)
			use_place(&m, from, &place);
		r = run_variant(&m, v, from);
	}
	for (unsigned i = 0; i < 2 && !verify_loses_sets(r); i++)
		bench_device_free(p->ends[i], &place.seen[i]);
	meeting_close(&m, r);
	return here ? r : 0;
}

int pattern_flags(const struct pattern_pair *p, unsigned from)
{
	const struct pattern_result *result = &p->results[from]->patterns[PATTERN_FLAGS];
	int r = 0;

	/*
	 * Where data come late, a flag may never come: the first variant that goes wrong is the
	 * last.
	 */
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		if (r < 0 || result->kind != WRONG_NOTHING)
			break;
		r = try_variant(p, &variants[i], from);
	}
	return r;
}

/* ---- atomics: both add to a word of the owner's at once ---- */

#define ADDS_GPU  20000
#define ADDS_HOST 2000

static int enqueue_adds(const struct bench_device *s, u64 word, uint64_t adds)
{
	return BENCH_DEVICE_RUN(s, tally, .counter = word, .adds = adds);
}

static int add_at_once(const struct meeting *m, unsigned from, uint64_t adds)
{
	const struct end *e = &m->ends[from], *owner = &m->ends[!from];
	int r = enqueue_adds(e->device, e->other.at + MEETING_VALUES_AT, adds);

	if (r == 0)
		r = enqueue_adds(owner->device, owner->own->at + MEETING_VALUES_AT, adds);
	for (unsigned i = 0; i < 2; i++) {
		int other = bench_device_wait(m->ends[i].device);

		if (r == 0)
			r = other;
	}
	return r;
}

static int count_adds(struct meeting *m, unsigned from)
{
	struct pattern_result *result = &m->pair->results[from]->patterns[PATTERN_ATOMICS];
	const struct end *owner = &m->ends[!from];
	uint64_t adds = pattern_rounds(m->pair, ADDS_GPU, ADDS_HOST);
	u32 count = 0;
	int r = add_at_once(m, from, adds);

	if (r == 0)
		r = owner->device->set->ops->read(owner->device->set, &owner->own->memory,
						  MEETING_VALUES_AT, &count, sizeof(count));
	if (r < 0)
		return r;
	result->rounds = 2 * adds;
	result->lost = 2 * adds - count;
	result->kind = result->lost ? WRONG_LOST : WRONG_NOTHING;
	return 0;
}

int pattern_atomics(const struct pattern_pair *p, unsigned from)
{
	struct meeting m;
	int r = meeting_open(p, PATTERN_ATOMICS, &m);

	if (r == 0)
		r = meeting_reset(&m);
	if (r == 0)
		r = count_adds(&m, from);
	meeting_close(&m, r);
	return r;
}
