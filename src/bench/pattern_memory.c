/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns in which memory changes behind what may have been kept of it: rewritten, made again, or
 * far up.
 */
#include "bench/pattern_impl.h"

#include "base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define KIB  1024ul
#define MIB  (1024 * KIB)
#define WORD sizeof(u64)

/* In scratch memory, behind what a meeting has there: reports of so many checks. */
#define REPORTS_AT 8192
#define REPORTS    16

static int clear_reports(const struct bench_device *s)
{
	struct check_report empty[REPORTS] = {0};

	for (size_t i = 0; i < REPORTS; i++)
		empty[i].first_wrong = CHECK_NONE;
	return s->set->ops->write(s->set, &s->scratch.memory, REPORTS_AT, empty, sizeof(empty));
}

static int enqueue_check(const struct bench_device *s, u64 at, uint64_t bytes, u64 tag, size_t k)
{
	return BENCH_DEVICE_RUN(s, check, .origin = at, .words = bytes / WORD, .tag = tag,
				.report = s->scratch.at + REPORTS_AT +
					  k * sizeof(struct check_report));
}

static int enqueue_fill(const struct bench_device *s, u64 at, uint64_t bytes, u64 tag)
{
	return BENCH_DEVICE_RUN(s, fill, .target = at, .words = bytes / WORD, .tag = tag);
}

static int read_reports(const struct bench_device *s, struct check_report ret[static REPORTS])
{
	return s->set->ops->read(s->set, &s->scratch.memory, REPORTS_AT, ret,
				 REPORTS * sizeof(*ret));
}

int pattern_check(const struct bench_device *s, u64 at, uint64_t bytes, u64 tag,
		  struct check_report *ret)
{
	struct check_report reports[REPORTS];
	int r = clear_reports(s);

	if (r == 0)
		r = enqueue_check(s, at, bytes, tag, 0);
	if (r == 0)
		r = bench_device_wait(s);
	if (r == 0)
		r = read_reports(s, reports);
	if (r == 0)
		*ret = reports[0];
	return r;
}

int pattern_fill(const struct bench_device *s, u64 at, uint64_t bytes, u64 tag)
{
	int r = enqueue_fill(s, at, bytes, tag);

	return r < 0 ? r : bench_device_wait(s);
}

/* ---- reread: nothing waits between two reads of the same place, and the second has to differ ---- */

/* In the second level cache of a 4090, and a quarter of it in any. */
#define REREAD_BYTES  (8 * MIB)
#define REREAD_ROUNDS 12

/* Who rewrites and who reads alternate in all combinations. */
static bool owner_copies(unsigned round)
{
	return round & 1;
}

static bool reader_copies(unsigned round)
{
	return round & 2;
}

struct reread {
	struct meeting m;
	unsigned reader; /* end */
	uint64_t most;   /* bytes */
};

static uint64_t bytes_of(const struct reread *x, unsigned round)
{
	return (round & 4 ? x->most : x->most / 4) / WORD * WORD;
}

static u64 reread_tag(const struct reread *x, unsigned round)
{
	return pattern_tag_of(x->m.ends[x->reader].device, x->m.ends[!x->reader].device,
			      64 + round);
}

/* From what is not shared, where a copy engine does it. */
static int rewrite(const struct reread *x, unsigned round)
{
	const struct end *e = &x->m.ends[!x->reader];
	const struct bench_device *s = e->device;
	const struct area *aside = e->own == &s->local ? &s->window : &s->local;
	bool copies = owner_copies(round);
	u64 to = copies ? aside->at : e->own->at;
	int r = enqueue_fill(s, to + MEETING_DATA_AT, bytes_of(x, round), reread_tag(x, round));

	if (r < 0 || !copies)
		return r;
	return s->set->ops->copy(s->set, s->stream, &e->own->memory, MEETING_DATA_AT,
				 &aside->memory, MEETING_DATA_AT, bytes_of(x, round));
}

static int reread(const struct reread *x, unsigned round)
{
	const struct end *e = &x->m.ends[x->reader];
	const struct bench_device *s = e->device;
	const struct area *aside = e->own == &s->local ? &s->window : &s->local;
	u64 from = e->other.at;
	int r = 0;

	if (reader_copies(round)) {
		from = aside->at;
		r = s->set->ops->copy(s->set, s->stream, &aside->memory, MEETING_DATA_AT,
				      &e->other.memory, MEETING_DATA_AT, bytes_of(x, round));
	}
	return r < 0 ? r
		     : enqueue_check(s, from + MEETING_DATA_AT, bytes_of(x, round),
				     reread_tag(x, round), round);
}

/* Kernels that only meet are in both streams where one process would have events. */
static int enqueue_reread(struct reread *x, unsigned round)
{
	int r = rewrite(x, round);

	for (unsigned end = 0; r == 0 && end < 2; end++)
		r = meeting_launch(&x->m, end, 1, 0);
	if (r == 0)
		r = reread(x, round);
	for (unsigned end = 0; r == 0 && end < 2; end++)
		r = meeting_launch(&x->m, end, 1, 0);
	return r;
}

