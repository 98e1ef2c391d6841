/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "device/presence.h"
#include "nccl/comms.h"
#include "nccl/shim.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIMIT_US 60000000u
#define GUARD    ((size_t)64) /* bytes around memory, which nobody may write */

static struct rig *newest;

static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

struct rig_use {
	enum rig_operation operation;
	int stream, type, op, root, me, n;
	size_t count;
	char *memory, *out;
	size_t in_n, out_n; /* elements */
	bool started;
};

/* ---- what goes wrong ---- */

void rig_fail(struct rank *r, const char *what)
{
	if (!r->error[0])
		snprintf(r->error, sizeof(r->error), "%s", what);
}

void rig_check(struct rank *r, int status)
{
	char text[200];

	if (status == NCCL_SUCCESS)
		return;
	snprintf(text, sizeof(text), "status %d: %s", status, ncclGetLastError(r->comm));
	rig_fail(r, text);
}

bool rig_failed(const struct rig *g)
{
	bool failed = false;

	for (int i = 0; i < g->n; i++) {
		if (!g->ranks[i].error[0])
			continue;
		printf("# rank %d: %s\n", i, g->ranks[i].error);
		failed = true;
	}
	return failed;
}

/* ---- what NCCL saw ---- */

static unsigned standin_count(void)
{
	void *library = dlopen(getenv("ONEHOP_NCCL_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
	unsigned (*calls)(void) =
		library ? (unsigned (*)(void))dlsym(library, "standin_calls") : NULL;

	return calls ? calls() : 0;
}

unsigned long rig_reached(void)
{
	return standin_count() - newest->reached - newest->zeros;
}

unsigned long rig_calls(const struct rig *g)
{
	return g->calls - g->zeros;
}

/* ---- numbers ---- */

static double from_bits(unsigned bits, int fraction, int bias)
{
	const int e = (int)((bits & 0x7fff) >> fraction);
	const double m = bits & ((1u << fraction) - 1);

	return e ? ldexp(m + (1 << fraction), e - bias - fraction) : ldexp(m, 1 - bias - fraction);
}

static unsigned to_bits(double v, int fraction, int bias)
{
	int e;
	double m = frexp(v, &e);

	return (unsigned)(e - 1 + bias) << fraction |
	       ((unsigned)ldexp(m, fraction + 1) & ((1u << fraction) - 1));
}

#define AS(type, at, i) (((type *)(void *)(at))[i])

static double get(const char *at, size_t i, int type)
{
	switch (type) {
	case 0:
		return AS(const signed char, at, i);
	case 1:
		return AS(const unsigned char, at, i);
	case 2:
		return AS(const int, at, i);
	case 3:
		return AS(const unsigned, at, i);
	case 4:
		return (double)AS(const long, at, i);
	case 5:
		return (double)AS(const unsigned long, at, i);
	case 6:
		return from_bits(AS(const unsigned short, at, i), 10, 15);
	case 7:
		return (double)AS(const float, at, i);
	case 8:
		return AS(const double, at, i);
	default:
		return from_bits(AS(const unsigned short, at, i), 7, 127);
	}
}

static void put(char *at, size_t i, int type, double v)
{
	switch (type) {
	case 0:
	case 1:
		AS(unsigned char, at, i) = (unsigned char)v;
		break;
	case 2:
	case 3:
		AS(unsigned, at, i) = (unsigned)v;
		break;
	case 4:
	case 5:
		AS(unsigned long, at, i) = (unsigned long)v;
		break;
	case 6:
		AS(unsigned short, at, i) = (unsigned short)to_bits(v, 10, 15);
		break;
	case 7:
		AS(float, at, i) = (float)v;
		break;
	case 8:
		AS(double, at, i) = v;
		break;
	default:
		AS(unsigned short, at, i) = (unsigned short)to_bits(v, 7, 127);
		break;
	}
}

/* Small, so that products fit in a byte and sums are exact in 16 bits. */
static double value(int rank, size_t i, int op)
{
	return op == 1 ? 1 + (double)((i + (size_t)rank) % 3)
		       : 1 + (double)((i * 3 + (size_t)rank * 7) % 5);
}

static double reduced(const struct rig_use *u, size_t i)
{
	double v = value(0, i, u->op);

	for (int r = 1; r < u->n; r++) {
		const double w = value(r, i, u->op);

		v = u->op == 1 ? v * w : u->op == 2 ? fmax(v, w) : u->op == 3 ? fmin(v, w) : v + w;
	}
	return u->op == 4 ? v / u->n : v;
}

static double expected(const struct rig_use *u, size_t i)
{
	switch (u->operation) {
	case RIG_ALL_GATHER:
		return value((int)(i / u->count), i % u->count, 0);
	case RIG_BROADCAST:
	case RIG_BCAST:
		return value(u->root, i, 0);
	case RIG_ALL_TO_ALL:
		return value((int)(i / u->count), (size_t)u->me * u->count + i % u->count, 0);
	case RIG_REDUCE_SCATTER:
		return reduced(u, (size_t)u->me * u->count + i);
	default:
		return reduced(u, i);
	}
}

/* Integers are cut off; averages in 16 bits are rounded in two ways. */
static bool is_right(double got, double want, int type)
{
	return type < 6 ? got == trunc(want)
			: fabs(got - want) <= fabs(want) * (type == 6 || type == 9 ? 0.01 : 1e-6);
}

/* ---- a call ---- */

static int call(struct rank *r, const struct rig_use *u, char *in)
{
	void *s = r->native[u->stream];

	switch (u->operation) {
	case RIG_ALL_REDUCE:
		return ncclAllReduce(in, u->out, u->count, u->type, u->op, r->comm, s);
	case RIG_REDUCE:
		return ncclReduce(in, u->out, u->count, u->type, u->op, u->root, r->comm, s);
	case RIG_REDUCE_SCATTER:
		return ncclReduceScatter(in, u->out, u->count, u->type, u->op, r->comm, s);
	case RIG_ALL_GATHER:
		return ncclAllGather(in, u->out, u->count, u->type, r->comm, s);
	case RIG_ALL_TO_ALL:
		return ncclAlltoAll(in, u->out, u->count, u->type, r->comm, s);
	case RIG_BCAST:
		return ncclBcast(u->out, u->count, u->type, u->root, r->comm, s);
	default:
		return ncclBroadcast(in, u->out, u->count, u->type, u->root, r->comm, s);
	}
}

/*
 * One piece of memory: guard, input, guard, output, guard. In place the output is a part of the
 * input, or the reverse.
 */
static char *lay_out(struct rig_use *u, bool in_place)
{
	const size_t size = sizes[u->type], in = u->in_n * size, out = u->out_n * size;
	char *start = u->memory + GUARD;

	if (!in_place) {
		u->out = start + in + GUARD;
		return start;
	}
	u->out = u->in_n > u->out_n ? start + (size_t)u->me * out : start;
	return u->out_n > u->in_n ? start + (size_t)u->me * in : start;
}

struct rig_use *rig_start(struct rank *r, int stream, enum rig_operation o, size_t count, int type,
			  int op, int root, bool in_place)
{
	struct rig_use *u = calloc(1, sizeof(*u));
	/* NCCL has no all-to-all in place. */
	const bool same = (in_place && o != RIG_ALL_TO_ALL) || o == RIG_BCAST;
	const bool parts_in = o == RIG_REDUCE_SCATTER || o == RIG_ALL_TO_ALL;
	const bool parts_out = o == RIG_ALL_GATHER || o == RIG_ALL_TO_ALL;
	char *in;
	int status;

	*u = (struct rig_use){o,           stream, type, o <= RIG_REDUCE_SCATTER ? op : 0,
			      root % r->n, r->me,  r->n, count};
	u->in_n = count * (parts_in ? (size_t)u->n : 1);
	u->out_n = count * (parts_out ? (size_t)u->n : 1);
	u->memory = malloc((u->in_n + u->out_n) * sizes[type] + 3 * GUARD);
	memset(u->memory, 0x5a, (u->in_n + u->out_n) * sizes[type] + 3 * GUARD);
	in = lay_out(u, same);
	for (size_t i = 0; i < u->in_n; i++)
		put(in, i, type, value(u->me, i, u->op));
	status = call(r, u, in);
	u->started = status == NCCL_SUCCESS;
	rig_check(r, status);
	atomic_fetch_add(&r->rig->calls, 1);
	if (count == 0)
		atomic_fetch_add(&r->rig->zeros, 1);
	return u;
}

static void compare(struct rank *r, const struct rig_use *u)
{
	char text[200];

	if (u->operation == RIG_REDUCE && u->me != u->root)
		return;
	for (size_t i = 0; i < u->out_n; i++) {
		const double got = get(u->out, i, u->type), want = expected(u, i);

		if (is_right(got, want, u->type))
			continue;
		snprintf(text, sizeof(text),
			 "operation %d, %zu elements of type %d, op %d: element %zu is %g, not %g",
			 (int)u->operation, u->count, u->type, u->op, i, got, want);
		rig_fail(r, text);
		return;
	}
}

static void check_guards(struct rank *r, const struct rig_use *u)
{
	const size_t size = (u->in_n + u->out_n) * sizes[u->type];

	for (size_t i = 0; i < GUARD; i++)
		if (u->memory[i] != 0x5a || u->memory[size + 2 * GUARD + i] != 0x5a)
			rig_fail(r, "memory beside a buffer was written");
}

static void end(struct rank *r, struct rig_use *u, bool right)
{
	if (r->set->ops->wait(r->set, r->streams[u->stream], LIMIT_US) < 0) {
		rig_fail(r, "the stream did not end");
		return; /* it may still use the memory */
	}
	if (right && u->started)
		compare(r, u);
	check_guards(r, u);
	free(u->memory);
	free(u);
}

void rig_finish(struct rank *r, struct rig_use *u)
{
	end(r, u, true);
}

void rig_drop(struct rank *r, struct rig_use *u)
{
	end(r, u, false);
}

int rig_run(struct rank *r, int stream, enum rig_operation o, size_t count, int type, int op,
	    int root, bool in_place)
{
	struct rig_use *u = rig_start(r, stream, o, count, type, op, root, in_place);
	int status = u->started ? NCCL_SUCCESS : NCCL_INTERNAL_ERROR;

	rig_finish(r, u);
	return status;
}

/* ---- ranks ---- */

static void open_rank(struct rig *g, struct rank *r, int me, int n)
{
	const struct device_request q = {.kind = DEVICE_HOST, .n = 1, .number = {me}};

	*r = (struct rank){.rig = g, .me = me, .n = n};
	if (device_open(&q, &r->set) < 0) {
		rig_fail(r, "no device");
		return;
	}
	for (int i = 0; i < RIG_STREAMS; i++)
		if (r->set->ops->stream_new(r->set, 0, &r->streams[i]) < 0 ||
		    r->set->ops->stream_native(r->set, r->streams[i], &r->native[i]) < 0)
			rig_fail(r, "no stream");
}

struct rig *rig_new(int n)
{
	struct rig *g = calloc(1, sizeof(*g));

	g->n = n;
	pthread_barrier_init(&g->barrier, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		open_rank(g, &g->ranks[i], i, n);
	g->reached = standin_count();
	newest = g;
	return g;
}

void rig_free(struct rig *g)
{
	for (int i = 0; i < g->n; i++)
		device_close(g->ranks[i].set);
	pthread_barrier_destroy(&g->barrier);
	free(g);
}

void rig_set(struct rank *r, struct ncclComm *comm)
{
	r->comm = comm;
	rig_check(r, ncclCommCount(comm, &r->n));
	rig_check(r, ncclCommUserRank(comm, &r->me));
}

struct start {
	struct rank *rank;
	void (*what)(struct rank *r);
	enum rig_way way;
	pthread_t thread;
};

struct rig_trouble rig_trouble;

#define LITTLE (96ul << 20) /* less than a simulated device maps */

static void leave_little_memory(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%lu", &pages) == 1)
		setrlimit(RLIMIT_AS, &(struct rlimit){pages * 4096 + LITTLE, RLIM_INFINITY});
	if (f)
		fclose(f);
}

/* Descriptors are the lowest that are free. */
static void leave_descriptors(unsigned n)
{
	const int next = dup(0);
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)next + n;
	setrlimit(RLIMIT_NOFILE, &limit);
	close(next);
}

static _Atomic(unsigned) allocations; /* until one fails */

/* The linker puts these in front of the C library's, for this program and the shim in it. */
static bool refused(void)
{
	return atomic_load(&allocations) && atomic_fetch_sub(&allocations, 1) == 1;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return refused() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : __real_calloc(n, size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
	return refused() ? NULL : __real_realloc(old, size);
}

static _Thread_local unsigned long locks;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	locks++;
	return __real_pthread_mutex_lock(mutex);
}

unsigned long rig_locks(void)
{
	return locks;
}

/* ---- what the shim's devices are like ---- */

int __real_device_open(const struct device_request *r, struct device_set **ret);
int __wrap_device_open(const struct device_request *r, struct device_set **ret);
int __wrap_device_open(const struct device_request *r, struct device_set **ret)
{
	const struct rig_device *like = &rig_trouble.device;
	struct device_request q = *r;
	int e;

	if (!q.collectives || (!like->every && q.number[0] != like->rank)) /* the rig's own */
		return __real_device_open(r, ret);
	if (like->refused)
		q.host.fault = (struct fault){FAULT_REFUSE, -1, -1};
	q.host.memory_bytes = like->bytes;
	e = __real_device_open(&q, ret);
	if (e < 0)
		return e;
	if (like->name)
		snprintf((*ret)->info->name, sizeof((*ret)->info->name), "%s", like->name);
	if (like->pci)
		snprintf((*ret)->info->pci, sizeof((*ret)->info->pci), "%s", like->pci);
	(*ret)->info->ends_kernels = like->desktop;
	return 0;
}

/* ---- ranks ---- */

/* As a program waits for a communicator that does not block. */
static int make_later(struct rank *r)
{
	struct nccl_config config = {sizeof(config), NCCL_CONFIG_MAGIC, 22809, 0};
	int status = ncclCommInitRankConfig(&r->comm, r->n, r->rig->id, r->me, &config), state;

	if (status != NCCL_IN_PROGRESS)
		rig_fail(r, "a communicator that does not block was waited for");
	do
		status = ncclCommGetAsyncError(r->comm, &state);
	while (status == NCCL_SUCCESS && state == NCCL_IN_PROGRESS);
	return status == NCCL_SUCCESS ? state : status;
}

/* Somebody else is there, and does not come. The descriptor, to be closed. */
static int announce_another(const struct rank *r)
{
	const enum shim_mode mode = shim_mode();
	struct comms_key key = comms_key(NULL, &r->rig->id, sizeof(r->rig->id));

	key = comms_key(&key, &mode, sizeof(mode));
	return presence_announce(key.text, r->me);
}

static int make_comm(struct rank *r, enum rig_way way)
{
	int status;

	if (way == RIG_NAME_TAKEN && r->me == r->n - 1)
		r->another = announce_another(r);
	if (way == RIG_LAST_WITHOUT && r->me == r->n - 1)
		return real_CommInitRank()(&r->comm, r->n, r->rig->id, r->me);
	if (way == RIG_NOT_BLOCKING)
		return make_later(r);
	status = ncclCommInitRank(&r->comm, r->n, r->rig->id, r->me);
	atomic_store(&allocations, 0);
	return status;
}

static void *run_rank(void *argument)
{
	struct start *s = argument;
	struct rank *r = s->rank;

	rig_check(r, make_comm(r, s->way));
	if (!r->error[0])
		s->what(r);
	if (r->comm)
		rig_check(r, ncclCommDestroy(r->comm));
	if (r->another > 0)
		close(r->another);
	return NULL;
}

void rig_run_all(struct rig *g, void (*what)(struct rank *r), enum rig_way way)
{
	struct start starts[RIG_RANKS];

	rig_check(&g->ranks[0], ncclGetUniqueId(&g->id));
	for (int i = 0; i < g->n; i++) {
		starts[i] = (struct start){&g->ranks[i], what, way};
		pthread_create(&starts[i].thread, NULL, run_rank, &starts[i]);
	}
	for (int i = 0; i < g->n; i++)
		pthread_join(starts[i].thread, NULL);
}

static void make_trouble(void)
{
	atomic_store(&allocations, rig_trouble.allocation);
	if (rig_trouble.little_memory)
		leave_little_memory();
	if (rig_trouble.descriptors)
		leave_descriptors(rig_trouble.descriptors);
	if (rig_trouble.small_files)
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){256 << 20, RLIM_INFINITY});
}

