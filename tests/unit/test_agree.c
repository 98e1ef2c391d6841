/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that call different things: each kind, eager and captured, in one process and in several;
 * and wrong memory.
 */
#include "collective/pairs.h"

#include "base/array.h"
#include "base/clock.h"
#include "comm_rig.h"
#include "fake_device.h"

#include <onehop/onehop.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* A test that waited this long has failed; what is found ends at once. */
#define SOON_US 30000000ul
#define RANKS   4
#define COUNT   3000u

/* ---- what ranks tell each other, by itself ---- */

static void start(struct agree_board **b, struct agree *a, unsigned n)
{
	assert_ok(agree_board_make(n, NULL, b));
	for (unsigned r = 0; r < n; r++)
		agree_start(&a[r], *b, r);
}

static void the_later_one_finds_out(void **state)
{
	const struct agree_call one = {1, 100}, other = {1, 101}, kind = {2, 100};
	struct agree_finding f;
	struct agree_board *b;
	struct agree a[3];
	u32 behind;

	(void)state;
	start(&b, a, 3);
	for (unsigned r = 0; r < 3; r++)
		assert_ok(agree_call(&a[r], AGREE_EAGER, &one, &behind));
	assert_ok(agree_call(&a[2], AGREE_EAGER, &one, &behind));
	assert_ok(agree_call(&a[2], AGREE_EAGER, &kind, &behind)); /* is ahead */
	assert_ok(agree_call(&a[0], AGREE_EAGER, &one, &behind));
	assert_ok(agree_call(&a[0], AGREE_CAPTURED, &other, &behind));
	assert_false(agree_failed(&a[1], &f));
	assert_int_equal(agree_call(&a[0], AGREE_EAGER, &other, &behind), -EPROTO);
	for (unsigned r = 0; r < 3; r++) {
		assert_true(agree_failed(&a[r], &f));
		assert_int_equal(f.rank[0], 0);
		assert_int_equal(f.rank[1], 2);
		assert_int_equal(f.number, 2);
		assert_true(f.call[0].what == 1 && f.call[0].count == 101);
		assert_true(f.call[1].what == 2 && f.call[1].count == 100);
	}
	agree_board_free(b);
}

/* Records are used again, and numbers wrap; who is ahead waits for the slowest. */
static void a_rank_that_is_far_ahead(void **state)
{
	struct agree_board *b;
	struct agree a[3];
	u32 behind = 0, ahead = 0;
	const struct agree_call last = {1, ~0ul};

	(void)state;
	start(&b, a, 3);
	while (ahead < 100000) {
		const struct agree_call call = {1, ahead};
		const int r = agree_call(&a[1], AGREE_EAGER, &call, &behind);

		if (r < 0) {
			assert_int_equal(r, -EAGAIN);
			break;
		}
		ahead++;
	}
	assert_int_equal(ahead, 4096);
	for (u32 k = 0; k < 3 * ahead; k++) {
		const struct agree_call mine = {1, k + ahead}, theirs = {1, k};

		for (unsigned r = 0; r < 3; r += 2) {
			assert_int_equal(agree_call(&a[1], AGREE_EAGER, &mine, &behind), -EAGAIN);
			assert_ok(agree_call(&a[r], AGREE_EAGER, &theirs, &behind));
		}
		if (k) /* what the others have compared is known from their next call on */
			assert_ok(agree_call(&a[1], AGREE_EAGER,
					     &(struct agree_call){1, mine.count - 1}, &behind));
	}
	assert_int_equal(agree_call(&a[2], AGREE_EAGER, &last, &behind), -EPROTO);
	agree_board_free(b);
}

/* Each rank in a thread, with pauses; one of them differs once. */
struct race {
	struct agree a;
	u32 rounds, differs; /* differs: the call; ~0: none */
	int end;
	u32 reached;
	u64 seed;
};

static void *run_race(void *argument)
{
	struct race *r = argument;
	struct agree_finding f;
	u32 behind;

	for (u32 k = 0; k < r->rounds && r->end == 0; k++) {
		const struct agree_call call = {1, k == r->differs ? ~0ul : k};

		r->seed = r->seed * 6364136223846793005ul + 1442695040888963407ul;
		if (r->seed >> 60 == 0)
			usleep((useconds_t)(r->seed >> 52 & 0xff));
		while ((r->end = agree_call(&r->a, AGREE_EAGER, &call, &behind)) == -EAGAIN &&
		       !agree_failed(&r->a, &f))
			sched_yield();
		r->reached = k;
	}
	return NULL;
}

