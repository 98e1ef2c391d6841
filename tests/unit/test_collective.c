/* SPDX-License-Identifier: Apache-2.0 */
/* src/collective/ on host devices: every operation against a plain reference, for random ranks, counts, types, places
 * and algorithms; ranks that do not come; and ranks that are processes. */
#include "collective/pairs.h"
#include "collective/slots.h"

#include "base/array.h"
#include "comm_rig.h"
#include "fake_device.h"
#include "kernels/typed.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define ROOM   (1ul << 20) /* bytes of a buffer, with what must not be touched around it */
#define SLICE  (ROOM / 16) /* of one operation, where several are under way */
#define MARGIN 64ul
#define RANKS  COLLECTIVE_RANKS_MAX

/* ---- the reference: values are made by their type's own rules, one element after another ---- */

static u64 load(const unsigned char *at, u64 bytes)
{
	u64 word = 0;

	memcpy(&word, at, bytes);
	return word;
}

static double half_value(u32 bits)
{
	const int exponent = (int)(bits >> 10 & 31);
	const double size =
		exponent ? ldexp(1024 + (bits & 1023), exponent - 25) : ldexp(bits & 1023, -24);

	return bits & 0x8000 ? -size : size;
}

static float bfloat_value(u32 bits)
{
	const u32 wide = bits << 16;
	float f;

	memcpy(&f, &wide, sizeof(f));
	return f;
}

/*
 * The nearest of all 16-bit values; of two equally near ones the even one. By search: nothing of
 * the kernels' way.
 */
static u32 nearest(float f, bool half)
{
	const u32 sign = signbit(f) ? 0x8000 : 0, last = half ? 0x7bff : 0x7f7f;
	const double size = fabs((double)f);
	u32 low = 0, high = last;

	while (low < high) { /* the largest that is not above */
		const u32 middle = (low + high + 1) / 2;

		if ((half ? half_value(middle) : (double)bfloat_value(middle)) <= size)
			low = middle;
		else
			high = middle - 1;
	}
	if (low < last) {
		const double below = half ? half_value(low) : (double)bfloat_value(low);
		const double above = half ? half_value(low + 1) : (double)bfloat_value(low + 1);

		if (size - below > above - size || (size - below == above - size && (low & 1)))
			low++;
	}
	return sign | low;
}

#define REDUCE(type, wide)                                                                         \
	do {                                                                                       \
		type a_, b_;                                                                       \
                                                                                                   \
		memcpy(&a_, &a, sizeof(a_));                                                       \
		memcpy(&b_, &b, sizeof(b_));                                                       \
		if (op == REDUCE_PROD)                                                             \
			a_ = (type)((wide)a_ * (wide)b_);                                          \
		else if (op == REDUCE_MAX)                                                         \
			a_ = a_ > b_ ? a_ : b_;                                                    \
		else if (op == REDUCE_MIN)                                                         \
			a_ = a_ < b_ ? a_ : b_;                                                    \
		else                                                                               \
			a_ = (type)((wide)a_ + (wide)b_);                                          \
		a = 0;                                                                             \
		memcpy(&a, &a_, sizeof(a_));                                                       \
		return a;                                                                          \
	} while (0)

/* 16-bit floats come as float. */
static u64 reduce_two(unsigned type, unsigned op, u64 a, u64 b)
{
	switch (type) {
	case ELEMENT_INT8:
		REDUCE(signed char, u64);
	case ELEMENT_UINT8:
		REDUCE(unsigned char, u64);
	case ELEMENT_INT32:
		REDUCE(int, u64);
	case ELEMENT_UINT32:
		REDUCE(u32, u64);
	case ELEMENT_INT64:
		REDUCE(i64, u64);
	case ELEMENT_UINT64:
		REDUCE(u64, u64);
	case ELEMENT_FLOAT64:
		REDUCE(double, double);
	default:
		REDUCE(float, float);
	}
}

#define DIVIDE(type)                                                                               \
	do {                                                                                       \
		type a_;                                                                           \
                                                                                                   \
		memcpy(&a_, &a, sizeof(a_));                                                       \
		a_ = (type)(a_ / (type)n);                                                         \
		a = 0;                                                                             \
		memcpy(&a, &a_, sizeof(a_));                                                       \
		return a;                                                                          \
	} while (0)

static u64 divide(unsigned type, u64 a, size_t n)
{
	double d;
	float f;

	switch (type) {
	case ELEMENT_INT8:
		DIVIDE(signed char);
	case ELEMENT_UINT8:
		DIVIDE(unsigned char);
	case ELEMENT_INT32:
		DIVIDE(int);
	case ELEMENT_UINT32:
		DIVIDE(u32);
	case ELEMENT_INT64:
		DIVIDE(i64);
	case ELEMENT_UINT64:
		DIVIDE(u64);
	case ELEMENT_FLOAT64:
		memcpy(&d, &a, 8);
		d *= 1. / (double)n;
		memcpy(&a, &d, 8);
		return a;
	default:
		memcpy(&f, &a, 4);
		f *= (float)(1. / (double)n);
		a = 0;
		memcpy(&a, &f, 4);
		return a;
	}
}

/*
 * 8-bit floats: sign, exponent of `bits - fraction` bits, fraction; the last code is the largest
 * finite one.
 */
static double tiny_value(unsigned type, u32 code)
{
	const u32 fraction = type == ELEMENT_FLOAT8_E4M3 ? 3 : 2, bias = fraction == 3 ? 7 : 15;
	const u32 exponent = (code & 0x7f) >> fraction, rest = code & ((1u << fraction) - 1);
	const double size = ldexp(exponent ? (1u << fraction) + rest : rest,
				  (int)(exponent ? exponent : 1) - (int)bias - (int)fraction);

	return code & 0x80 ? -size : size;
}

static bool is_tiny_type(unsigned type)
{
	return type == ELEMENT_FLOAT8_E4M3 || type == ELEMENT_FLOAT8_E5M2;
}

static u32 nearest_tiny(unsigned type, double d)
{
	const u32 last = type == ELEMENT_FLOAT8_E4M3 ? 0x7e : 0x7b, sign = signbit(d) ? 0x80 : 0;
	const double size = fabs(d);
	u32 low = 0;

	while (low < last && tiny_value(type, low + 1) <= size)
		low++;
	if (low < last) {
		const double below = size - tiny_value(type, low),
			     above = tiny_value(type, low + 1) - size;

		if (below > above || (below == above && (low & 1)))
			low++;
	}
	return sign | low;
}

static u64 widen(unsigned type, u64 bits)
{
	const float f = is_tiny_type(type)        ? (float)tiny_value(type, (u32)bits)
			: type == ELEMENT_FLOAT16 ? (float)half_value((u32)bits)
						  : bfloat_value((u32)bits);
	u64 wide = 0;

	if (!is_tiny_type(type) && type != ELEMENT_FLOAT16 && type != ELEMENT_BFLOAT16)
		return bits;
	memcpy(&wide, &f, 4);
	return wide;
}

static u64 narrow(unsigned type, u64 wide)
{
	float f;

	if (!is_tiny_type(type) && type != ELEMENT_FLOAT16 && type != ELEMENT_BFLOAT16)
		return wide;
	memcpy(&f, &wide, 4);
	if (is_tiny_type(type))
		return nearest_tiny(type, f);
	return nearest(f, type == ELEMENT_FLOAT16);
}

/* 8-bit floats are float16 between two steps. */
static u64 as_half(unsigned type, u64 wide)
{
	float f;

	if (!is_tiny_type(type))
		return wide;
	memcpy(&f, &wide, 4);
	f = (float)half_value(nearest(f, true));
	wide = 0;
	memcpy(&wide, &f, 4);
	return wide;
}

