/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of memory that drivers make in other ways: the host's, and what a GPU may keep
 * compressed.
 */
#include "bench/pattern_impl.h"

#include "base/err.h"
#include "kernels/typed.h"

#include <errno.h>

/* Several of the largest pages: smaller ones are never compressed. */
#define KIND_BYTES (16ul << 20)

typedef int use_fn(const struct pattern_pair *p, unsigned from, const struct area *owned,
		   const struct area *seen);

/* Memory that the owner makes, for as long as `use` runs. */
static int use_memory(const struct pattern_pair *p, unsigned from, enum memory_kind kind,
		      use_fn *use)
{
	const struct bench_device *s = p->ends[from], *owner = p->ends[!from];
	uint64_t size = owner->window.memory.size / 4;
	struct area owned = {0}, seen = {0};
	int r = bench_device_alloc(owner, kind, size < KIND_BYTES ? size : KIND_BYTES, &owned);

	if (r == 0)
		r = bench_device_reach_by(s, owner, &owned, EXPORT_FD, &seen);
	if (r == 0)
		r = use(p, from, &owned, &seen);
	if (!verify_loses_sets(r)) {
		bench_device_free(s, &seen);
		bench_device_free(owner, &owned);
	}
	return r;
}

/* ---- the host's ---- */

static int use_host_memory(const struct pattern_pair *p, unsigned from, const struct area *owned,
			   const struct area *seen)
{
	return pattern_use(p, from, owned, seen, PATTERN_HOST_MEMORY, 0, "");
}

int pattern_host_memory(const struct pattern_pair *p, unsigned from)
{
	return use_memory(p, from, MEMORY_HOST, use_host_memory);
}

/* ---- compressed ---- */

/* In scratch memory, behind the reports of checks (pattern_memory.c). */
#define NUMBERS_AT 16384

static int fill_numbers(const struct bench_device *s, u64 at, uint64_t count)
{
	int r = BENCH_DEVICE_RUN(s, typed_fill, .target = at, .count = count,
				 .type = ELEMENT_UINT64);

	return r < 0 ? r : bench_device_wait(s);
}

static int check_numbers(const struct bench_device *s, u64 at, uint64_t count,
			 struct typed_report *ret)
{
	const struct typed_report empty = {.first_wrong = CHECK_NONE};
	int r = s->set->ops->write(s->set, &s->scratch.memory, NUMBERS_AT, &empty, sizeof(empty));

	if (r == 0)
		r = BENCH_DEVICE_RUN(s, typed_check, .origin = at, .count = count,
				     .type = ELEMENT_UINT64, .ranks = 1,
				     .report = s->scratch.at + NUMBERS_AT);
	if (r == 0)
		r = bench_device_wait(s);
	return r < 0 ? r
		     : s->set->ops->read(s->set, &s->scratch.memory, NUMBERS_AT, ret, sizeof(*ret));
}

/*
 * The pattern's words are as good as random, and no GPU makes them smaller; small numbers it does.
 */
static int use_compressible(const struct pattern_pair *p, unsigned from, const struct area *owned,
			    const struct area *seen)
{
	struct pattern_result *result = &p->results[from]->patterns[PATTERN_COMPRESSIBLE];
	uint64_t count = owned->memory.size / sizeof(u64);
	struct typed_report report = {0};
	int r = pattern_use(p, from, owned, seen, PATTERN_COMPRESSIBLE, 0, "");

	if (r < 0 || result->kind != WRONG_NOTHING)
		return r;
	r = fill_numbers(p->ends[!from], owned->at, count);
	if (r == 0)
		r = check_numbers(p->ends[from], seen->at, count, &report);
	if (r < 0)
		return r;
	result->rounds++;
	if (report.wrong)
		result->kind = WRONG_GARBAGE;
	return 0;
}

int pattern_compressible(const struct pattern_pair *p, unsigned from)
{
	return use_memory(p, from, MEMORY_COMPRESSIBLE, use_compressible);
}
