/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels/: what each does, on host devices or directly as functions; and that all are in the PTX.
 */
#include "kernels/native.h"
#include "kernels/ptx.h"
#include "kernels/typed.h"

#include "device_rig.h"
#include "skip.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs a whole grid in this thread. */
static void run(enum device_kernel k, u32 blocks, const void *args)
{
	const u32 closing = 0;

	for (u32 b = 0; b < blocks; b++)
		native_run(k, &(struct native_block){.id = b, .count = blocks, .closing = &closing},
			   1, NULL, args);
}

static u64 next_random(u64 *state)
{
	*state = *state * 6364136223846793005ul + 1442695040888963407ul;
	return *state ^ *state >> 29;
}

static void all_are_in_the_ptx(void **state)
{
	(void)state;
	if (!kernels_ptx[0])
		SKIP("built without clang: no kernels");
#define IS_THERE(ptx, name) assert_non_null(strstr(ptx, ".visible .entry " #name "(\n"));
#define IS_COMMON(name)     IS_THERE(kernels_ptx, name)
#define IS_COLLECTIVE(name) IS_THERE(collectives_ptx, name)
	COMMON_KERNELS(IS_COMMON)
	COLLECTIVE_KERNELS(IS_COLLECTIVE)
	assert_null(strstr(collectives_ptx, ".local"));
	assert_non_null(strstr(kernels_ptx, "ld.global.v4.u32"));
	assert_null(strstr(kernels_ptx, ".local")); /* nothing spills to memory */
	assert_null(strstr(kernels_ptx, ".extern"));
}

/* ---- the pattern ---- */

static void pattern_round_trip(void **state)
{
	u64 seed = 1;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		const u64 tag = next_random(&seed) >> 40, index = next_random(&seed) >> 24;
		const u64 word = pattern_word(tag, index);

		assert_true(pattern_tag(word) == tag && pattern_index(word) == index);
		assert_true(word != 0 || (tag == 0xffffff && index == (1ul << 40) - 1));
	}
	assert_int_equal(pattern_word(0xffffff, (1ul << 40) - 1), 0);
}

static void pattern_tags(void **state)
{
	const u64 tag = pattern_tag_make(3, 200, PATTERN_ROUNDS + 5, 1);

	(void)state;
	assert_int_equal(tag, 3 << 16 | 200 << 8 | 5 << 1 | 1);
	assert_int_equal(pattern_tag_round(tag), 5);
}

#define WORDS 1000u
#define FIRST 77u

/* A buffer with the right pattern, to be spoilt. */
struct spoilt {
	u64 words[WORDS];
	u64 tag;
};

static void prepare(struct spoilt *b)
{
	b->tag = pattern_tag_make(2, 1, 9, 0);
	run(KERNEL_fill, 3, &(struct fill_args){(u64)b->words, WORDS, FIRST, b->tag});
}

static struct check_report check(const struct spoilt *b, u32 blocks)
{
	struct check_report r = {.first_wrong = CHECK_NONE};

	run(KERNEL_check, blocks,
	    &(struct check_args){(u64)b->words, WORDS, FIRST, b->tag, (u64)&r});
	assert_int_equal(r.wrong, r.zero + r.old + r.foreign + r.displaced + r.other);
	return r;
}

static void check_right(void **state)
{
	struct spoilt b;
	struct check_report r;

	(void)state;
	prepare(&b);
	for (u32 i = 0; i < WORDS; i++)
		assert_int_equal(b.words[i], pattern_word(b.tag, FIRST + i));
	r = check(&b, 4);
	assert_int_equal(r.wrong, 0);
	assert_true(r.first_wrong == CHECK_NONE);
}

static void check_zero(void **state)
{
	struct spoilt b;
	struct check_report r;

	(void)state;
	prepare(&b);
	memset(b.words + 10, 0, 20 * sizeof(u64));
	r = check(&b, 4);
	assert_int_equal(r.zero, 20);
	assert_int_equal(r.wrong, 20);
	assert_int_equal(r.first_wrong, 10);
	assert_int_equal(r.last_wrong, 29);
}

