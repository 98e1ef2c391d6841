/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that calls NCCL or libonehop: opens devices and ranks, checks and times size by size,
 * and reports.
 */
#include "bench/collective_impl.h"
#include "bench/statistics.h"

#include "base/clock.h"
#include "base/err.h"
#include "device/message.h"
#include "kernels/pattern.h"
#include "kernels/typed.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define WAIT_SLICE_US    500000 /* between looks at NCCL's own errors */
#define SAY_EVERY_S      1.0
#define SAMPLES_MAX      1000
#define TUNE_SAMPLES_MAX 25
#define KERNEL_BLOCKS    4 /* per multiprocessor, of fills and checks */
#define KERNEL_THREADS   256
/* Elements of narrow types are checked exactly for so many ranks (kernels/typed.h). */
#define RANKS_EXACT      16
#define RANKS_EXACT_TINY 8
/* Left to NCCL's own buffers: 1 GiB, of small memories a quarter. */
#define RESERVE_BYTES (1ull << 30)

/* ---- reporting ---- */

static int say(struct bench *b, enum nccl_message_kind kind, size_t size)
{
	struct iovec part = {&b->message, offsetof(struct nccl_message, u) + size};
	ssize_t n;

	b->message.kind = kind;
	n = message_send(b->fd, &part, 1, -1, UINT64_MAX);
	return n < 0 ? err_sys((int)-n, "the process that started this one") : 0;
}

static int say_step(struct bench *b, const char *text, uint64_t bytes, bool in_place, unsigned left)
{
	b->message.u.step =
		(struct collective_step){.bytes = bytes, .in_place = in_place, .left = left};
	snprintf(b->message.u.step.text, sizeof(b->message.u.step.text), "%s", text);
	return say(b, NCCL_SAYS_STEP, sizeof(b->message.u.step));
}

int bench_say_step(struct bench *b, const char *text)
{
	return say_step(b, text, 0, false, 0);
}

int bench_say_tuned(struct bench *b, const struct collective_tuned *t)
{
	b->message.u.tuned = *t;
	return say(b, NCCL_SAYS_TUNED, sizeof(*t));
}

static int say_phase(struct bench *b, const char *phase, uint64_t bytes, bool in_place,
		     unsigned left)
{
	char text[64];

	snprintf(text, sizeof(text), "%s, %s", nccl_op_words[b->plan->op], phase);
	return say_step(b, text, bytes, in_place, left);
}

static int say_timing(struct bench *b, uint64_t bytes, bool in_place)
{
	return say_phase(b, "timing", bytes, in_place, (unsigned)b->cells_left);
}

static bool is_first(const struct bench *b)
{
	return b->order.ranks.rank == 0;
}

/* ---- all processes together ---- */

static int gather(struct bench *b, const void *mine, size_t size, void *all)
{
	if (b->meeting)
		return rendezvous_gather(b->meeting, mine, size, all);
	memcpy(all, mine, size);
	return 0;
}

static int barrier(struct bench *b)
{
	char *all = calloc((size_t)b->processes, 1);
	char mine = 0;
	int r = all ? gather(b, &mine, 1, all) : err_set(ENOMEM, "no memory");

	free(all);
	return r;
}

/* FNV-1a: a job's name may be longer than a key. */
static uint64_t hash_of(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ull;

	while (*s)
		h = (h ^ (unsigned char)*s++) * 0x100000001b3ull;
	return h;
}

void bench_key(const struct bench *b, const char *kind, char ret[static RENDEZVOUS_KEY_MAX + 1])
{
	snprintf(ret, RENDEZVOUS_KEY_MAX + 1, "onehop-%s-%016llx-%u", kind,
		 (unsigned long long)hash_of(b->order.ranks.job), b->order.arm);
}

static int join(struct bench *b)
{
	const struct ranks *ranks = &b->order.ranks;
	bool elsewhere = ranks->hosts != HOSTS_ONE && *ranks->address;
	char key[RENDEZVOUS_KEY_MAX + 1];
	struct rendezvous_request r = {
		.key = key,
		.address = elsewhere ? ranks->address : NULL,
		.rank = ranks->rank,
		.n = ranks->size,
		/* So that it says which rank is missing before it is killed. */
		.limit_us = b->order.limit_us - b->order.limit_us / 8,
	};

	b->processes = ranks->size;
	if (ranks->size == 1)
		return 0;
	bench_key(b, "nccl", key);
	return rendezvous_join(&r, &b->meeting);
}

