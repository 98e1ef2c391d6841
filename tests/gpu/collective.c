/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collective operations on real GPUs: "collective N check" compares results, "collective N time"
 * measures all-reduce beside NCCL's, "collective N table" every operation in alternating samples,
 * with the ratio of the times and its 95 % interval, "collective N soak OPERATIONS SECONDS" runs
 * random ones and looks for growth of memory, "collective N tune" each algorithm by itself,
 * "collective N broadcast" (or another operation) that one at more sizes. N GPUs,
 * all in this process; "collective host N check" runs anywhere; "collective same N check" has all
 * ranks on one GPU, where small operations can be compared with each other. With "no-p2p" at the
 * end all goes through the host's memory; with "levels" the ranks are in two groups; with "mixed"
 * only ranks of the same one store into each other's memory (of two ranks only the first one), with
 * "mixed-pairs" only those of a pair. Each line is one result; exit 1: a wrong one.
 */
#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/order.h"
#include "bench/collective_impl.h"
#include "bench/statistics.h"
#include "collective/operation.h"
#include "kernels/typed.h"

#include <errno.h>
#include <onehop/onehop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_US    20000000ul
#define RANKS       COLLECTIVE_RANKS_MAX
#define MARGIN      256ul
#define MIB         (1ul << 20)
#define SAME_BLOCKS 16u

struct rig {
	bool host, same, no_p2p, levels, mixed, mixed_pairs;
	enum onehop_op op; /* timed */
	size_t n;
	u64 room; /* bytes of a buffer */
	struct onehop_comm *comms[RANKS];
	struct device_set *set;
	const struct device_ops *ops;
	struct stream streams[RANKS];
	void *native[RANKS];
	struct memory in[RANKS], out[RANKS], report[RANKS];
	u64 in_at[RANKS], out_at[RANKS], report_at[RANKS];
	struct event from, to;
	struct nccl_api nccl;
	struct ncclComm *nccl_comms[RANKS];
	bool has_nccl;
	unsigned wrong;
};

static int stop(int r)
{
	printf("FAIL %s\n", err_msg());
	exit(r ? 1 : 2);
}

#define MUST(call)                                                                                 \
	do {                                                                                       \
		const int r_ = (call);                                                             \
		if (r_ < 0)                                                                        \
			stop(r_);                                                                  \
	} while (0)

/* ---- opening ---- */

static void open_comms(const struct rig *b, uint64_t limit_us, struct onehop_comm **ret)
{
	struct device_request *q = calloc(1, sizeof(*q));
	struct comm_options o = {.limit_us = limit_us, .no_p2p = b->no_p2p, .forced = ALGORITHM_N};
	const unsigned size = b->mixed_pairs ? 2 : (unsigned)(b->n + 1) / 2;
	struct groups groups = {(unsigned)(b->n + size - 1) / size, size, {0}};
	struct device_set *set;
	uint32_t reach[RANKS];

	if (!q)
		exit(2);
	for (unsigned i = 0; i < b->n; i++)
		groups.of[i] = (uint8_t)(i / size);
	for (unsigned i = 0; i < b->n; i++)
		reach[i] = b->n == 2 ? !i << 1 : groups_mates(&groups, (unsigned)b->n, i);
	o.groups = b->levels ? &groups : NULL;
	o.reach = b->mixed || b->mixed_pairs ? reach : NULL;
	q->kind = b->host ? DEVICE_HOST : DEVICE_CUDA;
	q->collectives = true;
	q->n = b->n;
	for (size_t i = 0; i < b->n; i++)
		q->number[i] = (int)i;
	for (size_t i = 0; i < b->n && !b->same; i++)
		q->ordinal[i] = (int)i;
	MUST(device_open(q, &set));
	MUST(comm_open_set(set, &o, ret)); /* comm_open_all() refuses two ranks on one GPU */
	free(q);
}

static void open_all(struct rig *b)
{
	const uint64_t start = clock_us();

	open_comms(b, LIMIT_US, b->comms);
	b->set = b->comms[0]->shared->set;
	b->ops = b->set->ops;
	for (size_t i = 0; i < b->n; i++) {
		MUST(b->ops->stream_new(b->set, (int)i, &b->streams[i]));
		MUST(b->ops->stream_native(b->set, b->streams[i], &b->native[i]));
		MUST(b->ops->alloc(b->set, (int)i, MEMORY_DEVICE, b->room, &b->in[i]));
		MUST(b->ops->alloc(b->set, (int)i, MEMORY_DEVICE, b->room, &b->out[i]));
		MUST(b->ops->alloc(b->set, (int)i, MEMORY_DEVICE, sizeof(struct typed_report),
				   &b->report[i]));
		MUST(b->ops->address(b->set, &b->in[i], (int)i, &b->in_at[i]));
		MUST(b->ops->address(b->set, &b->out[i], (int)i, &b->out_at[i]));
		MUST(b->ops->address(b->set, &b->report[i], (int)i, &b->report_at[i]));
	}
	MUST(b->ops->event_new(b->set, 0, &b->from));
	MUST(b->ops->event_new(b->set, 0, &b->to));
	printf("%zu x %s, %s, opened in %.0f ms\n", b->n, b->set->info[0].name,
	       b->comms[0]->facts.direct  ? "direct"
	       : b->comms[0]->facts.mixed ? "some pairs direct, others through the host's memory"
					  : "through the host's memory",
	       (double)(clock_us() - start) / 1e3);
}