int rig_process(const struct nccl_id *id, int me, int n, void (*what)(struct rank *r),
		enum rig_taken taken)
{
	struct rig *g = calloc(1, sizeof(*g));
	struct start s = {&g->ranks[0], what, RIG_SHIM};
	bool right;

	g->n = 1;
	g->id = *id;
	open_rank(g, &g->ranks[0], me, n);
	newest = g;
	make_trouble();
	run_rank(&s);
	right = !rig_failed(g) && ((taken != RIG_NONE && rig_reached() == 0) ||
				   (taken != RIG_ALL && rig_reached() == rig_calls(g)));
	fflush(stdout);
	return !right;
}

/* ---- random programs ---- */

#define COMMS 5
#define USES  12

struct play {
	struct rank *rank;
	unsigned seed, rounds;
	const unsigned char *bytes; /* what is rolled; NULL: by the seed */
	size_t bytes_n, at;
	struct {
		struct ncclComm *comm;
		int me, n;
	} comms[COMMS];
	struct rig_use *uses[USES];
	int used;
	pthread_t thread;
};

static unsigned byte_of(struct play *p)
{
	return p->at < p->bytes_n ? p->bytes[p->at++] : 0;
}

static unsigned dice(struct play *p, unsigned n)
{
	if (p->bytes)
		return (byte_of(p) | (n > 256 ? byte_of(p) << 8 : 0)) % n;
	p->seed = p->seed * 1103515245u + 12345u;
	return (p->seed >> 16) % n;
}