/* All processes must have as many devices, since ranks are numbered process by process. */
static int number_ranks(struct bench *b)
{
	uint64_t mine = b->set->n, *all = calloc((size_t)b->processes, sizeof(*all));
	int r = all ? gather(b, &mine, sizeof(mine), all) : err_set(ENOMEM, "no memory");

	for (int i = 0; r == 0 && i < b->processes; i++)
		if (all[i] != mine)
			r = err_set(
				EINVAL,
				"processes have different numbers of devices: process %d %llu, process %d %llu",
				i, (unsigned long long)all[i], b->order.ranks.rank,
				(unsigned long long)mine);
	free(all);
	b->ranks = b->processes * (int)mine;
	for (size_t i = 0; r == 0 && i < mine; i++)
		b->lanes[i].rank = b->order.ranks.rank * (int)mine + (int)i;
	return r;
}

static void describe_rank(const struct bench *b, size_t i, struct collective_rank *ret)
{
	const struct device_info *info = &b->set->info[i];

	*ret = (struct collective_rank){
		.rank = b->lanes[i].rank,
		.pid = (int)getpid(),
		.ordinal = info->ordinal < 0 ? info->number : info->ordinal,
	};
	gethostname(ret->host, sizeof(ret->host) - 1);
	ret->host[strcspn(ret->host, ".")] = '\0';
	snprintf(ret->pci, sizeof(ret->pci), "%s", info->pci);
	snprintf(ret->name, sizeof(ret->name), "%s", info->name);
}

/* Gathered device by device; said by rank 0 process by process. */
static int say_ranks(struct bench *b)
{
	size_t processes = (size_t)b->processes;
	struct collective_rank *all = calloc((size_t)b->ranks, sizeof(*all)), mine;
	int r = all ? 0 : err_set(ENOMEM, "no memory");

	for (size_t i = 0; r == 0 && i < b->set->n; i++) {
		describe_rank(b, i, &mine);
		r = gather(b, &mine, sizeof(mine), all + i * processes);
	}
	for (size_t k = 0; r == 0 && is_first(b) && k < (size_t)b->ranks; k++) {
		b->message.u.rank = all[k % b->set->n * processes + k / b->set->n];
		r = say(b, NCCL_SAYS_RANK, sizeof(mine));
	}
	free(all);
	return r;
}

/* ---- communicators ---- */

static int open_streams(struct bench *b)
{
	const struct device_ops *ops = b->set->ops;
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->set->n; i++) {
		struct lane *l = &b->lanes[i];

		r = ops->stream_new(b->set, (int)i, &l->stream);
		if (r == 0)
			r = ops->stream_native(b->set, l->stream, &l->native);
	}
	return r;
}

/* libonehop's before NCCL's: they take over the set. */
static int open_communicators(struct bench *b)
{
	int r = 0;

	for (int e = ENGINE_N - 1; r == 0 && e >= 0; e--)
		if (collective_plan_uses(b->plan, (enum collective_engine)e))
			r = engines[e].open(b);
	return r;
}

/* ---- memory ---- */

/* As much of the plan as the process with the least memory holds. */
static int agree_on_size(struct bench *b)
{
	uint64_t mine = b->plan->max_bytes, *all = calloc((size_t)b->processes, sizeof(*all));
	int r = all ? 0 : err_set(ENOMEM, "no memory");

	for (size_t i = 0; i < b->set->n; i++) {
		uint64_t free_bytes = b->set->info[i].free_bytes;
		uint64_t reserve = free_bytes > 4 * RESERVE_BYTES ? RESERVE_BYTES : free_bytes / 4;

		if (mine > (free_bytes - reserve) / 2)
			mine = (free_bytes - reserve) / 2;
	}
	if (b->plan->memory_bytes && mine > b->plan->memory_bytes / 2)
		mine = b->plan->memory_bytes / 2;
	if (r == 0)
		r = gather(b, &mine, sizeof(mine), all);
	b->max_bytes = mine;
	for (int i = 0; r == 0 && i < b->processes; i++)
		if (all[i] < b->max_bytes)
			b->max_bytes = all[i];
	free(all);
	if (r == 0 && b->max_bytes < b->plan->min_bytes)
		return err_set(ENOMEM, "a device does not have room for two buffers of %llu bytes",
			       (unsigned long long)b->plan->min_bytes);
	return r;
}

/* NCCL's own memory where it has it, as nccl-tests: NCCL may treat it better. */
static int get_buffer(struct bench *b, int device, uint64_t size, struct memory *ret, void **own)
{
	const struct device_ops *ops = b->set->ops;
	int r = ops->make_current(b->set, device);

	if (r < 0)
		return r;
	if (!b->api.MemAlloc || !b->api.MemFree)
		return ops->alloc(b->set, device, MEMORY_DEVICE, size, ret);
	r = b->api.MemAlloc(own, size);
	if (r != NCCL_SUCCESS)
		return err_set(EIO, "ncclMemAlloc: %s", b->api.GetErrorString(r));
	return ops->wrap(b->set, device, (uintptr_t)*own, size, ret);
}

