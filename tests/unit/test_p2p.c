/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair measurements on the host back end: what is measured, what is found wrong, what is refused.
 */
#include "bench/p2p.h"

#include "base/alloc.h"
#include "base/err.h"
#include "fake_device.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALL_MAX 32

struct run {
	struct device_set *set;
	struct paths *paths;
	struct p2p_options o;
	const struct metric *metrics[ALL_MAX];
	uint64_t sizes[2];
	struct p2p_result result;
};

static struct device_set *open_host(size_t n, struct fault fault)
{
	struct device_request request = {.kind = DEVICE_HOST, .n = n, .host.fault = fault};
	struct device_set *s;

	request.host.memory_bytes = 16 << 20;
	for (size_t i = 0; i < n; i++)
		request.number[i] = (int)i;
	assert_int_equal(device_open(&request, &s), 0);
	return s;
}

static size_t all_metrics(const struct metric *ret[ALL_MAX])
{
	const struct metric **all = xcalloc(metric_n, sizeof(*all));
	size_t n = p2p_metrics(all);

	assert_in_range(n, 1, ALL_MAX);
	memcpy(ret, all, n * sizeof(*all));
	free(all);
	return n;
}

/* Two samples of one copy each, whatever the time. `words` ends with NULL; NULL: all. */
static void run_open(struct run *r, struct device_set *set, const char *const *words)
{
	*r = (struct run){.set = set, .sizes = {65536}};
	assert_int_equal(paths_new((unsigned)set->n, &r->paths), 0);
	p2p_options_default(&r->o);
	r->o.metrics = r->metrics;
	r->o.metric_n = words ? 0 : all_metrics(r->metrics);
	for (size_t i = 0; words && words[i]; i++) {
		r->metrics[i] = p2p_metric_find(words[i]);
		assert_non_null(r->metrics[i]);
		r->o.metric_n = i + 1;
	}
	r->o.sizes = r->sizes;
	r->o.size_n = 1;
	r->o.paths = r->paths;
	r->o.stopping = (struct stopping){.budget_s = 1e9, .min_samples = 1, .max_samples = 2};
	r->o.sample_us = r->o.kernel_us = 0.001;
	r->o.limit_us = 60000000;
}

static void run_close(struct run *r)
{
	p2p_result_done(&r->result);
	paths_free(r->paths);
	device_close(r->set);
}

static const struct p2p_cell *find(const struct run *r, const char *word, int initiator, int target)
{
	for (size_t i = 0; i < r->result.cell_n; i++) {
		const struct p2p_cell *c = &r->result.cells[i];

		if (strcmp(c->metric->name, word) == 0 && c->initiator == initiator &&
		    c->target == target)
			return c;
	}
	fail_msg("no cell %s %d->%d", word, initiator, target);
	return NULL;
}

static size_t count(const struct run *r, const char *word)
{
	size_t n = 0;

	for (size_t i = 0; i < r->result.cell_n; i++)
		n += strcmp(r->result.cells[i].metric->name, word) == 0;
	return n;
}

/* ---- all of it ---- */

static bool is_checked(const struct metric *m)
{
	return m->shape != SHAPE_CHASE && m->shape != SHAPE_CHASE_HOST &&
	       m->shape != SHAPE_ROUND_TRIP;
}

static void check_cell(const struct p2p_cell *c)
{
	const struct metric *m = c->metric;

	if (*c->why)
		fail_msg("%s %d->%d: %s", m->name, c->initiator, c->target, c->why);
	assert_int_equal(c->value.n, 2);
	assert_true(c->value.median > 0);
	assert_int_equal(c->stop, STOP_MAX);
	assert_int_equal(c->data, is_checked(m) ? P2P_RIGHT : P2P_NOT_CHECKED);
	assert_int_equal(c->wrong_words, 0);
	if (m->both_ways)
		assert_true(c->share > 0 && c->share < 1);
}

static size_t cells_of(const struct metric *m, size_t n)
{
	switch (m->shape) {
	case SHAPE_HOST:
	case SHAPE_LOCAL:
	case SHAPE_CHASE_HOST:
		return n;
	default:
		return n * (n - 1) / (m->both_ways ? 2 : 1);
	}
}