static void settle(struct play *p)
{
	for (int i = 0; i < p->used; i++)
		rig_finish(p->rank, p->uses[i]);
	p->used = 0;
}

/* Every rank rolls the same numbers, whether or not it belongs to the communicator. */
static void play_call(struct play *p)
{
	const unsigned slot = dice(p, COMMS), stream = dice(p, RIG_STREAMS),
		       o = dice(p, RIG_OPERATIONS);
	const unsigned count = dice(p, 10) ? dice(p, 300) : dice(p, 30000), type = dice(p, 10),
		       op = dice(p, 5);
	const unsigned root = dice(p, RIG_RANKS), in_place = dice(p, 2);
	struct rank *r = p->rank;

	if (p->used == USES)
		settle(p);
	if (!p->comms[slot].comm)
		return;
	r->comm = p->comms[slot].comm;
	r->me = p->comms[slot].me;
	r->n = p->comms[slot].n;
	p->uses[p->used++] = rig_start(r, (int)stream, (enum rig_operation)o, count, (int)type,
				       (int)op, (int)root, in_place);
}

static void play_group(struct play *p)
{
	const unsigned calls = 1 + dice(p, 6), nested = dice(p, 3);

	settle(p);
	for (unsigned i = 0; i <= nested; i++)
		rig_check(p->rank, ncclGroupStart());
	for (unsigned i = 0; i < calls; i++)
		play_call(p);
	for (unsigned i = 0; i <= nested; i++)
		rig_check(p->rank, ncclGroupEnd());
}