static int open_buffers(struct bench *b)
{
	const struct device_ops *ops = b->set->ops;
	uint64_t size = (b->max_bytes + 15) & ~15ull; /* whole words of the pattern */
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->set->n; i++) {
		struct lane *l = &b->lanes[i];
		int d = (int)i;

		r = get_buffer(b, d, size, &l->send, &l->send_own);
		if (r == 0)
			r = get_buffer(b, d, size, &l->recv, &l->recv_own);
		if (r == 0)
			r = ops->alloc(b->set, d, MEMORY_PINNED,
				       (uint64_t)b->ranks * sizeof(struct typed_report),
				       &l->report);
		if (r == 0)
			r = ops->address(b->set, &l->send, d, &l->send_at);
		if (r == 0)
			r = ops->address(b->set, &l->recv, d, &l->recv_at);
		if (r == 0)
			r = ops->address(b->set, &l->report, d, &l->report_at);
	}
	return r;
}

/* The device set frees what is its own. */
static void free_buffers(struct bench *b)
{
	for (size_t i = 0; b->set && i < b->set->n; i++) {
		struct lane *l = &b->lanes[i];

		if (b->set->ops->make_current(b->set, (int)i) < 0)
			continue;
		if (l->send_own)
			b->api.MemFree(l->send_own);
		if (l->recv_own)
			b->api.MemFree(l->recv_own);
	}
}

/* ---- one collective on all lanes ---- */

/* What the engines know of operations that ended, or hang. */
static int check_engines(struct bench *b, struct lane *l)
{
	int r = 0;

	for (int e = 0; r == 0 && e < ENGINE_N; e++)
		r = engines[e].check(b, l);
	return r;
}

static int wait_lane(struct bench *b, struct lane *l)
{
	int r;

	do {
		r = b->set->ops->wait(b->set, l->stream, WAIT_SLICE_US);
		if (r != -ETIMEDOUT)
			return r;
		r = check_engines(b, l);
	} while (r == 0);
	return r;
}

static int check_all(struct bench *b)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->set->n; i++)
		r = check_engines(b, &b->lanes[i]);
	return r;
}

static int wait_all(struct bench *b)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->set->n; i++)
		r = wait_lane(b, &b->lanes[i]);
	return r;
}

/*
 * As nccl-tests does, each iteration uses the next stretch of the buffers, as far as they reach:
 * the same addresses again and again would flatter caches.
 */
static uint64_t shift_of(const struct bench *b, const struct nccl_shape *s, unsigned iteration)
{
	uint64_t places = s->bytes ? b->max_bytes / s->bytes : 1;

	return s->bytes * (iteration % places);
}

uint64_t lane_input(const struct lane *l, const struct nccl_shape *s, bool in_place)
{
	return in_place ? l->recv_at + s->send_offset * (uint64_t)l->rank : l->send_at;
}

uint64_t lane_output(const struct lane *l, const struct nccl_shape *s, bool in_place)
{
	return in_place ? l->recv_at + s->recv_offset * (uint64_t)l->rank : l->recv_at;
}

static int start_all(struct bench *b, enum collective_engine e, const struct nccl_shape *s,
		     bool in_place, unsigned iteration)
{
	const struct engine_call c = {s, in_place, shift_of(b, s, iteration)};

	return engines[e].start(b, &c);
}

/* ---- checking ---- */

static int launch(struct bench *b, size_t i, enum device_kernel kernel, const void *args,
		  size_t size)
{
	struct launch l = {
		.kernel = kernel,
		.blocks = b->set->info[i].blocks * KERNEL_BLOCKS,
		.threads = KERNEL_THREADS,
		.args = args,
		.args_size = size,
	};

	return b->set->ops->launch(b->set, b->lanes[i].stream, &l);
}

/* Poisons what the operation will write, then writes its input, which may be there. */
static int fill_lane(struct bench *b, size_t i, const struct nccl_shape *s, bool in_place)
{
	const struct lane *l = &b->lanes[i];
	struct fill_args poison = {
		.target = l->recv_at,
		.words = (s->bytes + 7) / 8,
		.tag = pattern_tag_make((u64)l->rank, (u64)l->rank, 0, 1),
	};
	struct typed_fill_args input = {
		.target = lane_input(l, s, in_place),
		.count = s->send_bytes / b->type_size,
		.first = nccl_input_first(b->plan->op, s->count, l->rank),
		.type = b->plan->type,
		.op = b->plan->redop,
		.rank = (u64)l->rank,
	};
	int r = launch(b, i, KERNEL_fill, &poison, sizeof(poison));

	return r < 0 ? r : launch(b, i, KERNEL_typed_fill, &input, sizeof(input));
}