static void open_nccl(struct rig *b)
{
	struct nccl_unique_id id;
	int r;

	if (b->same) {
		printf("no NCCL: it needs a GPU for each rank\n");
		return;
	}
	r = nccl_load(NULL, &b->nccl);
	if (r < 0) {
		printf("no NCCL: %s\n", err_msg());
		return;
	}
	r = b->nccl.GetUniqueId(&id);
	b->nccl.GroupStart();
	for (size_t i = 0; i < b->n && r == NCCL_SUCCESS; i++) {
		MUST(b->ops->make_current(b->set, (int)i));
		r = b->nccl.CommInitRank(&b->nccl_comms[i], (int)b->n, id, (int)i);
	}
	if (r == NCCL_SUCCESS)
		r = b->nccl.GroupEnd();
	b->has_nccl = r == NCCL_SUCCESS;
	printf("NCCL %d from %s%s\n", b->nccl.version, b->nccl.path,
	       b->has_nccl ? "" : ", which does not start");
}

static void wait_all(struct rig *b)
{
	for (size_t i = 0; i < b->n; i++)
		MUST(b->ops->wait(b->set, b->streams[i], 2 * LIMIT_US));
	for (size_t i = 0; i < b->n; i++)
		MUST(comm_check(b->comms[i]));
}

#define LAUNCH(b, i, name, ...)                                                                    \
	do {                                                                                       \
		const struct name##_args args_ = {__VA_ARGS__};                                    \
		const struct launch l_ = {KERNEL_##name, 264, 512, &args_, sizeof(args_)};         \
                                                                                                   \
		MUST((b)->ops->launch((b)->set, (b)->streams[i], &l_));                            \
	} while (0)

/* ---- right or wrong ---- */

struct trial {
	enum operation o;
	unsigned type, op;
	u64 count, at; /* at: bytes into the buffers */
	bool in_place, graph;
};

static const char *const names[OPERATION_N] = {"all_reduce", "reduce",    "reduce_scatter",
					       "all_gather", "broadcast", "all_to_all"};

static u64 pieces_in(const struct rig *b, enum operation o)
{
	return o == OPERATION_REDUCE_SCATTER || o == OPERATION_ALL_TO_ALL ? b->n : 1;
}

static u64 pieces_out(const struct rig *b, enum operation o)
{
	return o == OPERATION_ALL_GATHER || o == OPERATION_ALL_TO_ALL ? b->n : 1;
}

static bool reduces(enum operation o)
{
	return o <= OPERATION_REDUCE_SCATTER;
}

static struct operation_call call_of(const struct rig *b, const struct trial *t, size_t i)
{
	const u64 bytes = t->count * typed_bytes(t->type);
	u64 in = b->in_at[i] + MARGIN + t->at, out = b->out_at[i] + MARGIN + t->at;

	if (t->in_place && pieces_in(b, t->o) > pieces_out(b, t->o))
		out = in + i * bytes;
	else if (t->in_place)
		in = out + (pieces_out(b, t->o) > pieces_in(b, t->o) ? i * bytes : 0);
	return (struct operation_call){.in = (const void *)in,
				       .out = (void *)out,
				       .count = t->count,
				       .type = t->type,
				       .op = t->op,
				       .root = 1 % (int)b->n,
				       .stream = b->native[i]};
}

static void fill(struct rig *b, const struct trial *t)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct operation_call call = call_of(b, t, i);

		LAUNCH(b, i, fill, .target = b->out_at[i],
		       .words = MARGIN / 8 + t->count * typed_bytes(t->type) / 8, .tag = 77);
		LAUNCH(b, i, typed_fill, .target = (u64)call.in,
		       .count = t->count * pieces_in(b, t->o), .type = t->type, .op = t->op,
		       .rank = i);
	}
	wait_all(b);
}

static u64 wrong_at(struct rig *b, size_t i, u64 origin, u64 first, const struct trial *t,
		    u64 first_rank, u64 ranks)
{
	struct typed_report report = {.first_wrong = CHECK_NONE};

	MUST(b->ops->write(b->set, &b->report[i], 0, &report, sizeof(report)));
	LAUNCH(b, i, typed_check, .origin = origin, .count = t->count, .first = first,
	       .type = t->type, .op = t->op, .first_rank = first_rank, .ranks = ranks,
	       .report = b->report_at[i]);
	MUST(b->ops->wait(b->set, b->streams[i], LIMIT_US));
	MUST(b->ops->read(b->set, &b->report[i], 0, &report, sizeof(report)));
	return report.wrong;
}

static u64 wrong_on(struct rig *b, const struct trial *t, size_t i)
{
	const struct operation_call call = call_of(b, t, i);
	const u64 out = (u64)call.out, bytes = t->count * typed_bytes(t->type),
		  root = (u64)call.root;
	u64 wrong = 0;

	switch (t->o) {
	case OPERATION_REDUCE:
		return i == root ? wrong_at(b, i, out, 0, t, 0, b->n) : 0;
	case OPERATION_ALL_REDUCE:
		return wrong_at(b, i, out, 0, t, 0, b->n);
	case OPERATION_REDUCE_SCATTER:
		return wrong_at(b, i, out, i * t->count, t, 0, b->n);
	case OPERATION_BROADCAST:
		return wrong_at(b, i, out, 0, t, root, 1);
	default:
		for (size_t r = 0; r < b->n; r++)
			wrong += wrong_at(b, i, out + r * bytes,
					  t->o == OPERATION_ALL_GATHER ? 0 : i * t->count, t, r, 1);
		return wrong;
	}
}

static void enqueue(struct rig *b, const struct trial *t)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct operation_call call = call_of(b, t, i);

		MUST(operation_enqueue(b->comms[i], t->o, &call));
	}
}

static void begin(struct rig *b)
{
	for (size_t i = 0; i < b->n; i++)
		MUST(b->ops->capture_begin(b->set, b->streams[i]));
}