/* A value of moderate size, so that no product of eight overflows a 16-bit float. */
static u64 make_value(unsigned type)
{
	const double d = (double)next_random(4001) / 1000 - 2;
	const float f = (float)d;
	u64 bits = 0;

	switch (type) {
	case ELEMENT_FLOAT16:
		return nearest(f, true);
	case ELEMENT_BFLOAT16:
		return nearest(f, false);
	case ELEMENT_FLOAT8_E4M3:
	case ELEMENT_FLOAT8_E5M2:
		return nearest_tiny(type, d);
	case ELEMENT_FLOAT32:
		memcpy(&bits, &f, 4);
		return bits;
	case ELEMENT_FLOAT64:
		memcpy(&bits, &d, 8);
		return bits;
	default:
		return next_random(~0ul);
	}
}

/* ---- a case ---- */

struct trial {
	enum operation o;
	unsigned type, op;
	u64 slice;     /* bytes into all buffers, where it begins */
	u64 count, at; /* at: bytes behind that, beside a margin */
	int root;
	bool in_place;
};

static u64 in_pieces(const struct rig *g, enum operation o)
{
	return o == OPERATION_REDUCE_SCATTER || o == OPERATION_ALL_TO_ALL ? g->n : 1;
}

static u64 out_pieces(const struct rig *g, enum operation o)
{
	return o == OPERATION_ALL_GATHER || o == OPERATION_ALL_TO_ALL ? g->n : 1;
}

static bool is_taker(const struct trial *t, size_t rank)
{
	return t->o != OPERATION_REDUCE || (int)rank == t->root;
}

static bool reduces(enum operation o)
{
	return o == OPERATION_ALL_REDUCE || o == OPERATION_REDUCE || o == OPERATION_REDUCE_SCATTER;
}

/* Where element i of rank's output comes from, if it is not reduced: a rank's input element. */
static const unsigned char *source(const struct rig *g, const struct trial *t, size_t rank, u64 i)
{
	const u64 bytes = typed_bytes(t->type), from = i / t->count, k = i % t->count;

	switch (t->o) {
	case OPERATION_ALL_GATHER:
		return g->sent[from] + t->slice + k * bytes;
	case OPERATION_ALL_TO_ALL:
		return g->sent[from] + t->slice + (rank * t->count + k) * bytes;
	default:
		return g->sent[t->root] + t->slice + i * bytes;
	}
}

/* Element i of the ranks in the mask, in ascending order. Wide. */
static u64 reduce_ranks(const struct rig *g, const struct trial *t, u32 mask, u64 i)
{
	const u64 bytes = typed_bytes(t->type);
	bool first = true;
	u64 all = 0;

	for (size_t r = 0; r < g->n; r++) {
		const u64 next = widen(t->type, load(g->sent[r] + t->slice + i * bytes, bytes));

		if (!(mask >> r & 1))
			continue;
		all = first ? next : as_half(t->type, reduce_two(t->type, t->op, all, next));
		first = false;
	}
	return all;
}

/*
 * In levels the sums of the groups are rounded, and the owners of the element's shard add them up.
 */
static u64 reduce_groups(const struct rig *g, const struct trial *t, u64 i)
{
	const struct groups *of = &g->comms[0]->facts.groups;
	const u64 bytes = typed_bytes(t->type), each = 16ul * of->size;
	const u64 shard = (t->count * bytes + each - 1) / each * 16;
	bool first = true;
	u64 all = 0;

	for (unsigned r = 0; r < g->n; r++) {
		const u32 mask = groups_mates(of, (unsigned)g->n, r) | 1u << r;
		u64 next;

		if (groups_place(of, r) != i * bytes / shard)
			continue;
		next = widen(t->type, narrow(t->type, reduce_ranks(g, t, mask, i)));
		all = first ? next : as_half(t->type, reduce_two(t->type, t->op, all, next));
		first = false;
	}
	return all;
}

/* In a chain the rank behind the one that gets the sum comes first, and that one last. */
static u64 reduce_from(const struct rig *g, const struct trial *t, size_t owner, u64 i)
{
	const u64 bytes = typed_bytes(t->type);
	u64 all = 0;

	for (size_t k = 1; k <= g->n; k++) {
		const u64 next = load(g->sent[(owner + k) % g->n] + t->slice + i * bytes, bytes);

		all = k == 1 ? widen(t->type, next)
			     : reduce_two(t->type, t->op, all, widen(t->type, next));
	}
	return all;
}

static enum algorithm algorithm_of(const struct rig *g, const struct trial *t)
{
	const struct onehop_comm *c = g->comms[0];
	struct choice p;

	operation_choose(&c->facts, t->o, t->count, t->type, c->options.forced, &p);
	return p.algorithm;
}

static u64 expected(const struct rig *g, const struct trial *t, size_t rank, u64 i)
{
	const u64 index = t->o == OPERATION_REDUCE_SCATTER ? rank * t->count + i : i;
	u64 all;

	if (!reduces(t->o))
		return load(source(g, t, rank, i), typed_bytes(t->type));
	switch (algorithm_of(g, t)) {
	case PIPED_LEVELS:
		all = reduce_groups(g, t, index);
		break;
	case PIPED_CHAIN:
		all = reduce_from(g, t, t->o == OPERATION_REDUCE ? (size_t)t->root : rank, index);
		break;
	default:
		all = reduce_ranks(g, t, ~0u, index);
	}
	if (t->op == REDUCE_AVG)
		all = as_half(t->type, divide(t->type, all, g->n));
	return narrow(t->type, all);
}

static void write_all(struct rig *g, const struct memory *m, u64 at, const void *from, u64 n)
{
	for (u64 k = 0; k < n; k += 65536)
		assert_ok(g->set->ops->write(g->set, m, at + k, (const char *)from + k,
					     n - k < 65536 ? n - k : 65536));
}

static void read_all(struct rig *g, const struct memory *m, u64 at, void *to, u64 n)
{
	for (u64 k = 0; k < n; k += 65536)
		assert_ok(g->set->ops->read(g->set, m, at + k, (char *)to + k,
					    n - k < 65536 ? n - k : 65536));
}

/* In place: where the smaller of the two buffers lies in the larger. */
static u64 place_in_out(const struct rig *g, const struct trial *t, size_t rank)
{
	const u64 bytes = t->count * typed_bytes(t->type);

	return out_pieces(g, t->o) > in_pieces(g, t->o) ? rank * bytes : 0;
}

static u64 place_of_out(const struct rig *g, const struct trial *t, size_t rank)
{
	const u64 bytes = t->count * typed_bytes(t->type);

	return in_pieces(g, t->o) > out_pieces(g, t->o) ? rank * bytes : 0;
}

static struct operation_call call_of(struct rig *g, const struct trial *t, size_t rank)
{
	const u64 out = rig_address(g->set, &g->out[rank], (int)rank) + t->slice + MARGIN + t->at;
	const u64 in = t->in_place ? out + place_in_out(g, t, rank)
				   : rig_address(g->set, &g->in[rank], (int)rank) + t->slice +
					     MARGIN + t->at;

	return (struct operation_call){.in = (const void *)in,
				       .out = (void *)(out + (t->in_place ? place_of_out(g, t, rank)
									  : 0)),
				       .count = t->count,
				       .type = t->type,
				       .op = t->op,
				       .root = t->root,
				       .stream = g->native[rank]};
}

/* Fresh values in, and something else all over out. */
static void prepare(struct rig *g, const struct trial *t)
{
	const u64 bytes = typed_bytes(t->type), size = t->count * in_pieces(g, t->o) * bytes;
	const u64 all = size + t->count * out_pieces(g, t->o) * bytes + 2 * MARGIN + t->at + bytes;
	const u64 room = ROOM - t->slice, filled = all < room ? all : room;

	for (size_t r = 0; r < g->n; r++) {
		for (u64 i = 0; i < t->count * in_pieces(g, t->o); i++) {
			const u64 v = make_value(t->type);

			memcpy(g->sent[r] + t->slice + i * bytes, &v, bytes);
		}
		memset(g->got[r], 0x5a, filled);
		write_all(g, &g->out[r], t->slice, g->got[r], filled);
		if (t->in_place)
			write_all(g, &g->out[r], t->slice + MARGIN + t->at + place_in_out(g, t, r),
				  g->sent[r] + t->slice, size);
		else
			write_all(g, &g->in[r], t->slice + MARGIN + t->at, g->sent[r] + t->slice,
				  size);
	}
}