static void threads_that_race(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		const unsigned n = 2 + (unsigned)next_random(3), odd = (unsigned)next_random(n);
		struct race races[RANKS] = {0};
		pthread_t threads[RANKS];
		struct agree_board *b;
		struct agree_finding f;
		unsigned found = 0;
		const u32 at = (u32)next_random(6000);

		assert_ok(agree_board_make(n, NULL, &b));
		for (unsigned r = 0; r < n; r++) {
			races[r] = (struct race){.rounds = 6000,
						 .differs = r == odd && round % 4 ? at : ~0u,
						 .seed = next_random(~0ul)};
			agree_start(&races[r].a, b, r);
			assert_int_equal(pthread_create(&threads[r], NULL, run_race, &races[r]), 0);
		}
		for (unsigned r = 0; r < n; r++)
			pthread_join(threads[r], NULL);
		for (unsigned r = 0; r < n; r++)
			found += races[r].end == -EPROTO;
		assert_int_equal(agree_failed(&races[0].a, &f), round % 4 != 0);
		/* Of the odd rank and each other one, one finds out. */
		if (round % 4) {
			assert_true(found >= 1);
			assert_int_equal(f.number, at);
			if (races[odd].end == 0)
				assert_int_equal(found, n - 1);
		} else {
			assert_int_equal(found, 0);
		}
		agree_board_free(b);
	}
}

/* ---- a communicator ---- */

#define BUFFER (RANKS * 2 * COUNT * 8)

static void rig_begin(struct rig *g, size_t n, bool no_p2p)
{
	const struct comm_options o = options_of(ALGORITHM_N, no_p2p);

	rig_start(g, n, BUFFER, &o);
}

/* What a rank calls. */
struct call {
	enum operation o;
	unsigned type, op;
	u64 count;
	int root;
};

static int enqueue(struct rig *g, size_t rank, const struct call *c)
{
	return rig_enqueue(g, rank, c->o,
			   (struct operation_call){.count = c->count,
						   .type = c->type,
						   .op = c->op,
						   .root = c->root});
}

/* Two calls that differ in one thing, and what the sentence says of both. */
static const struct {
	struct call usual, other;
	const char *says[2];
} kinds[] = {
#define SUM(count)                                                                                 \
	{                                                                                          \
		OPERATION_ALL_REDUCE, ELEMENT_FLOAT32, REDUCE_SUM, count, 0                        \
	}
	{SUM(8), SUM(9), {"all_reduce(8 float32, sum)", "all_reduce(9 float32, sum)"}},
	{SUM(COUNT), SUM(1), {"all_reduce(3000 float32, sum)", "all_reduce(1 float32, sum)"}},
	{SUM(0), SUM(1), {"all_reduce(0 float32, sum)", "all_reduce(1 float32, sum)"}},
	{SUM(8),
	 {OPERATION_ALL_REDUCE, ELEMENT_INT32, REDUCE_SUM, 8, 0},
	 {"all_reduce(8 float32, sum)", "all_reduce(8 int32, sum)"}},
	{SUM(COUNT),
	 {OPERATION_ALL_REDUCE, ELEMENT_FLOAT32, REDUCE_AVG, COUNT, 0},
	 {"all_reduce(3000 float32, sum)", "all_reduce(3000 float32, avg)"}},
	{SUM(8),
	 {OPERATION_ALL_GATHER, ELEMENT_FLOAT32, REDUCE_SUM, 8, 0},
	 {"all_reduce(8 float32, sum)", "all_gather(8 float32)"}},
	{{OPERATION_BROADCAST, ELEMENT_INT8, 0, COUNT, 0},
	 {OPERATION_BROADCAST, ELEMENT_INT8, 0, COUNT, 1},
	 {"broadcast(3000 int8, root 0)", "broadcast(3000 int8, root 1)"}},
	{{OPERATION_REDUCE, ELEMENT_FLOAT64, REDUCE_MAX, 5, 1},
	 {OPERATION_REDUCE, ELEMENT_FLOAT64, REDUCE_MAX, 5, 0},
	 {"reduce(5 float64, max, root 1)", "reduce(5 float64, max, root 0)"}},
	{{OPERATION_REDUCE_SCATTER, ELEMENT_BFLOAT16, REDUCE_SUM, 700, 0},
	 {OPERATION_REDUCE_SCATTER, ELEMENT_BFLOAT16, REDUCE_PROD, 700, 0},
	 {"reduce_scatter(700 bfloat16, sum)", "reduce_scatter(700 bfloat16, prod)"}},
	{{OPERATION_ALL_TO_ALL, ELEMENT_UINT8, 0, 70, 0},
	 {OPERATION_ALL_TO_ALL, ELEMENT_UINT8, 0, 71, 0},
	 {"all_to_all(70 uint8)", "all_to_all(71 uint8)"}},
	{{OPERATION_REDUCE, ELEMENT_FLOAT32, REDUCE_SUM, 8, 0},
	 SUM(8),
	 {"reduce(8 float32, sum, root 0)", "all_reduce(8 float32, sum)"}},
};

