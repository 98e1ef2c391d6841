/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions (onehop/onehop.h) on simulated devices, as a program would use them. */
#include <onehop/onehop.h>

#include "base/array.h"
#include "comm_rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#define RANKS 4
#define COUNT 1000

static const struct onehop_options simulated = {.simulated = 1};

/* ---- all ranks in one thread ---- */

struct all {
	struct onehop_comm *comms[RANKS];
	int *in[RANKS], *out[RANKS];
};

static void open_all(struct all *a, const struct onehop_options *o)
{
	assert_ok(onehop_open_all(RANKS, NULL, o, a->comms));
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_alloc(a->comms[i], COUNT * sizeof(int), (void **)&a->in[i]));
		assert_ok(onehop_alloc(a->comms[i], COUNT * sizeof(int), (void **)&a->out[i]));
		for (int k = 0; k < COUNT; k++)
			a->in[i][k] = 10 * i + k;
	}
}

static void close_all(struct all *a)
{
	for (int i = 0; i < RANKS; i++)
		onehop_close(a->comms[i]);
}

static void sum_all(struct all *a)
{
	for (int i = 0; i < RANKS; i++)
		assert_ok(onehop_all_reduce(a->comms[i], a->in[i], a->out[i], COUNT, ONEHOP_INT32,
					    ONEHOP_SUM, NULL));
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_wait(a->comms[i], NULL));
		for (int k = 0; k < COUNT; k++)
			assert_int_equal(a->out[i][k], 60 + RANKS * k);
	}
}

static void all_ranks_in_one_thread(void **state)
{
	struct onehop_memory used;
	struct all a;

	(void)state;
	open_all(&a, &simulated);
	for (int i = 0; i < RANKS; i++) {
		assert_int_equal(onehop_rank(a.comms[i]), i);
		assert_int_equal(onehop_size(a.comms[i]), RANKS);
		assert_ok(onehop_memory_used(a.comms[i], &used));
		assert_true(used.device_bytes > 1 << 16 && used.device_bytes <= 64 << 20);
		assert_true(used.host_bytes >= 2 * COUNT * sizeof(int));
	}
	sum_all(&a);
	close_all(&a);
}

/* Rank 0 counts what all share. */
static void memory_through_the_host(void **state)
{
	const struct onehop_options o = {.simulated = 1, .no_p2p = 1};
	struct onehop_memory used;
	struct all a;

	(void)state;
	open_all(&a, &o);
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_memory_used(a.comms[i], &used));
		assert_true(used.device_bytes < 1 << 16);
		assert_int_equal(used.host_bytes > 1 << 16, i == 0);
		assert_true(used.host_bytes <= 64 << 20);
	}
	sum_all(&a);
	close_all(&a);
}

/* ---- what is expected ---- */

static void what_is_expected(void **state)
{
	struct onehop_expected small, large;
	struct all a;

	(void)state;
	open_all(&a, &simulated);
	assert_ok(onehop_expect(a.comms[1], ONEHOP_ALL_REDUCE, 2, ONEHOP_FLOAT32, ONEHOP_SUM,
				&small));
	assert_ok(onehop_expect(a.comms[1], ONEHOP_ALL_REDUCE, 64 << 20, ONEHOP_FLOAT32, ONEHOP_SUM,
				&large));
	assert_true(small.time_us > 0 && small.time_us < large.time_us);
	assert_false(small.measured);
	assert_string_equal(small.algorithm, "flagged-1");
	assert_string_equal(large.algorithm, "piped-2");
	assert_int_equal(onehop_expect(a.comms[0], ONEHOP_ALL_REDUCE, 1, ONEHOP_TYPE_N, ONEHOP_SUM,
				       &small),
			 -ENOTSUP);
	expect_error(onehop_expect(a.comms[0], ONEHOP_OPERATION_N, 1, ONEHOP_INT8, ONEHOP_SUM,
				   &small),
		     -EINVAL, "no such operation");
	close_all(&a);
}

/* ---- no place for an answer ---- */

static int count_calls(void *context, const void *mine, size_t size, void *all)
{
	memcpy(all, mine, size);
	++*(int *)context;
	return 0;
}