static void end(struct rig *b, struct graph *graphs)
{
	for (size_t i = 0; i < b->n; i++)
		MUST(b->ops->capture_end(b->set, b->streams[i], &graphs[i]));
}

static void replay(struct rig *b, const struct graph *graphs)
{
	for (size_t i = 0; i < b->n; i++)
		MUST(b->ops->graph_launch(b->set, b->streams[i], graphs[i]));
}

static void free_graphs(struct rig *b, const struct graph *graphs)
{
	for (size_t i = 0; i < b->n; i++)
		MUST(b->ops->graph_free(b->set, graphs[i]));
}

static void run_trial(struct rig *b, const struct trial *t)
{
	struct graph graphs[RANKS];
	u64 wrong = 0;

	fill(b, t);
	if (t->graph) {
		begin(b);
		enqueue(b, t);
		enqueue(b, t);
		end(b, graphs);
		for (int k = 0; k < 5; k++)
			replay(b, graphs);
	} else {
		enqueue(b, t);
	}
	wait_all(b);
	if (t->graph)
		free_graphs(b, graphs);
	for (size_t i = 0; i < b->n; i++)
		wrong += wrong_on(b, t, i);
	if (!wrong)
		return;
	b->wrong++;
	printf("WRONG %s type %u op %u count %lu at %lu%s%s algorithm %d: %lu elements\n",
	       names[t->o], t->type, t->op, t->count, t->at, t->in_place ? " in place" : "",
	       t->graph ? " graph" : "", (int)b->comms[0]->last, wrong);
}

static void check_all(struct rig *b)
{
	static const u64 sizes[] = {1, 7, 250, 3001, 20011, 131072, 300007, 2000003, 16777216};
	unsigned trials = 0;

	for (size_t s = 0; s < ARRAY_LEN(sizes) && (!b->host || s < 5); s++)
		for (int k = 0; k < OPERATION_N; k++)
			for (unsigned type = 0; type < ELEMENT_TYPE_N; type++)
				for (unsigned op = 0;
				     op < (reduces((enum operation)k) ? REDUCE_OP_N : 1u); op++) {
					struct trial t = {.o = (enum operation)k,
							  .type = type,
							  .op = op,
							  .count = sizes[s],
							  .at = (s + type) % 3
									? 0
									: 3 * typed_bytes(type),
							  .in_place = (s + type + op) % 2,
							  .graph = !((s + type + op) % 2)};

					/* What is reduced in place twice is another value. */
					if (t.count * pieces_in(b, t.o) * typed_bytes(type) >
						    b->room - 4096 ||
					    t.count * pieces_out(b, t.o) * typed_bytes(type) >
						    b->room - 4096 ||
					    (s > 6 && type != ELEMENT_FLOAT32 &&
					     type != ELEMENT_BFLOAT16))
						continue;
					run_trial(b, &t);
					trials++;
				}
	printf("%s %u operations by their own choice\n", b->wrong ? "WRONG" : "ok", trials);
}

static void force(struct rig *b, enum algorithm a)
{
	for (size_t i = 0; i < b->n; i++)
		b->comms[i]->options.forced = a;
}

static void check_forced(struct rig *b)
{
	static const u64 counts[] = {1, 255, 30011, 100003, 500009};
	const unsigned before = b->wrong;
	unsigned trials = 0;

	for (int a = 0; a < ALGORITHM_N; a++) {
		force(b, (enum algorithm)a);
		for (size_t s = 0; s < ARRAY_LEN(counts) && (!b->host || s < 3); s++)
			for (int k = 0; k < OPERATION_N; k++, trials++) {
				const struct trial t = {.o = (enum operation)k,
							.type = s % 2 ? ELEMENT_FLOAT32
								      : ELEMENT_FLOAT16,
							.op = s == 3 ? REDUCE_AVG : REDUCE_SUM,
							.count = counts[s],
							.at = s % 2 ? 0 : 2,
							.graph = true};

				run_trial(b, &t);
			}
	}
	force(b, ALGORITHM_N);
	printf("%s %u operations by each algorithm\n", b->wrong > before ? "WRONG" : "ok", trials);
}

static float sum_from(float *const *values, int k, size_t from, size_t to)
{
	float sum = values[from][k];

	for (size_t r = from + 1; r < to; r++)
		sum += values[r][k];
	return sum;
}

/* In the order of ranks; in levels, each group of neighbours by itself first. */
static float sum_of(const struct rig *b, float *const *values, int k, bool levels)
{
	const struct groups *g = &b->comms[0]->facts.groups;
	const size_t size = levels && g->n ? g->size : b->n;
	float sum = sum_from(values, k, 0, size);

	for (size_t i = size; i < b->n; i += size)
		sum += sum_from(values, k, i, i + size);
	return sum;
}

/* Any floats: the same bits on all ranks, and those of a sum in the order of ranks. */
static void check_bits(struct rig *b)
{
	enum { COUNT = 16000 };
	float *values[RANKS], *got = malloc(COUNT * sizeof(float));
	unsigned wrong = 0;

	srand(7);
	for (size_t i = 0; i < b->n; i++) {
		values[i] = malloc(COUNT * sizeof(float));
		for (int k = 0; k < COUNT; k++)
			values[i][k] =
				(float)(rand() - RAND_MAX / 2) / (float)(1 + rand() % 100000);
		MUST(b->ops->write(b->set, &b->in[i], 0, values[i], COUNT * sizeof(float)));
	}
	for (int a = 0; a < ALGORITHM_N; a++) {
		force(b, (enum algorithm)a);
		for (size_t i = 0; i < b->n; i++)
			MUST(onehop_all_reduce(b->comms[i], (void *)b->in_at[i],
					       (void *)b->out_at[i], COUNT, ONEHOP_FLOAT32,
					       ONEHOP_SUM, b->native[i]));
		wait_all(b);
		for (size_t i = 0; i < b->n; i++) {
			MUST(b->ops->read(b->set, &b->out[i], 0, got, COUNT * sizeof(float)));
			for (int k = 0; k < COUNT; k++) {
				const float sum = sum_of(b, values, k, a == PIPED_LEVELS);

				wrong += memcmp(&sum, &got[k], sizeof(sum)) != 0;
			}
		}
	}
	force(b, ALGORITHM_N);
	for (size_t i = 0; i < b->n; i++)
		free(values[i]);
	free(got);
	b->wrong += wrong != 0;
	printf("%s sums of any floats have the bits of a serial sum (%u differ)\n",
	       wrong ? "WRONG" : "ok", wrong);
}