static int check_segment(struct bench *b, size_t i, const struct nccl_shape *s, bool in_place,
			 int k)
{
	const struct typed_report clean = {.first_wrong = CHECK_NONE};
	const struct lane *l = &b->lanes[i];
	struct nccl_segment segment;
	struct typed_check_args a;
	uint64_t at = (uint64_t)k * sizeof(clean);
	int r;

	nccl_segment(b->plan->op, s->count, l->rank, b->ranks, b->plan->root, k, &segment);
	a = (struct typed_check_args){
		.origin = lane_output(l, s, in_place) + (uint64_t)k * s->count * b->type_size,
		.count = s->count,
		.first = segment.first,
		.type = b->plan->type,
		.op = b->plan->redop,
		.first_rank = (u64)segment.first_rank,
		.ranks = (u64)segment.ranks,
		.report = l->report_at + at,
	};
	r = b->set->ops->write(b->set, &l->report, at, &clean, sizeof(clean));
	return r < 0 ? r : launch(b, i, KERNEL_typed_check, &a, sizeof(a));
}

/* Wrong elements, and where the first one is. */
struct wrong {
	int64_t n;
	uint64_t index;
	int rank;
};

static int read_segment(struct bench *b, size_t i, uint64_t count, int k, struct wrong *w)
{
	const struct lane *l = &b->lanes[i];
	struct typed_report report;
	int r = b->set->ops->read(b->set, &l->report, (uint64_t)k * sizeof(report), &report,
				  sizeof(report));

	if (r < 0 || report.wrong == 0)
		return r;
	if (w->n == 0) {
		w->rank = l->rank;
		w->index = (uint64_t)k * count + report.first_wrong;
	}
	w->n += (int64_t)report.wrong;
	return 0;
}

static int check_lane(struct bench *b, size_t i, const struct nccl_shape *s, bool in_place,
		      struct wrong *w)
{
	int r = 0, rank = b->lanes[i].rank;
	int n = nccl_segment_n(b->plan->op, rank, b->ranks, b->plan->root);

	for (int k = 0; r == 0 && k < n; k++)
		r = check_segment(b, i, s, in_place, k);
	if (r == 0)
		r = wait_lane(b, &b->lanes[i]);
	for (int k = 0; r == 0 && k < n; k++)
		r = read_segment(b, i, s->count, k, w);
	return r;
}

/* What all processes found. */
static int add_up_wrong(struct bench *b, const struct wrong *mine, struct collective_cell *cell)
{
	struct wrong *all = calloc((size_t)b->processes, sizeof(*all));
	int r = all ? gather(b, mine, sizeof(*mine), all) : err_set(ENOMEM, "no memory");

	cell->wrong = 0;
	for (int i = 0; r == 0 && i < b->processes; i++) {
		if (all[i].n > 0 && cell->wrong == 0) {
			cell->wrong_rank = all[i].rank;
			cell->wrong_index = all[i].index;
		}
		cell->wrong += all[i].n;
	}
	free(all);
	return r;
}

static int check_cell(struct bench *b, enum collective_engine e, const struct nccl_shape *s,
		      bool in_place, struct collective_cell *cell)
{
	struct wrong wrong = {.rank = -1};
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->set->n; i++)
		r = fill_lane(b, i, s, in_place);
	if (r == 0)
		r = wait_all(b);
	if (r == 0)
		r = barrier(b); /* nobody reads what is not filled yet, whatever the engine does */
	if (r == 0)
		r = start_all(b, e, s, in_place, 0);
	if (r == 0)
		r = wait_all(b);
	if (r == 0)
		r = check_all(b);
	for (size_t i = 0; r == 0 && i < b->set->n; i++)
		r = check_lane(b, i, s, in_place, &wrong);
	return r < 0 ? r : add_up_wrong(b, &wrong, cell);
}

/*
 * NCCL divides each 8-bit float before it adds them: then a missing rank and rounding look alike.
 */
static bool is_average_exact(const struct bench *b)
{
	return b->plan->redop != REDUCE_AVG || !(b->ranks & (b->ranks - 1)) ||
	       (b->plan->engine == ENGINE_ONEHOP && !b->plan->against);
}

/* Whether what comes out is exact, so that every difference is wrong. */
static bool can_check(const struct bench *b, bool in_place)
{
	enum nccl_op op = b->plan->op;
	enum reduce_op redop = b->plan->redop;

	if (!b->plan->check || op == NCCL_BARRIER || (in_place && !nccl_op_checks_in_place(op)))
		return false;
	if (!nccl_op_reduces(op) || redop == REDUCE_MAX || redop == REDUCE_MIN)
		return true;
	if (typed_is_tiny(b->plan->type))
		return b->ranks <= RANKS_EXACT_TINY && is_average_exact(b);
	return b->ranks <= RANKS_EXACT || (redop == REDUCE_SUM && b->type_size >= 4);
}