static void check_untouched(const unsigned char *from, const unsigned char *to, const char *what)
{
	for (; from < to; from++)
		if (*from != 0x5a)
			fail_msg("%s: a byte there became %02x", what, *from);
}

static void check_rank(struct rig *g, const struct trial *t, size_t rank)
{
	const u64 bytes = typed_bytes(t->type), n = t->count * out_pieces(g, t->o);
	const u64 begin = MARGIN + t->at + (t->in_place ? place_of_out(g, t, rank) : 0);
	const unsigned char *out = g->got[rank] + begin;

	if (!is_taker(t, rank) && t->in_place)
		return;
	read_all(g, &g->out[rank], t->slice, g->got[rank], begin + n * bytes + MARGIN);
	if (!is_taker(t, rank)) {
		check_untouched(out, out + n * bytes, "no taker");
		return;
	}
	for (u64 i = 0; i < n; i++) {
		const u64 right = expected(g, t, rank, i), there = load(out + i * bytes, bytes);

		if (there != right)
			fail_msg(
				"operation %d, %zu ranks, type %u, op %u, %lu elements at %lu, root %d%s, algorithm %d: "
				"rank %zu has %lx at %lu, not %lx",
				t->o, g->n, t->type, t->op, t->count, t->at, t->root,
				t->in_place ? ", in place" : "", (int)g->comms[rank]->last, rank,
				there, i, right);
	}
	if (!t->in_place) {
		check_untouched(g->got[rank], out, "ahead of the output");
		check_untouched(out + n * bytes, out + n * bytes + MARGIN, "behind the output");
	}
}

/* Now and then a rank comes late. */
static void enqueue_all(struct rig *g, const struct trial *t)
{
	const size_t first = next_random(g->n); /* whoever comes first */

	for (size_t k = 0; k < g->n; k++) {
		const size_t r = (first + k) % g->n;
		const struct operation_call call = call_of(g, t, r);

		if (next_random(16) == 0)
			usleep((useconds_t)next_random(3000));
		assert_ok(operation_enqueue(g->comms[r], t->o, &call));
	}
}

static void run_trial(struct rig *g, const struct trial *t)
{
	prepare(g, t);
	enqueue_all(g, t);
	rig_wait_all(g);
	for (size_t r = 0; r < g->n; r++)
		check_rank(g, t, r);
}

/* What kernels have code of their own for (collective_sums_fast()). */
static void make_sum(struct trial *t)
{
	static const unsigned types[] = {ELEMENT_FLOAT32, ELEMENT_FLOAT16, ELEMENT_BFLOAT16};

	t->o = OPERATION_ALL_REDUCE;
	t->type = types[next_random(ARRAY_LEN(types))];
	t->op = next_random(2) ? REDUCE_SUM : REDUCE_AVG;
	assert_true(collective_sums_fast(t->type, t->op));
}

static struct trial random_trial(const struct rig *g, u64 longest)
{
	const u64 most[] = {4, 40, 400, longest};
	struct trial t = {.o = (enum operation)next_random(OPERATION_N),
			  .type = (unsigned)next_random(ELEMENT_TYPE_N),
			  .op = (unsigned)next_random(REDUCE_OP_N),
			  .count = next_random(most[next_random(ARRAY_LEN(most))]),
			  .root = (int)next_random(g->n),
			  .in_place = next_random(2)};

	if (next_random(3) == 0)
		make_sum(&t);
	/*
	 * Kernels' own loads are of the element's alignment; a third of all buffers are aligned to
	 * a vector.
	 */
	t.at = next_random(3) ? next_random(16) * typed_bytes(t.type) : 0;
	return t;
}

/* ---- properties ---- */

static void run_trials(struct rig *g, int trials)
{
	for (int i = 0; i < trials; i++) {
		const struct trial t = random_trial(g, 4000);

		run_trial(g, &t);
	}
}

static void run_random(size_t n, enum algorithm forced, bool no_p2p, int trials)
{
	const struct comm_options o = options_of(forced, no_p2p);
	struct rig g;

	rig_start(&g, n, ROOM, &o);
	assert_int_equal(g.comms[0]->facts.direct, !no_p2p || n == 1);
	run_trials(&g, trials);
	rig_stop(&g);
}

#define TRIALS 12

static void each_algorithm_direct(void **state)
{
	(void)state;
	for (size_t n = 1; n <= RANKS; n++)
		for (int a = 0; a <= ALGORITHM_N; a++)
			run_random(n, (enum algorithm)a, false, TRIALS);
}

static void each_algorithm_through_the_host(void **state)
{
	(void)state;
	for (size_t n = 1; n <= RANKS; n++)
		for (int a = 0; a <= ALGORITHM_N; a++)
			run_random(n, (enum algorithm)a, true, TRIALS);
}

static void each_algorithm_in_several_threads(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rig_grids); i++) {
		rig_grid = rig_grids[i];
		for (int a = 0; a <= ALGORITHM_N; a++)
			for (size_t n = 2; n <= 3; n++)
				run_random(n, (enum algorithm)a, (i + n + (size_t)a) % 2, TRIALS);
	}
	rig_grid = (struct rig_grid){0};
}

/*
 * Choices are kept, by places that calls share: another operation, type, count or algorithm that is
 * forced is another choice.
 */
static void each_call_has_its_own_choice(void **state)
{
	const struct comm_options o = options_of(ALGORITHM_N, false);
	struct rig g;

	(void)state;
	rig_start(&g, 2, ROOM, &o);
	for (int i = 0; i < 400; i++) {
		const struct trial t = {.o = next_random(2) ? OPERATION_ALL_REDUCE
							    : OPERATION_BROADCAST,
					.type = next_random(2) ? ELEMENT_FLOAT32 : ELEMENT_INT8,
					.count = 1 + 8000 * next_random(4)};
		const enum algorithm forced = next_random(2) ? ALGORITHM_N : PIPED_ONE;
		struct choice right;

		for (size_t r = 0; r < g.n; r++)
			g.comms[r]->options.forced = forced;
		run_trial(&g, &t);
		operation_choose(&g.comms[0]->facts, t.o, t.count, t.type, forced, &right);
		assert_int_equal(g.comms[0]->last, right.algorithm);
	}
	rig_stop(&g);
}

/*
 * Every operation, type and reduction at least once by every algorithm, with several chunks a
 * block.
 */
static void each_operation(void **state)
{
	(void)state;
	for (int a = 0; a < ALGORITHM_N; a++) {
		const struct comm_options o = options_of((enum algorithm)a, a % 2);
		struct rig g;

		rig_start(&g, 3, ROOM, &o);
		for (int k = 0; k < OPERATION_N; k++)
			for (unsigned type = 0; type < ELEMENT_TYPE_N; type++)
				for (unsigned op = 0; op < REDUCE_OP_N; op++) {
					const struct trial t = {.o = (enum operation)k,
								.type = type,
								.op = op,
								.count = 77,
								.root = 1};

					if (reduces(t.o) || op == 0)
						run_trial(&g, &t);
				}
		rig_stop(&g);
	}
}

/* Whatever the algorithm and the element's place; also where nothing is added to it. */
static void infinity_becomes_the_largest(void **state)
{
	const struct trial t = {.type = ELEMENT_FLOAT8_E5M2, .op = REDUCE_SUM, .count = 37};

	(void)state;
	for (size_t n = 1; n <= 3; n += 2)
		for (int a = 0; a < ALGORITHM_N; a++) {
			const struct comm_options o = options_of((enum algorithm)a, false);
			unsigned char there[37];
			struct rig g;

			rig_start(&g, n, ROOM, &o);
			for (size_t r = 0; r < n; r++) {
				memset(there, r ? 0 : 0x7c, sizeof(there));
				write_all(&g, &g.in[r], MARGIN, there, sizeof(there));
			}
			enqueue_all(&g, &t);
			rig_wait_all(&g);
			for (size_t r = 0; r < n; r++) {
				read_all(&g, &g.out[r], MARGIN, there, sizeof(there));
				for (size_t i = 0; i < sizeof(there); i++)
					assert_int_equal(there[i], 0x7b);
			}
			rig_stop(&g);
		}
}