static void check_old(void **state)
{
	const u64 old = pattern_tag_make(2, 1, 8, 0), poison = pattern_tag_make(2, 1, 9, 1);
	struct spoilt b;
	struct check_report r;

	(void)state;
	prepare(&b);
	b.words[500] = pattern_word(old, FIRST + 500);
	r = check(&b, 2);
	assert_int_equal(r.old, 1);
	assert_int_equal(r.poison, 0);
	assert_int_equal(r.any_old_tag, old);
	for (u32 i = 900; i < WORDS; i++)
		b.words[i] = pattern_word(poison, FIRST + i);
	r = check(&b, 2);
	assert_int_equal(r.old, 101);
	assert_int_equal(r.poison, 100);
	assert_int_equal(r.last_wrong, WORDS - 1);
}

static void check_foreign(void **state)
{
	const u64 foreign = pattern_tag_make(2, 7, 9, 0);
	struct spoilt b;
	struct check_report r;

	(void)state;
	prepare(&b);
	b.words[0] = pattern_word(foreign, FIRST);
	r = check(&b, 1);
	assert_int_equal(r.foreign, 1);
	assert_int_equal(r.wrong, 1);
	assert_int_equal(r.any_old_tag, foreign);
	assert_int_equal(r.first_wrong, 0);
}

static void check_displaced(void **state)
{
	struct spoilt b;
	struct check_report r;

	(void)state;
	prepare(&b);
	for (u32 i = 0; i < WORDS - 512; i++)
		b.words[i] = pattern_word(b.tag, FIRST + i + 512);
	r = check(&b, 4);
	assert_int_equal(r.displaced, WORDS - 512);
	assert_int_equal(r.any_shift, 512);
	assert_int_equal(r.shifts_differ, 0);
	b.words[600] = pattern_word(b.tag, FIRST + 599);
	r = check(&b, 1);
	assert_int_equal(r.shifts_differ, 1);
}

static void check_noise(void **state)
{
	u64 seed = 5;
	struct spoilt b;
	struct check_report r;

	(void)state;
	prepare(&b);
	for (u32 i = 0; i < WORDS; i += 2)
		b.words[i] = next_random(&seed);
	r = check(&b, 3);
	assert_int_equal(r.wrong, WORDS / 2);
	assert_int_equal(r.other, WORDS / 2);
	prepare(&b);
	b.words[3] ^= 1ul << 17; /* one bit */
	r = check(&b, 3);
	assert_int_equal(r.wrong, 1);
	assert_int_equal(r.first_wrong, 3);
}

/* ---- copy ---- */

static void copy_checked(u64 to_offset, u64 from_offset, u64 bytes, u32 blocks)
{
	const size_t size = bytes + 128;
	unsigned char *to = aligned_alloc(64, (size + 63) / 64 * 64);
	unsigned char *from = aligned_alloc(64, (size + 63) / 64 * 64);

	for (size_t i = 0; i < size; i++) {
		from[i] = (unsigned char)(i * 7 + i / 256);
		to[i] = 0xee;
	}
	run(KERNEL_copy, blocks,
	    &(struct copy_args){(u64)to + to_offset, (u64)from + from_offset, bytes, bytes % 4});
	assert_memory_equal(to + to_offset, from + from_offset, bytes);
	for (size_t i = 0; i < size; i++)
		if (i < to_offset || i >= to_offset + bytes)
			assert_int_equal(to[i], 0xee);
	free(to);
	free(from);
}

static void copy_every_alignment(void **state)
{
	(void)state;
	for (u64 to = 0; to < 17; to++)
		for (u64 from = 0; from < 17; from++)
			for (u64 bytes = 0; bytes <= 200; bytes += to == from ? 1 : 7)
				copy_checked(to, from, bytes, 1 + (u32)(bytes % 3));
}

static void copy_large(void **state)
{
	(void)state;
	copy_checked(0, 0, 1 << 20, 5);
	copy_checked(3, 3, (1 << 20) + 13, 7);
	copy_checked(16, 8, 300001, 3);
	copy_checked(1, 2, 70001, 2);
	copy_checked(0, 0, 8 * 16 * 3, 3); /* exactly one round of the unrolled loop */
	copy_checked(0, 0, 8 * 16 * 3 - 16, 3);
	/*
	 * three times: pieces that the groups do not share evenly, fewer pieces than groups, and a
	 * rest
	 */
	copy_checked(0, 0, (1 << 20) + 16 * 5 + 3, 5);
	copy_checked(0, 0, 16 * 16 * 3 + 16 + 3, 7);
	copy_checked(5, 5, 16 * 5 + 3, 2);
}

/* ---- elements ---- */