static void test_all_metrics(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 3; n++) {
		struct run r;
		size_t cells = 0;

		run_open(&r, open_host(n, (struct fault){0}), NULL);
		assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
		assert_false(r.result.stopped);
		assert_int_equal(r.result.plan_n, r.o.metric_n);
		for (size_t i = 0; i < r.o.metric_n; i++) {
			assert_int_equal(count(&r, r.metrics[i]->name), cells_of(r.metrics[i], n));
			cells += cells_of(r.metrics[i], n);
		}
		assert_int_equal(r.result.cell_n, cells);
		for (size_t i = 0; i < cells; i++)
			check_cell(&r.result.cells[i]);
		run_close(&r);
	}
}

static void test_sizes(void **state)
{
	static const char *const words[] = {"write-ce", "h2d-ce", "latency-write", NULL};
	struct run r;

	(void)state;
	run_open(&r, open_host(2, (struct fault){0}), words);
	r.sizes[0] = 4096;
	r.sizes[1] = 1 << 20;
	r.o.size_n = 2;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	assert_int_equal(count(&r, "write-ce"), 4);
	assert_int_equal(count(&r, "h2d-ce"), 4);
	assert_int_equal(count(&r, "latency-write"), 2);
	assert_int_equal(r.result.plan_n, 5);
	assert_int_equal(r.result.plans[0].bytes, 4096);
	assert_int_equal(r.result.plans[1].bytes, 1 << 20);
	assert_int_equal(r.result.plans[0].rounds, 1 + 1); /* nothing known: one pair at a time */
	p2p_result_done(&r.result);
	r.sizes[1] = 24;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), -EINVAL);
	assert_non_null(strstr(err_msg(), "24 bytes"));
	run_close(&r);
}

static void test_chosen_pairs(void **state)
{
	static const char *const words[] = {"write-ce", "both-ce", "d2h-ce", NULL};
	static const struct pair pairs[] = {{2, 0}, {0, 2}, {0, 1}};
	struct run r;

	(void)state;
	run_open(&r, open_host(3, (struct fault){0}), words);
	r.o.pairs = pairs;
	r.o.pair_n = 3;
	r.o.verify = false;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	assert_int_equal(count(&r, "write-ce"), 3);
	assert_int_equal(find(&r, "write-ce", 2, 0)->data, P2P_NOT_CHECKED);
	assert_int_equal(count(&r, "both-ce"), 2);
	assert_int_equal(count(&r, "d2h-ce"), 3);
	run_close(&r);
}

static void test_diagonal(void **state)
{
	static const char *const words[] = {"write-ce", "both-ce",         "latency-write",
					    "write-sm", "write-ce-staged", NULL};
	struct run r;

	(void)state;
	run_open(&r, open_host(2, (struct fault){0}), words);
	r.o.diagonal = true;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	assert_int_equal(count(&r, "write-ce"), 4);
	assert_int_equal(count(&r, "both-ce"), 3);
	assert_int_equal(count(&r, "write-sm"), 2);
	assert_true(find(&r, "latency-write", 1, 1)->enqueue_us > 0);
	assert_int_equal(find(&r, "write-ce-staged", 1, 1)->data, P2P_RIGHT);
	run_close(&r);
}

/*
 * Through the host first: peer access is turned on after it, and copies there are cut to their own
 * limit.
 */
static void test_staged(void **state)
{
	static const char *const words[] = {"write-ce-staged", "write-ce", "both-ce-staged", NULL};
	struct run r;

	(void)state;
	run_open(&r, open_host(2, (struct fault){0}), words);
	r.o.staged_bytes = 4096;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	for (size_t i = 0; words[i]; i++) {
		const struct p2p_cell *c = find(&r, words[i], 0, 1);

		assert_string_equal(c->why, "");
		assert_int_equal(c->bytes, c->metric->staged ? 4096 : 65536);
		assert_int_equal(c->data, P2P_RIGHT);
	}
	run_close(&r);
}

/* ---- faults ---- */

