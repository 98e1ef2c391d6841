/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/all_reduce_check.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS     3
#define BLOCKS_MAX 32
/* Elements; not a multiple of anything, so that shares are uneven. */
#define COUNT_MAX  ((1ul << 18) + 13)
#define COUNT_HOST ((1ul << 14) + 13)
/* Of one read or write (device/device.h). */
#define PIECE 16384ul

/* In a device's scratch memory. */
#define CHECK_AT   0
#define ENDS_AT    4096
#define INPUTS_AT  8192
#define OUTPUTS_AT (INPUTS_AT + DEVICE_MAX * sizeof(u64))
#define FLAGS_AT   (OUTPUTS_AT + DEVICE_MAX * sizeof(u64))

/* Where the values are in a device's window. */
#define OUTPUT_OFFSET(count) (((count) * sizeof(u32) + 4095) / 4096 * 4096)

struct member {
	const struct bench_device *device;
	struct area windows[DEVICE_MAX], flags[DEVICE_MAX]; /* everyone's, as this one sees them */
};

struct reduce {
	struct member *members;
	size_t n;
	uint64_t count;
	unsigned blocks;
	double seconds; /* at least */
	struct arm_result *result;
};

const char *arm_word(enum arm a)
{
	return a == ARM_P2P ? "p2p" : "staged";
}

/* ---- what everyone has to know of everyone ---- */

static int reach_all(const struct reduce *x, struct member *m)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct bench_device *other = x->members[i].device;
		int r = bench_device_reach(m->device, other, &other->window, &m->windows[i]);

		if (r == 0)
			r = bench_device_reach(m->device, other, &other->flags, &m->flags[i]);
		if (r < 0)
			return err_wrap(r, "device %d to %d", bench_device_info(m->device)->number,
					bench_device_info(other)->number);
	}
	return 0;
}

static void let_go(const struct reduce *x, struct member *m)
{
	for (size_t i = 0; i < x->n; i++) {
		bench_device_free(m->device, &m->windows[i]);
		bench_device_free(m->device, &m->flags[i]);
	}
}

static int write_table(const struct member *m, size_t n, const struct area *areas, uint64_t offset,
		       uint64_t at)
{
	const struct bench_device *s = m->device;
	u64 table[DEVICE_MAX];

	for (size_t i = 0; i < n; i++)
		table[i] = areas[i].at + offset;
	return s->set->ops->write(s->set, &s->scratch.memory, at, table, n * sizeof(*table));
}

static int write_tables(const struct reduce *x, const struct member *m)
{
	int r = write_table(m, x->n, m->windows, 0, INPUTS_AT);

	if (r == 0)
		r = write_table(m, x->n, m->windows, OUTPUT_OFFSET(x->count), OUTPUTS_AT);
	return r < 0 ? r : write_table(m, x->n, m->flags, 0, FLAGS_AT);
}

static int clear_flags(const struct bench_device *s)
{
	static const unsigned char zero[STATION_FLAGS];

	return s->set->ops->write(s->set, &s->flags.memory, 0, zero, sizeof(zero));
}

/* ---- values ---- */

/* Other values each round, and something else where the sums will be. */
static int give_values(const struct reduce *x, unsigned round)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct bench_device *s = x->members[i].device;
		int r = BENCH_DEVICE_RUN(s, typed_fill, .target = s->window.at, .count = x->count,
					 .first = round * x->count, .type = ELEMENT_UINT32,
					 .op = REDUCE_SUM, .rank = i);

		if (r == 0)
			r = BENCH_DEVICE_RUN(s, fill,
					     .target = s->window.at + OUTPUT_OFFSET(x->count),
					     .words = (x->count + 1) / 2, .tag = round);
		if (r == 0)
			r = bench_device_wait(s);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_values(const struct reduce *x, size_t i, unsigned round)
{
	const struct bench_device *s = x->members[i].device;
	struct typed_report report = {.first_wrong = CHECK_NONE};
	struct arm_result *a = x->result;
	int r = s->set->ops->write(s->set, &s->scratch.memory, CHECK_AT, &report, sizeof(report));

	if (r == 0)
		r = BENCH_DEVICE_RUN(s, typed_check,
				     .origin = s->window.at + OUTPUT_OFFSET(x->count),
				     .count = x->count, .first = round * x->count,
				     .type = ELEMENT_UINT32, .op = REDUCE_SUM, .ranks = x->n,
				     .report = s->scratch.at + CHECK_AT);
	if (r == 0)
		r = bench_device_wait(s);
	if (r == 0)
		r = s->set->ops->read(s->set, &s->scratch.memory, CHECK_AT, &report,
				      sizeof(report));
	if (r < 0)
		return r;
	a->values += x->count;
	a->wrong += report.wrong;
	if (report.wrong && a->first_device < 0) {
		a->first_device = bench_device_info(s)->number;
		a->first_wrong = report.first_wrong;
	}
	return 0;
}