/* Random sizes, operations and algorithms one after another; the host looks only now and then. */
static void soak(struct rig *b, unsigned rounds)
{
	const unsigned before = b->wrong;
	uint64_t start = clock_us();

	for (unsigned k = 0; k < rounds; k++) {
		const struct trial last = {.o = OPERATION_ALL_REDUCE,
					   .type = ELEMENT_INT32,
					   .count = 1 + (u64)rand() % 100000};

		for (int m = 0; m < 200; m++) {
			const struct trial t = {.o = (enum operation)(rand() % OPERATION_N),
						.type = (unsigned)rand() % ELEMENT_TYPE_N,
						.op = REDUCE_SUM,
						.count = (u64)rand() % (rand() % 8 ? 2000 : 60000)};

			force(b, rand() % 2 ? ALGORITHM_N : (enum algorithm)(rand() % ALGORITHM_N));
			enqueue(b, &t);
		}
		force(b, ALGORITHM_N);
		wait_all(b);
		run_trial(b, &last);
	}
	printf("%s %u back-to-back operations of random sizes and types, %.0f s\n",
	       b->wrong > before ? "WRONG" : "ok", rounds * 200,
	       (double)(clock_us() - start) / 1e6);
}

/* Kilobytes of this process's memory, without files and shared memory. 0: not known. */
static unsigned long resident_kb(void)
{
	unsigned long kb = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %lu", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

#define SOAK_PART   50u   /* rounds */
#define SOAK_GROWTH 8192u /* KB: what the C library's allocator and a sanitizer may keep */

/*
 * Until so many operations were done, or so many seconds have passed (0: no limit). Memory must not
 * grow.
 */
static void soak_long(struct rig *b, unsigned long operations, unsigned long seconds)
{
	const uint64_t end = clock_us() + seconds * 1000000;
	unsigned long done = 0, first = resident_kb();

	while (done < operations && (!seconds || clock_us() < end)) {
		soak(b, b->host ? 1 : SOAK_PART);
		done += 200ul * (b->host ? 1 : SOAK_PART);
		if (done <= operations / 100)
			first = resident_kb();
	}
	b->wrong += resident_kb() > first + SOAK_GROWTH;
	printf("%s %lu operations; resident memory %lu KB, after the first part %lu\n",
	       b->wrong ? "WRONG" : "ok", done, resident_kb(), first);
}

/* All but the last rank are there. */
static void check_absent(const struct rig *b, unsigned *wrong)
{
	struct onehop_comm *comms[RANKS];
	uint64_t start;
	bool right = true;

	if (b->n < 2)
		return;
	open_comms(b, 300000, comms);
	for (int kind = 0; kind < 2; kind++) {
		struct device_set *s = comms[0]->shared->set;
		struct stream stream;
		struct memory m;
		void *native;
		u64 at;
		int r;

		start = clock_us();
		MUST(s->ops->stream_new(s, kind, &stream));
		MUST(s->ops->stream_native(s, stream, &native));
		MUST(s->ops->alloc(s, kind, MEMORY_DEVICE, 4 << 20, &m));
		MUST(s->ops->address(s, &m, kind, &at));
		comms[kind]->options.forced = kind ? PIPED_TWO : FLAGGED_ONE;
		if (kind && b->n < 3) /* two wait for nobody if there are only two */
			break;
		r = onehop_all_reduce(comms[kind], (void *)at, (void *)at, 1000, ONEHOP_INT32,
				      ONEHOP_SUM, native);
		if (r == 0) /* else another rank has given up already */
			MUST(s->ops->wait(s, stream, 10000000));
		right &= comm_check(comms[kind]) == -ETIMEDOUT && (r == 0 || r == -ETIMEDOUT);
		printf("%s: %s (after %.2f s)\n", right ? "ok" : "WRONG", err_msg(),
		       (double)(clock_us() - start) / 1e6);
		right &= onehop_barrier(comms[kind], native) == -ETIMEDOUT;
	}
	*wrong += !right;
	for (size_t i = 0; i < b->n; i++)
		comm_close(comms[i]);
}

/* ---- sends and receives ---- */

/* To the next rank, from the one before, and back: in one group. */
static void enqueue_pairs(struct rig *b, const struct trial *t)
{
	const int n = (int)b->n;

	MUST(onehop_group_start());
	for (int i = 0; i < n; i++)
		for (int way = 1; way<n; way += n> 2 ? n - 2 : 1) {
			const int to = (i + way) % n, from = (i + n - way) % n;
			const u64 place = (u64)(way > 1) * (t->count + 64) * typed_bytes(t->type);

			MUST(onehop_send(b->comms[i], (void *)(b->in_at[i] + MARGIN + t->at),
					 t->count, (enum onehop_type)t->type, to, b->native[i]));
			MUST(onehop_recv(b->comms[i],
					 (void *)(b->out_at[i] + MARGIN + t->at + place), t->count,
					 (enum onehop_type)t->type, from, b->native[i]));
		}
	MUST(onehop_group_end());
}

static u64 wrong_pairs(struct rig *b, const struct trial *t)
{
	const size_t n = b->n;
	u64 wrong = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t way = 1; way<n; way += n> 2 ? n - 2 : 1)
			wrong += wrong_at(b, i,
					  b->out_at[i] + MARGIN + t->at +
						  (u64)(way > 1) * (t->count + 64) *
							  typed_bytes(t->type),
					  0, t, (i + n - way) % n, 1);
	return wrong;
}