/*
 * Around the ends of units, vectors, blocks and chunks, and with less than a share for every rank.
 */
static void sums_of_every_size(void **state)
{
	static const u64 counts[] = {0,    1,    3,    4,    5,    7,    8,     9,    16,
				     31,   33,   127,  128,  129,  511,  512,   513,  1023,
				     1025, 2047, 2049, 4095, 4097, 8193, 20011, 60001};

	(void)state;
	for (int a = 0; a <= ALGORITHM_N; a++)
		for (size_t n = 2; n <= 5; n++) {
			const struct comm_options o = options_of((enum algorithm)a, n % 2);
			struct rig g;

			rig_start(&g, n, ROOM, &o);
			for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
				struct trial t = {.count = counts[i], .in_place = next_random(2)};

				make_sum(&t);
				t.at = next_random(2) * next_random(16) * typed_bytes(t.type);
				run_trial(&g, &t);
			}
			rig_stop(&g);
		}
}

/* Or rounds. */
static void run_many_chunks(enum operation o, enum algorithm a, unsigned type, u64 at, bool no_p2p)
{
	const struct comm_options options = options_of(a, no_p2p);
	struct trial t = {.o = o, .type = type, .count = 60001, .at = at, .root = 2};
	const struct comm_facts *f;
	struct choice p;
	struct rig g;

	rig_start(&g, 3, ROOM, &options);
	f = &g.comms[0]->facts;
	if (!is_piped(a)) /* between three and four rounds in one step of 4-byte elements */
		t.count = f->flagged_blocks * f->flagged_units * 21ul / 2;
	operation_choose(f, o, t.count, type, a, &p);
	assert_true(a != FLAGGED_ONE || p.chunks > 1);
	assert_true(o != OPERATION_ALL_REDUCE || p.algorithm == a);
	run_trial(&g, &t);
	rig_stop(&g);
}

static void many_chunks(void **state)
{
	(void)state;
	for (int k = 0; k < OPERATION_N; k++)
		for (int a = FLAGGED_ONE; a <= PIPED_TWO; a++) {
			run_many_chunks((enum operation)k, (enum algorithm)a, ELEMENT_INT32, 0,
					k % 2);
			run_many_chunks((enum operation)k, (enum algorithm)a, ELEMENT_FLOAT32, 0,
					k % 2);
			run_many_chunks((enum operation)k, (enum algorithm)a, ELEMENT_FLOAT32, 4,
					!(k % 2));
			run_many_chunks((enum operation)k, (enum algorithm)a, ELEMENT_BFLOAT16, 0,
					k % 2);
		}
}

/* ---- in two levels ---- */

/* Two to four groups, also of ranks that are not next to each other. */
static const struct groups layouts[] = {
	{2, 2, {0, 0, 1, 1}},
	{2, 2, {0, 1, 1, 0}},
	{2, 3, {0, 0, 0, 1, 1, 1}},
	{3, 2, {0, 1, 2, 2, 0, 1}},
	{2, 4, {0, 0, 0, 0, 1, 1, 1, 1}},
	{2, 4, {0, 1, 1, 0, 0, 1, 0, 1}},
	{4, 2, {0, 0, 1, 1, 2, 2, 3, 3}},
};

static struct comm_options options_in(const struct groups *groups)
{
	struct comm_options o = options_of(PIPED_LEVELS, false);

	o.groups = groups;
	return o;
}

static void sums_in_levels(void **state)
{
	static const u64 counts[] = {1, 3, 17, 130, 1025, 4099, 20011, 120001};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(layouts); k++) {
		const struct comm_options o = options_in(&layouts[k]);
		struct rig g;

		rig_start(&g, (size_t)layouts[k].n * layouts[k].size, ROOM, &o);
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			struct trial t = {.count = counts[i], .in_place = next_random(2)};

			make_sum(&t);
			t.at = next_random(2) * next_random(16) * typed_bytes(t.type);
			run_trial(&g, &t);
			assert_int_equal(g.comms[0]->last, PIPED_LEVELS);
		}
		rig_stop(&g);
	}
}

static void sums_in_levels_in_several_threads(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rig_grids); i++) {
		const struct groups *layout = &layouts[i % 2 ? 3 : 0];
		const struct comm_options o = options_in(layout);
		struct rig g;

		rig_grid = rig_grids[i / 2];
		rig_start(&g, (size_t)layout->n * layout->size, ROOM, &o);
		run_trials(&g, TRIALS);
		rig_stop(&g);
	}
	rig_grid = (struct rig_grid){0};
}

/* Every type and reduction, with other operations between. */
static void all_reductions_in_levels(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(layouts); k++) {
		const struct comm_options o = options_in(&layouts[k]);
		struct rig g;

		rig_start(&g, (size_t)layouts[k].n * layouts[k].size, ROOM, &o);
		for (unsigned type = 0; type < ELEMENT_TYPE_N; type++)
			for (unsigned op = 0; op < REDUCE_OP_N; op++) {
				const struct trial t = {.type = type,
							.op = op,
							.count = 77 + next_random(2000)};
				const struct trial other = random_trial(&g, 400);

				run_trial(&g, &t);
				if (next_random(4) == 0)
					run_trial(&g, &other);
			}
		rig_stop(&g);
	}
}

/* Only direct paths have links between groups: through the host's memory ranks are in none. */
static void no_groups_through_the_host(void **state)
{
	struct comm_options o = options_in(&layouts[0]);
	const struct trial t = {.type = ELEMENT_FLOAT32, .count = 1000};
	struct rig g;

	(void)state;
	o.no_p2p = true;
	rig_start(&g, 4, ROOM, &o);
	run_trial(&g, &t);
	assert_int_not_equal(g.comms[0]->last, PIPED_LEVELS);
	rig_stop(&g);
}

/* ---- where only some pairs are direct ---- */

/* Any ordered pairs, any pairs, or those of two to four groups. */
static void reach_random(size_t n, uint32_t *ret)
{
	const u64 kind = next_random(3), groups = 2 + next_random(3);

	memset(ret, 0, n * sizeof(*ret));
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++) {
			const bool there = kind == 2 ? i % groups == j % groups : next_random(2);
			const bool back = kind == 0 ? next_random(2) : there;

			ret[i] |= (uint32_t)there << j;
			ret[j] |= (uint32_t)back << i;
		}
}

static void reach_mates(const struct groups *g, size_t n, uint32_t *ret)
{
	for (unsigned i = 0; i < n; i++)
		ret[i] = groups_mates(g, (unsigned)n, i);
}

static void check_reach(const struct rig *g, const uint32_t *reach)
{
	for (size_t r = 0; r < g->n; r++)
		for (unsigned i = 0; i < g->n; i++)
			for (unsigned j = 0; j < g->n; j++)
				if (i != j)
					assert_int_equal(is_direct(&g->comms[r]->facts, i, j),
							 reach[i] >> j & 1);
}

static void each_algorithm_partly_direct(void **state)
{
	(void)state;
	for (size_t n = 2; n <= RANKS; n++)
		for (int a = 0; a <= ALGORITHM_N; a++) {
			struct comm_options o = options_of((enum algorithm)a, false);
			uint32_t reach[RANKS];
			struct rig g;

			reach_random(n, reach);
			o.reach = reach;
			rig_start(&g, n, ROOM, &o);
			check_reach(&g, reach);
			run_trials(&g, TRIALS);
			rig_stop(&g);
		}
}

/* Where groups share links sums go there too. */
static void what_goes_in_a_chain(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(layouts); k++) {
		struct comm_options o = options_in(&layouts[k]);
		struct rig g;

		o.forced = PIPED_CHAIN;
		rig_start(&g, (size_t)layouts[k].n * layouts[k].size, ROOM, &o);
		for (int i = 0; i < 2 * OPERATION_N; i++) {
			struct trial t = random_trial(&g, 4000);

			t.o = (enum operation)(i % OPERATION_N);
			t.type = ELEMENT_FLOAT32;
			t.count += 1;
			run_trial(&g, &t);
			assert_int_equal(g.comms[0]->last == PIPED_CHAIN,
					 t.o != OPERATION_ALL_REDUCE &&
						 t.o != OPERATION_ALL_TO_ALL);
		}
		run_trials(&g, TRIALS);
		rig_stop(&g);
	}
}