/* ---- over P2P: one kernel on each device ---- */

static int launch_on(const struct reduce *x, size_t i, unsigned round)
{
	const struct bench_device *s = x->members[i].device;
	const struct all_reduce_args args = {
		.inputs = s->scratch.at + INPUTS_AT,
		.outputs = s->scratch.at + OUTPUTS_AT,
		.flags = s->scratch.at + FLAGS_AT,
		.n = x->n,
		.me = i,
		.count = x->count,
		.epoch = round + 1,
		.abort = s->abort.at,
		.limit_ns = 1000 * device_kernel_limit_us(bench_device_info(s), s->limit_us),
		.report = s->scratch.at + ENDS_AT,
	};

	return bench_device_launch(s, KERNEL_all_reduce, &args, sizeof(args), x->blocks);
}

static int wait_for_end(const struct reduce *x, size_t i, bool *ret_all)
{
	const struct bench_device *s = x->members[i].device;
	u32 ends[BLOCKS_MAX];
	int r = s->set->ops->wait(s->set, s->stream, 2 * s->limit_us);

	if (r == 0)
		r = s->set->ops->read(s->set, &s->scratch.memory, ENDS_AT, ends,
				      x->blocks * sizeof(*ends));
	for (unsigned b = 0; r == 0 && b < x->blocks; b++)
		*ret_all &= ends[b] == WAIT_DONE;
	return r;
}

static int run_p2p(const struct reduce *x, unsigned round)
{
	bool all = true;
	size_t started = 0;
	int r = 0;

	while (r == 0 && started < x->n) {
		r = launch_on(x, started, round);
		started += r == 0;
	}
	for (size_t i = 0; i < started; i++) {
		int other = wait_for_end(x, i, &all);

		if (r == 0)
			r = other;
	}
	if (r == 0 && !all)
		r = err_set(
			ETIMEDOUT,
			"the devices waited for each other in vain: flags between running kernels do not arrive");
	return r;
}

/* ---- around P2P: through the host's memory ---- */

/* One piece of one device, by its copy engine and pinned memory, to or from the caller's. */
static int stage(const struct bench_device *s, const struct area *pinned, uint64_t offset,
		 u32 *values, uint64_t n, bool in)
{
	const struct device_ops *ops = s->set->ops;
	uint64_t bytes = n * sizeof(*values);
	int r = in ? ops->write(s->set, &pinned->memory, 0, values, bytes) : 0;

	if (r == 0 && in)
		r = ops->copy(s->set, s->stream, &s->window.memory, offset, &pinned->memory, 0,
			      bytes);
	else if (r == 0)
		r = ops->copy(s->set, s->stream, &pinned->memory, 0, &s->window.memory, offset,
			      bytes);
	if (r == 0)
		r = bench_device_wait(s);
	if (r == 0 && !in)
		r = ops->read(s->set, &pinned->memory, 0, values, bytes);
	return r;
}

static int sum_piece(const struct reduce *x, const struct area *pinned, uint64_t from, uint64_t n,
		     u32 *sums, u32 *values)
{
	int r = 0;

	for (uint64_t k = 0; k < n; k++)
		sums[k] = 0;
	for (size_t i = 0; r == 0 && i < x->n; i++) {
		r = stage(x->members[i].device, &pinned[i], from * sizeof(u32), values, n, false);
		for (uint64_t k = 0; r == 0 && k < n; k++)
			sums[k] += values[k];
	}
	for (size_t i = 0; r == 0 && i < x->n; i++)
		r = stage(x->members[i].device, &pinned[i],
			  OUTPUT_OFFSET(x->count) + from * sizeof(u32), sums, n, true);
	return r;
}

static int sum_pieces(const struct reduce *x, const struct area *pinned)
{
	u32 *sums = calloc(2 * PIECE, sizeof(*sums));
	int r = sums ? 0 : err_set(ENOMEM, "no memory to sum in");

	for (uint64_t from = 0; r == 0 && from < x->count; from += PIECE)
		r = sum_piece(x, pinned, from, x->count - from < PIECE ? x->count - from : PIECE,
			      sums, sums + PIECE);
	free(sums);
	return r;
}