static void answers_without_a_place(void **state)
{
	int calls = 0;
	const struct onehop_exchange exchange = {count_calls, &calls};
	struct all a;

	(void)state;
	expect_error(onehop_open_all(RANKS, NULL, &simulated, NULL), -EINVAL, "open_all: no place");
	expect_error(onehop_open_all(-1, NULL, &simulated, a.comms), -EINVAL,
		     "onehop_open_all: the number of ranks must be 1 to 8, not -1");
	expect_error(onehop_open_all(9, NULL, &simulated, a.comms), -EINVAL, "1 to 8, not 9");
	expect_error(onehop_open_rank("key", 0, 1, 0, &simulated, NULL), -EINVAL,
		     "onehop_open_rank: no place for a communicator");
	expect_error(onehop_open_rank("key", 0, 9, 0, &simulated, a.comms), -EINVAL,
		     "onehop_open_rank: the number of ranks must be 1 to 8, not 9");
	expect_error(onehop_open_rank("", 0, 1, 0, &simulated, a.comms), -EINVAL,
		     "onehop_open_rank: ");
	expect_error(onehop_open_exchange(&exchange, 0, 1, 0, &simulated, NULL), -EINVAL,
		     "open_exchange: no place");
	assert_int_equal(calls, 1); /* the other ranks do not wait for this one */
	open_all(&a, &simulated);
	expect_error(onehop_memory_used(a.comms[0], NULL), -EINVAL, "memory_used: no place");
	expect_error(onehop_alloc(a.comms[0], 64, NULL), -EINVAL, "alloc: no place");
	expect_error(onehop_alloc(a.comms[0], 0, (void **)&a.in[0]), -EINVAL, "alloc: 0 bytes");
	expect_error(onehop_expect(a.comms[0], ONEHOP_ALL_REDUCE, 1, ONEHOP_INT8, ONEHOP_SUM, NULL),
		     -EINVAL, "expect: no place");
	sum_all(&a);
	close_all(&a);
}

/* ---- memory for both ---- */

typedef int call_fn(struct onehop_comm *comm, const void *in, void *out);

static int overlap_all_reduce(struct onehop_comm *comm, const void *in, void *out)
{
	return onehop_all_reduce(comm, in, out, 10, ONEHOP_INT32, ONEHOP_SUM, NULL);
}

static int overlap_reduce_scatter(struct onehop_comm *comm, const void *in, void *out)
{
	return onehop_reduce_scatter(comm, in, out, 10, ONEHOP_INT32, ONEHOP_SUM, NULL);
}

static int overlap_all_gather(struct onehop_comm *comm, const void *in, void *out)
{
	return onehop_all_gather(comm, in, out, 10, ONEHOP_INT32, NULL);
}

static int overlap_all_to_all(struct onehop_comm *comm, const void *in, void *out)
{
	return onehop_all_to_all(comm, in, out, 10, ONEHOP_INT32, NULL);
}

static int overlap_broadcast(struct onehop_comm *comm, const void *in, void *out)
{
	return onehop_broadcast(comm, in, out, 10, ONEHOP_INT32, 2, NULL);
}

/* Offsets of out from in, in elements, that rank 2 of 4 refuses, and that it takes. */
static void buffers_that_overlap(void **state)
{
	static const struct {
		call_fn *call;
		int wrong[4], right[4];
	} rows[] = {
		{overlap_all_reduce, {1, 9, -1, -9}, {0, 10, -10, 11}},
		{overlap_reduce_scatter, {10, 39, -9, 21}, {0, 20, 40, -10}},
		{overlap_all_gather, {0, 9, -19, -39}, {-20, 10, -40, 50}},
		{overlap_all_to_all, {20, 39, -20, -39}, {0, 40, -40, 50}},
		{overlap_broadcast, {1, 9, -1, -9}, {0, 10, -10, 11}},
	};
	struct all a;

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
		for (size_t i = 0; i < 4; i++) {
			open_all(&a, &simulated);
			expect_error(rows[k].call(a.comms[2], &a.in[2][100],
						  &a.in[2][100 + rows[k].wrong[i]]),
				     -EINVAL,
				     k == 2 ? "in is in out, but not at out + rank * count"
					    : "in and out overlap");
			assert_ok(rows[k].call(a.comms[2], &a.in[2][100],
					       &a.in[2][100 + rows[k].right[i]]));
			close_all(&a);
		}
	}
}

/* ---- a table ---- */

struct file {
	char path[64];
};

