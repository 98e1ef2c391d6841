/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/test_run_impl.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/parallel.h"
#include "base/rate.h"
#include "device/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the kernel may take to end a worker that was killed. */
#define KILL_LIMIT_US 5000000
#define THREADS_MAX   32

static const char *const phase_words[TEST_PHASE_N] = {"local", "copies", "round-trip", "patterns",
						      "all-reduce"};

const char *test_phase_word(enum test_phase p)
{
	return phase_words[p];
}

struct pair_result *test_pair(const struct test_result *r, size_t initiator, size_t target)
{
	return &r->pairs[initiator * r->n + target];
}

/* ---- hooks ---- */

bool test_stopped(struct test_job *j)
{
	bool stop;

	pthread_mutex_lock(&j->lock);
	if (!j->result->stopped && j->hooks->stopped && j->hooks->stopped(j->hooks->context))
		j->result->stopped = true;
	stop = j->result->stopped;
	pthread_mutex_unlock(&j->lock);
	return stop;
}

int test_begin(struct test_job *j, struct test_step *step)
{
	int r = 0;

	pthread_mutex_lock(&j->lock);
	step->left = j->left ? --j->left : 0;
	if (j->hooks->begins)
		r = j->hooks->begins(j->hooks->context, step);
	pthread_mutex_unlock(&j->lock);
	return r;
}

void test_end(struct test_job *j, struct test_step *step, const struct pair_result *result)
{
	pthread_mutex_lock(&j->lock);
	step->result = result;
	step->left = j->left;
	if (j->hooks->ended)
		j->hooks->ended(j->hooks->context, step);
	pthread_mutex_unlock(&j->lock);
}

/* ---- devices ---- */

static bool is_worker(const struct device_set *s)
{
	return strcmp(s->ops->name, "worker") == 0;
}

/* True: it is another device than the caller thinks. */
static bool is_other(const struct test_request *q, size_t i, const struct device_info *info)
{
	return q->pci[i] && *q->pci[i] && strcmp(q->pci[i], info->pci) != 0;
}

static int check_identity(const struct test_request *q, size_t i, const struct device_info *info)
{
	if (!is_other(q, i, info))
		return 0;
	return err_set(ENODEV, "CUDA device %d is %s, not %s as expected", info->ordinal, info->pci,
		       q->pci[i]);
}

static int open_slot(struct test_job *j, size_t i)
{
	const struct test_request *q = j->request;
	struct slot *s = &j->slots[i];
	int r = q->open(q->open_context, s->request, &s->set);

	if (r < 0)
		return r;
	r = check_identity(q, i, &s->set->info[0]);
	if (r == 0)
		r = bench_device_open(s->set, 0, q->memory_bytes,
				      q->limit_us ? q->limit_us : TEST_LIMIT_US, &s->device);
	if (r < 0) {
		device_close(s->set);
		s->set = NULL;
		return r;
	}
	j->result->devices[i].info = s->set->info[0];
	s->open = true;
	return 0;
}

static void open_job(void *context, size_t i)
{
	struct test_job *j = context;
	int r = open_slot(j, i);

	if (r < 0 && r != -EINTR) /* a signal is not the device's fault; the run says so itself */
		bench_sentence(j->result->devices[i].sentence);
}

/* `lost`: nothing there answers any more, or not in time. */
static int close_slot(struct slot *s, bool lost)
{
	int r = 0;

	if (!s->set)
		return 0;
	if (lost && is_worker(s->set))
		r = worker_kill(s->set, KILL_LIMIT_US);
	else if (!lost)
		bench_device_close(&s->device);
	device_close(s->set);
	*s = (struct slot){.request = s->request};
	return r;
}

/* After a hang or a death: a new worker, or none if the kernel does not let go of the old one. */
static void restart(struct test_job *j, size_t i)
{
	struct test_device *d = &j->result->devices[i];
	int r = close_slot(&j->slots[i], true);

	if (r < 0) {
		snprintf(d->sentence, sizeof(d->sentence),
			 "its worker was killed but does not end: it hangs in the driver");
		return;
	}
	d->restarts++;
	open_job(j, i);
}

void test_restart_both(struct test_job *j, size_t a, size_t b)
{
	restart(j, a);
	if (a != b)
		restart(j, b);
}

/* ---- one step ---- */

bool test_can_run(struct test_job *j, size_t a, size_t b, struct pair_result *result)
{
	size_t closed = j->slots[a].open ? b : a;

	if (j->slots[a].open && j->slots[b].open)
		return true;
	result->state = verify_untested(result->state);
	snprintf(result->sentence, sizeof(result->sentence), "%s",
		 j->result->devices[closed].sentence);
	return false;
}

typedef void check_fn(const struct bench_device *, const struct bench_device *,
		      struct pair_result *);