static void check_pairs(struct rig *b)
{
	static const u64 sizes[] = {1, 7, 250, 3001, 20011, 300007, 5000011};
	u64 wrong = 0;

	for (size_t k = 0; k < ARRAY_LEN(sizes) && (!b->host || k < 5) && b->n > 1; k++) {
		const struct trial t = {.o = OPERATION_BROADCAST,
					.type = ELEMENT_INT32,
					.count = sizes[k],
					.at = k % 2 * 4};
		struct graph g[RANKS];
		const bool graph = b->set->caps & DEVICE_GRAPHS;

		if (2 * (MARGIN + (t.count + 64) * sizeof(int)) > b->room)
			break;
		fill(b, &t);
		enqueue_pairs(b, &t);
		wait_all(b);
		wrong += wrong_pairs(b, &t);
		if (!graph)
			continue;
		begin(b);
		enqueue_pairs(b, &t);
		enqueue_pairs(b, &t);
		end(b, g);
		replay(b, g);
		replay(b, g);
		wait_all(b);
		free_graphs(b, g);
		wrong += wrong_pairs(b, &t);
	}
	b->wrong += wrong != 0;
	printf("%s sends and receives, also in graphs (%lu elements differ)\n",
	       wrong ? "WRONG" : "ok", wrong);
}

/* ---- time ---- */

static void enqueue_nccl(struct rig *b, u64 count)
{
	b->nccl.GroupStart();
	for (size_t i = 0; i < b->n; i++)
		b->nccl.AllReduce((void *)b->in_at[i], (void *)b->out_at[i], count, ELEMENT_FLOAT32,
				  REDUCE_SUM, b->nccl_comms[i], b->native[i]);
	b->nccl.GroupEnd();
}

/* A kernel on each GPU by itself, which copies there or does nothing. */
static struct {
	unsigned blocks;
	u64 bytes;
} alone;

static void enqueue_alone(struct rig *b, u64 count)
{
	(void)count;
	for (size_t i = 0; i < b->n; i++) {
		/* Without bytes, these addresses take the shortest way through the kernel. */
		const struct copy_args args = {.target = alone.bytes ? b->out_at[i] : 8,
					       .origin = alone.bytes ? b->in_at[i] : 0,
					       .bytes = alone.bytes};
		const struct launch l = {KERNEL_copy, alone.blocks, 128, &args, sizeof(args)};

		MUST(b->ops->launch(b->set, b->streams[i], &l));
	}
}

static void enqueue_ours(struct rig *b, u64 count)
{
	for (size_t i = 0; i < b->n; i++)
		MUST(onehop_all_reduce(b->comms[i], (void *)b->in_at[i], (void *)b->out_at[i],
				       count, ONEHOP_FLOAT32, b->op, b->native[i]));
}

typedef void (*enqueue_fn)(struct rig *b, u64 count);

static double elapsed(struct rig *b)
{
	double us;

	wait_all(b);
	MUST(b->ops->event_elapsed(b->set, b->from, b->to, &us));
	return us;
}

/* Microseconds of one, of many in a row. */
static double time_eager(struct rig *b, enqueue_fn run, u64 count, unsigned n)
{
	run(b, count);
	wait_all(b);
	MUST(b->ops->event_record(b->set, b->streams[0], b->from));
	for (unsigned k = 0; k < n; k++)
		run(b, count);
	MUST(b->ops->event_record(b->set, b->streams[0], b->to));
	return elapsed(b) / n;
}

static void capture(struct rig *b, enqueue_fn run, u64 count, unsigned n, struct graph *graphs)
{
	run(b, count); /* what is made at first use is not made while capturing */
	wait_all(b);
	begin(b);
	for (unsigned k = 0; k < n; k++)
		run(b, count);
	end(b, graphs);
	replay(b, graphs);
	wait_all(b);
}

/* The second launch of two: the first brings the devices in step. */
static double time_graph(struct rig *b, const struct graph *graphs, unsigned n)
{
	replay(b, graphs);
	MUST(b->ops->event_record(b->set, b->streams[0], b->from));
	replay(b, graphs);
	MUST(b->ops->event_record(b->set, b->streams[0], b->to));
	return elapsed(b) / n;
}

#define SAMPLES 9

static double median(double *v)
{
	sort_doubles(v, SAMPLES);
	return median_of_sorted(v, SAMPLES);
}

static unsigned repeats(u64 bytes)
{
	return bytes <= 1 * MIB ? 100 : bytes <= 32 * MIB ? 20 : 4;
}

static double bus(const struct rig *b, u64 bytes, double us)
{
	return us > 0 ? (double)bytes * 2 * (double)(b->n - 1) / (double)b->n / us / 1e3 : 0;
}

struct figures {
	double graph, eager;
};