static void expect_says(const char *a, const char *b)
{
	if (!strstr(err_msg(), a) || !strstr(err_msg(), b))
		fail_msg("'%s' does not say '%s' and '%s'", err_msg(), a, b);
}

static void expect_failed(struct rig *g, size_t rank, size_t k)
{
	char me[20];

	snprintf(me, sizeof(me), "rank %zu: ", rank);
	assert_int_equal(comm_check(g->comms[rank]), -EPROTO);
	expect_says(kinds[k].says[0], kinds[k].says[1]);
	assert_int_equal(strncmp(err_msg(), me, strlen(me)), 0);
	assert_int_equal(enqueue(g, rank, &kinds[k].usual), -EPROTO); /* and nothing runs again */
}

/*
 * Ranks in any order, one of them differs. At least one is told so by the call; what others
 * enqueued ends.
 */
static void disagree(size_t n, size_t k, bool no_p2p, bool captured)
{
	const struct call good = SUM(100);
	const size_t odd = (size_t)next_random(n), first = (size_t)next_random(n);
	struct graph graphs[RANKS] = {0};
	struct rig g;
	u64 begin;
	int refused = 0;

	rig_begin(&g, n, no_p2p);
	for (size_t r = 0; r < n; r++)
		assert_ok(enqueue(&g, r, &good));
	for (size_t r = 0; captured && r < n; r++)
		assert_ok(g.set->ops->capture_begin(g.set, g.streams[r]));
	begin = clock_us();
	for (size_t i = 0; i < n; i++) {
		const size_t r = (first + i) % n;
		const int e = enqueue(&g, r, r == odd ? &kinds[k].other : &kinds[k].usual);

		if (e < 0)
			assert_int_equal(e, -EPROTO);
		refused += e < 0;
	}
	assert_true(refused >= 1);
	for (size_t r = 0; captured && r < n; r++)
		assert_ok(g.set->ops->capture_end(g.set, g.streams[r], &graphs[r]));
	for (size_t r = 0; captured && r < n; r++)
		assert_ok(g.set->ops->graph_launch(g.set, g.streams[r], graphs[r]));
	for (size_t r = 0; r < n; r++)
		rig_wait(g.set, g.streams[r]);
	assert_true(clock_us() - begin < SOON_US);
	for (size_t r = 0; r < n; r++)
		expect_failed(&g, r, k);
	rig_stop(&g);
}

static void calls_that_differ(void **state)
{
	(void)state;
	for (size_t n = 2; n <= RANKS; n++)
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			disagree(n, k, k % 2, false);
}

static void captured_calls_that_differ(void **state)
{
	(void)state;
	for (size_t n = 2; n <= RANKS; n++)
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			disagree(n, k, k % 2 == 0, true);
}

/* Ranks may capture earlier or later than others, between operations that are not captured. */
static void captures_at_other_times(void **state)
{
	const struct call eager = SUM(100), captured = SUM(50);
	struct graph graphs[2];
	struct rig g;

	(void)state;
	rig_begin(&g, 2, false);
	for (size_t r = 0; r < 2; r++)
		for (int step = 0; step < 2; step++) {
			if (step == (int)r) {
				assert_ok(enqueue(&g, r, &eager));
				continue;
			}
			assert_ok(g.set->ops->capture_begin(g.set, g.streams[r]));
			assert_ok(enqueue(&g, r, &captured));
			assert_ok(g.set->ops->capture_end(g.set, g.streams[r], &graphs[r]));
		}
	for (int launch = 0; launch < 5; launch++)
		for (size_t r = 0; r < 2; r++)
			assert_ok(g.set->ops->graph_launch(g.set, g.streams[r], graphs[r]));
	for (size_t r = 0; r < 2; r++) {
		rig_wait(g.set, g.streams[r]);
		assert_ok(comm_check(g.comms[r]));
	}
	rig_stop(&g);
}