/* ---- timing ---- */

/* The times of one place, in the order of engines: batches that ran in turn. */
struct timing {
	const struct nccl_shape *shape;
	bool in_place;
	struct samples us[ENGINE_N], ratio;
	bool narrow;
};

static int run_iterations(struct bench *b, enum collective_engine e, const struct timing *t)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < b->plan->iterations; i++)
		r = start_all(b, e, t->shape, t->in_place, i);
	return r;
}

static int capture(struct bench *b, enum collective_engine e, const struct timing *t)
{
	const struct device_ops *ops = b->set->ops;
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->set->n; i++)
		r = ops->capture_begin(b->set, b->lanes[i].stream);
	if (r == 0)
		r = run_iterations(b, e, t);
	for (size_t i = 0; r == 0 && i < b->set->n; i++)
		r = ops->capture_end(b->set, b->lanes[i].stream, &b->lanes[i].graph[e]);
	return r;
}

static int launch_graphs(struct bench *b, enum collective_engine e)
{
	int r = 0;

	for (unsigned k = 0; r == 0 && k < b->plan->graph; k++)
		for (size_t i = 0; r == 0 && i < b->set->n; i++)
			r = b->set->ops->graph_launch(b->set, b->lanes[i].stream,
						      b->lanes[i].graph[e]);
	return r;
}

/*
 * What is made at first use is not timed: an operation by itself, then the first launch of a graph.
 */
static int prepare(struct bench *b, enum collective_engine e, const struct timing *t)
{
	int r = start_all(b, e, t->shape, t->in_place, 0);

	if (r == 0)
		r = wait_all(b);
	if (r < 0 || !b->plan->graph)
		return r;
	r = capture(b, e, t);
	if (r == 0)
		r = launch_graphs(b, e);
	return r < 0 ? r : wait_all(b);
}

static int free_graphs(struct bench *b, enum collective_engine e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && b->plan->graph && i < b->set->n; i++)
		r = b->set->ops->graph_free(b->set, b->lanes[i].graph[e]);
	return r;
}

static int for_each_engine(struct bench *b, const struct timing *t,
			   int (*part)(struct bench *, enum collective_engine,
				       const struct timing *))
{
	int r = 0;

	for (int e = 0; r == 0 && e < ENGINE_N; e++)
		if (collective_plan_uses(b->plan, (enum collective_engine)e))
			r = part(b, (enum collective_engine)e, t);
	return r;
}

/* Wall clock of a batch, as nccl-tests measures: it includes the time that the calls take. */
static int time_batch(struct bench *b, enum collective_engine e, const struct timing *t,
		      double *ret_us)
{
	unsigned n = b->plan->iterations * (b->plan->graph ? b->plan->graph : 1);
	double start = clock_s();
	int r = b->plan->graph ? launch_graphs(b, e) : run_iterations(b, e, t);

	if (r == 0)
		r = wait_all(b);
	*ret_us = (clock_s() - start) * 1e6 / n;
	return r;
}

/* What every process reports of a batch; rank 0's clock decides when the time is up. */
struct tick {
	double us, elapsed_s;
};

/* The mean of all processes. It is a barrier too: the next batch starts everywhere at once. */
static int share_time(struct bench *b, const struct tick *mine, struct tick *ret)
{
	struct tick *all = calloc((size_t)b->processes, sizeof(*all));
	int r = all ? gather(b, mine, sizeof(*mine), all) : err_set(ENOMEM, "no memory");

	if (r == 0) {
		*ret = (struct tick){.elapsed_s = all[0].elapsed_s};
		for (int i = 0; i < b->processes; i++)
			ret->us += all[i].us / b->processes;
	}
	free(all);
	return r;
}

/* Many batches may take longer than a step may. */
static int say_alive(struct bench *b, uint64_t bytes, bool in_place)
{
	if (clock_s() < b->said_s + SAY_EVERY_S)
		return 0;
	b->said_s = clock_s();
	return say_timing(b, bytes, in_place);
}

static int add_batch(struct bench *b, enum collective_engine e, struct timing *t, double start,
		     struct tick *ret)
{
	struct tick mine;
	int r = time_batch(b, e, t, &mine.us);

	mine.elapsed_s = clock_s() - start;
	if (r == 0)
		r = check_all(b);
	if (r == 0)
		r = share_time(b, &mine, ret);
	return r < 0 ? r : samples_add(&t->us[e], ret->us);
}

