/* SPDX-License-Identifier: Apache-2.0 */
/* A flag between two kernels that run at once: what copies and a wait never show. */
#include "bench/statistics.h"
#include "bench/verify.h"

#include "base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Of one thread a block, which the host is, one turn may cost a time slice. */
#define ROUNDS_GPU  4000
#define ROUNDS_HOST 50
/* In scratch memory. */
#define REPORT_AT 0
#define TICKS_AT  4096

struct turn {
	const struct bench_device *device;
	struct area theirs; /* the other's flag, as this one sees it */
	struct ping_pong_report report;
	uint64_t rounds;
	bool first;
};

static int start(struct turn *t)
{
	const struct bench_device *s = t->device;

	return bench_device_launch(s, KERNEL_ping_pong,
				   &(const struct ping_pong_args){
					   .mine = s->flags.at,
					   .theirs = t->theirs.at,
					   .rounds = t->rounds,
					   .first = t->first,
					   .abort = s->abort.at,
					   .limit_ns = 1000 *
						       device_kernel_limit_us(bench_device_info(s),
									      s->limit_us),
					   .ticks = t->first ? s->scratch.at + TICKS_AT : 0,
					   .report = s->scratch.at + REPORT_AT,
				   },
				   sizeof(struct ping_pong_args), 1);
}

static int prepare(struct turn *t)
{
	const struct bench_device *s = t->device;
	const struct ping_pong_report empty = {0};
	int r = s->set->ops->write(s->set, &s->flags.memory, 0, &(u32){0}, sizeof(u32));

	return r < 0 ? r
		     : s->set->ops->write(s->set, &s->scratch.memory, REPORT_AT, &empty,
					  sizeof(empty));
}

/* The kernel gives up at the same limit as the wait, which therefore gets twice as long. */
static int finish(struct turn *t)
{
	const struct bench_device *s = t->device;
	int r = s->set->ops->wait(s->set, s->stream, 2 * s->limit_us);

	return r < 0 ? r
		     : s->set->ops->read(s->set, &s->scratch.memory, REPORT_AT, &t->report,
					 sizeof(t->report));
}

static int add_ticks(struct samples *samples, const u64 *ticks, uint64_t n, double ns_per_tick)
{
	for (uint64_t i = 0; i < n; i++) {
		int r = samples_add(samples, (double)ticks[i] * ns_per_tick);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The first rounds wait for the other kernel to start; they are left out. */
static int take_times(const struct turn *t, struct round_trip *ret)
{
	const struct ping_pong_report *p = &t->report;
	uint64_t warm = p->rounds / 10, n = p->rounds - warm;
	struct samples samples = {0};
	u64 *ticks;
	int r;

	if (!n || !p->ticks || n > t->rounds)
		return 0;
	ticks = malloc(n * sizeof(*ticks));
	if (!ticks)
		return err_set(ENOMEM, "no memory for %" PRIu64 " round trips", n);
	r = t->device->set->ops->read(t->device->set, &t->device->scratch.memory,
				      TICKS_AT + warm * sizeof(*ticks), ticks, n * sizeof(*ticks));
	if (r == 0)
		r = add_ticks(&samples, ticks, n, (double)p->ns / (double)p->ticks);
	if (r == 0)
		*ret = (struct round_trip){.n = n,
					   .median_ns = samples_median(&samples),
					   .p99_ns = samples_percentile(&samples, 0.99),
					   .max_ns = samples_percentile(&samples, 1)};
	samples_done(&samples);
	free(ticks);
	return r;
}

static int exchange(struct turn *a, struct turn *b, struct pair_result *ret)
{
	int r = prepare(a), other;

	if (r == 0)
		r = prepare(b);
	if (r == 0)
		r = start(b);
	if (r == 0)
		r = start(a);
	if (r == 0)
		r = finish(a);
	other = finish(b); /* in any case: nothing may run on in memory that is freed */
	if (r == 0)
		r = other;
	if (r < 0)
		return r;
	if (a->report.end == WAIT_DONE && b->report.end == WAIT_DONE)
		return take_times(a, &ret->round_trip);
	ret->state = PAIR_WRONG;
	ret->kind = WRONG_STALL;
	snprintf(ret->sentence, sizeof(ret->sentence),
		 "copies are right, but a flag between running kernels stopped after %" PRIu64
		 " of %" PRIu64 " round trips",
		 (uint64_t)a->report.rounds, a->rounds);
	return 0;
}

static uint64_t rounds_for(const struct bench_device *s)
{
	return bench_device_info(s)->threads > 1 ? ROUNDS_GPU : ROUNDS_HOST;
}

void verify_round_trip(const struct bench_device *initiator, const struct bench_device *owner,
		       struct pair_result *ret)
{
	struct turn a = {.device = initiator, .rounds = rounds_for(initiator), .first = true};
	struct turn b = {.device = owner, .rounds = a.rounds};
	int r = bench_device_reach(initiator, owner, &owner->flags, &a.theirs);

	if (r == 0)
		r = bench_device_reach(owner, initiator, &initiator->flags, &b.theirs);
	if (r == 0)
		r = exchange(&a, &b, ret);
	if (r < 0)
		ret->kind = verify_error(ret, r);
	if (ret->sets_lost)
		return;
	bench_device_free(initiator, &a.theirs);
	bench_device_free(owner, &b.theirs);
}