static const struct {
	u64 bytes;
	int fraction; /* bits; 0: whole numbers */
	int bias;
} types[ELEMENT_TYPE_N] = {
	[ELEMENT_INT8] = {1},
	[ELEMENT_UINT8] = {1},
	[ELEMENT_INT32] = {4},
	[ELEMENT_UINT32] = {4},
	[ELEMENT_INT64] = {8},
	[ELEMENT_UINT64] = {8},
	[ELEMENT_FLOAT16] = {2, 10, 15},
	[ELEMENT_FLOAT32] = {4, 23, 127},
	[ELEMENT_FLOAT64] = {8, 52, 1023},
	[ELEMENT_BFLOAT16] = {2, 7, 127},
	[ELEMENT_FLOAT8_E4M3] = {1, 3, 7},
	[ELEMENT_FLOAT8_E5M2] = {1, 2, 15},
};

/* Writes v as the machine's own floating point does, cut off where the type is shorter. */
static void put(unsigned type, void *buffer, u64 i, double v)
{
	const float f = (float)v;
	char *at = (char *)buffer + i * types[type].bytes;
	u64 bits = (u64)v;
	int exponent;

	if (type == ELEMENT_FLOAT64) {
		memcpy(&bits, &v, 8);
	} else if (type == ELEMENT_FLOAT32 || type == ELEMENT_BFLOAT16) {
		u32 half;

		memcpy(&half, &f, 4);
		bits = type == ELEMENT_BFLOAT16 ? half >> 16 : half;
	} else if (types[type].fraction && v != 0) {
		const double fraction = frexp(v, &exponent) * 2; /* 1 <= fraction < 2 */

		bits = (u64)(exponent - 1 + types[type].bias) << types[type].fraction |
		       (u64)((fraction - 1) * (1 << types[type].fraction));
	}
	memcpy(at, &bits, types[type].bytes);
}

static double reduced(unsigned type, u64 i, unsigned op, u64 first, u64 n)
{
	double all = (double)typed_value(type, i, first, op);

	for (u64 r = first + 1; r < first + n; r++) {
		const double v = (double)typed_value(type, i, r, op);

		all = op == REDUCE_PROD  ? all * v
		      : op == REDUCE_MAX ? fmax(all, v)
		      : op == REDUCE_MIN ? fmin(all, v)
					 : all + v;
	}
	return op == REDUCE_AVG ? all / (double)n : all;
}

#define COUNT 300u

static struct typed_report typed_checked(const void *buffer, unsigned type, unsigned op, u64 first,
					 u64 ranks)
{
	struct typed_report r = {.first_wrong = CHECK_NONE};

	run(KERNEL_typed_check, 3,
	    &(struct typed_check_args){(u64)buffer, COUNT, 40, type, op, first, ranks, (u64)&r});
	return r;
}

static void typed_filled(void **state)
{
	(void)state;
	for (unsigned type = 0; type < ELEMENT_TYPE_N; type++)
		for (unsigned op = 0; op < REDUCE_OP_N; op++)
			for (u64 rank = 0; rank < 16; rank += 5) {
				u64 made[COUNT + 1] = {0}, right[COUNT + 1] = {0};

				assert_int_equal(typed_bytes(type), types[type].bytes);
				for (u64 i = 0; i < COUNT; i++)
					put(type, right, i,
					    (double)typed_value(type, 40 + i, rank, op));
				run(KERNEL_typed_fill, 2,
				    &(struct typed_fill_args){(u64)made, COUNT, 40, type, op,
							      rank});
				assert_memory_equal(made, right, sizeof(made));
				assert_int_equal(typed_checked(made, type, op, rank, 1).wrong, 0);
			}
}

static void typed_reductions(void **state)
{
	static const u64 ranks[] = {2, 3, 4, 5, 7, 8, 16};

	(void)state;
	for (unsigned type = 0; type < ELEMENT_TYPE_N; type++)
		for (unsigned op = 0; op < REDUCE_OP_N; op++)
			for (size_t n = 0; n < sizeof(ranks) / sizeof(*ranks) &&
					   (type < ELEMENT_FLOAT8_E4M3 || ranks[n] <= 8);
			     n++) {
				u64 buffer[COUNT] = {0};
				struct typed_report r;

				for (u64 i = 0; i < COUNT; i++)
					put(type, buffer, i,
					    reduced(type, 40 + i, op, 2, ranks[n]));
				assert_int_equal(typed_checked(buffer, type, op, 2, ranks[n]).wrong,
						 0);
				put(type, buffer, 123, 2 * reduced(type, 163, op, 2, ranks[n]) + 1);
				put(type, buffer, 200, 127);
				r = typed_checked(buffer, type, op, 2, ranks[n]);
				assert_int_equal(r.wrong, 2);
				assert_int_equal(r.first_wrong, 123);
			}
}