/* Other communicators go on. */
static void one_of_two_communicators(void **state)
{
	const struct call good = SUM(100), bad = SUM(99);
	struct rig a, b;

	(void)state;
	rig_begin(&a, 2, false);
	rig_begin(&b, 3, false);
	assert_ok(enqueue(&a, 0, &good));
	for (size_t r = 0; r < 3; r++)
		assert_ok(enqueue(&b, r, &bad));
	assert_int_equal(enqueue(&a, 1, &bad), -EPROTO);
	for (size_t r = 0; r < 3; r++)
		assert_ok(enqueue(&b, r, &good));
	for (size_t r = 0; r < 3; r++) {
		rig_wait(b.set, b.streams[r]);
		assert_ok(comm_check(b.comms[r]));
	}
	rig_stop(&a);
	rig_stop(&b);
}

/* ---- messages ---- */

static int post(struct rig *g, size_t rank, bool takes, int peer, u64 bytes)
{
	const struct pair_call call = {takes, peer, rig_address(g->set, &g->in[rank], (int)rank),
				       bytes};

	return pairs_enqueue(g->comms[rank], g->native[rank], &call, 1);
}

static void messages_that_differ(void **state)
{
	static const u64 sizes[][2] = {{4, 5}, {0, 1}, {1, 0}, {70000, 3000}, {3000, 70000}};

	(void)state;
	for (unsigned k = 0; k < 4 * ARRAY_LEN(sizes); k++) {
		const u64 *size = sizes[k / 4];
		const bool late = k & 1; /* the receiver comes first */
		struct rig g;
		char says[2][60];

		rig_begin(&g, 3, k & 2);
		assert_ok(post(&g, 2, false, 1, 10));
		assert_ok(post(&g, 1, true, 2, 10));
		assert_ok(post(&g, late ? 1 : 2, late, late ? 2 : 1, size[late]));
		assert_int_equal(post(&g, late ? 2 : 1, !late, late ? 1 : 2, size[!late]), -EPROTO);
		for (size_t r = 0; r < 3; r++)
			rig_wait(g.set, g.streams[r]);
		snprintf(says[0], sizeof(says[0]), "of message 1 from rank 2 to rank 1");
		snprintf(says[1], sizeof(says[1]), "%lu bytes are sent and %lu are to be", size[0],
			 size[1]);
		for (size_t r = 0; r < 3; r++) {
			assert_int_equal(comm_check(g.comms[r]), -EPROTO);
			expect_says(says[0], says[1]);
		}
		rig_stop(&g);
	}
}

/*
 * What ranks told each other was the same; only the kernels see that the graphs are launched in
 * another order. Small messages and large ones come in different ways.
 */
static void launch_in_another_order(const u64 *sizes, bool no_p2p)
{
	struct graph graphs[2][2];
	struct rig g;

	rig_begin(&g, 2, no_p2p);
	for (size_t r = 0; r < 2; r++)
		for (int k = 0; k < 2; k++) {
			assert_ok(g.set->ops->capture_begin(g.set, g.streams[r]));
			assert_ok(post(&g, r, r == 1, r ? 0 : 1, sizes[k]));
			assert_ok(g.set->ops->capture_end(g.set, g.streams[r], &graphs[r][k]));
		}
	for (size_t r = 0; r < 2; r++)
		for (int k = 0; k < 2; k++)
			assert_ok(g.set->ops->graph_launch(g.set, g.streams[r],
							   graphs[r][(size_t)k ^ r]));
	rig_wait(g.set, g.streams[1]);
	assert_int_equal(comm_check(g.comms[1]), -EPROTO);
	expect_says("rank 1: in operation ", "(send and recv), rank 0 calls another function");
	comm_abort(g.comms[0]);
	rig_wait(g.set, g.streams[0]);
	rig_stop(&g);
}

