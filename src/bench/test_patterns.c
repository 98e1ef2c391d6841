/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of all pairs of a run. */
#include "bench/pattern.h"
#include "bench/test_run_impl.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Where in a third device's flags those of device a's pairs are. */
#define THIRD_AT 4096

static unsigned wanted_of(const struct test_request *q)
{
	return pattern_wanted(q->long_s > 0, q->informs);
}

static bool wants_patterns(const struct test_job *j, size_t a, size_t b)
{
	unsigned wanted = wanted_of(j->request);

	return a < b && test_is_right(j, a, b) && test_is_right(j, b, a) &&
	       (!pattern_all_done(test_pair(j->result, a, b), wanted) ||
		!pattern_all_done(test_pair(j->result, b, a), wanted));
}

/* Handed out before pairs run side by side: a device's set is used by one of them at a time. */
static int export_flags(struct test_job *j)
{
	size_t n = j->result->n;

	j->flags = calloc(n, sizeof(*j->flags));
	if (!j->flags)
		return err_set(ENOMEM, "no memory for %zu exports", n);
	for (size_t i = 0; i < n; i++) {
		const struct bench_device *s = &j->slots[i].device;
		struct memory_export e = {.fd = -1};

		j->flags[i].fd = -1;
		if (j->slots[i].open && s->set->caps & DEVICE_EXPORT_FD &&
		    s->set->ops->export(s->set, &s->flags.memory, EXPORT_FD, &e) == 0)
			j->flags[i] = e;
	}
	return 0;
}

static void close_flags(struct test_job *j)
{
	for (size_t i = 0; i < j->result->n; i++)
		if (j->flags[i].fd >= 0)
			close(j->flags[i].fd);
	free(j->flags);
	j->flags = NULL;
}

/* Another device that both reach well. */
static const struct memory_export *third_of(const struct test_job *j, size_t a, size_t b)
{
	for (size_t c = 0; c < j->result->n; c++)
		if (c != a && c != b && j->flags[c].fd >= 0 && test_is_right(j, a, c) &&
		    test_is_right(j, b, c))
			return &j->flags[c];
	return NULL;
}

/* One step for both directions; each has a line of its own when it has ended. */
static void run_patterns(struct test_job *j, struct test_step step)
{
	size_t a = (size_t)step.initiator, b = (size_t)step.target;
	struct test_step back = {TEST_PATTERNS, step.target, step.initiator, NULL, 0};
	struct pair_result *there = test_pair(j->result, a, b), *here = test_pair(j->result, b, a);
	const struct pattern_pair p = {
		.ends = {&j->slots[a].device, &j->slots[b].device},
		.results = {there, here},
		.third = third_of(j, a, b),
		.third_at = THIRD_AT + a * PATTERN_THIRD_BYTES,
		.wanted = wanted_of(j->request),
		.long_s = j->request->long_s / 2 / (double)(j->rounds ? j->rounds : 1),
	};

	if (test_stopped(j) || !test_can_run(j, a, b, there) || !test_can_run(j, b, a, here))
		return;
	if (test_begin(j, &step) < 0) {
		there->state = here->state = PAIR_INCOMPLETE;
		bench_sentence(there->sentence);
		bench_sentence(here->sentence);
		return;
	}
	pattern_run(&p);
	if (there->sets_lost || here->sets_lost)
		test_restart_both(j, a, b);
	there->sets_lost = here->sets_lost = false;
	test_end(j, &step, there);
	test_end(j, &back, here);
}

/* A right pair whose patterns did not all run is not verified: they find what copies do not. */
static void mark_incomplete(struct test_job *j, size_t a, size_t b)
{
	struct pair_result *p = test_pair(j->result, a, b);
	enum pair_state back = test_pair(j->result, b, a)->state;
	const char *why = back == PAIR_WRONG        ? "the opposite direction fails"
			  : back == PAIR_NOT_TESTED ? "the opposite direction could not be tested"
			  : j->result->stopped      ? "the run was stopped first"
			  : back == PAIR_INCOMPLETE ? "the opposite direction is incomplete"
						    : "one of them could not be started";

	if (p->state != PAIR_RIGHT || pattern_all_done(p, pattern_bits(PATTERN_ALWAYS)))
		return;
	p->state = PAIR_INCOMPLETE;
	if (!*p->sentence)
		snprintf(p->sentence, sizeof(p->sentence),
			 "copies are right, but not all patterns ran: %s", why);
}

static void mark_all_incomplete(struct test_job *j)
{
	for (size_t a = 0; a < j->result->n; a++)
		for (size_t b = 0; b < j->result->n; b++)
			if (a != b)
				mark_incomplete(j, a, b);
}

int test_patterns(struct test_job *j, const struct paths *paths)
{
	int r = export_flags(j);

	if (r < 0)
		return r;
	r = test_run_rounds(j, paths, TEST_PATTERNS, wants_patterns, run_patterns);
	close_flags(j);
	mark_all_incomplete(j);
	return r;
}