/* Without which a missing rank, or one counted twice, might go unseen. */
static void typed_values_differ(void **state)
{
	(void)state;
	for (unsigned op = 0; op < REDUCE_OP_N; op++) {
		unsigned differ = 0;

		for (u64 i = 0; i < COUNT; i++)
			for (unsigned type = 0; type < ELEMENT_TYPE_N; type++)
				differ +=
					typed_value(type, i, 0, op) != typed_value(type, i, 1, op);
		assert_true(differ > COUNT * ELEMENT_TYPE_N / 4);
	}
}

/* ---- kernels that wait ---- */

static void gate_opens(void **state)
{
	struct device_set *s = rig_open(1, FAULT_NONE);
	struct memory words = rig_alloc(s, -1, 8);
	struct stream stream = rig_stream(s, 0);
	const u64 at = rig_address(s, &words, 0);
	const u32 one = 1, closed[2] = {0};

	(void)state;
	rig_set(s, &words, closed, sizeof(closed));
	RIG_LAUNCH(s, stream, gate, 1, at, at + 4, RIG_LIMIT_NS);
	assert_int_equal(rig_u32(s, &words, 1), WAIT_RUNNING);
	assert_int_equal(s->ops->wait(s, stream, 1), -ETIMEDOUT);
	rig_set(s, &words, &one, sizeof(one));
	rig_wait(s, stream);
	assert_int_equal(rig_u32(s, &words, 1), WAIT_DONE);
	rig_set(s, &words, closed, sizeof(closed));
	RIG_LAUNCH(s, stream, gate, 1, at, at + 4, 1000);
	rig_wait(s, stream);
	assert_int_equal(rig_u32(s, &words, 1), WAIT_TIMED_OUT);
	device_close(s);
}

#define ROUNDS 50u

/* Two devices to and fro; what the one that begins tells. */
static struct ping_pong_report ping_pong(struct device_set *s, u64 limit_ns, bool abort,
					 u64 *ret_ticks)
{
	struct memory flag[2], report[2], ticks = rig_alloc(s, 0, 8 * ROUNDS);
	struct memory word = rig_alloc(s, -1, 4);
	struct stream stream[2];
	struct ping_pong_report r = {0};
	const u32 zero = 0, aborted = abort;

	rig_set(s, &word, &aborted, sizeof(aborted));
	for (int d = 0; d < 2; d++) {
		flag[d] = rig_alloc(s, d, 4);
		report[d] = rig_alloc(s, d, sizeof(r));
		stream[d] = rig_stream(s, d);
		rig_set(s, &flag[d], &zero, sizeof(zero));
		rig_set(s, &report[d], &r, sizeof(r));
	}
	for (int d = 0; d < 2; d++)
		RIG_LAUNCH(s, stream[d], ping_pong, 1, .mine = rig_address(s, &flag[d], d),
			   .theirs = rig_address(s, &flag[!d], d), .rounds = ROUNDS,
			   .first = d == 0, .abort = rig_address(s, &word, d), .limit_ns = limit_ns,
			   .ticks = d == 0 ? rig_address(s, &ticks, 0) : 0,
			   .report = rig_address(s, &report[d], d));
	rig_wait(s, stream[0]);
	rig_wait(s, stream[1]);
	assert_ok(s->ops->read(s, &report[0], 0, &r, sizeof(r)));
	if (ret_ticks)
		assert_ok(s->ops->read(s, &ticks, 0, ret_ticks, 8 * ROUNDS));
	return r;
}

static void ping_pong_goes_round(void **state)
{
	struct device_set *s = rig_open(2, FAULT_NONE);
	u64 ticks[ROUNDS], sum = 0;
	struct ping_pong_report r;

	(void)state;
	rig_peers(s);
	r = ping_pong(s, RIG_LIMIT_NS, false, ticks);
	assert_int_equal(r.end, WAIT_DONE);
	assert_int_equal(r.rounds, ROUNDS);
	for (u32 i = 1; i < ROUNDS; i++)
		sum += ticks[i];
	assert_int_equal(sum, r.ticks); /* without the first, which waits for the other kernel */
	assert_true(r.ns >= r.ticks);
	device_close(s);
}