static void measure_both(struct rig *b, u64 bytes, struct figures *ours, struct figures *nccl)
{
	const unsigned n = repeats(bytes);
	const u64 count = bytes / 4;
	struct graph g[RANKS], h[RANKS];
	double v[4][SAMPLES] = {{0}};

	capture(b, enqueue_ours, count, n, g);
	if (b->has_nccl)
		capture(b, enqueue_nccl, count, n, h);
	for (unsigned k = 0; k < SAMPLES; k++) {
		v[0][k] = time_graph(b, g, n);
		v[2][k] = time_eager(b, enqueue_ours, count, n);
		if (!b->has_nccl)
			continue;
		v[1][k] = time_graph(b, h, n);
		v[3][k] = time_eager(b, enqueue_nccl, count, n);
	}
	free_graphs(b, g);
	if (b->has_nccl)
		free_graphs(b, h);
	*ours = (struct figures){median(v[0]), median(v[2])};
	*nccl = (struct figures){median(v[1]), median(v[3])};
}

static void time_all(struct rig *b)
{
	open_nccl(b);
	printf("%-10s %-10s | %8s %8s %6s | %8s %8s %6s | %7s %7s GB/s\n", "bytes", "algorithm",
	       "graph us", "NCCL", "ratio", "eager us", "NCCL", "ratio", "busbw", "NCCL");
	for (u64 bytes = 8; bytes <= b->room - 4096; bytes *= bytes < 512 ? 8 : 2) {
		struct figures ours, nccl;

		measure_both(b, bytes, &ours, &nccl);
		printf("%-10lu %-10s | %8.2f %8.2f %6.2f | %8.2f %8.2f %6.2f | %7.1f %7.1f\n",
		       bytes, algorithm_word(b->comms[0]->last), ours.graph, nccl.graph,
		       nccl.graph > 0 ? ours.graph / nccl.graph : 0, ours.eager, nccl.eager,
		       nccl.eager > 0 ? ours.eager / nccl.eager : 0, bus(b, bytes, ours.graph),
		       bus(b, bytes, nccl.graph));
		fflush(stdout);
	}
}

static double time_in_graph(struct rig *b, enqueue_fn run, u64 bytes)
{
	const unsigned n = repeats(bytes);
	struct graph g[RANKS];
	double v[SAMPLES];

	capture(b, run, bytes / 4, n, g);
	for (unsigned k = 0; k < SAMPLES; k++)
		v[k] = time_graph(b, g, n);
	free_graphs(b, g);
	return median(v);
}

static double time_forced(struct rig *b, enum algorithm a, u64 bytes)
{
	double us;

	force(b, a);
	us = time_in_graph(b, enqueue_ours, bytes);
	return b->comms[0]->last == a ? us : 0;
}

/* A way to run an algorithm, of which the tuning table has a column. */
struct variant {
	enum algorithm algorithm;
	unsigned threads, blocks, chunks; /* 0: as it would choose */
	enum onehop_op op;                /* a maximum runs the kernel for all types */
};

/* What was chosen with other facts does not count any more. */
static void set_facts(struct rig *b, const struct comm_facts *f)
{
	for (size_t i = 0; i < b->n; i++) {
		b->comms[i]->facts = *f;
		memset(b->comms[i]->chosen, 0, sizeof(b->comms[i]->chosen));
	}
}

static void set_variant(struct rig *b, const struct comm_facts *f, const struct variant *v)
{
	b->op = v->op;
	set_facts(b, f);
	for (size_t i = 0; i < b->n; i++) {
		struct comm_facts *now = &b->comms[i]->facts;

		if (v->threads && is_piped(v->algorithm))
			now->piped_threads = v->threads;
		else if (v->threads)
			now->flagged_threads = v->threads;
		if (v->blocks && v->blocks < f->piped_blocks)
			now->piped_blocks = v->blocks;
		now->chunks = v->chunks;
	}
}

static void print_variant(const struct variant *v)
{
	char text[32];

	if (v->op == ONEHOP_MAX)
		snprintf(text, sizeof(text), "%c:%u max", v->algorithm == FLAGGED_ONE ? 'f' : 'F',
			 v->threads);
	else if (is_piped(v->algorithm))
		snprintf(text, sizeof(text), "%c:%ux%ux%u", v->algorithm == PIPED_ONE ? 'p' : 'P',
			 v->threads, v->blocks, v->chunks);
	else
		snprintf(text, sizeof(text), "%c:%u", v->algorithm == FLAGGED_ONE ? 'f' : 'F',
			 v->threads);
	printf(" %11s", text);
}

static const struct variant variants[] = {
	{FLAGGED_ONE, 32, 0, 0},
	{FLAGGED_ONE, 64, 0, 0},
	{FLAGGED_ONE, 128, 0, 0},
	{FLAGGED_ONE, 256, 0, 0},
	{FLAGGED_TWO, 64, 0, 0},
	{FLAGGED_TWO, 128, 0, 0},
	{FLAGGED_TWO, 256, 0, 0},
	{PIPED_ONE, 512, 128, 1},
	{PIPED_TWO, 512, 32, 1},
	{PIPED_TWO, 512, 64, 1},
	{PIPED_TWO, 512, 128, 1},
	{PIPED_TWO, 512, 128, 2},
	{FLAGGED_ONE, 128, 0, 0, ONEHOP_MAX},
	{FLAGGED_TWO, 128, 0, 0, ONEHOP_MAX},
	{PIPED_TWO, 512, 128, 4},
	{PIPED_TWO, 256, 128, 1},
	{PIPED_TWO, 256, 128, 2},
};

/*
 * Where a variant is not worth its time; or, with several ranks on one GPU, where the blocks of the
 * first ranks could fill it and wait for those of the last.
 */
static bool is_hopeless(const struct rig *b, const struct variant *v, u64 bytes)
{
	if (b->same && b->n > 2 && is_piped(v->algorithm))
		return true;
	return is_piped(v->algorithm) ? bytes < 32768 : bytes > 4 * MIB;
}