static void enter(struct play *p, unsigned slot, struct ncclComm *comm)
{
	p->comms[slot].comm = comm;
	if (!comm)
		return;
	rig_set(p->rank, comm);
	p->comms[slot].me = p->rank->me;
	p->comms[slot].n = p->rank->n;
}

static void play_end(struct play *p, unsigned slot)
{
	const unsigned how = dice(p, 4);
	struct ncclComm *comm = p->comms[slot].comm;

	settle(p);
	if (!comm)
		return;
	p->comms[slot].comm = NULL;
	if (how == 2)
		rig_check(p->rank, ncclCommFinalize(comm));
	if (how == 3)
		rig_check(p->rank, ncclCommRevoke(comm, 0));
	rig_check(p->rank, how ? ncclCommDestroy(comm) : ncclCommAbort(comm));
}

/* Slot 0 has all ranks, and is what others are made of. */
static void play_split(struct play *p)
{
	const unsigned slot = 1 + dice(p, COMMS - 1), colors = 1 + dice(p, 3), without = dice(p, 4);
	const int me = p->comms[0].me;
	struct ncclComm *child = NULL;

	play_end(p, slot);
	rig_check(p->rank,
		  ncclCommSplit(p->comms[0].comm, without == (unsigned)me ? -1 : me % (int)colors,
				-me, &child, NULL));
	enter(p, slot, child);
}