/* Alone with flags that are there already: one round, nobody asks for its ticks. */
static void ping_pong_without_ticks(void **state)
{
	struct ping_pong_report r = {.ticks = 1};
	u32 flag = 1, other = 0, abort = 0;

	(void)state;
	run(KERNEL_ping_pong, 1,
	    &(struct ping_pong_args){.mine = (u64)&flag,
				     .theirs = (u64)&other,
				     .rounds = 1,
				     .first = 1,
				     .abort = (u64)&abort,
				     .limit_ns = RIG_LIMIT_NS,
				     .report = (u64)&r});
	assert_int_equal(r.end, WAIT_DONE);
	assert_int_equal(other, 1);
	assert_int_equal(r.ticks, 0);
}

static void ping_pong_gives_up(void **state)
{
	static const enum fault_kind breaking[] = {FAULT_MIRROR, FAULT_LOST, FAULT_DISPLACE,
						   FAULT_STALE};

	(void)state;
	for (size_t i = 0; i < sizeof(breaking) / sizeof(*breaking); i++) {
		struct device_set *s = rig_open(2, breaking[i]);
		struct ping_pong_report r;

		rig_peers(s);
		r = ping_pong(s, 1000000, false, NULL);
		assert_int_equal(r.end, WAIT_TIMED_OUT);
		assert_int_equal(r.rounds, 0);
		r = ping_pong(s, RIG_LIMIT_NS, true, NULL);
		assert_int_equal(r.end, WAIT_ABORTED);
		device_close(s);
	}
}

/* ---- all-reduce ---- */

struct reduction {
	struct device_set *s;
	int n;
	u64 count;
	unsigned blocks;
	struct memory in[8], out[8], flags[8], tables[8], report[8];
	struct stream stream[8];
};

static u32 element(u64 i, int device)
{
	return (u32)(i * 2654435761u) ^ (u32)(device + 1) * 0x10001u;
}

#define TABLE (8 * sizeof(u64))

/* Where everything is, as device d sees it. */
static void reduction_tables(struct reduction *r, int d)
{
	u64 table[3][8] = {0};

	for (int p = 0; p < r->n; p++) {
		table[0][p] = rig_address(r->s, &r->in[p], d);
		table[1][p] = rig_address(r->s, &r->out[p], d);
		table[2][p] = rig_address(r->s, &r->flags[p], d);
	}
	rig_set(r->s, &r->tables[d], table, sizeof(table));
}

static void reduction_begin(struct reduction *r, int n, u64 count, unsigned blocks,
			    enum fault_kind fault)
{
	const size_t flags = sizeof(u32) * 2 * blocks * (size_t)n;
	u32 *values = calloc(count, sizeof(*values)), *zeros = calloc(1, flags);

	r->s = rig_open((size_t)n, fault);
	r->n = n;
	r->count = count;
	r->blocks = blocks;
	rig_peers(r->s);
	for (int d = 0; d < n; d++) {
		r->in[d] = rig_alloc(r->s, d, 4 * count);
		r->out[d] = rig_alloc(r->s, d, 4 * count);
		r->flags[d] = rig_alloc(r->s, d, flags);
		r->tables[d] = rig_alloc(r->s, d, 3 * TABLE);
		r->report[d] = rig_alloc(r->s, d, 4ul * blocks);
		r->stream[d] = rig_stream(r->s, d);
		for (u64 i = 0; i < count; i++)
			values[i] = element(i, d);
		rig_set(r->s, &r->in[d], values, 4 * count);
		rig_set(r->s, &r->flags[d], zeros, flags);
	}
	for (int d = 0; d < n; d++)
		reduction_tables(r, d);
	free(values);
	free(zeros);
}

static void reduction_launch(struct reduction *r, int d, u64 epoch, u64 limit_ns)
{
	const u64 at = rig_address(r->s, &r->tables[d], d);

	RIG_LAUNCH(r->s, r->stream[d], all_reduce, r->blocks, .inputs = at, .outputs = at + TABLE,
		   .flags = at + 2 * TABLE, .n = (u64)r->n, .me = (u64)d, .count = r->count,
		   .epoch = epoch, .limit_ns = limit_ns,
		   .report = rig_address(r->s, &r->report[d], d));
}

/* How many elements are wrong on all devices. */
static u64 reduction_wrong(struct reduction *r)
{
	u32 *out = calloc(r->count, sizeof(*out));
	u64 wrong = 0;

	for (int d = 0; d < r->n; d++) {
		assert_ok(r->s->ops->read(r->s, &r->out[d], 0, out, 4 * r->count));
		for (u64 i = 0; i < r->count; i++) {
			u32 sum = 0;

			for (int p = 0; p < r->n; p++)
				sum += element(i, p);
			wrong += out[i] != sum;
		}
	}
	free(out);
	return wrong;
}