/*
 * A batch of the plan's engine and, if there is another one to measure against, one of that. Which
 * of the two comes first alternates, so that neither always has the other's caches and clocks.
 */
static int add_batches(struct bench *b, struct timing *t, double start, double *ret_elapsed_s)
{
	const enum collective_engine own = b->plan->engine, other = b->plan->rival;
	const bool swap = b->plan->against && t->ratio.n % 2;
	struct tick ticks[ENGINE_N] = {{0}};
	int r = 0;

	for (int k = 0; r == 0 && k < (b->plan->against ? 2 : 1); k++) {
		const enum collective_engine e = (k == 1) == swap ? own : other;

		r = add_batch(b, e, t, start, &ticks[e]);
		*ret_elapsed_s = ticks[e].elapsed_s;
	}
	if (r == 0 && b->plan->against)
		r = samples_add(&t->ratio, ticks[own].us / ticks[other].us);
	return r;
}

/* A table needs the order of algorithms, not their exact times. */
static unsigned most_samples(const struct collective_plan *p)
{
	if (p->tune)
		return TUNE_SAMPLES_MAX;
	return p->relative > 0 ? SAMPLES_MAX : 1;
}

/* A ratio is what is asked for where there are two engines; it takes more samples. */
static struct stopping stopping_rule(const struct bench *b)
{
	const bool ratio = b->plan->against;

	return (struct stopping){
		.relative = ratio ? NCCL_RATIO_RELATIVE : b->plan->relative,
		.budget_s = (b->plan->budget_s - b->spent_s) / (double)b->cells_left,
		.min_samples = ratio ? NCCL_RATIO_SAMPLES : STOPPING_MIN_SAMPLES,
		.max_samples = most_samples(b->plan),
	};
}

static int time_batches(struct bench *b, struct timing *t)
{
	const struct stopping rule = stopping_rule(b);
	struct samples *judged = b->plan->against ? &t->ratio : &t->us[b->plan->engine];
	enum stop stop = STOP_GO_ON;
	double start = clock_s(), elapsed_s = 0;
	int r = 0;

	while (r == 0 && stop == STOP_GO_ON) {
		r = add_batches(b, t, start, &elapsed_s);
		if (r == 0)
			stop = stopping_decide(&rule, judged, elapsed_s);
		if (r == 0)
			r = say_alive(b, t->shape->bytes, t->in_place);
	}
	b->spent_s += elapsed_s;
	t->narrow = stop == STOP_NARROW;
	return r;
}

static void fill_cell(const struct bench *b, const struct timing *t, struct samples *samples,
		      struct collective_cell *cell)
{
	struct summary summary;

	samples_summary(samples, &summary);
	cell->time_us = summary.median;
	cell->low_us = summary.low;
	cell->high_us = summary.high;
	cell->batches = (unsigned)summary.n;
	cell->narrow = relative_half_width(&summary) <= b->plan->relative;
	nccl_rates(b->plan->op, t->shape, b->type_size, b->ranks, cell->time_us, cell);
}

static void fill_row(const struct bench *b, struct timing *t, struct collective_row *row)
{
	const enum collective_engine own = b->plan->engine;
	const enum collective_place k = t->in_place ? IN_PLACE : OUT_OF_PLACE;
	struct summary summary;

	fill_cell(b, t, &t->us[own], &row->cell[k]);
	if (!b->plan->against) {
		row->cell[k].narrow = t->narrow;
		return;
	}
	fill_cell(b, t, &t->us[b->plan->rival], &row->other[k]);
	samples_summary(&t->ratio, &summary);
	row->ratio[k] = (struct collective_ratio){summary.median, summary.low, summary.high,
						  (unsigned)summary.n, t->narrow};
}

static int time_place(struct bench *b, const struct nccl_shape *s, bool in_place,
		      struct collective_row *row)
{
	struct timing t = {.shape = s, .in_place = in_place};
	int r = for_each_engine(b, &t, prepare);

	if (r == 0)
		r = barrier(b);
	if (r == 0)
		r = time_batches(b, &t);
	for (int e = 0; r == 0 && e < ENGINE_N; e++)
		if (collective_plan_uses(b->plan, (enum collective_engine)e))
			r = free_graphs(b, (enum collective_engine)e);
	if (r == 0)
		fill_row(b, &t, row);
	for (int e = 0; e < ENGINE_N; e++)
		samples_done(&t.us[e]);
	samples_done(&t.ratio);
	return r;
}

/* ---- the sweep ---- */

static int warm_up_size(struct bench *b, enum collective_engine e, const struct timing *t)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < b->plan->warmup; i++)
		r = start_all(b, e, t->shape, false, i);
	return r < 0 ? r : wait_all(b);
}