static void write_file(struct file *f, const char *text)
{
	int fd;

	snprintf(f->path, sizeof(f->path), "/tmp/test_onehop.XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

#define TABLE                                                                                      \
	"onehop-tune 1\nmeasured 2026-01-31T10:20:30Z\ndriver -\n"                                 \
	"device - -\ndevice - -\ndevice - -\ndevice - -\n"

static void a_table_decides(void **state)
{
	struct onehop_expected e;
	struct file f;
	struct onehop_options o = {.simulated = 1, .tune_file = f.path};
	struct all a;

	(void)state;
	write_file(&f, TABLE "time direct all_reduce 16 flagged-1 9000 piped-1 4000\nend\n");
	open_all(&a, &o);
	assert_ok(onehop_expect(a.comms[3], ONEHOP_ALL_REDUCE, 4, ONEHOP_FLOAT32, ONEHOP_SUM, &e));
	assert_true(e.measured && e.time_us == 4);
	assert_string_equal(e.algorithm, "piped-1");
	sum_all(&a);
	close_all(&a);
	unlink(f.path);
}

static void a_table_that_cannot_be_used(void **state)
{
	struct onehop_comm *comms[RANKS];
	struct file f;
	struct onehop_options o = {.simulated = 1, .tune_file = f.path};

	(void)state;
	write_file(&f, TABLE "time direct all_reduce 17 flagged-1 9000\nend\n");
	expect_error(onehop_open_all(RANKS, NULL, &o, comms), -EINVAL,
		     ":8: 17 bytes is not a size");
	assert_int_equal(strncmp(onehop_error(), "onehop_open_all: ", 17), 0);
	unlink(f.path);
	expect_error(onehop_open_all(RANKS, NULL, &o, comms), -ENOENT, f.path);
}

static void a_barrier_is_called_so(void **state)
{
	const struct onehop_options o = {.simulated = 1, .limit_ms = 300};
	struct all a;

	(void)state;
	open_all(&a, &o);
	assert_ok(onehop_barrier(a.comms[0], NULL));
	expect_error(
		onehop_wait(a.comms[0], NULL), -ETIMEDOUT,
		"did not take part in operation 0 (barrier) within 0.3 s; it has not called any "
		"operation yet");
	close_all(&a);
	open_all(&a, &simulated);
	assert_ok(onehop_barrier(a.comms[0], NULL));
	expect_error(onehop_all_reduce(a.comms[1], a.in[1], a.out[1], 3, ONEHOP_INT8, ONEHOP_SUM,
				       NULL),
		     -EPROTO,
		     "operation 0 is barrier on rank 0, but all_reduce(3 int8, sum) on rank 1");
	close_all(&a);
}

/*
 * The others have given up: a rank that comes too late hears that it was itself, and the rest whom
 * they waited for.
 */
static void a_rank_that_is_late(void **state)
{
	const struct onehop_options o = {.simulated = 1, .limit_ms = 300};
	static const char late[] =
		"rank 1: rank 0 gave up its operation 0, because this rank did not "
		"take part within 0.3 s";
	struct onehop_comm *comms[2];
	struct all a;

	(void)state;
	assert_ok(onehop_open_all(2, NULL, &o, comms));
	assert_ok(onehop_barrier(comms[0], NULL));
	expect_error(onehop_wait(comms[0], NULL), -ETIMEDOUT, "rank 1 did not take part");
	expect_error(onehop_check(comms[1]), -ETIMEDOUT, late);
	expect_error(onehop_wait(comms[1], NULL), -ETIMEDOUT, late);
	expect_error(onehop_barrier(comms[1], NULL), -ETIMEDOUT, late);
	for (int i = 0; i < 2; i++)
		onehop_close(comms[i]);
	open_all(&a, &o);
	assert_ok(onehop_send(a.comms[0], a.in[0], 1, ONEHOP_INT8, 2, NULL));
	assert_ok(onehop_recv(a.comms[0], a.out[0], 1, ONEHOP_INT8, 2, NULL));
	expect_error(onehop_wait(a.comms[0], NULL), -ETIMEDOUT, "rank 2 did not take part");
	expect_error(onehop_check(a.comms[3]), -ETIMEDOUT,
		     "rank 3: rank 0 gave up its operation 1, because rank 2 did not take part");
	close_all(&a);
}

/* ---- aborting ---- */

static void aborting_ends_what_waits(void **state)
{
	struct all a;

	(void)state;
	open_all(&a, &simulated); /* the limit is 30 s */
	assert_ok(onehop_barrier(a.comms[0], NULL));
	assert_ok(onehop_abort(a.comms[0]));
	expect_error(onehop_wait(a.comms[0], NULL), -ECANCELED,
		     "rank 0: operation 0 (barrier) was cancelled");
	expect_error(onehop_barrier(a.comms[0], NULL), -ECANCELED, "rank 0");
	assert_ok(onehop_abort(a.comms[1]));
	expect_error(onehop_check(a.comms[1]), -ECANCELED, "rank 1: the communicator was aborted");
	expect_error(onehop_barrier(a.comms[1], NULL), -ECANCELED, "rank 1");
	assert_ok(onehop_check(a.comms[2]));
	close_all(&a);
}

/* ---- ranks that are threads, over an exchange of the caller's ---- */

struct meeting {
	pthread_barrier_t barrier;
	unsigned char all[RANKS][4096];
	int spoil; /* a byte of rank 2's that another host would have; -1: none */
	int fails; /* a rank whose exchange fails; -1: none */
	int ends[RANKS];
	char whys[RANKS][200];
};

struct attendee {
	struct meeting *m;
	int rank, sum;
};

static int gather(void *context, const void *mine, size_t size, void *all)
{
	const struct attendee *a = context;
	struct meeting *m = a->m;

	assert_true(size <= sizeof(m->all[0]));
	memcpy(m->all[a->rank], mine, size);
	if (a->rank == 2 && m->spoil >= 0)
		m->all[2][m->spoil] ^= 1;
	pthread_barrier_wait(&m->barrier);
	for (int i = 0; i < RANKS; i++)
		memcpy((char *)all + (size_t)i * size, m->all[i], size);
	return m->fails == a->rank ? -EPIPE : 0;
}

static int take_part(struct attendee *a)
{
	const struct onehop_exchange exchange = {gather, a};
	const struct onehop_options o = {.simulated = 1, .limit_ms = 20000};
	struct onehop_comm *c;
	int *value;
	int r = onehop_open_exchange(&exchange, a->rank, RANKS, a->rank, &o, &c);

	if (r < 0)
		return r;
	r = onehop_alloc(c, sizeof(int), (void **)&value);
	if (r == 0) {
		*value = 1 << a->rank;
		r = onehop_all_reduce(c, value, value, 1, ONEHOP_INT32, ONEHOP_SUM, NULL);
	}
	if (r == 0)
		r = onehop_wait(c, NULL);
	if (r == 0)
		a->sum = *value;
	onehop_close(c);
	return r;
}

static void *attend(void *argument)
{
	struct attendee *a = argument;
	struct meeting *m = a->m;

	m->ends[a->rank] = take_part(a);
	snprintf(m->whys[a->rank], sizeof(m->whys[a->rank]), "%s", onehop_error());
	return NULL;
}

static void hold(struct meeting *m, struct attendee attendees[RANKS])
{
	pthread_t threads[RANKS];

	pthread_barrier_init(&m->barrier, NULL, RANKS);
	for (int i = 0; i < RANKS; i++) {
		attendees[i] = (struct attendee){m, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, attend, &attendees[i]), 0);
	}
	for (int i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&m->barrier);
}

static void ranks_over_an_exchange(void **state)
{
	static struct meeting m = {.spoil = -1, .fails = -1};
	struct attendee attendees[RANKS];

	(void)state;
	hold(&m, attendees);
	for (int i = 0; i < RANKS; i++) {
		if (m.ends[i] < 0)
			fail_msg("rank %d: %s", i, m.whys[i]);
		assert_int_equal(attendees[i].sum, (1 << RANKS) - 1);
	}
}

/* All get the same error at once. */
static void ranks_that_differ(void **state)
{
	static const struct {
		int byte, error;
		const char *why;
	} rows[] = {
		{0, -EPROTO,
		 "onehop_open_exchange: rank 2 has another version of libonehop than rank 0"},
		{20, -EXDEV, "onehop_open_exchange: rank 2 is on another host than rank 0"},
		{56, -EXDEV,
		 "onehop_open_exchange: rank 2 is in another network namespace than rank 0"},
		{64, -EXDEV, "onehop_open_exchange: rank 2 is of another user than rank 0"},
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
		static struct meeting m;
		struct attendee attendees[RANKS];

		m = (struct meeting){.spoil = rows[k].byte, .fails = -1};
		hold(&m, attendees);
		for (int i = 0; i < RANKS; i++) {
			assert_int_equal(m.ends[i], rows[k].error);
			assert_string_equal(m.whys[i], rows[k].why);
		}
	}
}

static void an_exchange_that_cannot_be(void **state)
{
	int calls = 0;
	const struct onehop_exchange none = {0}, one = {count_calls, &calls};
	const struct onehop_options missing = {.simulated = 1, .tune_file = "/none/tune.txt"};
	struct onehop_comm *c;

	(void)state;
	expect_error(onehop_open_exchange(&none, 0, 2, 0, &simulated, &c), -EINVAL,
		     "no all_gather");
	expect_error(onehop_open_exchange(NULL, 0, 2, 0, &simulated, &c), -EINVAL, "no all_gather");
	expect_error(onehop_open_exchange(&one, 0, 9, 0, &simulated, &c), -EINVAL,
		     "onehop_open_exchange: the number of ranks must be 1 to 8, not 9");
	expect_error(onehop_open_exchange(&one, 0, 1, 0, &missing, &c), -ENOENT,
		     "onehop_open_exchange: cannot read ");
}

/* ---- sends, receives and groups ---- */

#define MESSAGES_MAX 4
#define BYTES_MAX    40000

/* Messages of one ordered pair, in order. */
struct mail {
	unsigned n;
	size_t bytes[MESSAGES_MAX], at[MESSAGES_MAX]; /* where in the buffers */
};

struct post {
	struct all a;
	int n;
	struct mail mail[RANKS][RANKS]; /* [from][to] */
	unsigned char *sent[RANKS], *got[RANKS];
	size_t room;
};

static unsigned char byte_of(int from, int to, unsigned k, size_t i, unsigned round)
{
	return (unsigned char)(from * 61 + to * 17 + (int)k * 5 + (int)i * 3 + (int)(i >> 8) +
			       (int)round * 29);
}

static void post_open(struct post *p, int no_p2p)
{
	const struct onehop_options o = {.simulated = 1, .no_p2p = no_p2p};

	open_all(&p->a, &o);
	p->room = (size_t)RANKS * MESSAGES_MAX * (BYTES_MAX + 16);
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_alloc(p->a.comms[i], p->room, (void **)&p->sent[i]));
		assert_ok(onehop_alloc(p->a.comms[i], p->room, (void **)&p->got[i]));
	}
}

