/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/test_figures.h"

#include "base/alloc.h"
#include "bench/pattern.h"
#include "result/figures.h"

static bool was_tested(enum pair_state state)
{
	return state == PAIR_RIGHT || state == PAIR_WRONG;
}

static const char *kind_word(enum wrong_kind k)
{
	return k == WRONG_NOTHING ? "" : wrong_word(k);
}

static void add_check(struct figures *f, const char *what, int initiator, int target, bool ok,
		      const char *kind, const char *pattern)
{
	struct figure *row = figures_add(f, what, initiator, target, ok);

	row->kind = kind;
	row->pattern = pattern;
}

/* A GPU that could not be opened cannot be tested: that fails too. */
static void add_own_memory(struct figures *f, const struct test_result *r, size_t k)
{
	const struct test_device *d = &r->devices[k];
	bool opened = !*d->sentence, right = d->local.state == PAIR_RIGHT;

	if (was_tested(d->local.state) && (opened || !right))
		add_check(f, METRIC_GPU_VERIFIED, (int)k, (int)k, right, kind_word(d->local.kind),
			  "");
	else if (!opened)
		add_check(f, METRIC_GPU_VERIFIED, (int)k, (int)k, false, TEST_NOT_OPENED, "");
}

/*
 * A pair counts as verified only after all patterns, which a slow or an incomplete pair did not
 * reach. A single copy of a test is not a benchmark, unless the test itself found it far too slow.
 */
static void add_pair(struct figures *f, const struct pair_result *p, int i, int j)
{
	const char *pattern = p->pattern ? pattern_rows[p->pattern].name : "";
	bool slow = p->kind == WRONG_SLOW, ok = p->state == PAIR_RIGHT;

	if (!was_tested(p->state))
		return;
	if (!slow)
		add_check(f, p->kind == WRONG_REFUSED ? METRIC_ACCESS : METRIC_PAIR_VERIFIED, i, j,
			  ok, kind_word(p->kind), pattern);
	if (ok || slow)
		add_check(f, METRIC_PAIR_RATE, i, j, !slow, kind_word(p->kind), pattern);
	if (p->round_trip.median_ns > 0)
		figures_add(f, METRIC_ROUND_TRIP_SINGLE, i, j, p->round_trip.median_ns / 1e3)
			->samples = (unsigned)p->round_trip.n;
	if (slow)
		figures_add(f, METRIC_WRITE_CE, i, j, p->copy_gbps);
}

/*
 * Over P2P, and through host memory, which shows whether the GPUs are right. Of refusal a pair says
 * so.
 */
static void add_all_reduce(struct figures *f, const struct test_result *r, enum arm a)
{
	const struct arm_result *arm = &r->arms[a];
	int *among = arena_alloc(f->arena, r->n, sizeof(*among));
	struct figure *row;
	size_t n = 0;

	if (!was_tested(arm->state) || arm->kind == WRONG_REFUSED)
		return;
	for (size_t k = 0; k < r->n; k++)
		if (!*r->devices[k].sentence)
			among[n++] = (int)k;
	add_check(f, METRIC_ALL_VERIFIED, -1, -1, arm->state == PAIR_RIGHT, kind_word(arm->kind),
		  arm_word(a));
	row = &f->rows[f->row_n - 1];
	row->among = among;
	row->among_n = n;
}

struct figures *test_figures(const struct test_result *r, const char *const *names,
			     const char *const *pci)
{
	struct figures *f = figures_new("", "onehop test");

	if (!pci)
		f->note = "a test of simulated devices";
	for (size_t k = 0; k < r->n; k++) {
		const struct device_info *info = &r->devices[k].info;

		figures_add_gpu(f, pci ? pci[k] : "", pci ? info->name : names[k], info->ordinal);
		add_own_memory(f, r, k);
	}
	for (size_t k = 0; k < r->n * r->n; k++)
		if (k / r->n != k % r->n)
			add_pair(f, &r->pairs[k], (int)(k / r->n), (int)(k % r->n));
	for (int a = 0; a < ARM_N; a++)
		add_all_reduce(f, r, (enum arm)a);
	return f;
}

/* ---- counts ---- */

static void count_pair(struct test_counts *c, const struct pair_result *p)
{
	c->pairs++;
	c->right += p->state == PAIR_RIGHT;
	c->wrong += p->state == PAIR_WRONG;
	c->incomplete += p->state == PAIR_INCOMPLETE;
	c->not_tested += p->state == PAIR_NOT_RUN || p->state == PAIR_NOT_TESTED;
}

/* Of a device that could not be opened, the pairs say that nothing was tested. */
static void count_local(struct test_counts *c, const struct test_device *d)
{
	c->locals_wrong += d->local.state == PAIR_WRONG;
	c->locals_not_tested += d->local.state == PAIR_NOT_TESTED && !*d->sentence;
}

void test_count(const struct test_result *r, struct test_counts *ret)
{
	struct test_counts c = {0};
	size_t n = r ? r->n : 0;

	for (size_t i = 0; i < n * n; i++)
		if (i / n != i % n)
			count_pair(&c, &r->pairs[i]);
	for (size_t i = 0; i < n; i++)
		count_local(&c, &r->devices[i]);
	for (int a = 0; r && a < ARM_N; a++) {
		c.arms_wrong += r->arms[a].state == PAIR_WRONG;
		c.arms_incomplete += r->arms[a].state == PAIR_INCOMPLETE;
	}
	*ret = c;
}