static int warm_up(struct bench *b)
{
	struct nccl_shape s;
	const struct timing t = {.shape = &s};
	int r = 0;

	for (uint64_t bytes = b->plan->min_bytes; r == 0 && bytes <= b->max_bytes; bytes *= 2) {
		nccl_shape(b->plan->op, b->type_size, b->ranks, bytes, &s);
		r = say_phase(b, "warming up", bytes, false, 0);
		if (r == 0)
			r = for_each_engine(b, &t, warm_up_size);
	}
	return r;
}

static int check_place(struct bench *b, const struct nccl_shape *s, bool in_place,
		       struct collective_row *row)
{
	const enum collective_engine own = b->plan->engine;
	int r = say_phase(b, "checking", s->bytes, in_place, (unsigned)b->cells_left);

	if (r == 0)
		r = check_cell(b, own, s, in_place, &row->cell[in_place]);
	if (r == 0 && b->plan->against)
		r = check_cell(b, b->plan->rival, s, in_place, &row->other[in_place]);
	return r;
}

int bench_run_place(struct bench *b, const struct nccl_shape *s, bool in_place,
		    struct collective_row *row)
{
	int r;

	row->cell[in_place] = row->other[in_place] =
		(struct collective_cell){.time_us = NAN, .wrong = -1, .wrong_rank = -1};
	if (b->plan->skip[in_place])
		return 0;
	r = say_timing(b, s->bytes, in_place);
	if (r == 0)
		r = time_place(b, s, in_place, row);
	b->cells_left -= b->cells_left > 1;
	return r < 0 || !can_check(b, in_place) ? r : check_place(b, s, in_place, row);
}

static void fill_chosen(const struct bench *b, const struct nccl_shape *s,
			struct collective_chosen *ret)
{
	const struct onehop_comm *c = b->lanes[0].own;
	struct choice each[ALGORITHM_N];

	*ret = (struct collective_chosen){.algorithm = ALGORITHM_N};
	if (!c)
		return;
	operation_estimate(&c->facts, nccl_op_ours(b->plan->op), s->count, b->plan->type, each);
	ret->algorithm = c->last;
	for (int a = 0; a < ALGORITHM_N; a++)
		ret->measured |= each[a].measured;
	for (int a = 0; a < ALGORITHM_N; a++)
		ret->us[a] = each[a].algorithm == ALGORITHM_N || each[a].measured != ret->measured
				     ? NAN
				     : each[a].us;
}

static int run_sizes(struct bench *b)
{
	const size_t places = (size_t)!b->plan->skip[OUT_OF_PLACE] + !b->plan->skip[IN_PLACE];
	struct nccl_shape s;
	struct collective_row row;
	int r = 0;

	b->cells_left = places * collective_plan_sizes(b->plan, b->max_bytes);
	for (uint64_t bytes = b->plan->min_bytes; r == 0 && bytes <= b->max_bytes;
	     bytes = collective_plan_next(b->plan, bytes)) {
		nccl_shape(b->plan->op, b->type_size, b->ranks, bytes, &s);
		row = (struct collective_row){.bytes = s.bytes, .count = s.count};
		for (int k = 0; r == 0 && k < PLACE_N; k++)
			r = bench_run_place(b, &s, k == IN_PLACE, &row);
		if (r < 0 || !is_first(b))
			continue;
		fill_chosen(b, &s, &row.chosen);
		b->message.u.row = row;
		r = say(b, NCCL_SAYS_ROW, sizeof(row));
	}
	return r;
}

/* ---- start and end ---- */

/* A table that was given, but is older than levels or the chain. */
static bool is_older(const struct bench *b)
{
	const struct comm_facts *f = b->lanes[0].own ? &b->lanes[0].own->facts : NULL;

	return f && b->order.has_tuned &&
	       tuned_is_older(&b->order.tuned.times[tuned_kind_of(f->direct, f->mixed)], f);
}

static int say_start(struct bench *b)
{
	struct collective_start *s = &b->message.u.start;

	if (!is_first(b))
		return 0;
	*s = (struct collective_start){.version = b->api.version,
				       .ranks = b->ranks,
				       .direct = b->lanes[0].own && b->lanes[0].own->facts.direct,
				       .mixed = b->lanes[0].own && b->lanes[0].own->facts.mixed,
				       .older_table = is_older(b),
				       .max_bytes = b->max_bytes};
	memcpy(s->library, b->api.path, sizeof(s->library));
	return say(b, NCCL_SAYS_START, sizeof(*s));
}