static void test_wrong_data(void **state)
{
	static const char *const words[] = {"write-ce", "write-sm", "both-ce", NULL};
	static const enum fault_kind faults[] = {FAULT_MIRROR, FAULT_LOST, FAULT_DISPLACE,
						 FAULT_TORN};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct run r;

		run_open(&r, open_host(2, (struct fault){faults[i], 0, 1}), words);
		assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
		for (size_t w = 0; words[w]; w++) {
			const struct p2p_cell *c = find(&r, words[w], 0, 1);

			assert_string_equal(c->why, "");
			assert_int_equal(c->data, P2P_WRONG);
			assert_true(c->wrong_words > 0);
		}
		assert_int_equal(find(&r, "write-ce", 1, 0)->data, P2P_RIGHT);
		assert_int_equal(find(&r, "write-sm", 1, 0)->data, P2P_RIGHT);
		run_close(&r);
	}
}

static void test_refused(void **state)
{
	static const char *const words[] = {"write-ce", "both-ce", "latency-chase",   "round-trip",
					    "pairs-ce", "h2d-ce",  "write-ce-staged", NULL};
	struct run r;

	(void)state;
	run_open(&r, open_host(3, (struct fault){FAULT_REFUSE, 0, 1}), words);
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	for (size_t i = 0; i < 5; i++) {
		const struct p2p_cell *c = find(&r, words[i], 0, 1);

		assert_int_equal(c->value.n, 0);
		assert_string_not_equal(c->why, "");
		assert_non_null(strstr(c->why, "0"));
	}
	assert_int_equal(find(&r, "write-ce", 1, 0)->value.n, 2);
	assert_int_equal(find(&r, "round-trip", 1, 0)->value.n, 0); /* needs both directions */
	assert_int_equal(find(&r, "both-ce", 1, 2)->value.n, 2);
	assert_int_equal(find(&r, "write-ce-staged", 0, 1)->data, P2P_RIGHT);
	assert_int_equal(find(&r, "h2d-ce", 0, -1)->value.n, 2);
	run_close(&r);
}

/* ---- calls that are bent on their way ---- */

/* What the bent calls below go by. A test has one of it at a time. */
static struct {
	const struct device_ops *inner;
	struct device_ops ops;
	int left;                 /* reports of gates to spoil */
	unsigned peers[ALL_MAX];  /* that a device has on */
	unsigned blocks[ALL_MAX]; /* of the largest copy by a device's kernels */
	struct memory first_host; /* pinned memory, other than the gate's */
} bent;

static struct device_ops *bend(struct run *r)
{
	memset(&bent, 0, sizeof(bent));
	bent.inner = r->set->ops;
	bent.ops = *r->set->ops;
	r->set->ops = &bent.ops;
	return &bent.ops;
}

static void unbend(struct run *r)
{
	r->set->ops = bent.inner;
}

/* ---- access ---- */

static int eight_peers(struct device_set *s, int initiator, int target, bool on)
{
	int r;

	if (on && bent.peers[initiator] == 8)
		return err_set(EACCES, "device %d has eight peers", initiator);
	r = bent.inner->peer_access(s, initiator, target, on);
	if (r == 0)
		bent.peers[initiator] += on ? 1 : -1u;
	return r;
}

static void test_too_many_peers(void **state)
{
	static const char *const words[] = {"write-ce", "round-trip", "1-to-n-ce",
					    "write-ce-staged", NULL};
	static const struct pair pairs[] = {{0, 9}, {9, 0}};
	struct run r;
	size_t refused = 0;

	(void)state;
	run_open(&r, open_host(10, (struct fault){0}), words);
	r.sizes[0] = 4096;
	r.o.pairs = pairs;
	r.o.pair_n = 2;
	bend(&r)->peer_access = eight_peers;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	unbend(&r);
	for (int w = 0; w < 2; w++)
		for (int i = 0; i < 10; i += 9)
			assert_string_equal(find(&r, words[w], i, 9 - i)->why, "");
	for (size_t i = 0; i < r.result.cell_n; i++) {
		const struct p2p_cell *c = &r.result.cells[i];

		if (!*c->why)
			continue;
		assert_int_equal(c->metric->shape, SHAPE_TRAFFIC);
		assert_non_null(strstr(c->why, "has eight peers"));
		refused++;
	}
	assert_int_equal(refused, 10); /* the ninth of each device */
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(bent.peers[i], 0);
	run_close(&r);
}