static void graphs_in_another_order(void **state)
{
	static const u64 sizes[][2] = {{400, 300},   {300, 400},     {0, 1},         {1, 0},
				       {300, 60000}, {60000, 300},   {6000, 60000},  {60000, 6000},
				       {0, 60000},   {60000, 61000}, {61000, 60000}, {60000, 0}};

	(void)state;
	for (unsigned k = 0; k < 2 * ARRAY_LEN(sizes); k++)
		launch_in_another_order(sizes[k / 2], k & 1);
}

/* ---- ranks that are processes ---- */

struct party {
	char key[40];
	int n, odd;
	size_t kind;
	bool no_p2p, captured;
};

/* One rank; waits without this library's help, as a program does. */
static int take_part(struct device_set *s, struct onehop_comm *c, const struct party *p, int rank)
{
	const struct call *call = rank == p->odd ? &kinds[p->kind].other : &kinds[p->kind].usual;
	struct stream stream;
	struct graph graph;
	struct operation_call what;
	struct memory m;
	void *native;
	u64 at;
	int r = s->ops->alloc(s, 0, MEMORY_DEVICE, 2 * BUFFER, &m);

	if (r < 0 || (r = s->ops->address(s, &m, 0, &at)) < 0 ||
	    (r = s->ops->stream_new(s, 0, &stream)) < 0 ||
	    (r = s->ops->stream_native(s, stream, &native)) < 0)
		return r;
	what = (struct operation_call){.in = (const void *)at,
				       .out = (void *)(at + BUFFER),
				       .count = call->count,
				       .type = call->type,
				       .op = call->op,
				       .root = call->root,
				       .stream = native};
	if (p->captured)
		r = s->ops->capture_begin(s, stream);
	if (r == 0)
		r = operation_enqueue(c, call->o, &what);
	if (p->captured && s->ops->capture_end(s, stream, &graph) == 0 && r == 0)
		r = s->ops->graph_launch(s, stream, graph);
	if (r == 0)
		r = s->ops->wait(s, stream, SOON_US);
	if (r < 0 && r != -EPROTO)
		return r;
	/* One that waits for nobody (a sender) may be done before others find out. */
	for (int i = 0; i < 2000 && (r = comm_check(c)) == 0; i++)
		usleep(10000);
	if (r == -EPROTO && (!strstr(err_msg(), kinds[p->kind].says[0]) ||
			     !strstr(err_msg(), kinds[p->kind].says[1])))
		return -EBADMSG;
	return r;
}

static int member(const void *party, int rank)
{
	const struct party *p = party;
	struct device_request q = request_of(1);
	const struct comm_options o = options_of(ALGORITHM_N, p->no_p2p);
	struct onehop_comm *c;
	int r;

	q.number[0] = rank;
	r = comm_open_rank(&q, p->key, rank, p->n, &o, &c);
	if (r < 0)
		return r;
	usleep((useconds_t)(rank * 7919 + (int)p->kind * 104729) % 3000);
	r = take_part(c->shared->set, c, p, rank);
	comm_close(c);
	return r;
}

static void run_party(const struct party *p)
{
	pid_t pids[RANKS];

	for (int i = 0; i < p->n; i++)
		pids[i] = rig_fork(member, p, i);
	for (int i = 0; i < p->n; i++) {
		const int end = rig_end_of(pids[i]);

		if (end != EPROTO)
			fail_msg("kind %zu, %d ranks, odd %d: rank %d ended with %d", p->kind, p->n,
				 p->odd, i, end);
	}
}

static void processes_that_differ(void **state)
{
	struct party p = {0};

	(void)state;
	for (p.n = 2; p.n <= RANKS; p.n++)
		for (p.kind = 0; p.kind < ARRAY_LEN(kinds); p.kind++) {
			p.odd = (int)next_random((u64)p.n);
			p.no_p2p = p.kind % 2;
			p.captured = p.kind % 3 == 0;
			snprintf(p.key, sizeof(p.key), "test_agree/%d/%d/%zu", (int)getpid(), p.n,
				 p.kind);
			run_party(&p);
		}
}

/* ---- an operation that could not be enqueued ---- */