/* All pairs of a group are direct, and of the others none or some. */
static void sums_in_levels_through_the_host(void **state)
{
	(void)state;
	for (size_t k = 0; k < 2 * ARRAY_LEN(layouts); k++) {
		const struct groups *layout = &layouts[k / 2];
		const size_t n = (size_t)layout->n * layout->size;
		struct comm_options o = options_in(k % 2 ? layout : NULL);
		uint32_t reach[RANKS];
		struct rig g;

		reach_mates(layout, n, reach);
		for (size_t i = 0; k % 2 && i < n; i++)
			reach[i] |= (uint32_t)next_random(1u << n);
		reach[0] &= ~(1u << (n - 1)) | groups_mates(layout, (unsigned)n, 0);
		o.reach = reach;
		rig_start(&g, n, ROOM, &o);
		assert_memory_equal(&g.comms[0]->facts.groups, layout, sizeof(*layout));
		for (int i = 0; i < 2 * TRIALS; i++) {
			struct trial t = random_trial(&g, 20011);

			t.o = i % 3 ? OPERATION_ALL_REDUCE : t.o;
			if (t.o != OPERATION_ALL_REDUCE)
				t.count %= 4000; /* a piece for each rank has room */
			run_trial(&g, &t);
			assert_true(t.o || !t.count || g.comms[0]->last == PIPED_LEVELS);
		}
		rig_stop(&g);
	}
}

/*
 * Each rank to each other one, all at the same time; some more than the slots hold, some nothing.
 */
static void exchange_all(struct rig *g)
{
	u64 bytes[RANKS][RANKS];

	for (size_t r = 0; r < g->n; r++) {
		for (u64 i = 0; i < ROOM; i++)
			g->sent[r][i] = (unsigned char)next_random(256);
		write_all(g, &g->in[r], 0, g->sent[r], ROOM);
		for (size_t to = 0; to < g->n; to++)
			bytes[r][to] = next_random(4) ? next_random(SLICE) : 0;
	}
	for (size_t r = 0; r < g->n; r++) {
		const u64 in = rig_address(g->set, &g->in[r], (int)r),
			  out = rig_address(g->set, &g->out[r], (int)r);
		struct pair_call calls[2 * RANKS];
		size_t n = 0;

		for (size_t k = 0; k < g->n; k++) {
			calls[n++] = (struct pair_call){false, (int)k, in + k * SLICE, bytes[r][k]};
			calls[n++] = (struct pair_call){true, (int)k, out + k * SLICE, bytes[k][r]};
		}
		assert_ok(pairs_enqueue(g->comms[r], g->native[r], calls, n));
	}
	rig_wait_all(g);
	for (size_t r = 0; r < g->n; r++) {
		read_all(g, &g->out[r], 0, g->got[r], ROOM);
		for (size_t from = 0; from < g->n; from++)
			assert_memory_equal(g->got[r] + from * SLICE, g->sent[from] + r * SLICE,
					    bytes[from][r]);
	}
}

static void sends_partly_direct(void **state)
{
	(void)state;
	for (size_t n = 2; n <= RANKS; n++) {
		struct comm_options o = options_of(ALGORITHM_N, false);
		uint32_t reach[RANKS];
		struct rig g;

		reach_random(n, reach);
		o.reach = reach;
		rig_start(&g, n, ROOM, &o);
		for (int i = 0; i < 3; i++) {
			exchange_all(&g);
			run_trials(&g, 2);
		}
		rig_stop(&g);
	}
}

/* ---- many under way ---- */

#define MANY (ROOM / SLICE)

/* Operations of all kinds and sizes one behind another, which nobody waits for. */
static void prepare_many(struct rig *g, struct trial *trials, bool in_place)
{
	for (u64 k = 0; k < MANY; k++) {
		trials[k] = random_trial(g, 900);
		trials[k].in_place &= in_place;
		trials[k].slice = k * SLICE;
		prepare(g, &trials[k]);
	}
}

static void check_many(struct rig *g, const struct trial *trials)
{
	rig_wait_all(g);
	for (u64 k = 0; k < MANY; k++)
		for (size_t r = 0; r < g->n; r++)
			check_rank(g, &trials[k], r);
}

static void run_back_to_back(size_t n, const struct comm_options *o)
{
	struct trial trials[MANY];
	struct rig g;

	rig_start(&g, n, ROOM, o);
	for (int round = 0; round < 4; round++) {
		prepare_many(&g, trials, true);
		for (u64 k = 0; k < MANY; k++)
			enqueue_all(&g, &trials[k]);
		check_many(&g, trials);
	}
	rig_stop(&g);
}

static void back_to_back(void **state)
{
	(void)state;
	for (size_t n = 2; n <= 5; n++)
		for (int a = 0; a <= ALGORITHM_N; a++) {
			const struct comm_options direct = options_of((enum algorithm)a, false),
						  host = options_of((enum algorithm)a, true);

			run_back_to_back(n, &direct);
			run_back_to_back(n, &host);
		}
	for (size_t k = 0; k < ARRAY_LEN(layouts); k++) {
		const struct comm_options o = options_in(&layouts[k]);

		run_back_to_back((size_t)layouts[k].n * layouts[k].size, &o);
	}
}

/* Two graphs of many operations, launched in turns, with other operations between. */
static void graphs_are_launched_again(void **state)
{
	const struct comm_options o = options_of(ALGORITHM_N, false);
	struct trial trials[MANY];
	struct graph graphs[2][RANKS];
	struct rig g;

	(void)state;
	rig_start(&g, 3, ROOM, &o);
	prepare_many(&g, trials, false);
	for (int half = 0; half < 2; half++) {
		for (size_t r = 0; r < g.n; r++)
			assert_ok(g.set->ops->capture_begin(g.set, g.streams[r]));
		for (u64 k = (u64)half; k < MANY - 1; k += 2)
			enqueue_all(&g, &trials[k]);
		for (size_t r = 0; r < g.n; r++)
			assert_ok(g.set->ops->capture_end(g.set, g.streams[r], &graphs[half][r]));
	}
	for (int launch = 0; launch < 9; launch++) {
		if (launch % 3 == 0)
			enqueue_all(&g, &trials[MANY - 1]);
		for (size_t r = 0; r < g.n; r++)
			assert_ok(g.set->ops->graph_launch(g.set, g.streams[r],
							   graphs[launch % 2][r]));
	}
	check_many(&g, trials);
	rig_stop(&g);
}

/* Two communicators on the same devices, each with streams of its own. */
static void communicators_do_not_meet(void **state)
{
	const struct comm_options o = options_of(ALGORITHM_N, false),
				  p = options_of(ALGORITHM_N, true);
	struct trial first[MANY], second[MANY];
	struct rig a, b;

	(void)state;
	rig_start(&a, 3, ROOM, &o);
	rig_start(&b, 4, ROOM, &p);
	prepare_many(&a, first, true);
	prepare_many(&b, second, true);
	for (u64 k = 0; k < MANY; k++) {
		enqueue_all(&a, &first[k]);
		enqueue_all(&b, &second[k]);
	}
	check_many(&a, first);
	check_many(&b, second);
	rig_stop(&a);
	rig_stop(&b);
}

/* On host devices addresses are this process's own. */
static void set_epochs(struct rig *g, u32 epoch)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct onehop_comm *c = g->comms[i];

		for (unsigned b = 0; b < c->facts.flagged_blocks; b++)
			((struct collective_state *)c->flagged_state)[b].epoch = epoch & 0xffff;
		for (unsigned b = 0; b < c->facts.piped_blocks; b++) {
			((struct collective_state *)c->piped_state)[b].epoch = epoch;
			for (size_t r = 0; r < g->n; r++)
				*(u32 *)(c->routes.pair.flags.from[r] + b * PIPED_FLAG_BYTES) =
					epoch;
		}
	}
}