/* At any address; a third are empty or tiny. */
static void write_mail(struct post *p, unsigned round)
{
	for (int from = 0; from < RANKS; from++)
		for (int to = 0; to < RANKS; to++) {
			struct mail *m = &p->mail[from][to];

			m->n = next_random(MESSAGES_MAX + 1);
			for (unsigned k = 0; k < m->n; k++) {
				const size_t slot =
					((size_t)to * MESSAGES_MAX + k) * (BYTES_MAX + 16);

				m->bytes[k] = next_random(next_random(3) ? BYTES_MAX : 20);
				m->at[k] = slot + next_random(16);
				for (size_t i = 0; i < m->bytes[k]; i++)
					p->sent[from][m->at[k] + i] =
						byte_of(from, to, k, i, round);
			}
		}
	for (int i = 0; i < RANKS; i++)
		memset(p->got[i], 0x5a, p->room);
}

static size_t place_of(const struct mail *m, int from, unsigned k)
{
	return ((size_t)from * MESSAGES_MAX + k) * (BYTES_MAX + 16) + m->at[k] % 16;
}

/* All of one rank: receives and sends in any order, each pair's in its own. */
static void exchange(struct post *p, int me)
{
	unsigned sent[RANKS] = {0}, got[RANKS] = {0};

	for (unsigned left = 1; left;) {
		const int peer = (int)next_random(RANKS);
		const struct mail *out = &p->mail[me][peer], *in = &p->mail[peer][me];
		const unsigned s = sent[peer], g = got[peer];

		if (next_random(2) && s < out->n)
			assert_ok(onehop_send(p->a.comms[me], p->sent[me] + out->at[s],
					      out->bytes[sent[peer]++], ONEHOP_UINT8, peer, NULL));
		else if (g < in->n)
			assert_ok(onehop_recv(p->a.comms[me], p->got[me] + place_of(in, peer, g),
					      in->bytes[got[peer]++], ONEHOP_UINT8, peer, NULL));
		left = 0;
		for (int i = 0; i < RANKS; i++)
			left += p->mail[me][i].n - sent[i] + p->mail[i][me].n - got[i];
	}
}

