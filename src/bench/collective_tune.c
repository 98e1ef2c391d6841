/* SPDX-License-Identifier: Apache-2.0 */
/* Times every algorithm of libonehop's operations at the sizes of a table, for its choice. */
#include "bench/collective_impl.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define BATCH_US       1000. /* a batch takes about as long */
#define ITERATIONS_MAX 50
#define RELATIVE       0.03 /* two algorithms that differ by less are as good as each other */

struct sweep {
	struct bench *b;
	struct collective_plan plan; /* as it was ordered */
	unsigned done, total;
	double us[OPERATION_N][ALGORITHM_N]; /* at the last size; 0: none yet */
};

/* What an operation does with pieces of that size; false: they have no such size, or no room. */
static bool shape_of(const struct sweep *w, enum nccl_op op, unsigned size, struct nccl_shape *ret)
{
	const struct bench *b = w->b;
	const uint64_t piece = tuned_size(size);
	const uint64_t whole[] = {piece, piece * (uint64_t)b->ranks};

	for (size_t i = 0; i < 2; i++) {
		nccl_shape(op, b->type_size, b->ranks, whole[i], ret);
		if (ret->count * b->type_size == piece)
			return ret->bytes <= b->max_bytes;
	}
	return false;
}

/* Which algorithms can run it; returns how many. */
static unsigned list_choices(const struct sweep *w, enum nccl_op op, const struct nccl_shape *s,
			     struct choice ret[ALGORITHM_N])
{
	unsigned n = 0;

	operation_estimate(&w->b->lanes[0].own->facts, nccl_op_ours(op), s->count, w->plan.type,
			   ret);
	for (int a = 0; a < ALGORITHM_N; a++)
		n += ret[a].algorithm != ALGORITHM_N;
	return n;
}

static unsigned count_size(const struct sweep *w, unsigned size)
{
	struct choice each[ALGORITHM_N];
	struct nccl_shape s;
	unsigned n = 0;

	for (int op = 0; op < NCCL_OP_N; op++)
		if (nccl_op_is_ours((enum nccl_op)op) && shape_of(w, (enum nccl_op)op, size, &s))
			n += list_choices(w, (enum nccl_op)op, &s, each);
	return n;
}

static void force(struct bench *b, enum algorithm a)
{
	for (size_t i = 0; i < b->set->n; i++)
		b->lanes[i].own->options.forced = a;
}

static unsigned iterations_of(double us)
{
	const double n = BATCH_US / us;

	return n < 1 ? 1 : n > ITERATIONS_MAX ? ITERATIONS_MAX : (unsigned)n;
}

static double left_s(const struct sweep *w)
{
	return w->plan.budget_s - (clock_s() - w->b->began_s);
}

int bench_tuned_check(const struct collective_tuned *t, bool no_p2p,
		      const struct collective_cell *cell)
{
	const char *without = no_p2p ? ", without P2P" : "";

	if (cell->wrong == 0)
		return 0;
	if (cell->wrong < 0)
		return err_set(EIO, "%s by %s%s: the data was not checked",
			       operation_word(t->operation), algorithm_word(t->algorithm), without);
	return err_set(EIO,
		       "%s by %s%s: wrong data in %lld elements with pieces of %llu bytes; the "
		       "first is element %llu of rank %d",
		       operation_word(t->operation), algorithm_word(t->algorithm), without,
		       (long long)cell->wrong, (unsigned long long)tuned_size(t->size),
		       (unsigned long long)cell->wrong_index, cell->wrong_rank);
}

/*
 * The rest of the budget is shared out evenly; what an operation takes follows from the size
 * before.
 */
static int time_one(struct sweep *w, const struct nccl_shape *s, const struct choice *c,
		    struct collective_tuned *t)
{
	struct bench *b = w->b;
	double *last = &w->us[t->operation][t->algorithm];
	struct collective_row row = {.bytes = s->bytes};
	int r;

	force(b, t->algorithm);
	b->plan->iterations = iterations_of(fmax(c->us, *last));
	b->plan->budget_s = fmax(left_s(w), 0);
	b->spent_s = 0;
	b->cells_left = w->total - w->done;
	r = bench_run_place(b, s, false, &row);
	if (r == 0)
		r = bench_tuned_check(t, w->plan.no_p2p, &row.cell[OUT_OF_PLACE]);
	if (r < 0)
		return r;
	*last = t->us = row.cell[OUT_OF_PLACE].time_us;
	t->done = ++w->done;
	t->total = w->total;
	return bench_say_tuned(b, t);
}

static int tune_operation(struct sweep *w, enum nccl_op op, unsigned size)
{
	struct collective_tuned t = {.operation = nccl_op_ours(op), .size = size};
	struct choice each[ALGORITHM_N];
	struct nccl_shape s;
	int r = 0;

	if (!nccl_op_is_ours(op) || !shape_of(w, op, size, &s))
		return 0;
	w->b->plan->op = op;
	list_choices(w, op, &s, each);
	for (int a = 0; r == 0 && a < ALGORITHM_N; a++) {
		t.algorithm = (enum algorithm)a;
		if (each[a].algorithm != ALGORITHM_N)
			r = time_one(w, &s, &each[a], &t);
	}
	return r;
}

/*
 * From small to large. When the time is up, larger sizes are left out: the choice goes by the times
 * of the last one up to four times its size, and by estimates above. All operations and algorithms
 * of a size are measured or none.
 */
int bench_tune(struct bench *b)
{
	struct sweep w = {.b = b, .plan = *b->plan};
	int r = 0;

	for (unsigned size = 0; size < TUNED_SIZES; size++)
		w.total += count_size(&w, size);
	b->plan->relative = RELATIVE;
	b->plan->graph = 1;
	for (unsigned size = 0; r == 0 && size < TUNED_SIZES && (!size || left_s(&w) > 0); size++)
		for (int op = 0; r == 0 && op < NCCL_OP_N; op++)
			r = tune_operation(&w, (enum nccl_op)op, size);
	force(b, ALGORITHM_N);
	return r;
}