static void a_launch_that_fails(void **state)
{
	const struct device_request q = request_of(2);
	const struct fake_plan plan = {.op = "launch", .nth = 2, .error = -ENOMEM};
	const struct comm_options o = options_of(ALGORITHM_N, false);
	static int values[2][8];
	struct onehop_comm *comms[2];
	struct device_set *inner, *set;

	(void)state;
	assert_ok(device_open(&q, &inner));
	assert_ok(fake_open(inner, &plan, &set));
	assert_ok(comm_open_set(set, &o, comms));
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 2; i++) {
			const struct operation_call call = {.in = values[i],
							    .out = values[i],
							    .count = 8,
							    .type = ELEMENT_INT32};
			int r = operation_enqueue(comms[i], OPERATION_ALL_REDUCE, &call);

			if (round == 0 && i == 1) {
				assert_int_equal(r, -ENOMEM);
				r = operation_enqueue(comms[i], OPERATION_ALL_REDUCE, &call);
			}
			assert_ok(r);
		}
	for (int i = 0; i < 2; i++) {
		assert_ok(comm_wait(comms[i], NULL, RIG_LIMIT_US));
		assert_ok(comm_check(comms[i]));
	}
	for (int i = 0; i < 2; i++)
		comm_close(comms[i]);
}

/* ---- wrong memory and communicators, through the public functions ---- */

static void memory_that_is_not_the_devices(void **state)
{
	const struct onehop_options o = {.simulated = 1};
	struct onehop_comm *c[2];
	void *nowhere = (void *)64;
	static int there[2][64];

	(void)state;
	assert_ok(onehop_open_all(2, NULL, &o, c));
	expect_error(onehop_all_reduce(c[1], nowhere, there[1], 4, ONEHOP_INT32, ONEHOP_SUM, NULL),
		     -EINVAL, "rank 1: all_reduce: in: there is no memory at 0x40");
	expect_error(onehop_all_gather(c[0], there[0], nowhere, 4, ONEHOP_INT32, NULL), -EINVAL,
		     "rank 0: all_gather: out: there is no memory");
	expect_error(onehop_send(c[1], nowhere, 4, ONEHOP_INT8, 0, NULL), -EINVAL,
		     "rank 1: send: in: there is no memory");
	expect_error(onehop_recv(c[1], nowhere, 4, ONEHOP_INT8, 0, NULL), -EINVAL,
		     "rank 1: recv: out: there is no memory");
	/* What is not read or written may be anything. */
	for (int i = 0; i < 2; i++)
		assert_ok(onehop_all_reduce(c[i], nowhere, nowhere, 0, ONEHOP_INT32, ONEHOP_SUM,
					    NULL));
	for (int i = 0; i < 2; i++)
		assert_ok(onehop_reduce(c[i], there[i], i ? nowhere : there[i], 4, ONEHOP_INT32,
					ONEHOP_SUM, 0, NULL));
	for (int i = 0; i < 2; i++)
		assert_ok(onehop_wait(c[i], NULL));
	for (int i = 0; i < 2; i++)
		onehop_close(c[i]);
}

static void a_range_is_looked_up_once(void **state)
{
	const struct device_request q = request_of(1);
	const struct fake_plan plan = {.op = "memory_at", .nth = 2, .error = -EFAULT};
	const struct comm_options o = options_of(ALGORITHM_N, false);
	struct onehop_comm *c;
	struct device_set *inner, *set;
	static int there[64];

	(void)state;
	assert_ok(device_open(&q, &inner));
	assert_ok(fake_open(inner, &plan, &set));
	assert_ok(comm_open_set(set, &o, &c));
	for (int i = 0; i < 64; i++)
		assert_ok(comm_usable(c, (u64)&there[i]));
	memset(c->ranges, 0, sizeof(c->ranges));
	assert_int_equal(comm_usable(c, (u64)there), -EINVAL);
	comm_close(c);
}

/* In a child of fork(): the parent's communicator, and one of its own. */
static int use_after_fork(const void *party, int rank)
{
	const struct onehop_options o = {.simulated = 1};
	struct onehop_comm *theirs = *(struct onehop_comm *const *)party, *own;
	static int there[4] = {1, 2, 3, 4};
	int r = onehop_group_end(); /* the parent's, in which it sends and receives */

	(void)rank;
	if (r != -EINVAL ||
	    !strstr(onehop_error(), "send: the communicator was opened before fork()"))
		return -EBADMSG;
	r = onehop_all_reduce(theirs, there, there, 4, ONEHOP_INT32, ONEHOP_SUM, NULL);
	onehop_close(theirs); /* does nothing */
	if (r != -EINVAL ||
	    !strstr(onehop_error(), "all_reduce: the communicator was opened before fork()") ||
	    onehop_check(theirs) != -EINVAL)
		return -EBADMSG;
	r = onehop_open_all(1, NULL, &o, &own);
	if (r == 0)
		r = onehop_all_reduce(own, there, there, 4, ONEHOP_INT32, ONEHOP_SUM, NULL);
	if (r == 0)
		r = onehop_wait(own, NULL);
	onehop_close(own);
	return r < 0 ? r : there[3] - 4;
}