static void run_step(struct test_job *j, struct test_step step, check_fn *check,
		     struct pair_result *result)
{
	size_t a = (size_t)step.initiator, b = (size_t)step.target;

	if (test_stopped(j) || !test_can_run(j, a, b, result))
		return;
	if (test_begin(j, &step) < 0) {
		result->state = verify_untested(result->state);
		bench_sentence(result->sentence);
		return;
	}
	check(&j->slots[a].device, &j->slots[b].device, result);
	if (result->sets_lost)
		test_restart_both(j, a, b);
	test_end(j, &step, result);
}

/* ---- phases ---- */

static void local_job(void *context, size_t i)
{
	struct test_job *j = context;

	if (j->result->devices[i].local.state != PAIR_NOT_RUN)
		return; /* a suspect of an earlier run */
	run_step(j, (struct test_step){.phase = TEST_LOCAL, .initiator = (int)i, .target = (int)i},
		 verify_pair, &j->result->devices[i].local);
}

struct round_job {
	struct test_job *j;
	const struct round *round;
	enum test_phase phase;
	pair_fn *run;
};

static void pair_job(void *context, size_t i)
{
	const struct round_job *x = context;
	const struct pair *p = &x->round->pairs[i];

	x->run(x->j, (struct test_step){.phase = x->phase,
					.initiator = (int)p->initiator,
					.target = (int)p->target});
}

static void run_copies(struct test_job *j, struct test_step step)
{
	run_step(j, step, verify_pair,
		 test_pair(j->result, (size_t)step.initiator, (size_t)step.target));
}

static void run_round_trip(struct test_job *j, struct test_step step)
{
	run_step(j, step, verify_round_trip,
		 test_pair(j->result, (size_t)step.initiator, (size_t)step.target));
}

static bool is_known(const struct test_job *j, size_t a, size_t b)
{
	const struct pair_result *known = j->request->known;

	return known && known[a * j->result->n + b].state != PAIR_NOT_RUN;
}

static bool wants_copies(const struct test_job *j, size_t a, size_t b)
{
	return a != b && !is_known(j, a, b);
}

bool test_is_right(const struct test_job *j, size_t a, size_t b)
{
	return test_pair(j->result, a, b)->state == PAIR_RIGHT;
}

/* One round trip uses both directions. */
static bool wants_round_trip(const struct test_job *j, size_t a, size_t b)
{
	return a < b && test_is_right(j, a, b) && test_is_right(j, b, a) &&
	       !test_pair(j->result, a, b)->round_trip.n;
}

int test_run_rounds(struct test_job *j, const struct paths *paths, enum test_phase phase,
		    wants_fn *wants, pair_fn *run)
{
	size_t n = j->result->n, pair_n = 0;
	struct pair *pairs = calloc(n * n, sizeof(*pairs));
	struct rounds rounds = {0};
	int r;

	if (!pairs)
		return err_set(ENOMEM, "no memory for a list of %zu pairs", n * n);
	for (unsigned a = 0; a < n; a++)
		for (unsigned b = 0; b < n; b++)
			if (wants(j, a, b))
				pairs[pair_n++] = (struct pair){a, b};
	r = rounds_plan(paths, pairs, pair_n, &rounds);
	free(pairs);
	if (r < 0)
		return r;
	j->left = pair_n;
	j->rounds = rounds.round_n;
	for (size_t i = 0; i < rounds.round_n; i++) {
		struct round_job x = {j, &rounds.rounds[i], phase, run};

		parallel_for(x.round->pair_n, THREADS_MAX, pair_job, &x);
	}
	if (phase == TEST_COPIES)
		j->result->rounds = rounds.round_n;
	rounds_done(&rounds);
	return 0;
}

/* ---- slow pairs ---- */

static double median_gbps(const struct test_result *r)
{
	double *rates = calloc(r->n * r->n, sizeof(*rates)), median;
	size_t n = 0;

	for (size_t i = 0; rates && i < r->n * r->n; i++)
		if (r->pairs[i].state == PAIR_RIGHT && r->pairs[i].copy_gbps > 0)
			rates[n++] = r->pairs[i].copy_gbps;
	median = rate_median(rates, n);
	free(rates);
	return median;
}

/* Whether the devices are simulated and their link has no rate of its own. */
static bool is_unlimited(const struct device_request *q, size_t a, size_t b)
{
	return q->kind == DEVICE_HOST && q->number[a] < DEVICE_MAX && q->number[b] < DEVICE_MAX &&
	       !(q->host.link_gbps[q->number[a]][q->number[b]] > 0);
}

/*
 * They reach each other's memory as each reaches its own, which is the same memory: the fastest
 * tells.
 */