static void check_mail(const struct post *p, unsigned round)
{
	for (int from = 0; from < RANKS; from++)
		for (int to = 0; to < RANKS; to++)
			for (unsigned k = 0; k < p->mail[from][to].n; k++) {
				const struct mail *m = &p->mail[from][to];
				const unsigned char *got = p->got[to] + place_of(m, from, k);

				for (size_t i = 0; i < m->bytes[k]; i++)
					if (got[i] != byte_of(from, to, k, i, round))
						fail_msg("from %d to %d: byte %zu of %zu of %u",
							 from, to, i, m->bytes[k], k);
				assert_int_equal(got[m->bytes[k]], 0x5a);
			}
}

/* Other operations between, so that slots and counters of both kinds go on. */
static void random_mail(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		struct post p;

		post_open(&p, way & 1);
		for (unsigned round = 0; round < 25; round++) {
			write_mail(&p, round);
			assert_ok(onehop_group_start());
			for (int i = 0; i < RANKS; i++)
				exchange(&p, i);
			assert_ok(onehop_group_end());
			sum_all(&p.a);
			check_mail(&p, round);
		}
		close_all(&p.a);
	}
}

/*
 * A message is larger than all slots; ranks send to each other first, in two streams' worth of
 * groups.
 */
static void send_large(const struct onehop_options *o)
{
	const size_t bytes = 3 << 20;
	unsigned char *out[2], *in[2];
	struct all a;

	open_all(&a, o);
	for (int i = 0; i < 2; i++) {
		assert_ok(onehop_alloc(a.comms[i], bytes, (void **)&out[i]));
		assert_ok(onehop_alloc(a.comms[i], bytes, (void **)&in[i]));
		for (size_t k = 0; k < bytes; k++)
			out[i][k] = byte_of(i, 1 - i, 0, k, 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_ok(onehop_group_start());
		assert_ok(onehop_send(a.comms[i], out[i], bytes / 4, ONEHOP_FLOAT32, 1 - i, NULL));
		assert_ok(onehop_recv(a.comms[i], in[i], bytes / 4, ONEHOP_FLOAT32, 1 - i, NULL));
		assert_ok(onehop_group_end());
	}
	for (int i = 0; i < 2; i++) {
		assert_ok(onehop_wait(a.comms[i], NULL));
		assert_memory_equal(in[i], out[1 - i], bytes);
	}
	close_all(&a);
}

static void large_mail_both_ways(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++)
		send_large(&(struct onehop_options){.simulated = 1, .no_p2p = way});
}