static void a_child_of_fork(void **state)
{
	const struct onehop_options o = {.simulated = 1, .limit_ms = 20000};
	struct onehop_comm *c[2];
	static int there[64];

	(void)state;
	assert_ok(onehop_open_all(2, NULL, &o, c));
	assert_ok(onehop_group_start());
	assert_ok(onehop_send(c[0], there, 4, ONEHOP_INT32, 1, NULL));
	assert_ok(onehop_recv(c[1], &there[32], 4, ONEHOP_INT32, 0, NULL));
	assert_int_equal(rig_end_of(rig_fork(use_after_fork, &c[1], 1)), 0);
	assert_ok(onehop_group_end());
	for (int i = 0; i < 2; i++)
		assert_ok(onehop_all_reduce(c[i], there, &there[32 * i], 4, ONEHOP_INT32,
					    ONEHOP_SUM, NULL));
	for (int i = 0; i < 2; i++) {
		assert_ok(onehop_wait(c[i], NULL));
		onehop_close(c[i]);
	}
}

static void communicators_that_are_closed(void **state)
{
	const struct onehop_options o = {.simulated = 1};
	struct onehop_memory used;
	struct onehop_comm *c[2];
	static int there[64];
	void *more;

	(void)state;
	assert_ok(onehop_open_all(2, NULL, &o, c));
	onehop_close(c[1]);
	onehop_close(c[1]); /* does nothing */
	expect_error(onehop_all_reduce(c[1], there, there, 4, ONEHOP_INT32, ONEHOP_SUM, NULL),
		     -EINVAL, "all_reduce: the communicator was closed");
	expect_error(onehop_barrier(c[1], NULL), -EINVAL, "barrier: the communicator was closed");
	expect_error(onehop_send(c[1], there, 4, ONEHOP_INT8, 0, NULL), -EINVAL,
		     "send: the communicator");
	expect_error(onehop_recv(c[1], there, 4, ONEHOP_INT8, 0, NULL), -EINVAL,
		     "recv: the communicator");
	expect_error(onehop_check(c[1]), -EINVAL, "onehop_check: the communicator was closed");
	expect_error(onehop_wait(c[1], NULL), -EINVAL, "onehop_wait: the communicator was closed");
	expect_error(onehop_abort(c[1]), -EINVAL, "onehop_abort: the communicator was closed");
	expect_error(onehop_alloc(c[1], 4, &more), -EINVAL,
		     "onehop_alloc: the communicator was closed");
	expect_error(onehop_memory_used(c[1], &used), -EINVAL, "the communicator was closed");
	expect_error(onehop_rank(c[1]), -EINVAL, "onehop_rank: the communicator was closed");
	expect_error(onehop_size(c[1]), -EINVAL, "onehop_size: the communicator was closed");
	expect_error(onehop_check((struct onehop_comm *)there), -EINVAL,
		     "the communicator was closed");
	expect_error(onehop_check(NULL), -EINVAL, "onehop_check: no communicator");
	assert_ok(onehop_check(c[0]));
	onehop_close(c[0]);
	onehop_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_later_one_finds_out),
		cmocka_unit_test(a_rank_that_is_far_ahead),
		cmocka_unit_test(threads_that_race),
		cmocka_unit_test(calls_that_differ),
		cmocka_unit_test(captured_calls_that_differ),
		cmocka_unit_test(captures_at_other_times),
		cmocka_unit_test(one_of_two_communicators),
		cmocka_unit_test(messages_that_differ),
		cmocka_unit_test(graphs_in_another_order),
		cmocka_unit_test(processes_that_differ),
		cmocka_unit_test(a_launch_that_fails),
		cmocka_unit_test(memory_that_is_not_the_devices),
		cmocka_unit_test(a_range_is_looked_up_once),
		cmocka_unit_test(a_child_of_fork),
		cmocka_unit_test(communicators_that_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