/* A mapping that does not fit is an answer of one pair and not the end of the run. */
static void test_no_room_to_map(void **state)
{
	static const char *const words[] = {"write-ce", NULL};
	struct fake_plan plan = {.op = "peer_access", .nth = 1, .error = -ENOMEM};
	struct device_set *set;
	struct run r;

	(void)state;
	assert_int_equal(fake_open(open_host(2, (struct fault){0}), &plan, &set), 0);
	run_open(&r, set, words);
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	assert_non_null(strstr(find(&r, "write-ce", 0, 1)->why, "peer_access"));
	assert_int_equal(find(&r, "write-ce", 1, 0)->data, P2P_RIGHT);
	run_close(&r);
}

/* ---- chains ---- */

static void test_wrong_chain(void **state)
{
	static const char *const words[] = {"latency-chase", "write-ce", NULL};
	static const enum fault_kind faults[] = {FAULT_MIRROR, FAULT_LOST, FAULT_DISPLACE};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct run r;

		run_open(&r, open_host(2, (struct fault){faults[i], 0, 1}), words);
		assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
		assert_non_null(strstr(find(&r, "latency-chase", 0, 1)->why, "read wrong"));
		assert_int_equal(find(&r, "latency-chase", 0, 1)->value.n, 0);
		assert_string_equal(find(&r, "latency-chase", 1, 0)->why, "");
		assert_int_equal(find(&r, "write-ce", 1, 0)->data, P2P_RIGHT);
		run_close(&r);
	}
}

static int one_step_less(struct device_set *s, struct stream stream, const struct launch *l)
{
	struct launch bent_launch = *l;
	struct chase_args args;

	if (l->kernel == KERNEL_chase && stream.device == 1) {
		memcpy(&args, l->args, sizeof(args));
		args.steps--;
		bent_launch.args = &args;
	}
	return bent.inner->launch(s, stream, &bent_launch);
}

static void test_chain_left(void **state)
{
	static const char *const words[] = {"latency-chase", "latency-host", NULL};
	struct run r;

	(void)state;
	run_open(&r, open_host(2, (struct fault){0}), words);
	bend(&r)->launch = one_step_less;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	unbend(&r);
	assert_string_equal(find(&r, "latency-chase", 0, 1)->why, "");
	assert_string_equal(find(&r, "latency-host", 0, -1)->why, "");
	assert_non_null(strstr(find(&r, "latency-chase", 1, 0)->why, "ended at the wrong address"));
	assert_int_equal(find(&r, "latency-host", 1, -1)->value.n, 0);
	run_close(&r);
}

/* ---- flags ---- */

/* A millisecond for all rounds but the first, which takes as long as the other kernel to start. */
static int read_report(struct device_set *s, const struct memory *m, uint64_t offset, void *to,
		       size_t n)
{
	int r = bent.inner->read(s, m, offset, to, n);

	if (n == sizeof(struct ping_pong_report))
		((struct ping_pong_report *)to)->ns =
			1000 * (((struct ping_pong_report *)to)->rounds - 1);
	return r;
}

static void test_round_trip_value(void **state)
{
	static const char *const words[] = {"round-trip", NULL};
	struct run r;

	(void)state;
	run_open(&r, open_host(2, (struct fault){0}), words);
	bend(&r)->read = read_report;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	unbend(&r);
	assert_true(find(&r, "round-trip", 0, 1)->value.median == 1);
	run_close(&r);
}

/* ---- the host's memory ---- */

static bool is_host_data(const struct memory *m, size_t n)
{
	return m->device < 0 && n == 65536;
}

static int read_spoilt(struct device_set *s, const struct memory *m, uint64_t offset, void *to,
		       size_t n)
{
	int r = bent.inner->read(s, m, offset, to, n);

	if (is_host_data(m, n))
		((u64 *)to)[n / 8 - 1] ^= 1;
	return r;
}

static int write_lost(struct device_set *s, const struct memory *m, uint64_t offset,
		      const void *from, size_t n)
{
	return is_host_data(m, n) ? 0 : bent.inner->write(s, m, offset, from, n);
}