/* Round a ring many times, one call after the other, without any wait. */
static void a_ring_without_groups(void **state)
{
	struct all a;

	(void)state;
	open_all(&a, &simulated);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < RANKS; i++)
			assert_ok(onehop_send(a.comms[i], a.in[i], 7, ONEHOP_INT32, (i + 1) % RANKS,
					      NULL));
		for (int i = 0; i < RANKS; i++)
			assert_ok(onehop_recv(a.comms[i], a.out[i], 7, ONEHOP_INT32,
					      (i + RANKS - 1) % RANKS, NULL));
	}
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_wait(a.comms[i], NULL));
		for (int k = 0; k < 7; k++)
			assert_int_equal(a.out[i][k], 10 * ((i + RANKS - 1) % RANKS) + k);
	}
	close_all(&a);
}

/* Two communicators, collectives and pairs, nested. */
static void mixed_groups(void **state)
{
	struct all a, b;
	int ring[RANKS];

	(void)state;
	open_all(&a, &simulated);
	open_all(&b, &simulated);
	assert_ok(onehop_group_start());
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_group_start());
		assert_ok(onehop_send(b.comms[i], &b.in[i][1], 1, ONEHOP_INT32, (i + 1) % RANKS,
				      NULL));
		assert_ok(onehop_all_reduce(a.comms[i], a.in[i], a.out[i], COUNT, ONEHOP_INT32,
					    ONEHOP_SUM, NULL));
		assert_ok(onehop_broadcast(b.comms[i], b.in[i], b.out[i], COUNT, ONEHOP_INT32, 2,
					   NULL));
		assert_ok(onehop_recv(b.comms[i], &ring[i], 1, ONEHOP_INT32,
				      (i + RANKS - 1) % RANKS, NULL));
		assert_ok(onehop_group_end());
	}
	assert_ok(onehop_group_end());
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_wait(a.comms[i], NULL));
		assert_ok(onehop_wait(b.comms[i], NULL));
		assert_int_equal(ring[i], 10 * ((i + RANKS - 1) % RANKS) + 1);
		for (int k = 0; k < COUNT; k++) {
			assert_int_equal(a.out[i][k], 60 + RANKS * k);
			assert_int_equal(b.out[i][k], 20 + k);
		}
	}
	close_all(&a);
	close_all(&b);
}

/*
 * Each rank has a group of its own, where an operation is at another place among its messages than
 * on other ranks. No message fits into the slots, so none ends before its receive starts.
 */
static void operations_between_messages(void **state)
{
	const size_t bytes = 16 << 20;
	unsigned char *buffer[3];
	struct all a;

	(void)state;
	open_all(&a, &simulated);
	for (int i = 0; i < 3; i++)
		assert_ok(onehop_alloc(a.comms[i], bytes, (void **)&buffer[i]));
	memset(buffer[0], 0x5a, bytes);
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_group_start());
		if (i == 0)
			assert_ok(onehop_send(a.comms[i], buffer[i], bytes, ONEHOP_INT8, 1, NULL));
		if (i == 1)
			assert_ok(onehop_recv(a.comms[i], buffer[i], bytes, ONEHOP_INT8, 0, NULL));
		assert_ok(onehop_all_reduce(a.comms[i], a.in[i], a.out[i], COUNT, ONEHOP_INT32,
					    ONEHOP_SUM, NULL));
		if (i == 0)
			assert_ok(onehop_send(a.comms[i], buffer[i], bytes, ONEHOP_INT8, 2, NULL));
		if (i == 2)
			assert_ok(onehop_recv(a.comms[i], buffer[i], bytes, ONEHOP_INT8, 0, NULL));
		assert_ok(onehop_group_end());
	}
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_wait(a.comms[i], NULL));
		assert_int_equal(a.out[i][1], 60 + RANKS);
		assert_true(i == 0 || i == 3 || !memcmp(buffer[i], buffer[0], bytes));
	}
	close_all(&a);
}