static void judge_rereads(const struct reread *x, const struct check_report *reports)
{
	const struct pattern_pair *p = x->m.pair;
	char says[96];

	p->results[x->reader]->patterns[PATTERN_REREAD].rounds += REREAD_ROUNDS;
	for (unsigned k = 0; k < REREAD_ROUNDS; k++) {
		snprintf(says, sizeof(says), "rewritten by %s, read by %s",
			 owner_copies(k) ? "copy engine" : "a kernel",
			 reader_copies(k) ? "copy engine" : "a kernel");
		pattern_found(p, x->reader, PATTERN_REREAD, &reports[k], bytes_of(x, k) / WORD,
			      reread_tag(x, k), says);
	}
}

static int run_rereads(struct reread *x)
{
	const struct bench_device *s = x->m.ends[x->reader].device;
	struct check_report reports[REPORTS];
	int r = meeting_reset(&x->m);

	if (r == 0)
		r = clear_reports(s);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < 2; i++)
		x->m.ends[i].args.produce = x->m.ends[i].args.consume = 0;
	for (unsigned k = 0; r == 0 && k < REREAD_ROUNDS; k++)
		r = enqueue_reread(x, k);
	r = meeting_end(&x->m, r, 2ul * REREAD_ROUNDS, "");
	if (r == 0)
		r = read_reports(s, reports);
	if (r == 0)
		judge_rereads(x, reports);
	return r;
}

int pattern_reread(const struct pattern_pair *p, unsigned from)
{
	struct reread x = {.reader = from};
	int r = meeting_open(p, PATTERN_REREAD, &x.m);

	if (r == 0) {
		uint64_t room = x.m.stride * MEETING_PLACES;

		x.most = REREAD_BYTES < room ? REREAD_BYTES : room;
		r = run_rereads(&x);
	}
	meeting_close(&x.m, r);
	return r;
}

/* ---- remap ---- */

#define REMAP_BYTES  (2 * MIB)
#define REMAP_CYCLES 3

int pattern_use(const struct pattern_pair *p, unsigned from, const struct area *owned,
		const struct area *seen, enum pattern pattern, u64 round, const char *says)
{
	const struct bench_device *s = p->ends[from], *owner = p->ends[!from];
	u64 tag = pattern_tag_of(s, owner, round), back = pattern_tag_of(s, owner, round + 1);
	uint64_t bytes = owned->memory.size / WORD * WORD;
	struct check_report report = {0};
	int r = pattern_fill(owner, owned->at, bytes, tag);

	if (r == 0)
		r = pattern_check(s, seen->at, bytes, tag, &report);
	if (r < 0)
		return r;
	pattern_found(p, from, pattern, &report, bytes / WORD, tag, says);
	p->results[from]->patterns[pattern].rounds++;
	if (report.wrong)
		return 0;
	r = pattern_fill(s, seen->at, bytes, back);
	if (r == 0)
		r = pattern_check(owner, owned->at, bytes, back, &report);
	if (r < 0)
		return r;
	pattern_found(p, from, pattern, &report, bytes / WORD, back, says);
	p->results[from]->patterns[pattern].rounds++;
	return 0;
}

static int map_and_use(const struct pattern_pair *p, unsigned from, enum export_kind kind,
		       u64 round, const char *says)
{
	const struct bench_device *s = p->ends[from], *owner = p->ends[!from];
	uint64_t size = owner->window.memory.size / 4;
	struct area owned = {0}, seen = {0};
	int r = bench_device_alloc(owner, bench_device_memory_kind(kind),
				   size < REMAP_BYTES ? size : REMAP_BYTES, &owned);

	if (r == 0)
		r = bench_device_reach_by(s, owner, &owned, kind, &seen);
	if (r == 0)
		r = pattern_use(p, from, &owned, &seen, PATTERN_REMAP, round, says);
	if (!verify_loses_sets(r)) {
		bench_device_free(s, &seen);
		bench_device_free(owner, &owned);
	}
	return r;
}

int pattern_remap(const struct pattern_pair *p, unsigned from)
{
	static const struct {
		enum export_kind kind;
		enum device_cap cap;
		const char *says;
	} kinds[] = {{EXPORT_FD, DEVICE_EXPORT_FD, "shared as a file descriptor"},
		     {EXPORT_IPC, DEVICE_EXPORT_IPC, "shared by IPC"}};
	int r = 0;

	for (size_t k = 0; r == 0 && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (!(p->ends[!from]->set->caps & kinds[k].cap))
			continue;
		for (unsigned i = 0; r == 0 && i < REMAP_CYCLES; i++)
			r = map_and_use(p, from, kinds[k].kind, 2ul * i, kinds[k].says);
		if (r == -EACCES && kinds[k].kind == EXPORT_IPC)
			r = 0; /* some containers refuse it, and file descriptors were right */
	}
	return r;
}

/* ---- last ---- */

int pattern_last(const struct pattern_pair *p, unsigned from)
{
	const struct bench_device *s = p->ends[from], *owner = p->ends[!from];
	struct area seen = {0};
	char says[48];
	int r;

	if (!owner->high.memory.size)
		return err_set(ENOTSUP, "no memory is left outside the test's buffers");
	snprintf(says, sizeof(says), "%" PRIu64 " MiB", owner->high.memory.size / MIB);
	r = bench_device_reach(s, owner, &owner->high, &seen);
	if (r == 0)
		r = pattern_use(p, from, &owner->high, &seen, PATTERN_LAST, 0, says);
	if (!verify_loses_sets(r))
		bench_device_free(s, &seen);
	return r;
}