/* A new ID, which all ranks know behind it. */
static void share_id(struct play *p)
{
	struct rig *g = p->rank->rig;

	pthread_barrier_wait(&g->barrier);
	if (p->rank == &g->ranks[0])
		rig_check(p->rank, ncclGetUniqueId(&g->id));
	pthread_barrier_wait(&g->barrier);
}

static void play_new(struct play *p)
{
	struct rig *g = p->rank->rig;
	struct ncclComm *comm = NULL;

	play_end(p, 0);
	share_id(p);
	rig_check(p->rank, ncclCommInitRank(&comm, g->n, g->id, (int)(p->rank - g->ranks)));
	enter(p, 0, comm);
}

static void play_grow(struct play *p)
{
	const unsigned slot = 1 + dice(p, COMMS - 1);
	struct rig *g = p->rank->rig;
	struct ncclComm *child = NULL;

	play_end(p, slot);
	share_id(p);
	rig_check(p->rank,
		  ncclCommGrow(p->comms[0].comm, g->n, &g->id, p->comms[0].me, &child, NULL));
	enter(p, slot, child);
}

/*
 * Without one rank, which does not call. What is shrunk with an abort, or was revoked before, is of
 * no more use.
 */
static void play_shrink(struct play *p)
{
	const unsigned slot = 1 + dice(p, COMMS - 1), how = dice(p, 3);
	int without = (int)dice(p, (unsigned)p->rank->rig->n);
	struct ncclComm *parent = p->comms[0].comm, *child = NULL;

	play_end(p, slot);
	if (how == 2)
		rig_check(p->rank, ncclCommRevoke(parent, 0));
	if (p->comms[0].me != without)
		rig_check(p->rank, ncclCommShrink(parent, &without, 1, &child, NULL, how == 1));
	if (how)
		play_new(p);
	enter(p, slot, child);
}