static void what_groups_refuse(void **state)
{
	struct all a;

	(void)state;
	open_all(&a, &simulated);
	expect_error(onehop_group_end(), -EINVAL, "no onehop_group_start");
	expect_error(onehop_send(NULL, a.in[0], 1, ONEHOP_INT8, 0, NULL), -EINVAL,
		     "send: no communicator");
	expect_error(onehop_send(a.comms[0], a.in[0], 1, ONEHOP_INT8, RANKS, NULL), -EINVAL,
		     "rank 0: send: peer 4 is not a rank");
	expect_error(onehop_recv(a.comms[1], NULL, 1, ONEHOP_INT8, 0, NULL), -EINVAL,
		     "rank 1: recv: out is NULL");
	expect_error(onehop_send(a.comms[1], a.in[0], 1, ONEHOP_INT8, 1, NULL), -EINVAL,
		     "rank 1: send: with itself only in a group");

	assert_ok(onehop_group_start()); /* nothing of a group with a failure is enqueued */
	assert_ok(onehop_barrier(a.comms[0], NULL));
	expect_error(onehop_recv(a.comms[1], a.out[1], 1, ONEHOP_TYPE_N, 0, NULL), -EINVAL,
		     "no element type 12");
	expect_error(onehop_group_end(), -EINVAL, "a call in the group failed");

	assert_ok(onehop_group_start());
	assert_ok(onehop_send(a.comms[1], a.in[1], 1, ONEHOP_INT8, 1, NULL));
	expect_error(onehop_group_end(), -EINVAL, "1 sends to itself, and 0 receives");

	assert_ok(onehop_group_start());
	assert_ok(onehop_send(a.comms[1], a.in[1], 1, ONEHOP_INT8, 1, NULL));
	assert_ok(onehop_recv(a.comms[1], a.out[1], 2, ONEHOP_INT8, 1, NULL));
	expect_error(onehop_group_end(), -EINVAL, "it sends 1 bytes to itself, and receives 2");

	assert_ok(onehop_group_start());
	for (int i = 0; i < 97; i++)
		assert_ok(onehop_send(a.comms[1], a.in[1], 1, ONEHOP_INT8, 0, NULL));
	expect_error(onehop_group_end(), -EINVAL, "97 of one stream are in a group, at most 96");
	sum_all(&a);
	close_all(&a);
}

/* Closing a communicator takes its calls out of the group. */
static void a_group_outlives_a_communicator(void **state)
{
	struct all a, b;

	(void)state;
	open_all(&a, &simulated);
	open_all(&b, &simulated);
	assert_ok(onehop_group_start());
	for (int i = 0; i < RANKS; i++) {
		assert_ok(onehop_barrier(a.comms[i], NULL));
		assert_ok(onehop_barrier(b.comms[i], NULL));
	}
	close_all(&a);
	assert_ok(onehop_group_end());
	sum_all(&b);
	close_all(&b);
}

static void *close_both(void *comms)
{
	struct onehop_comm **c = comms;

	onehop_close(c[0]);
	onehop_close(c[1]);
	return NULL;
}