/* What devices write and read is right, and yet not what the CPU has there. */
static void test_host_memory_is_the_cpus(void **state)
{
	static const char *const words[] = {"h2d-ce", "d2h-ce", "h2d-sm", "d2h-sm", NULL};
	struct device_ops *ops;
	struct run r;

	(void)state;
	run_open(&r, open_host(1, (struct fault){0}), words);
	r.sizes[0] = 5 << 20; /* more than is looked at: 64 pieces of 64 KiB */
	ops = bend(&r);
	ops->read = read_spoilt;
	ops->write = write_lost;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	unbend(&r);
	for (size_t i = 0; i < 4; i++) {
		const struct p2p_cell *c = find(&r, words[i], 0, -1);

		assert_int_equal(c->checked_words, 64 * 65536 / 8);
		assert_int_equal(c->wrong_words, words[i][0] == 'd' ? 64 : c->checked_words);
		assert_int_equal(c->data, P2P_WRONG);
	}
	run_close(&r);
}

/* All devices fetch from the host memory of the first. */
static int copy_from_first(struct device_set *s, struct stream stream, const struct memory *target,
			   uint64_t target_offset, const struct memory *origin,
			   uint64_t origin_offset, uint64_t bytes)
{
	if (origin->device < 0 && !bent.first_host.size)
		bent.first_host = *origin;
	return bent.inner->copy(s, stream, target, target_offset,
				origin->device < 0 ? &bent.first_host : origin, origin_offset,
				bytes);
}

static void test_host_memories_differ(void **state)
{
	static const char *const words[] = {"h2d-ce", NULL};
	struct run r;

	(void)state;
	run_open(&r, open_host(2, (struct fault){0}), words);
	bend(&r)->copy = copy_from_first;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	unbend(&r);
	assert_int_equal(find(&r, "h2d-ce", 0, -1)->data, P2P_RIGHT);
	assert_int_equal(find(&r, "h2d-ce", 1, -1)->data, P2P_WRONG);
	run_close(&r);
}

/* ---- kernels side by side ---- */

static int note_blocks(struct device_set *s, struct stream stream, const struct launch *l)
{
	if (l->kernel == KERNEL_copy && l->blocks > bent.blocks[stream.device])
		bent.blocks[stream.device] = l->blocks;
	return bent.inner->launch(s, stream, l);
}

static void test_blocks_are_shared(void **state)
{
	static const char *const words[] = {"all-to-all-sm", NULL};
	struct run r;

	(void)state;
	run_open(&r, open_host(3, (struct fault){0}), words);
	for (size_t i = 0; i < 3; i++)
		r.set->info[i].blocks = 9;
	bend(&r)->launch = note_blocks;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	unbend(&r);
	assert_int_equal(r.result.cell_n, 6);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(bent.blocks[i], 9 / 2);
	run_close(&r);
}

/* ---- the gate ---- */

/* Turns the first reports of gates into time-outs. */
static int read_late(struct device_set *s, const struct memory *m, uint64_t offset, void *to,
		     size_t n)
{
	int r = bent.inner->read(s, m, offset, to, n);

	if (r == 0 && m->kind == MEMORY_PINNED && n < 4096 && bent.left) {
		u32 end = WAIT_TIMED_OUT;

		bent.left--;
		memcpy(to, &end, sizeof(end));
	}
	return r;
}

static void test_gate_timeouts(void **state)
{
	static const char *const words[] = {"both-ce", NULL}; /* two copies, one figure */
	static const struct {
		int times;
		size_t samples;
		unsigned thrown_away;
	} cases[] = {{3, 2, 3}, {1000000, 0, 8}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct run r;

		run_open(&r, open_host(2, (struct fault){0}), words);
		bend(&r)->read = read_late;
		bent.left = cases[i].times;
		r.o.verify = false;
		assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
		unbend(&r);
		assert_int_equal(r.result.cell_n, 1);
		assert_int_equal(r.result.cells[0].value.n, cases[i].samples);
		assert_int_equal(r.result.cells[0].gate_timeouts, cases[i].thrown_away);
		assert_int_equal(*r.result.cells[0].why != '\0', cases[i].samples == 0);
		run_close(&r);
	}
}