static void all_reduce_sums(void **state)
{
	static const int devices[] = {1, 2, 3, 8};
	static const u64 counts[] = {1, 5, 64, 1003, 4096};

	(void)state;
	for (size_t k = 0; k < 20; k++) {
		struct reduction r;

		reduction_begin(&r, devices[k / 5], counts[k % 5], 1 + (unsigned)k % 4, FAULT_NONE);
		for (u64 epoch = 1; epoch <= 3; epoch++)
			for (int d = 0; d < r.n; d++)
				reduction_launch(&r, d, epoch, RIG_LIMIT_NS);
		for (int d = 0; d < r.n; d++) {
			rig_wait(r.s, r.stream[d]);
			for (u64 b = 0; b < r.blocks; b++)
				assert_int_equal(rig_u32(r.s, &r.report[d], b), WAIT_DONE);
		}
		assert_int_equal(reduction_wrong(&r), 0);
		device_close(r.s);
	}
}

static void all_reduce_gives_up(void **state)
{
	struct reduction r;

	(void)state;
	reduction_begin(&r, 2, 100, 2, FAULT_NONE);
	reduction_launch(&r, 0, 1, 1000000); /* the other one does not come */
	rig_wait(r.s, r.stream[0]);
	assert_int_equal(rig_u32(r.s, &r.report[0], 0), WAIT_TIMED_OUT);
	assert_int_equal(rig_u32(r.s, &r.report[0], 1), WAIT_TIMED_OUT);
	device_close(r.s);
}

static void all_reduce_torn(void **state)
{
	struct reduction r;

	(void)state;
	reduction_begin(&r, 2, 4096, 2, FAULT_TORN);
	reduction_launch(&r, 0, 1, RIG_LIMIT_NS);
	reduction_launch(&r, 1, 1, RIG_LIMIT_NS);
	rig_wait(r.s, r.stream[0]);
	rig_wait(r.s, r.stream[1]);
	assert_int_equal(reduction_wrong(&r), 2 * 1024);
	device_close(r.s);
}

/* ---- what is only so on the GPU ---- */

/* A repeated copy must not read from L1 what it read there the time before. */
static void copy_reads_again(void **state)
{
	const char *entry = strstr(kernels_ptx, ".entry copy("), *end, *fence;

	(void)state;
	if (!*kernels_ptx)
		SKIP("built without clang: no kernels");
	assert_non_null(entry);
	end = strstr(entry, "\n}");
	fence = strstr(entry, "fence.acq_rel.sys");
	assert_true(end && fence && fence < end);
}

/* ---- chains ---- */

static void chain_closes(void **state)
{
	u64 buffer[64] = {0}, end = 0;
	const u64 at = (u64)buffer;

	(void)state;
	run(KERNEL_chain, 3, &(struct chain_args){at, at, sizeof(buffer), 24});
	run(KERNEL_chase, 2, &(struct chase_args){at, 5, (u64)&end, 1});
	assert_int_equal(end, at + 5 * 24ul);
	run(KERNEL_chase, 1, &(struct chase_args){at, sizeof(buffer) / 24, (u64)&end});
	assert_int_equal(end, at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_in_the_ptx),  cmocka_unit_test(pattern_round_trip),
		cmocka_unit_test(pattern_tags),        cmocka_unit_test(check_right),
		cmocka_unit_test(check_zero),          cmocka_unit_test(check_old),
		cmocka_unit_test(check_foreign),       cmocka_unit_test(check_displaced),
		cmocka_unit_test(check_noise),         cmocka_unit_test(copy_every_alignment),
		cmocka_unit_test(copy_large),          cmocka_unit_test(typed_filled),
		cmocka_unit_test(typed_reductions),    cmocka_unit_test(typed_values_differ),
		cmocka_unit_test(gate_opens),          cmocka_unit_test(ping_pong_goes_round),
		cmocka_unit_test(ping_pong_gives_up),  cmocka_unit_test(all_reduce_sums),
		cmocka_unit_test(all_reduce_gives_up), cmocka_unit_test(all_reduce_torn),
		cmocka_unit_test(chain_closes),        cmocka_unit_test(ping_pong_without_ticks),
		cmocka_unit_test(copy_reads_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