/* Another thread does not know this one's group. */
static void closed_while_a_group_is_open(void **state)
{
	struct onehop_comm *c[2];
	pthread_t thread;
	int there[2];

	(void)state;
	assert_ok(onehop_open_all(2, NULL, &simulated, c));
	assert_ok(onehop_group_start());
	assert_ok(onehop_send(c[0], &there[0], 1, ONEHOP_INT32, 1, NULL));
	assert_ok(onehop_recv(c[1], &there[1], 1, ONEHOP_INT32, 0, NULL));
	assert_int_equal(pthread_create(&thread, NULL, close_both, c), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	expect_error(onehop_group_end(), -EINVAL, "send: the communicator was closed");
}

/*
 * Rank 0 sends to both others in one group; 2 passes it on to 1, which takes that first. So on rank
 * 0 what goes to 1 waits for what goes to 2, whichever comes first among its lanes.
 */
static void messages_that_wait_for_each_other(void **state)
{
	const size_t bytes = 1 << 20;
	unsigned char *buffer[4];
	struct all a;

	(void)state;
	for (int way = 0; way < 2; way++) {
		open_all(&a, &(struct onehop_options){.simulated = 1, .no_p2p = way});
		for (int i = 0; i < 4; i++)
			assert_ok(
				onehop_alloc(a.comms[i == 3 ? 1 : i], bytes, (void **)&buffer[i]));
		memset(buffer[0], 0x5a, bytes);
		assert_ok(onehop_group_start());
		assert_ok(onehop_send(a.comms[0], buffer[0], bytes, ONEHOP_INT8, 1, NULL));
		assert_ok(onehop_send(a.comms[0], buffer[0], bytes, ONEHOP_INT8, 2, NULL));
		assert_ok(onehop_group_end());
		assert_ok(onehop_recv(a.comms[2], buffer[2], bytes, ONEHOP_INT8, 0, NULL));
		assert_ok(onehop_send(a.comms[2], buffer[2], bytes, ONEHOP_INT8, 1, NULL));
		assert_ok(onehop_recv(a.comms[1], buffer[1], bytes, ONEHOP_INT8, 2, NULL));
		assert_ok(onehop_recv(a.comms[1], buffer[3], bytes, ONEHOP_INT8, 0, NULL));
		for (int i = 0; i < 3; i++)
			assert_ok(onehop_wait(a.comms[i], NULL));
		for (int i = 1; i < 4; i++)
			assert_memory_equal(buffer[i], buffer[0], bytes);
		close_all(&a);
	}
}

static void sizes_that_differ(void **state)
{
	static const struct {
		size_t sent, received;
	} rows[] = {{4, 5}, {0, 1}, {1, 0}, {70000, 3000}, {3000, 70000}};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
		unsigned char *buffer;
		struct all a;

		open_all(&a, &simulated);
		sum_all(&a);
		assert_ok(onehop_alloc(a.comms[0], 70000, (void **)&buffer));
		assert_ok(onehop_send(a.comms[2], buffer, rows[k].sent, ONEHOP_INT8, 1, NULL));
		expect_error(onehop_recv(a.comms[1], buffer, rows[k].received, ONEHOP_INT8, 2,
					 NULL),
			     -EPROTO, "rank 1: of message 0 from rank 2 to rank 1, ");
		expect_error(onehop_wait(a.comms[2], NULL), -EPROTO,
			     "rank 2: of message 0 from rank 2 to rank 1, ");
		close_all(&a);
	}
}

static void a_peer_that_does_not_come(void **state)
{
	const struct onehop_options o = {.simulated = 1, .limit_ms = 300};
	struct all a;

	(void)state;
	open_all(&a, &o);
	expect_error(onehop_barrier(a.comms[0], a.out[0]), -EINVAL, "rank 0: barrier: ");
	assert_ok(onehop_recv(a.comms[1], a.out[1], 1, ONEHOP_INT32, 3, NULL));
	expect_error(
		onehop_wait(a.comms[1], NULL), -ETIMEDOUT,
		"rank 1: rank 3 did not take part in operation 0 (send and recv) within 0.3 s");
	expect_error(onehop_recv(a.comms[1], a.out[1], 1, ONEHOP_INT32, 3, NULL), -ETIMEDOUT,
		     "rank 1: rank 3");

	/* Calls after that say what happened then, and only that. */
	assert_int_equal(onehop_barrier(a.comms[1], NULL), -ETIMEDOUT);
	assert_string_equal(
		onehop_error(),
		"rank 1: rank 3 did not take part in operation 0 (send and recv) within 0.3 s");
	close_all(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_in_one_thread),
		cmocka_unit_test(memory_through_the_host),
		cmocka_unit_test(what_is_expected),
		cmocka_unit_test(answers_without_a_place),
		cmocka_unit_test(buffers_that_overlap),
		cmocka_unit_test(a_table_decides),
		cmocka_unit_test(a_table_that_cannot_be_used),
		cmocka_unit_test(a_barrier_is_called_so),
		cmocka_unit_test(a_rank_that_is_late),
		cmocka_unit_test(aborting_ends_what_waits),
		cmocka_unit_test(ranks_over_an_exchange),
		cmocka_unit_test(ranks_that_differ),
		cmocka_unit_test(an_exchange_that_cannot_be),
		cmocka_unit_test(random_mail),
		cmocka_unit_test(large_mail_both_ways),
		cmocka_unit_test(a_ring_without_groups),
		cmocka_unit_test(mixed_groups),
		cmocka_unit_test(operations_between_messages),
		cmocka_unit_test(what_groups_refuse),
		cmocka_unit_test(a_group_outlives_a_communicator),
		cmocka_unit_test(closed_while_a_group_is_open),
		cmocka_unit_test(messages_that_wait_for_each_other),
		cmocka_unit_test(sizes_that_differ),
		cmocka_unit_test(a_peer_that_does_not_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