static void epochs_wrap(void **state)
{
	static const u32 begins[] = {~0u - 20, (1u << 14) - 20, (1u << 31) - 20};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(begins); k++)
		for (int a = 0; a <= ALGORITHM_N; a++) {
			const struct comm_options o = options_of((enum algorithm)a, k % 2);
			struct trial trials[MANY];
			struct rig g;

			rig_grid = a % 2 ? (struct rig_grid){2, 2} : (struct rig_grid){0};
			rig_start(&g, 3, ROOM, &o);
			set_epochs(&g, begins[k]);
			for (int round = 0; round < 3; round++) {
				prepare_many(&g, trials, true);
				for (u64 m = 0; m < MANY; m++)
					enqueue_all(&g, &trials[m]);
				check_many(&g, trials);
			}
			rig_stop(&g);
		}
	rig_grid = (struct rig_grid){0};
}

/* Writes `flag` into all units of one set and rank, or expects that none has it. */
static void stale_units(const struct onehop_comm *c, u64 row, u32 epoch, bool write)
{
	u32 *unit = (u32 *)(row + epoch % 2 * slots_set_bytes(&c->facts));

	for (unsigned k = 0; k < c->facts.flagged_units * c->facts.flagged_blocks; k++, unit += 4)
		if (write)
			unit[1] = unit[3] = (epoch + 2) << 16;
		else if (unit[1] >> 16 == epoch + 2 || unit[3] >> 16 == epoch + 2)
			fail_msg("unit %u still has a flag of later", k);
}

static void all_stale_units(const struct rig *g, u32 epoch, bool write)
{
	for (size_t i = 0; i < g->n; i++)
		for (size_t from = 0; from < g->n; from++) {
			const struct onehop_comm *c = g->comms[i];

			if (from == i)
				continue;
			stale_units(c, c->flagged.pair.from[from], epoch, write);
			stale_units(c, c->flagged.all.from[from], epoch, write);
			stale_units(c, c->flagged.second.from[from], epoch, write);
		}
}

/*
 * What a launch 2^16 launches ago left in a slot would look like a launch's own, were it not
 * cleaned away: also in slots that the cleaning launch itself does not need. (A block of one thread
 * takes units in order, and would never meet one.)
 */
static void expect_cleaned(unsigned type, enum algorithm a, bool no_p2p)
{
	const struct comm_options o = options_of(a, no_p2p);
	const u32 epoch = 2 + (1u << 14);
	struct trial few = {.o = OPERATION_ALL_REDUCE, .type = type};
	struct rig g;

	rig_start(&g, 3, ROOM, &o);
	few.count = g.comms[0]->facts.flagged_blocks * 128ul * 3 - 5; /* for every block */
	all_stale_units(&g, epoch, true);
	set_epochs(&g, epoch - 1);
	run_trial(&g, &few);
	all_stale_units(&g, epoch, false);
	rig_stop(&g);
}

static void stale_slots_are_cleaned(void **state)
{
	(void)state;
	for (int way = 0; way < 8; way++) {
		const enum algorithm a = way & 1 ? FLAGGED_TWO : FLAGGED_ONE;

		rig_grid = way & 4 ? (struct rig_grid){2, 4} : (struct rig_grid){0};
		expect_cleaned(ELEMENT_INT32, a, way & 2);
		expect_cleaned(ELEMENT_FLOAT32, a, way & 2);
	}
	rig_grid = (struct rig_grid){0};
}

/* ---- ranks that do not come ---- */

static void expect_late(struct rig *g, size_t rank, const char *late)
{
	rig_wait(g->set, g->streams[rank]);
	expect_error(comm_check(g->comms[rank]), -ETIMEDOUT, late);
}

static void a_rank_that_does_not_come(void **state)
{
	(void)state;
	for (int a = 0; a < ALGORITHM_N; a++) {
		const struct comm_options o = options_of((enum algorithm)a, a % 2);
		const struct trial t = {.o = OPERATION_ALL_REDUCE,
					.type = ELEMENT_FLOAT32,
					.count = 5000};
		struct rig g;

		rig_start(&g, 3, ROOM, &o);
		run_trial(&g, &t);
		for (size_t r = 0; r < 2;
		     r++) /* only now: all of them came, however slow this machine is */
			g.comms[r]->options.limit_us = 500000;
		for (size_t r = 0; r < 2; r++) {
			const struct operation_call call = call_of(&g, &t, r);

			assert_ok(operation_enqueue(g.comms[r], t.o, &call));
			assert_ok(operation_enqueue(g.comms[r], t.o,
						    &call)); /* ends at once, behind it */
		}
		for (size_t r = 0; r < 2; r++) {
			const struct operation_call call = call_of(&g, &t, r);

			expect_late(
				&g, r,
				"rank 2 did not take part in operation 1 (all_reduce) within 0.5 s, "
				"and has not called it; before, it took part in operation 0 "
				"(all_reduce)");
			assert_int_equal(operation_enqueue(g.comms[r], t.o, &call), -ETIMEDOUT);
			/*
			 * Blocks that start later, in this or another stream, do not wait for a
			 * limit of their own.
			 */
			assert_int_equal(*(const u32 *)g.comms[r]->abort, 1);
		}
		rig_stop(&g);
	}
}

static void closing_ends_what_waits(void **state)
{
	(void)state;
	for (int a = 0; a < ALGORITHM_N; a++) {
		const struct comm_options o = options_of((enum algorithm)a, false);
		const struct trial t = {.o = OPERATION_ALL_REDUCE,
					.type = ELEMENT_FLOAT32,
					.count = 5000};
		struct operation_call call;
		struct rig g;

		rig_start(&g, 2, ROOM, &o);
		call = call_of(&g, &t, 0);
		assert_ok(operation_enqueue(g.comms[0], t.o, &call));
		rig_stop(&g); /* the limit is a minute: the test's own would end it */
	}
}

/* ---- what callers do wrong ---- */

static void expect_refused(struct rig *g, enum operation o, const struct operation_call *call,
			   const char *why)
{
	const u32 number = g->comms[1]->number;

	expect_error(operation_enqueue(g->comms[1], o, call), -EINVAL, why);
	assert_non_null(strstr(err_msg(), "rank 1"));
	assert_int_equal(g->comms[1]->number, number);
}

static void wrong_arguments(void **state)
{
	const struct comm_options o = options_of(ALGORITHM_N, false);
	const struct trial t = {.o = OPERATION_ALL_REDUCE, .type = ELEMENT_FLOAT32, .count = 50};
	struct operation_call call;
	struct rig g;

	(void)state;
	rig_start(&g, 2, ROOM, &o);
#define REFUSED(operation, member, value, why)                                                     \
	call = call_of(&g, &t, 1);                                                                 \
	call.member = value;                                                                       \
	expect_refused(&g, operation, &call, why)
	REFUSED(OPERATION_ALL_REDUCE, in, NULL, "all_reduce: in is NULL");
	REFUSED(OPERATION_ALL_REDUCE, out, NULL, "all_reduce: out is NULL");
	REFUSED(OPERATION_REDUCE, in, NULL, "reduce: in is NULL");
	REFUSED(OPERATION_ALL_REDUCE, type, ELEMENT_TYPE_N, "no element type 12");
	REFUSED(OPERATION_REDUCE_SCATTER, op, REDUCE_OP_N, "no reduction 5");
	REFUSED(OPERATION_BROADCAST, root, 2, "root 2 is not a rank");
	REFUSED(OPERATION_REDUCE, root, -1, "root -1 is not a rank");
	REFUSED(OPERATION_ALL_GATHER, count, ~0ul / 2, "too many");
	REFUSED(OPERATION_ALL_REDUCE, stream, g.native[0], "stream");
	assert_int_equal(operation_enqueue(NULL, OPERATION_ALL_REDUCE, &call), -EINVAL);
	run_trial(&g, &t);
	rig_stop(&g);
}