static struct rate_yardstick own_yardstick(const struct test_result *r)
{
	double own = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->devices[i].local.copy_gbps > own)
			own = r->devices[i].local.copy_gbps;
	return rate_yardstick_own(own);
}

/* The copy is as large as fits at both ends. */
static struct rate_yardstick yardstick_of(const struct test_job *j, size_t a, size_t b,
					  double median)
{
	const struct paths *paths = j->request->paths;
	double expected = paths ? paths_pair(paths, (unsigned)a, (unsigned)b)->expected_gbps : 0;
	uint64_t here = j->slots[a].device.local.memory.size;
	uint64_t there = j->slots[b].device.window.memory.size;

	if (is_unlimited(&j->request->devices, a, b))
		return own_yardstick(j->result);
	return rate_yardstick(expected, median, here < there ? here : there);
}

static const char *const reached_by[RATE_BY_N] = {
	[RATE_BY_NOTHING] = "",
	[RATE_BY_PATH] = "the path should give",
	[RATE_BY_OTHERS] = "other pairs reach",
	[RATE_BY_OWN] = "their own memory reaches",
};

/* Looked at once more before it is called slow: a busy host holds a copy up now and then. */
static void judge_rate(struct test_job *j, size_t a, size_t b, double median)
{
	struct pair_result *p = test_pair(j->result, a, b);
	struct rate_yardstick y;

	if (p->state != PAIR_RIGHT || is_known(j, a, b) || !j->slots[a].open || !j->slots[b].open)
		return;
	y = yardstick_of(j, a, b, median);
	if (!rate_is_slow(p->copy_gbps, y) || test_stopped(j))
		return;
	for (int i = 0; i < 2 && p->state == PAIR_RIGHT && rate_is_slow(p->copy_gbps, y); i++)
		verify_rate(&j->slots[a].device, &j->slots[b].device, p);
	if (p->sets_lost)
		test_restart_both(j, a, b);
	if (p->state != PAIR_RIGHT || !rate_is_slow(p->copy_gbps, y))
		return;
	p->state = PAIR_WRONG;
	p->kind = WRONG_SLOW;
	snprintf(p->sentence, sizeof(p->sentence),
		 "data is right, but %.3g GB/s where %s %.3g GB/s", p->copy_gbps, reached_by[y.by],
		 y.gbps);
}

static void judge_rates(struct test_job *j)
{
	double median = median_gbps(j->result);

	for (size_t a = 0; a < j->result->n; a++)
		for (size_t b = 0; b < j->result->n; b++)
			if (a != b)
				judge_rate(j, a, b, median);
}

/* What holds for one direction of a round trip holds for the other. */
static void share_round_trips(struct test_result *r)
{
	for (size_t a = 0; a < r->n; a++) {
		for (size_t b = a + 1; b < r->n; b++) {
			struct pair_result *one = test_pair(r, a, b), *other = test_pair(r, b, a);

			if (one->round_trip.n)
				other->round_trip = one->round_trip;
			if (one->kind != WRONG_STALL)
				continue;
			other->state = one->state;
			other->kind = one->kind;
			memcpy(other->sentence, one->sentence, sizeof(other->sentence));
		}
	}
}

/* ---- all-reduce ---- */

/* Flags do not arrive where they should either. */
static bool loses_flags(const struct pair_result *p)
{
	return p->pattern == PATTERN_NONE &&
	       (p->kind == WRONG_MIRROR || p->kind == WRONG_LOST || p->kind == WRONG_ZEROS ||
		p->kind == WRONG_OLD || p->kind == WRONG_FOREIGN || p->kind == WRONG_SHIFTED);
}

/*
 * Where a pair hangs, is refused or loses flags, a sum over all devices would wait until the limit.
 */
static bool is_pointless(const struct test_job *j, char sentence[static BENCH_SENTENCE])
{
	const struct test_result *r = j->result;

	for (size_t i = 0; i < r->n * r->n; i++) {
		const struct pair_result *p = &r->pairs[i];
		bool blocks = p->kind == WRONG_HANG || p->kind == WRONG_REFUSED ||
			      p->kind == WRONG_DIED || p->kind == WRONG_FAULT ||
			      p->kind == WRONG_STALL || p->kind == WRONG_ENDED || loses_flags(p);

		if (!blocks || p->state != PAIR_WRONG)
			continue;
		snprintf(sentence, BENCH_SENTENCE, "not run, because a pair fails: %s",
			 wrong_word(p->kind));
		return true;
	}
	return false;
}