/* What the model takes for a GPU by itself (src/bench/simulate.c). */
static void print_alone(struct rig *b)
{
	const u64 bytes = b->room - 8192;

	printf("a kernel alone, in a graph:");
	for (alone.blocks = 1; alone.blocks <= 128; alone.blocks *= 128)
		printf(" empty, %u block%s %.2f us,", alone.blocks, alone.blocks > 1 ? "s" : "",
		       time_in_graph(b, enqueue_alone, 0));
	alone.blocks = 128;
	alone.bytes = bytes;
	printf(" copy of %lu bytes %.2f us\n", bytes, time_in_graph(b, enqueue_alone, bytes));
	alone.bytes = 0;
}

static void tune(struct rig *b)
{
	const struct comm_facts f = b->comms[0]->facts;

	print_alone(b);
	printf("all-reduce in a graph, us. f, F: flagged in 1 and 2 steps, by threads; p, P: piped, by threads x blocks x chunks\n%-9s",
	       "bytes");
	for (size_t k = 0; k < ARRAY_LEN(variants); k++)
		print_variant(&variants[k]);
	printf("\n");
	for (u64 bytes = 8; bytes <= b->room - 4096; bytes *= bytes < 8192 ? 8 : 2) {
		printf("%-9lu", bytes);
		for (size_t k = 0; k < ARRAY_LEN(variants); k++) {
			set_variant(b, &f, &variants[k]);
			if (is_hopeless(b, &variants[k], bytes))
				printf(" %11s", "-");
			else
				printf(" %11.2f", time_forced(b, variants[k].algorithm, bytes));
		}
		printf("\n");
		fflush(stdout);
	}
	set_facts(b, &f);
	b->op = ONEHOP_SUM;
	force(b, ALGORITHM_N);
}

/* ---- every operation, in alternating samples ---- */

#define PAIRS_OF_SAMPLES 31
#define SAMPLE_US        25000 /* about as long as a sample may take */

/* What is timed now. */
static struct {
	enum nccl_op op;
	struct nccl_shape shape;
} timed;

static void enqueue_timed(struct rig *b, u64 count)
{
	(void)count;
	MUST(onehop_group_start());
	for (size_t i = 0; i < b->n; i++) {
		const struct operation_call c = {.in = (void *)b->in_at[i],
						 .out = (void *)b->out_at[i],
						 .count = timed.shape.count,
						 .type = ELEMENT_FLOAT32,
						 .stream = b->native[i]};
		const int next = (int)((i + 1) % b->n), last = (int)((i + b->n - 1) % b->n);

		if (timed.op != NCCL_SEND_RECV) {
			MUST(operation_enqueue(b->comms[i], nccl_op_ours(timed.op), &c));
			continue;
		}
		MUST(onehop_send(b->comms[i], c.in, c.count, ONEHOP_FLOAT32, next, c.stream));
		MUST(onehop_recv(b->comms[i], c.out, c.count, ONEHOP_FLOAT32, last, c.stream));
	}
	MUST(onehop_group_end());
}

static void enqueue_timed_nccl(struct rig *b, u64 count)
{
	(void)count;
	b->nccl.GroupStart();
	for (size_t i = 0; i < b->n; i++) {
		const struct nccl_call c = {.op = timed.op,
					    .send = (const char *)b->in_at[i],
					    .recv = (char *)b->out_at[i],
					    .count = timed.shape.count,
					    .type = ELEMENT_FLOAT32,
					    .rank = (int)i,
					    .ranks = (int)b->n,
					    .comm = b->nccl_comms[i],
					    .stream = b->native[i]};

		nccl_call(&b->nccl, &c);
	}
	b->nccl.GroupEnd();
}

enum column { OURS, RIVAL, OURS_EAGER, RIVAL_EAGER, COLUMN_N };

static double take_sample(struct rig *b, enum column c, const struct graph *g, unsigned n)
{
	if (c < OURS_EAGER)
		return time_graph(b, g, n);
	return time_eager(b, c == OURS_EAGER ? enqueue_timed : enqueue_timed_nccl, 0, n);
}

/* "ahead", "parity" or "BEHIND": an interval that includes 1.00 is parity. */
static void print_ratio(const double *ours, const double *rival)
{
	struct samples own = {0}, ratio = {0};
	struct summary time, s;

	for (unsigned k = 0; k < PAIRS_OF_SAMPLES; k++) {
		samples_add(&own, ours[k]);
		if (rival[k] > 0)
			samples_add(&ratio, ours[k] / rival[k]);
	}
	samples_summary(&own, &time);
	samples_summary(&ratio, &s);
	printf(" %9.2f", time.median);
	if (ratio.n)
		printf(" %9.2f %5.3f (%5.3f..%5.3f) %s%s", time.median / s.median, s.median, s.low,
		       s.high,
		       s.high < 1  ? "ahead "
		       : s.low > 1 ? "BEHIND"
				   : "parity",
		       relative_half_width(&s) > 0.03 ? "!" : " ");
	samples_done(&own);
	samples_done(&ratio);
}