static void wrong_communicators(void **state)
{
	struct device_request q = request_of(2);
	const struct comm_options o = options_of(ALGORITHM_N, false);
	struct onehop_comm *comms[RANKS + 1];

	(void)state;
	q.n = 0;
	assert_int_equal(comm_open_all(&q, &o, comms), -EINVAL);
	q.n = RANKS + 1;
	assert_int_equal(comm_open_all(&q, &o, comms), -EINVAL);
	q = (struct device_request){.kind = DEVICE_CUDA, .n = 2};
	assert_int_equal(comm_open_all(&q, &o, comms), -EINVAL);
	assert_non_null(strstr(err_msg(), "both on CUDA device 0"));
}

/*
 * Every call of the back end fails once: an error, and nothing is left (as the sanitizers see it).
 */
static void each_call_fails(void **state)
{
	const struct comm_options o = options_of(ALGORITHM_N, false);
	bool opened = false;

	(void)state;
	for (unsigned i = 1; !opened; i++) {
		const struct device_request q = request_of(2);
		const struct fake_plan plan = {.nth = i, .error = -ENOMEM};
		struct onehop_comm *comms[RANKS];
		struct device_set *inner, *set;
		int r;

		assert_true(i < 1000);
		assert_ok(device_open(&q, &inner));
		assert_ok(fake_open(inner, &plan, &set));
		r = comm_open_set(set, &o, comms);
		opened = r == 0;
		if (r < 0)
			assert_int_equal(r, -ENOMEM);
		for (size_t k = 0; opened && k < 2; k++)
			comm_close(comms[k]);
	}
}

/* What a pair that is refused sends goes through the host's memory, and nothing else. */
static void refused_peers(void **state)
{
	struct device_request q = request_of(3);
	const struct comm_options o = options_of(ALGORITHM_N, false);
	struct onehop_comm *comms[RANKS];

	(void)state;
	q.host.fault = (struct fault){FAULT_REFUSE, 1, 2};
	assert_ok(comm_open_all(&q, &o, comms));
	for (size_t i = 0; i < 3; i++) {
		assert_true(comms[i]->facts.mixed && !comms[i]->facts.direct);
		for (unsigned from = 0; from < 3; from++)
			for (unsigned to = 0; to < 3; to++)
				assert_int_equal(is_direct(&comms[i]->facts, from, to),
						 from != to && !(from == 1 && to == 2));
		comm_close(comms[i]);
	}
}

/* ---- ranks that are processes ---- */

#define KEY_SIZE 40
#define COUNT    3000u

struct party {
	char key[KEY_SIZE];
	int n;
	struct comm_options options;
	struct fault fault;
	uint64_t memory_bytes;
	int dies, absent;           /* a rank; -1: none */
	int signal;                 /* of which it dies; 0: it exits */
	const struct tuned *tables; /* one for each rank; NULL: none */
	enum algorithm chosen;      /* of all; with tables or groups */
};

static struct party party_of(int n)
{
	static int number;
	struct party p = {.n = n,
			  .options = options_of(ALGORITHM_N, false),
			  .dies = -1,
			  .absent = -1,
			  .signal = SIGKILL};

	snprintf(p.key, sizeof(p.key), "test_collective/%d/%d", (int)getpid(), number++);
	return p;
}

/* In its own process: 0, or what went wrong. Sums are of ranks' numbers and places. */
static int member_sums(struct onehop_comm *c, const struct party *p, int rank)
{
	struct device_set *s = c->shared->set;
	int values[COUNT], rounds = 0;
	struct stream stream;
	struct memory m;
	void *native;
	u64 at;
	int r = s->ops->alloc(s, 0, MEMORY_DEVICE, sizeof(values), &m);

	if (r < 0 || (r = s->ops->address(s, &m, 0, &at)) < 0 ||
	    (r = s->ops->stream_new(s, 0, &stream)) < 0 ||
	    (r = s->ops->stream_native(s, stream, &native)) < 0)
		return r;
	for (; rounds < 20 && r == 0; rounds++) {
		const struct operation_call call = {.in = (void *)at,
						    .out = (void *)at,
						    .count = rounds % 2 ? 3 : COUNT,
						    .type = ELEMENT_INT32,
						    .stream = native};

		for (int i = 0; i < (int)COUNT; i++)
			values[i] = rank * 1000 + i;
		if (rank == p->dies && rounds == 10 && !p->signal)
			_exit(0);
		if (rank == p->dies && rounds == 10)
			raise(p->signal);
		r = s->ops->write(s, &m, 0, values, sizeof(values));
		if (r == 0)
			r = operation_enqueue(c, OPERATION_ALL_REDUCE, &call);
		if (r == 0)
			r = s->ops->wait(s, stream, RIG_LIMIT_US);
		if (r == 0)
			r = comm_check(c);
		if (r == 0)
			r = s->ops->read(s, &m, 0, values, sizeof(values));
		for (int i = 0; r == 0 && i < (int)call.count; i++)
			if (values[i] != p->n * (p->n - 1) / 2 * 1000 + p->n * i)
				return -EBADMSG;
	}
	return r;
}

static bool has_right_pairs(const struct onehop_comm *c, const struct party *p)
{
	for (unsigned i = 0; i < (unsigned)p->n; i++)
		for (unsigned j = 0; j < (unsigned)p->n; j++) {
			const bool refused = p->fault.kind == FAULT_REFUSE &&
					     (int)i == p->fault.initiator &&
					     (int)j == p->fault.target;
			const bool may = !p->options.reach || p->options.reach[i] >> j & 1;

			if (i != j &&
			    is_direct(&c->facts, i, j) != (may && !refused && !p->options.no_p2p))
				return false;
		}
	return true;
}

static int member(const void *party, int rank)
{
	const struct party *p = party;
	struct device_request q = request_of(1);
	struct onehop_comm *c;
	struct comm_options o = p->options;
	int r;

	o.tuned = p->tables ? &p->tables[rank] : NULL;
	q.number[0] = rank;
	q.host.fault = p->fault;
	if (p->memory_bytes && rank == 1)
		q.host.memory_bytes = p->memory_bytes;
	r = comm_open_rank(&q, p->key, rank, p->n, &o, &c);
	if (r < 0)
		return r;
	if (!has_right_pairs(c, p))
		r = -EXDEV;
	if (r == 0)
		r = member_sums(c, p, rank);
	if (r == 0 && (p->tables || p->options.groups) && c->last != p->chosen)
		r = -EXDEV;
	comm_close(c);
	return r;
}

/* What each process ended with, see rig_end_of(). */
static void run_party(const struct party *p, int *ends)
{
	pid_t pids[RANKS];

	for (int i = 0; i < p->n; i++)
		pids[i] = i == p->absent ? 0 : rig_fork(member, p, i);
	for (int k = 0; k < p->n; k++) {
		const int i =
			(k + p->dies + 1 + p->n) % p->n; /* last the one that may have stopped */

		if (i == p->dies && p->signal == SIGSTOP)
			kill(pids[i], SIGKILL);
		ends[i] = pids[i] ? rig_end_of(pids[i]) : 0;
	}
}

static void expect_ends(const struct party *p, int end)
{
	int ends[RANKS];

	run_party(p, ends);
	for (int i = 0; i < p->n; i++)
		if (i != p->dies && i != p->absent && ends[i] != end)
			fail_msg("rank %d ended with %d (%s), not %d", i, ends[i],
				 strerror(ends[i]), end);
}

static void processes(void **state)
{
	(void)state;
	for (int n = 1; n <= 4; n++) {
		struct party p = party_of(n);

		expect_ends(&p, 0);
		p = party_of(n);
		p.options.no_p2p = n > 1;
		expect_ends(&p, 0);
	}
}

static void processes_in_levels(void **state)
{
	struct party p = party_of(4);

	(void)state;
	p.options = options_in(&layouts[1]);
	p.chosen = PIPED_LEVELS;
	expect_ends(&p, 0);
	p = party_of(4);
	p.options = options_in(&layouts[0]);
	p.options.limit_us = 200000;
	p.dies = 3;
	expect_ends(&p, ETIMEDOUT);
}