static int run_staged(const struct reduce *x, unsigned round)
{
	struct area pinned[DEVICE_MAX] = {0};
	int r = 0;

	(void)round;
	for (size_t i = 0; r == 0 && i < x->n; i++)
		r = bench_device_alloc(x->members[i].device, MEMORY_PINNED, PIECE * sizeof(u32),
				       &pinned[i]);
	if (r == 0)
		r = sum_pieces(x, pinned);
	for (size_t i = 0; !verify_loses_sets(r) && i < x->n; i++)
		bench_device_free(x->members[i].device, &pinned[i]);
	return r;
}

/* ---- an arm ---- */

static int run_rounds(const struct reduce *x, int (*run)(const struct reduce *, unsigned))
{
	double until = clock_s() + x->seconds;

	for (unsigned round = 0; round < ROUNDS || (!x->result->wrong && clock_s() < until);
	     round++) {
		int r = give_values(x, round);

		if (r == 0)
			r = run(x, round);
		for (size_t i = 0; r == 0 && i < x->n; i++)
			r = check_values(x, i, round);
		if (r < 0)
			return r;
	}
	return 0;
}

static int run_arm(struct reduce *x, enum arm arm)
{
	int r = 0;

	for (size_t i = 0; r == 0 && arm == ARM_P2P && i < x->n; i++) {
		r = clear_flags(x->members[i].device);
		if (r == 0)
			r = reach_all(x, &x->members[i]);
		if (r == 0)
			r = write_tables(x, &x->members[i]);
	}
	return r < 0 ? r : run_rounds(x, arm == ARM_P2P ? run_p2p : run_staged);
}

static void judge(struct arm_result *a, int r)
{
	struct pair_result p = {0};

	if (r == -EACCES ||
	    r == -ENOTSUP) { /* of all at once, which says nothing of a pair: a limit of peers */
		a->state = PAIR_NOT_TESTED;
		snprintf(a->sentence, sizeof(a->sentence), "not run: %s", err_msg());
	} else if (r < 0) {
		a->kind = verify_error(&p, r);
		a->state = p.state == PAIR_NOT_TESTED ? PAIR_INCOMPLETE : p.state;
		a->sets_lost = p.sets_lost;
		snprintf(a->sentence, sizeof(a->sentence), "%s", p.sentence);
	} else if (a->wrong) {
		a->state = PAIR_WRONG;
		a->kind = WRONG_GARBAGE;
		snprintf(a->sentence, sizeof(a->sentence),
			 "%" PRIu64 " of %" PRIu64 " sums are wrong", a->wrong, a->values);
	} else {
		a->state = PAIR_RIGHT;
	}
}

/* The same grid everywhere, and room for all flags and values. */
static void size_up(struct reduce *x)
{
	x->blocks = BLOCKS_MAX;
	x->count = COUNT_MAX;
	for (size_t i = 0; i < x->n; i++) {
		const struct bench_device *s = x->members[i].device;
		const struct device_info *info = bench_device_info(s);

		if (info->blocks < x->blocks)
			x->blocks = info->blocks;
		if (info->threads == 1 && x->count > COUNT_HOST)
			x->count = COUNT_HOST;
		if (x->count > s->window.memory.size / 16)
			x->count = s->window.memory.size / 16;
	}
	while (x->blocks > 1 && 2 * sizeof(u32) * x->blocks * x->n > STATION_FLAGS)
		x->blocks--;
}

void all_reduce_check(const struct bench_device *const *devices, size_t n, enum arm arm,
		      double seconds, struct arm_result *ret)
{
	struct reduce x = {.n = n, .seconds = seconds, .result = ret};
	int r;

	*ret = (struct arm_result){.first_device = -1};
	x.members = calloc(n, sizeof(*x.members));
	if (!x.members || n > DEVICE_MAX) {
		free(x.members);
		judge(ret, err_set(ENOMEM, "no memory for a sum over all devices, %zu", n));
		return;
	}
	for (size_t i = 0; i < n; i++)
		x.members[i].device = devices[i];
	size_up(&x);
	r = run_arm(&x, arm);
	judge(ret, r);
	for (size_t i = 0; !ret->sets_lost && i < n; i++)
		let_go(&x, &x.members[i]);
	free(x.members);
}