static void *play(void *argument)
{
	struct play *p = argument;

	play_new(p);
	for (unsigned i = 0; i < p->rounds && (!p->bytes || p->at < p->bytes_n); i++) {
		const unsigned what = dice(p, 44);

		if (what < 26)
			play_call(p);
		else if (what < 33)
			play_group(p);
		else if (what < 36)
			play_split(p);
		else if (what < 39)
			play_end(p, 1 + dice(p, COMMS - 1));
		else if (what < 41)
			play_shrink(p);
		else if (what < 42)
			play_grow(p);
		else
			play_new(p);
	}
	for (unsigned i = 0; i < COMMS; i++)
		play_end(p, i);
	return NULL;
}

static bool play_all(int n, const struct play *like)
{
	struct rig *g = rig_new(n);
	struct play plays[RIG_RANKS];
	bool right;

	for (int i = 0; i < g->n; i++) {
		plays[i] = *like;
		plays[i].rank = &g->ranks[i];
		pthread_create(&plays[i].thread, NULL, play, &plays[i]);
	}
	for (int i = 0; i < g->n; i++)
		pthread_join(plays[i].thread, NULL);
	right = !rig_failed(g);
	if (!like->bytes)
		printf("# seed %u: %d ranks, %lu calls, %lu reached NCCL\n", like->seed, g->n,
		       rig_calls(g), rig_reached());
	rig_free(g);
	return right;
}

bool rig_random(unsigned seed, unsigned rounds)
{
	return play_all(2 + (int)(seed % (RIG_RANKS - 1)),
			&(struct play){.seed = seed, .rounds = rounds});
}

bool rig_play(const unsigned char *bytes, size_t n)
{
	return n == 0 ||
	       play_all(2 + bytes[0] % (RIG_RANKS - 1),
			&(struct play){.rounds = 60, .bytes = bytes, .bytes_n = n, .at = 1});
}