static void processes_partly_direct(void **state)
{
	uint32_t reach[RANKS];

	(void)state;
	for (int n = 2; n <= 5; n++) {
		struct party p = party_of(n);

		reach_random((size_t)n, reach);
		p.options.reach = reach;
		expect_ends(&p, 0);
		p = party_of(n);
		reach_random((size_t)n, reach);
		p.options.reach = reach;
		p.options.limit_us = 1000000;
		p.dies = 1;
		expect_ends(&p, ETIMEDOUT);
	}
}

static void processes_in_levels_through_the_host(void **state)
{
	struct party p = party_of(4);
	uint32_t reach[RANKS];

	(void)state;
	reach_mates(&layouts[1], 4, reach);
	p.options = options_in(&layouts[1]);
	p.options.reach = reach;
	p.chosen = PIPED_LEVELS;
	expect_ends(&p, 0);
	p = party_of(4);
	p.options = options_in(&layouts[1]);
	p.options.reach = reach;
	p.options.limit_us = 1000000;
	p.dies = 3;
	expect_ends(&p, ETIMEDOUT);
}

/* Says that one algorithm is the fastest at all sizes. */
static void prefer(enum algorithm a, unsigned n, struct tuned *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->identity.n = n;
	for (unsigned k = 0; k < TUNED_KIND_N; k++)
		for (unsigned s = 0; s < TUNED_SIZES; s++)
			ret->times[k].ns[OPERATION_ALL_REDUCE][a][s] = 1000 + s;
}

/*
 * Each rank has another table: rank 0's counts for all. Ranks that chose differently would wait for
 * each other, or add up wrong data.
 */
static void processes_with_different_tables(void **state)
{
	static struct tuned tables[RANKS];

	(void)state;
	for (int a = 0; a < PIPED_LEVELS; a++) { /* which needs groups */
		struct party p = party_of(3);

		for (int i = 0; i < p.n; i++)
			prefer((enum algorithm)((a + i) % PIPED_LEVELS), 3, &tables[i]);
		p.options.no_p2p = a % 2;
		p.tables = tables;
		p.chosen = (enum algorithm)a;
		expect_ends(&p, 0);
	}
}

/* Rank 0 has none, so nobody uses one. */
static void a_table_of_another_rank_alone(void **state)
{
	static struct tuned tables[RANKS];
	struct party p = party_of(2);

	(void)state;
	prefer(PIPED_TWO, 3, &tables[0]); /* of three devices */
	prefer(PIPED_TWO, 2, &tables[1]);
	p.tables = tables;
	p.chosen = FLAGGED_ONE;
	expect_ends(&p, 0);
}

static void the_table_decides_in_one_process(void **state)
{
	static struct tuned table;
	struct comm_options o = options_of(ALGORITHM_N, false);
	struct rig g;

	(void)state;
	prefer(PIPED_ONE, 3, &table);
	o.tuned = &table;
	rig_start(&g, 3, ROOM, &o);
	for (size_t i = 0; i < g.n; i++) {
		assert_ok(rig_enqueue(&g, i, OPERATION_ALL_REDUCE,
				      (struct operation_call){.count = 3, .type = ELEMENT_INT32}));
		assert_int_equal(g.comms[i]->last, PIPED_ONE);
	}
	rig_wait_all(&g);
	rig_stop(&g);
}

static void copy_times(struct tuned *t, enum operation o, enum algorithm a)
{
	memcpy(t->times[TUNED_DIRECT].ns[o][a],
	       t->times[TUNED_DIRECT].ns[OPERATION_ALL_REDUCE][FLAGGED_ONE],
	       sizeof(t->times[0].ns[0][0]));
}

/*
 * A table from before there were levels or the chain would keep them out: its times are not used
 * where there are groups.
 */
static void a_table_that_is_older(void **state)
{
	static const bool used[] = {false, true, false, true};
	static struct tuned table;
	struct comm_options o = options_in(&layouts[1]);
	struct rig g;

	(void)state;
	o.forced = ALGORITHM_N;
	o.tuned = &table;
	prefer(FLAGGED_ONE, 4, &table);
	for (int more = 0; more < 4; more++) {
		if (more == 1)
			copy_times(&table, OPERATION_ALL_REDUCE, PIPED_LEVELS);
		if (more >= 2)
			copy_times(&table, OPERATION_BROADCAST,
				   more == 2 ? PIPED_TWO : PIPED_CHAIN);
		rig_start(&g, 4, ROOM, &o);
		for (size_t i = 0; i < g.n; i++)
			assert_int_equal(
				g.comms[i]->facts.times.ns[OPERATION_ALL_REDUCE][FLAGGED_ONE][0],
				used[more] ? 1000 : 0);
		rig_stop(&g);
	}
}

static void processes_without_access(void **state)
{
	struct party p = party_of(3);

	(void)state;
	p.fault = (struct fault){FAULT_REFUSE, 0, 2};
	expect_ends(&p, 0);
}

static void a_process_that_dies(void **state)
{
	static const int signals[] = {SIGKILL, SIGSTOP, 0};

	(void)state;
	for (int k = 0; k < 6; k++) {
		const int no_p2p = k % 2;
		struct party p = party_of(3);

		p.dies = 1;
		p.signal = signals[k / 2];
		p.options.limit_us = 1000000;
		p.options.no_p2p = no_p2p;
		expect_ends(&p, ETIMEDOUT);
	}
}

/* The first tells it by its deadline, the others by that or by the first's leaving. */
static void a_process_that_never_comes(void **state)
{
	struct party p = party_of(3);
	int ends[RANKS];

	(void)state;
	p.absent = 2;
	p.options.limit_us = 300000;
	run_party(&p, ends);
	assert_int_equal(ends[0], ETIMEDOUT);
	assert_true(ends[1] == ETIMEDOUT || ends[1] == ECONNRESET);
}

/* One rank has too little memory: all end, none waits for it. */
static void a_process_without_memory(void **state)
{
	struct party p = party_of(3);

	(void)state;
	p.memory_bytes = 65536;
	expect_ends(&p, ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_has_its_own_choice),
		cmocka_unit_test(each_operation),
		cmocka_unit_test(each_algorithm_direct),
		cmocka_unit_test(each_algorithm_through_the_host),
		cmocka_unit_test(each_algorithm_in_several_threads),
		cmocka_unit_test(sums_of_every_size),
		cmocka_unit_test(many_chunks),
		cmocka_unit_test(sums_in_levels),
		cmocka_unit_test(sums_in_levels_in_several_threads),
		cmocka_unit_test(all_reductions_in_levels),
		cmocka_unit_test(no_groups_through_the_host),
		cmocka_unit_test(each_algorithm_partly_direct),
		cmocka_unit_test(what_goes_in_a_chain),
		cmocka_unit_test(sums_in_levels_through_the_host),
		cmocka_unit_test(sends_partly_direct),
		cmocka_unit_test(back_to_back),
		cmocka_unit_test(graphs_are_launched_again),
		cmocka_unit_test(communicators_do_not_meet),
		cmocka_unit_test(epochs_wrap),
		cmocka_unit_test(stale_slots_are_cleaned),
		cmocka_unit_test(a_rank_that_does_not_come),
		cmocka_unit_test(closing_ends_what_waits),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(wrong_communicators),
		cmocka_unit_test(each_call_fails),
		cmocka_unit_test(refused_peers),
		cmocka_unit_test(processes),
		cmocka_unit_test(processes_in_levels),
		cmocka_unit_test(processes_partly_direct),
		cmocka_unit_test(processes_in_levels_through_the_host),
		cmocka_unit_test(processes_with_different_tables),
		cmocka_unit_test(a_table_of_another_rank_alone),
		cmocka_unit_test(the_table_decides_in_one_process),
		cmocka_unit_test(a_table_that_is_older),
		cmocka_unit_test(processes_without_access),
		cmocka_unit_test(a_process_that_dies),
		cmocka_unit_test(a_process_that_never_comes),
		cmocka_unit_test(a_process_without_memory),
		cmocka_unit_test(infinity_becomes_the_largest),
	};

	/* Under ThreadSanitizer only some: together they take 20 GB. */
	if (getenv("COLLECTIVE_TESTS"))
		cmocka_set_test_filter(getenv("COLLECTIVE_TESTS"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