static void run_arm(struct test_job *j, enum arm arm)
{
	const struct bench_device *devices[DEVICE_MAX];
	struct arm_result *a = &j->result->arms[arm];
	struct test_step step = {.phase = TEST_ALL_REDUCE, .initiator = -1, .target = -1};
	size_t n = 0;

	if (arm == ARM_P2P && j->request->all_reduce_suspect) {
		a->state = PAIR_WRONG;
		a->kind = WRONG_ENDED;
		snprintf(a->sentence, sizeof(a->sentence),
			 "suspect: the machine stopped during an earlier test; not run again");
		return;
	}
	for (size_t i = 0; i < j->result->n; i++)
		if (j->slots[i].open)
			devices[n++] = &j->slots[i].device;
	if (n < 2 || test_stopped(j) || (arm == ARM_P2P && is_pointless(j, a->sentence)))
		return;
	if (test_begin(j, &step) < 0) {
		a->state = PAIR_INCOMPLETE;
		bench_sentence(a->sentence);
		return;
	}
	all_reduce_check(devices, n, arm, arm == ARM_P2P ? j->request->long_s / 2 : 0, a);
	for (size_t i = 0; a->sets_lost && i < j->result->n; i++)
		if (j->slots[i].open)
			restart(j, i);
	test_end(j, &step, NULL);
}

/* ---- the run ---- */

static int run_phases(struct test_job *j, const struct paths *paths)
{
	size_t n = j->result->n;
	int r;

	j->left = n;
	parallel_for(n, THREADS_MAX, local_job, j);
	r = test_run_rounds(j, paths, TEST_COPIES, wants_copies, run_copies);
	if (r < 0)
		return r;
	judge_rates(j);
	r = test_run_rounds(j, paths, TEST_ROUND_TRIP, wants_round_trip, run_round_trip);
	if (r < 0)
		return r;
	share_round_trips(j->result);
	r = test_patterns(j, paths);
	if (r < 0)
		return r;
	for (int arm = 0; arm < ARM_N; arm++)
		run_arm(j, (enum arm)arm);
	return 0;
}

static int run_on(struct test_job *j)
{
	struct paths *none = NULL;
	double begun = clock_s();
	int r = 0;

	if (!j->request->paths)
		r = paths_new((unsigned)j->result->n, &none);
	if (r < 0)
		return r;
	parallel_for(j->result->n, THREADS_MAX, open_job, j);
	test_stopped(j);
	j->result->start_s = clock_s() - begun;
	begun = clock_s();
	r = run_phases(j, none ? none : j->request->paths);
	j->result->test_s = clock_s() - begun;
	for (size_t i = 0; i < j->result->n; i++)
		close_slot(&j->slots[i], false);
	paths_free(none);
	return r;
}

/* A request for device i alone. */
static int split(const struct test_request *q, size_t i, struct device_request **ret)
{
	struct device_request *one = malloc(sizeof(*one));

	if (!one)
		return err_set(ENOMEM, "no memory for a request");
	*one = q->devices;
	one->n = 1;
	one->ordinal[0] = q->devices.ordinal[i];
	one->number[0] = q->devices.number[i];
	*ret = one;
	return 0;
}

static int prepare(struct test_job *j)
{
	const struct test_request *q = j->request;
	struct test_result *r = j->result;
	int e = 0;

	r->n = q->devices.n;
	r->informs = q->informs;
	if (!r->n || r->n > DEVICE_MAX)
		return err_set(EINVAL, "number of devices to test: %zu, must be 1 to %d", r->n,
			       DEVICE_MAX);
	r->devices = calloc(r->n, sizeof(*r->devices));
	r->pairs = calloc(r->n * r->n, sizeof(*r->pairs));
	j->slots = calloc(r->n, sizeof(*j->slots));
	if (!r->devices || !r->pairs || !j->slots)
		return err_set(ENOMEM, "no memory for %zu devices", r->n);
	for (size_t i = 0; e == 0 && i < r->n; i++) {
		r->devices[i].info.number = q->devices.number[i];
		e = split(q, i, &j->slots[i].request);
	}
	for (size_t i = 0; q->known && i < r->n * r->n; i++)
		*(i / r->n == i % r->n ? &r->devices[i / r->n].local : &r->pairs[i]) = q->known[i];
	return e;
}

int test_run(const struct test_request *request, const struct test_hooks *hooks,
	     struct test_result *ret)
{
	struct test_result result = {0};
	struct test_job j = {.request = request, .hooks = hooks, .result = &result};
	int r = prepare(&j);

	pthread_mutex_init(&j.lock, NULL);
	if (r == 0)
		r = run_on(&j);
	pthread_mutex_destroy(&j.lock);
	for (size_t i = 0; j.slots && i < result.n; i++)
		free(j.slots[i].request);
	free(j.slots);
	if (r < 0)
		test_result_done(&result);
	else
		*ret = result;
	return r;
}

void test_result_done(struct test_result *r)
{
	free(r->devices);
	free(r->pairs);
	*r = (struct test_result){0};
}