static int check_caps(const struct bench *b)
{
	if (!(b->set->caps & DEVICE_NATIVE))
		return err_set(ENOTSUP, "%s cannot use these devices",
			       collective_engine_names[b->plan->engine]);
	if (b->plan->graph && !(b->set->caps & DEVICE_GRAPHS))
		return err_set(ENOTSUP, "these devices cannot capture graphs");
	if (b->plan->root < 0 || b->plan->root >= b->ranks)
		return err_set(EINVAL, "there is no rank %d to be the root", b->plan->root);
	return 0;
}

static int open_devices(struct bench *b)
{
	int r;

	b->order.devices.collectives = collective_plan_uses(b->plan, ENGINE_ONEHOP);
	r = device_open(&b->order.devices, &b->set);
	if (r < 0)
		return r;
	b->lanes = calloc(b->set->n, sizeof(*b->lanes));
	return b->lanes ? 0 : err_set(ENOMEM, "no memory");
}

/* The shim passes on to the NCCL that it is compared with. */
static int load_libraries(struct bench *b)
{
	const char *library = b->order.has_library ? b->order.library : NULL;
	int r = collective_plan_uses(b->plan, ENGINE_NCCL) ? nccl_load(library, &b->api) : 0;

	if (r < 0 && library)
		return err_wrap(r, "--nccl");
	if (r == 0 && b->plan->symmetric)
		r = nccl_has_windows(&b->api);
	if (r == 0 && *b->api.path && typed_is_tiny(b->plan->type))
		r = nccl_has_float8(&b->api);
	if (r < 0 || !collective_plan_uses(b->plan, ENGINE_SHIM))
		return r;
	setenv("ONEHOP_NCCL_LIBRARY", b->api.path, 1);
	r = nccl_load(b->order.shim, &b->shim);
	return r < 0 ? err_wrap(r, "the shim's library (--shim-library names one)") : 0;
}

static int run(struct bench *b)
{
	static int (*const parts[])(struct bench *) = {
		say_ranks,    agree_on_size,     open_streams, open_communicators,
		open_buffers, nccl_open_windows, say_start,
	};
	static int (*const sweep[])(struct bench *) = {warm_up, run_sizes};
	int r = load_libraries(b);

	if (r == 0)
		r = say_step(b, "opening the devices", 0, false, 0);
	if (r == 0)
		r = open_devices(b);
	if (r == 0)
		r = say_step(b, "waiting for the other ranks", 0, false, 0);
	if (r == 0)
		r = join(b);
	if (r == 0)
		r = number_ranks(b);
	if (r == 0)
		r = check_caps(b);
	for (size_t i = 0; r == 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		r = parts[i](b);
	if (b->plan->tune)
		return r < 0 ? r : bench_tune(b);
	for (size_t i = 0; r == 0 && i < sizeof(sweep) / sizeof(sweep[0]); i++)
		r = sweep[i](b);
	return r;
}

static int say_end(struct bench *b, int result)
{
	char *text = b->message.u.end.text;

	b->message.u.end.result = result;
	snprintf(text, sizeof(b->message.u.end.text), "%s", result < 0 ? err_msg() : "");
	return say(b, NCCL_SAYS_END, sizeof(b->message.u.end));
}

/* A hang of the end is named too; but after an error the error comes first, whatever hangs then. */
static void end(struct bench *b, int result)
{
	if (result < 0) {
		say_end(b, result);
		engines[ENGINE_SHIM].close(b, true);
		engines[ENGINE_NCCL].close(b, true);
		free_buffers(b);
	} else {
		say_step(b, "closing the communicators", 0, false, 0);
		nccl_close_windows(b);
		free_buffers(b);
		engines[ENGINE_SHIM].close(b, false);
		engines[ENGINE_NCCL].close(b, false);
	}
	engines[ENGINE_ONEHOP].close(b, result < 0);
	if (!b->set_given)
		device_close(b->set);
	if (result == 0)
		say_end(b, result);
}

static int receive_order(struct bench *b)
{
	ssize_t n = message_receive(b->fd, &b->order, sizeof(b->order), NULL, UINT64_MAX);

	if (n != (ssize_t)sizeof(b->order))
		return err_set(EPROTO, "%s is started by onehop bench only", NCCL_WORKER_COMMAND);
	b->plan = &b->order.plan;
	b->type_size = nccl_type_size(b->plan->type);
	return 0;
}

int nccl_serve(int fd)
{
	struct bench *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return err_set(ENOMEM, "no memory");
	/* NCCL may hang, and then nobody reads the socket that says that the parent is gone. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	b->fd = fd;
	b->began_s = clock_s();
	r = receive_order(b);
	if (r == 0)
		end(b, run(b));
	rendezvous_leave(b->meeting);
	free(b->lanes);
	free(b);
	return r;
}