static void time_row(struct rig *b, u64 bytes)
{
	const unsigned columns = b->has_nccl ? 2 : 1;
	double v[COLUMN_N][PAIRS_OF_SAMPLES] = {{0}}, us;
	struct graph g[2][RANKS];
	struct collective_cell cell;
	unsigned n;

	nccl_shape(timed.op, 4, (int)b->n, bytes, &timed.shape);
	us = time_eager(b, enqueue_timed, 0, 2);
	n = us * 100 < SAMPLE_US ? 100 : us > SAMPLE_US ? 1 : (unsigned)(SAMPLE_US / us);
	for (unsigned c = 0; c < columns; c++)
		capture(b, c ? enqueue_timed_nccl : enqueue_timed, 0, n, g[c]);
	for (unsigned k = 0; k < PAIRS_OF_SAMPLES; k++)
		for (unsigned c = 0; c < COLUMN_N; c++)
			if (c % 2 < columns)
				v[c][k] = take_sample(b, (enum column)c, g[c % 2], n);
	for (unsigned c = 0; c < columns; c++)
		free_graphs(b, g[c]);
	printf("%-14s %-11lu %-9s |", nccl_op_words[timed.op], timed.shape.bytes,
	       timed.op == NCCL_SEND_RECV ? "pairs" : algorithm_word(b->comms[0]->last));
	print_ratio(v[OURS], v[RIVAL]);
	printf(" |");
	print_ratio(v[OURS_EAGER], v[RIVAL_EAGER]);
	nccl_rates(timed.op, &timed.shape, 4, (int)b->n, v[OURS][0], &cell);
	printf(" | %.1f\n", cell.busbw_gbps);
	fflush(stdout);
}

/* All-reduce at every power of two, the others at some. */
static void print_table(struct rig *b)
{
	static const enum nccl_op others[] = {NCCL_REDUCE_SCATTER, NCCL_ALL_GATHER, NCCL_BROADCAST,
					      NCCL_ALL_TO_ALL, NCCL_SEND_RECV};

	open_nccl(b);
	printf("float32, out of place, %d alternating samples; ! : an interval wider than 3 %%\n"
	       "%-14s %-11s %-9s | graph, us:  ours, NCCL, ratio (95 %%)            | eager, the same"
	       "                            | busbw, GB/s\n",
	       PAIRS_OF_SAMPLES, "operation", "bytes", "algorithm");
	timed.op = NCCL_ALL_REDUCE;
	for (u64 bytes = 8; bytes <= b->room - 4096; bytes *= 2)
		time_row(b, bytes);
	for (size_t k = 0; k < ARRAY_LEN(others); k++) {
		timed.op = others[k];
		for (u64 bytes = 65536; bytes <= b->room - 4096; bytes *= 8)
			time_row(b, bytes);
	}
}

/* Whether the word names an operation. */
static bool find_operation(const char *word, enum nccl_op *ret)
{
	for (int op = 0; op < NCCL_OP_N; op++)
		if (!strcmp(nccl_op_words[op], word)) {
			*ret = (enum nccl_op)op;
			return true;
		}
	return false;
}

/* One operation, in more sizes than in the table. */
static void print_operation(struct rig *b)
{
	open_nccl(b);
	printf("columns as those of `table`\n");
	for (u64 bytes = 16; bytes <= b->room - 4096; bytes *= 4)
		time_row(b, bytes);
}

int main(int argc, char **argv)
{
	struct rig b = {.room = 513 * MIB};
	const char *mode;
	int at;

	b.host = argc > 1 && !strcmp(argv[1], "host");
	b.same = argc > 1 && !strcmp(argv[1], "same");
	argv += b.host || b.same;
	argc -= b.host || b.same;
	if (argc < 3 || (b.n = strtoul(argv[1], NULL, 10)) < 1 || b.n > RANKS) {
		printf("usage: collective [host|same] N check|time|table|tune [no-p2p|levels|mixed|mixed-pairs] "
		       "[MiB]\n"
		       "       collective [host|same] N OPERATION [no-p2p] [MiB]\n"
		       "       collective [host|same] N soak OPERATIONS SECONDS\n");
		return 2;
	}
	mode = argv[2];
	b.no_p2p = argc > 3 && !strcmp(argv[3], "no-p2p");
	b.levels = argc > 3 && !strcmp(argv[3], "levels");
	if (b.levels && b.n % 2) {
		printf("levels: two groups of equal size, so N must be even\n");
		return 2;
	}
	b.mixed = argc > 3 && !strcmp(argv[3], "mixed");
	b.mixed_pairs = argc > 3 && !strcmp(argv[3], "mixed-pairs");
	if (b.host)
		b.room = 16 * MIB;
	at = 3 + (b.no_p2p || b.levels || b.mixed || b.mixed_pairs);
	if (argc > at)
		b.room = strtoul(argv[at], NULL, 10) * MIB + 8192;
	if (!strcmp(mode, "soak"))
		b.room = 16 * MIB;
	srand(11);
	open_all(&b);
	for (size_t i = 0; b.same && b.n > 2 && i < b.n; i++) /* so that all ranks' blocks fit */
		b.comms[i]->facts.piped_blocks = b.comms[i]->facts.flagged_blocks = SAME_BLOCKS;
	if (!strcmp(mode, "soak")) {
		soak_long(&b, argc > 3 ? strtoul(argv[3], NULL, 10) : 1000000,
			  argc > 4 ? strtoul(argv[4], NULL, 10) : 0);
	} else if (!strcmp(mode, "check")) {
		check_bits(&b);
		check_forced(&b);
		check_all(&b);
		check_pairs(&b);
		soak(&b, b.host ? 2 : 100);
		check_absent(&b, &b.wrong);
	} else if (!strcmp(mode, "time")) {
		time_all(&b);
	} else if (!strcmp(mode, "table")) {
		print_table(&b);
	} else if (find_operation(mode, &timed.op)) {
		print_operation(&b);
	} else if (!strcmp(mode, "tune")) {
		tune(&b);
	}
	for (size_t i = 0; i < b.n; i++)
		comm_close(b.comms[i]);
	printf("%s\n", b.wrong ? "WRONG" : "all right");
	return b.wrong != 0;
}