/* ---- hooks ---- */

struct seen {
	size_t rounds, stop_at, left, loads;
};

static void progress(void *context, const struct metric *m, uint64_t bytes, size_t round,
		     size_t rounds, size_t left)
{
	struct seen *s = context;

	assert_non_null(m);
	assert_int_equal(bytes, 65536);
	assert_true(round < rounds && left <= s->left);
	s->left = left - 1;
	s->rounds++;
}

static bool stopped(void *context)
{
	const struct seen *s = context;

	return s->rounds >= s->stop_at;
}

static void under_load(void *context, const struct round *round)
{
	struct seen *s = context;

	assert_int_equal(round->pair_n, 1);
	s->loads++;
}

static void test_hooks(void **state)
{
	static const char *const words[] = {"write-ce", "read-ce", NULL};
	struct seen seen = {.left = 100, .stop_at = 100};
	const struct p2p_hooks hooks = {&seen, progress, stopped, under_load};
	struct run r;

	(void)state;
	run_open(&r, open_host(2, (struct fault){0}), words);
	r.o.hooks = &hooks;
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	assert_int_equal(seen.rounds, 4);
	assert_int_equal(seen.loads, 4);
	assert_int_equal(seen.left, 0);
	p2p_result_done(&r.result);
	seen = (struct seen){.left = 100, .stop_at = 2};
	assert_int_equal(p2p_run(r.set, &r.o, &r.result), 0);
	assert_true(r.result.stopped);
	assert_int_equal(r.result.cell_n, 2);
	assert_int_equal(r.result.cells[0].value.n, 2);
	assert_int_equal(r.result.cells[1].value.n, 1); /* stopped between samples */
	run_close(&r);
}

/* ---- errors at every call ---- */

/* False when the plan's call was never reached. */
static bool run_with_fake(const char *op, unsigned nth, int error)
{
	static const char *const words[] = {"write-ce",      "both-sm",    "h2d-ce",
					    "latency-chase", "round-trip", "write-ce-staged",
					    "latency-write", NULL};
	struct fake_plan plan = {.op = op, .nth = nth, .error = error};
	struct device_set *set;
	struct run r;
	bool failed;
	int e;

	assert_int_equal(fake_open(open_host(2, (struct fault){0}), &plan, &set), 0);
	run_open(&r, set, words);
	e = p2p_run(r.set, &r.o, &r.result);
	failed = e < 0;
	for (size_t i = 0; i < r.result.cell_n; i++) {
		const struct p2p_cell *c = &r.result.cells[i];

		failed |= *c->why != '\0';
		assert_true((*c->why != '\0') == (c->value.n == 0));
		assert_int_not_equal(c->data, P2P_WRONG);
	}
	run_close(&r);
	return failed;
}

static void test_errors(void **state)
{
	static const char *const ops[] = {"alloc",         "address", "read",      "write",
					  "stream_new",    "wait",    "event_new", "event_record",
					  "event_elapsed", "copy",    "launch",    "peer_access",
					  "enqueue_time"};
	static const int errors[] = {-EIO, -EACCES};

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		for (size_t e = 0; e < sizeof(errors) / sizeof(*errors); e++) {
			unsigned n = 1;

			while (n < 200 && run_with_fake(ops[i], n, errors[e]))
				n = n < 7 ? n + 2 : 2 * n + 1; /* even writes open gates */
			assert_true(n > 1);
		}
	assert_true(run_with_fake("write", 2, -EIO)); /* waits for the gate's own time */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_metrics),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_chosen_pairs),
		cmocka_unit_test(test_diagonal),
		cmocka_unit_test(test_staged),
		cmocka_unit_test(test_wrong_data),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_gate_timeouts),
		cmocka_unit_test(test_hooks),
		cmocka_unit_test(test_too_many_peers),
		cmocka_unit_test(test_no_room_to_map),
		cmocka_unit_test(test_wrong_chain),
		cmocka_unit_test(test_chain_left),
		cmocka_unit_test(test_round_trip_value),
		cmocka_unit_test(test_host_memory_is_the_cpus),
		cmocka_unit_test(test_host_memories_differ),
		cmocka_unit_test(test_blocks_are_shared),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
