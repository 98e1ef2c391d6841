/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnccl.so.2 on the host back end: collectives through shared memory, within and
 * across processes, in the streams' order; with NCCL's log lines, and faults on demand:
 *	NCCL_STANDIN_FAULT=wrong:N	element N of what the last rank gets is wrong
 *	NCCL_STANDIN_FAULT=hang:N	calls of N elements never end
 *	NCCL_STANDIN_FAULT=error	calls fail
 *	NCCL_STANDIN_FAULT=init		communicators fail
 *	NCCL_STANDIN_FAULT=window	windows cannot be registered
 * With STANDIN_ORDERED calls of a communicator run in the order of issue whatever their streams, as
 * NCCL's do; graphs cannot be used then. With STANDIN_OLD it lacks what NCCL before 2.13 lacks.
 */
#include "device/host.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
/* clang-format off */
#define CALL(type, name, params) EXPORT type name params; EXPORT type name params
/* clang-format on */

enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, IN_PROGRESS = 7 };
enum { RANKS_MAX = 16, SENDS_MAX = 64, SLOT_BYTES = 4 << 20 };

#define VERSION 22809

struct ncclUniqueId {
	char internal[128];
};

struct sent {
	int peer;
	size_t bytes, offset;
};

/* What a rank shows the others. */
struct slot {
	int pid;
	size_t sent_n;
	struct sent sent[SENDS_MAX];
	char data[SLOT_BYTES];
};

/* What a rank wants of a split. */
struct wish {
	int color, key;
};

struct shared {
	atomic_uint attached, ready; /* ready: its name is gone if that rank was the last */
	atomic_ulong arrived, splitting;
	struct wish wishes[RANKS_MAX];
	struct slot slots[RANKS_MAX];
};

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, EXCHANGE };

struct part {
	bool sends;
	const char *from;
	char *to;
	size_t bytes;
	int peer;
};

/* One collective of one rank, or all sends and receives of a group. */
struct task {
	struct task *next;
	struct ncclComm *comm;
	unsigned long number; /* in the communicator */
	enum kind kind;
	const char *send;
	char *recv;
	size_t count;
	int type, op, root;
	struct part parts[SENDS_MAX];
	size_t part_n;
	void *stream;
};

struct ncclComm {
	int rank, n;
	unsigned splits;
	char name[128];
	struct shared *shared;
	struct task *tasks; /* all of them: a graph may run them again */
	unsigned long issued;
	atomic_ulong turn;
	bool logged;
	atomic_bool starting; /* it does not block, and nobody has asked yet whether it is made */
};

struct group {
	int depth;
	struct task *waiting[4096];
	size_t n;
	struct ncclComm *made[RANKS_MAX];
	size_t made_n;
};

static _Thread_local struct group group;
static atomic_uint calls; /* of collectives, by all ranks of this process */

static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

/* ---- log ---- */

static void open_name(char *buf, size_t size)
{
	const char *pattern = getenv("NCCL_DEBUG_FILE");
	size_t at = 0;

	for (; pattern && *pattern && at + 32 < size; pattern++) {
		if (pattern[0] == '%' && pattern[1] == 'h')
			at += (size_t)snprintf(buf + at, size - at, "standin");
		else if (pattern[0] == '%' && pattern[1] == 'p')
			at += (size_t)snprintf(buf + at, size - at, "%d", (int)getpid());
		else
			buf[at++] = *pattern;
		pattern += *pattern == '%';
	}
	buf[at] = '\0';
}

static void say(const struct ncclComm *c, const char *text)
{
	const char *level = getenv("NCCL_DEBUG");
	char name[4096];
	FILE *f;

	if (!level || strcmp(level, "INFO") != 0)
		return;
	open_name(name, sizeof(name));
	f = *name ? fopen(name, "ae") : stderr;
	if (!f)
		return;
	fprintf(f, "standin:%d:%d [%d] NCCL INFO %s\n", (int)getpid(), (int)getpid(), c->rank,
		text);
	if (f != stderr)
		fclose(f);
}

static bool p2p_disabled(void)
{
	const char *value = getenv("NCCL_P2P_DISABLE");

	return value && strcmp(value, "1") == 0;
}

static void log_connection(struct ncclComm *c)
{
	int next = (c->rank + 1) % c->n;
	bool same = c->shared->slots[next].pid == (int)getpid();
	const char *via = p2p_disabled() ? "SHM/direct/direct"
			  : same         ? "P2P/direct pointer"
					 : "P2P/CUMEM";
	char text[256];

	if (c->logged || c->n < 2)
		return;
	c->logged = true;
	snprintf(text, sizeof(text), "Channel 00%s : %d[%d] -> %d[%d] via %s",
		 p2p_disabled() ? "" : "/0", c->rank, c->rank, next, next, via);
	say(c, text);
	snprintf(text, sizeof(text),
		 "Check P2P Type isAllDirectP2p %d directMode %d isAllCudaP2p %d", !p2p_disabled(),
		 same, !p2p_disabled());
	say(c, text);
}

static void log_start(const struct ncclComm *c)
{
	char text[256];

	if (c->rank == 0)
		say(c, "NCCL version 2.28.9+cuda13.0");
	if (p2p_disabled())
		say(c, "NCCL_P2P_DISABLE set by environment to 1");
	snprintf(text, sizeof(text),
		 "comm 0x5500%d rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId 0x1 - "
		 "Init COMPLETE",
		 c->rank, c->rank, c->n, c->rank, c->rank, c->rank + 1);
	say(c, text);
}

/* ---- numbers ---- */

static double half_value(unsigned bits, int fraction, int bias)
{
	double m = bits & ((1u << fraction) - 1);
	int e = (int)((bits & 0x7fff) >> fraction);

	return e ? ldexp(m + (1 << fraction), e - bias - fraction) : ldexp(m, 1 - bias - fraction);
}

/* Of positive numbers, cut off. */
static unsigned half_bits(double v, int fraction, int bias)
{
	int e;
	double m;

	if (v <= 0)
		return 0;
	m = frexp(v, &e); /* m * 2^e, m from 0.5 */
	return (unsigned)(e - 1 + bias) << fraction |
	       ((unsigned)ldexp(m, fraction + 1) & ((1u << fraction) - 1));
}

static double get(const char *at, size_t i, int type)
{
	switch (type) {
	case 0:
		return ((const signed char *)at)[i];
	case 1:
		return ((const unsigned char *)at)[i];
	case 2:
		return ((const int *)(const void *)at)[i];
	case 3:
		return ((const unsigned *)(const void *)at)[i];
	case 4:
		return (double)((const long *)(const void *)at)[i];
	case 5:
		return (double)((const unsigned long *)(const void *)at)[i];
	case 6:
		return half_value(((const unsigned short *)(const void *)at)[i], 10, 15);
	case 7:
		return (double)((const float *)(const void *)at)[i];
	case 8:
		return ((const double *)(const void *)at)[i];
	case 9:
		return half_value(((const unsigned short *)(const void *)at)[i], 7, 127);
	case 10:
		return half_value(((const unsigned char *)at)[i], 3, 7);
	default:
		return half_value(((const unsigned char *)at)[i], 2, 15);
	}
}

static void put(char *at, size_t i, int type, double v)
{
	switch (type) {
	case 0:
		((signed char *)at)[i] = (signed char)v;
		break;
	case 1:
		((unsigned char *)at)[i] = (unsigned char)v;
		break;
	case 2:
		((int *)(void *)at)[i] = (int)v;
		break;
	case 3:
		((unsigned *)(void *)at)[i] = (unsigned)v;
		break;
	case 4:
		((long *)(void *)at)[i] = (long)v;
		break;
	case 5:
		((unsigned long *)(void *)at)[i] = (unsigned long)v;
		break;
	case 6:
		((unsigned short *)(void *)at)[i] = (unsigned short)half_bits(v, 10, 15);
		break;
	case 7:
		((float *)(void *)at)[i] = (float)v;
		break;
	case 8:
		((double *)(void *)at)[i] = v;
		break;
	case 9:
		((unsigned short *)(void *)at)[i] = (unsigned short)half_bits(v, 7, 127);
		break;
	case 10:
		((unsigned char *)at)[i] = (unsigned char)half_bits(v, 3, 7);
		break;
	default:
		((unsigned char *)at)[i] = (unsigned char)half_bits(v, 2, 15);
		break;
	}
}

static double combine(double a, double b, int op)
{
	switch (op) {
	case 1:
		return a * b;
	case 2:
		return a > b ? a : b;
	case 3:
		return a < b ? a : b;
	default:
		return a + b;
	}
}

static void reduce(const struct task *t, size_t first)
{
	const struct ncclComm *c = t->comm;

	for (size_t i = 0; i < t->count; i++) {
		double v = get(c->shared->slots[0].data, first + i, t->type);

		for (int r = 1; r < c->n; r++)
			v = combine(v, get(c->shared->slots[r].data, first + i, t->type), t->op);
		put(t->recv, i, t->type, t->op == 4 ? v / c->n : v);
	}
}

/* ---- collectives, in the stream's thread ---- */

static bool fault_is(const char *name, size_t *ret_n)
{
	const char *fault = getenv("NCCL_STANDIN_FAULT");
	char word[16] = "";
	unsigned long n = 0;

	if (!fault || sscanf(fault, "%15[a-z]:%lu", word, &n) < 1 || strcmp(word, name) != 0)
		return false;
	*ret_n = n;
	return true;
}

static void meet(atomic_ulong *arrived, unsigned long n)
{
	unsigned long enough = (atomic_fetch_add(arrived, 1) / n + 1) * n;

	while (atomic_load(arrived) < enough)
		sched_yield();
}

static void barrier(struct ncclComm *c)
{
	meet(&c->shared->arrived, (unsigned long)c->n);
}

static void show(struct task *t)
{
	struct slot *slot = &t->comm->shared->slots[t->comm->rank];
	size_t parts = t->kind == REDUCE_SCATTER ? (size_t)t->comm->n : 1, at = 0;

	if (t->kind != EXCHANGE) {
		memcpy(slot->data, t->send, t->count * parts * sizes[t->type]);
		return;
	}
	slot->sent_n = 0;
	for (size_t i = 0; i < t->part_n; i++) {
		const struct part *p = &t->parts[i];

		if (!p->sends)
			continue;
		memcpy(slot->data + at, p->from, p->bytes);
		slot->sent[slot->sent_n++] = (struct sent){p->peer, p->bytes, at};
		at += p->bytes;
	}
}

/* The nth receive from a peer takes the nth that it sent here. */
static void receive(struct task *t, const struct part *p)
{
	const struct slot *from = &t->comm->shared->slots[p->peer];
	size_t skip = 0;

	for (const struct part *q = t->parts; q < p; q++)
		skip += !q->sends && q->peer == p->peer;
	for (size_t i = 0; i < from->sent_n; i++)
		if (from->sent[i].peer == t->comm->rank && skip-- == 0)
			memcpy(p->to, from->data + from->sent[i].offset, p->bytes);
}

static void take(struct task *t)
{
	struct ncclComm *c = t->comm;
	size_t bytes = t->count * sizes[t->type];

	if (t->kind == ALL_REDUCE || (t->kind == REDUCE && c->rank == t->root))
		reduce(t, 0);
	else if (t->kind == REDUCE_SCATTER)
		reduce(t, (size_t)c->rank * t->count);
	else if (t->kind == BROADCAST)
		memcpy(t->recv, c->shared->slots[t->root].data, bytes);
	for (int r = 0; t->kind == ALL_GATHER && r < c->n; r++)
		memcpy(t->recv + (size_t)r * bytes, c->shared->slots[r].data, bytes);
	for (size_t i = 0; i < t->part_n; i++)
		if (!t->parts[i].sends)
			receive(t, &t->parts[i]);
}

static void spoil(struct task *t)
{
	size_t at;

	if (t->kind == EXCHANGE || !fault_is("wrong", &at) || t->comm->rank != t->comm->n - 1 ||
	    at >= t->count)
		return;
	put(t->recv, at, t->type, get(t->recv, at, t->type) + 1);
}

static void work(void *context)
{
	struct task *t = context;
	size_t n;

	while (fault_is("hang", &n) && n == t->count)
		pause();
#ifdef STANDIN_ORDERED
	while (atomic_load(&t->comm->turn) != t->number)
		sched_yield();
#endif
	show(t);
	barrier(t->comm);
	log_connection(t->comm);
	take(t);
	spoil(t);
	barrier(t->comm);
	atomic_fetch_add(&t->comm->turn, 1);
}

/* ---- enqueuing ---- */

static int enqueue(struct task *t)
{
	struct host_native *stream = t->stream;

	t->number = t->comm->issued++;
	return stream->call(stream, work, t) == 0 ? SUCCESS : INTERNAL_ERROR;
}

static struct task *new_task(struct ncclComm *c, void *stream)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->comm = c;
	t->stream = stream;
	t->next = c->tasks;
	c->tasks = t;
	if (group.n >= sizeof(group.waiting) / sizeof(*group.waiting))
		abort();
	group.waiting[group.n++] = t;
	return t;
}

/* The group's sends and receives of the communicator. */
static struct task *exchange_of(struct ncclComm *c, void *stream)
{
	struct task *t;

	for (size_t i = 0; i < group.n; i++)
		if (group.waiting[i]->comm == c && group.waiting[i]->kind == EXCHANGE)
			return group.waiting[i];
	t = new_task(c, stream);
	t->kind = EXCHANGE;
	return t;
}

static int flush(void)
{
	int r = SUCCESS;

	if (group.depth > 0)
		return SUCCESS;
	for (size_t i = 0; i < group.n && r == SUCCESS; i++)
		r = enqueue(group.waiting[i]);
	group.n = 0;
	return r;
}

static int collective(enum kind kind, const void *send, void *recv, size_t count, int type, int op,
		      int root, struct ncclComm *c, void *stream)
{
	size_t n;
	struct task *t;

	atomic_fetch_add(&calls, 1);
	if (fault_is("error", &n))
		return INTERNAL_ERROR;
	if (count * sizes[type] * (kind == REDUCE_SCATTER ? (size_t)c->n : 1) > SLOT_BYTES)
		return INVALID_ARGUMENT;
	t = new_task(c, stream);
	t->kind = kind;
	t->send = send;
	t->recv = recv;
	t->count = count;
	t->type = type;
	t->op = op;
	t->root = root;
	return flush();
}

static int exchange(struct part p, size_t count, int type, struct ncclComm *c, void *stream)
{
	struct task *t = exchange_of(c, stream);

	p.bytes = count * sizes[type];
	t->count = count;
	if (t->part_n >= SENDS_MAX)
		return INVALID_ARGUMENT;
	t->parts[t->part_n++] = p;
	return flush();
}

/* ---- the symbols ---- */

CALL(int, ncclGetVersion, (int *ret))
{
	*ret = VERSION;
	return SUCCESS;
}

CALL(int, ncclGetUniqueId, (struct ncclUniqueId * id))
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	memset(id, 0, sizeof(*id));
	snprintf(id->internal, sizeof(id->internal), "/onehop-standin-%d-%ld.%ld", (int)getpid(),
		 (long)t.tv_sec, t.tv_nsec);
	return SUCCESS;
}

static struct shared *attach(const char *name, int n)
{
	int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
	struct shared *s;

	if (fd < 0 || ftruncate(fd, sizeof(*s)) < 0)
		return NULL;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (s == MAP_FAILED)
		return NULL;
	if (atomic_fetch_add(&s->attached, 1) + 1 == (unsigned)n)
		shm_unlink(name);
	atomic_fetch_add(&s->ready, 1);
	return s;
}

/* No rank leaves before all have entered, as in NCCL; in a group it is the end that waits. */
static int wait_for_all(struct ncclComm *c)
{
	if (group.depth > 0 && group.made_n < RANKS_MAX) {
		group.made[group.made_n++] = c;
		return SUCCESS;
	}
	while (atomic_load(&c->shared->ready) < (unsigned)c->n)
		sched_yield();
	return SUCCESS;
}

static int open_comm(const char *name, int n, int rank, struct ncclComm **ret)
{
	struct ncclComm *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->rank = rank;
	c->n = n;
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->shared = attach(name, n);
	if (!c->shared) {
		free(c);
		return SYSTEM_ERROR;
	}
	c->shared->slots[rank].pid = (int)getpid();
	log_start(c);
	*ret = c;
	return SUCCESS;
}

static int init_rank(struct ncclComm **ret, int n, const struct ncclUniqueId *id, int rank)
{
	size_t unused;

	return fault_is("init", &unused) || n > RANKS_MAX ? SYSTEM_ERROR
							  : open_comm(id->internal, n, rank, ret);
}

CALL(int, ncclCommInitRank, (struct ncclComm * *ret, int n, struct ncclUniqueId id, int rank))
{
	int r = init_rank(ret, n, &id, rank);

	return r == SUCCESS ? wait_for_all(*ret) : r;
}

CALL(int, ncclCommDestroy, (struct ncclComm * c))
{
	while (c->tasks) {
		struct task *t = c->tasks;

		c->tasks = t->next;
		free(t);
	}
	munmap(c->shared, sizeof(*c->shared));
	free(c);
	return SUCCESS;
}

CALL(int, ncclCommAbort, (struct ncclComm * c))
{
	return ncclCommDestroy(c);
}

CALL(int, ncclCommGetAsyncError, (struct ncclComm * c, int *ret))
{
	*ret = atomic_exchange(&c->starting, false) ? IN_PROGRESS : SUCCESS;
	return SUCCESS;
}

CALL(const char *, ncclGetErrorString, (int result))
{
	static const char *const texts[] = {
		"no error", "unhandled cuda error",
		"unhandled system error (run with NCCL_DEBUG=INFO for details)",
		"internal error - please report this issue to the NCCL developers",
		"invalid argument (run with NCCL_DEBUG=WARN for details)"};

	return result >= 0 && result <= INVALID_ARGUMENT ? texts[result] : "unknown result code";
}

CALL(int, ncclGroupStart, (void))
{
	group.depth++;
	return SUCCESS;
}

CALL(int, ncclGroupEnd, (void))
{
	group.depth--;
	for (size_t i = 0; group.depth == 0 && i < group.made_n; i++)
		wait_for_all(group.made[i]);
	group.made_n = group.depth ? group.made_n : 0;
	return flush();
}

CALL(int, ncclAllReduce,
     (const void *send, void *recv, size_t count, int type, int op, struct ncclComm *c,
      void *stream))
{
	return collective(ALL_REDUCE, send, recv, count, type, op, 0, c, stream);
}

CALL(int, ncclAllGather,
     (const void *send, void *recv, size_t count, int type, struct ncclComm *c, void *stream))
{
	return collective(ALL_GATHER, send, recv, count, type, 0, 0, c, stream);
}

CALL(int, ncclReduceScatter,
     (const void *send, void *recv, size_t count, int type, int op, struct ncclComm *c,
      void *stream))
{
	return collective(REDUCE_SCATTER, send, recv, count, type, op, 0, c, stream);
}

CALL(int, ncclBroadcast,
     (const void *send, void *recv, size_t count, int type, int root, struct ncclComm *c,
      void *stream))
{
	return collective(BROADCAST, send, recv, count, type, 0, root, c, stream);
}

CALL(int, ncclBcast,
     (void *data, size_t count, int type, int root, struct ncclComm *c, void *stream))
{
	return ncclBroadcast(data, data, count, type, root, c, stream);
}

CALL(int, ncclReduce,
     (const void *send, void *recv, size_t count, int type, int op, int root, struct ncclComm *c,
      void *stream))
{
	return collective(REDUCE, send, recv, count, type, op, root, c, stream);
}

CALL(int, ncclSend,
     (const void *send, size_t count, int type, int peer, struct ncclComm *c, void *stream))
{
	return exchange((struct part){.sends = true, .from = send, .peer = peer}, count, type, c,
			stream);
}

CALL(int, ncclRecv,
     (void *recv, size_t count, int type, int peer, struct ncclComm *c, void *stream))
{
	return exchange((struct part){.to = recv, .peer = peer}, count, type, c, stream);
}

#ifndef STANDIN_OLD
/* Of the stand-in alone. */
CALL(unsigned, standin_calls, (void))
{
	return atomic_load(&calls);
}

CALL(int, ncclCommCount, (const struct ncclComm *c, int *ret))
{
	*ret = c->n;
	return SUCCESS;
}

CALL(int, ncclCommUserRank, (const struct ncclComm *c, int *ret))
{
	*ret = c->rank;
	return SUCCESS;
}

CALL(int, ncclCommCuDevice, (const struct ncclComm *c, int *ret))
{
	*ret = c->rank;
	return SUCCESS;
}

CALL(int, ncclCommFinalize, (struct ncclComm * c))
{
	(void)c;
	return SUCCESS;
}

/* As NCCL has it. */
struct config {
	size_t size;
	unsigned magic, version;
	int blocking;
};

static int not_yet(struct ncclComm *c)
{
	atomic_store(&c->starting, true);
	return IN_PROGRESS;
}

CALL(int, ncclCommInitRankConfig,
     (struct ncclComm * *ret, int n, struct ncclUniqueId id, int rank, struct config *config))
{
	int r = init_rank(ret, n, &id, rank);

	if (r == SUCCESS && config && config->blocking == 0)
		return not_yet(*ret);
	return r == SUCCESS ? wait_for_all(*ret) : r;
}

/* All ranks name the same ID, and their new ranks. */
CALL(int, ncclCommGrow,
     (struct ncclComm * c, int n, const struct ncclUniqueId *id, int rank, struct ncclComm **ret,
      void *config))
{
	int r = open_comm(id->internal, n, rank, ret);

	(void)c;
	(void)config;
	return r == SUCCESS ? wait_for_all(*ret) : r;
}

CALL(int, ncclCommInitAll, (struct ncclComm * *ret, int n, const int *devices))
{
	struct ncclUniqueId id;
	int r = ncclGetUniqueId(&id);

	(void)devices;
	for (int i = 0; r == SUCCESS && i < n; i++)
		r = init_rank(&ret[i], n, &id, i);
	return r;
}

/* Of a rank's color: how many, and how many come before it. */
static void count_alike(const struct ncclComm *c, int *ret_n, int *ret_rank)
{
	const struct wish *all = c->shared->wishes, *mine = &all[c->rank];

	*ret_n = *ret_rank = 0;
	for (int i = 0; i < c->n; i++) {
		if (all[i].color != mine->color)
			continue;
		++*ret_n;
		*ret_rank += all[i].key < mine->key || (all[i].key == mine->key && i < c->rank);
	}
}

/* Every rank has a thread of its own. */
CALL(int, ncclCommSplit,
     (struct ncclComm * c, int color, int key, struct ncclComm **ret, void *config))
{
	char name[160];
	int n, rank, r = SUCCESS;

	(void)config;
	c->shared->wishes[c->rank] = (struct wish){color, key};
	meet(&c->shared->splitting, (unsigned long)c->n);
	count_alike(c, &n, &rank);
	snprintf(name, sizeof(name), "%.100s-%u.%d", c->name, c->splits++, color);
	*ret = NULL;
	if (color >= 0)
		r = open_comm(name, n, rank, ret);
	meet(&c->shared->splitting, (unsigned long)c->n);
	return r;
}

CALL(int, ncclCommRevoke, (struct ncclComm * c, int flags))
{
	(void)c;
	(void)flags;
	return SUCCESS;
}

/* Of the ranks that are not excluded, which all call it. */
CALL(int, ncclCommShrink,
     (struct ncclComm * c, int *excluded, int excluded_n, struct ncclComm **ret, void *config,
      int flags))
{
	int rank = c->rank;
	unsigned mask = 0;
	char name[160];
	int r;

	(void)config;
	(void)flags;
	for (int i = 0; i < excluded_n; i++) {
		mask |= 1u << excluded[i];
		rank -= excluded[i] < c->rank;
	}
	snprintf(name, sizeof(name), "%.100s-without%x", c->name, mask);
	r = open_comm(name, c->n - excluded_n, rank, ret);
	return r == SUCCESS ? wait_for_all(*ret) : r;
}

CALL(const char *, ncclGetLastError, (struct ncclComm * c))
{
	(void)c;
	return "standin: told to fail";
}

CALL(int, ncclAlltoAll,
     (const void *send, void *recv, size_t count, int type, struct ncclComm *c, void *stream))
{
	size_t bytes = count * sizes[type];
	int r = SUCCESS;

	atomic_fetch_add(&calls, 1);
	ncclGroupStart();
	for (int i = 0; r == SUCCESS && i < c->n; i++) {
		r = ncclSend((const char *)send + (size_t)i * bytes, count, type, i, c, stream);
		if (r == SUCCESS)
			r = ncclRecv((char *)recv + (size_t)i * bytes, count, type, i, c, stream);
	}
	return ncclGroupEnd() == SUCCESS ? r : INTERNAL_ERROR;
}

CALL(int, ncclMemAlloc, (void **ret, size_t size))
{
	*ret = malloc(size);
	return *ret ? SUCCESS : CUDA_ERROR;
}

CALL(int, ncclMemFree, (void *memory))
{
	free(memory);
	return SUCCESS;
}

struct window {
	struct ncclComm *comm;
};

CALL(int, ncclCommWindowRegister,
     (struct ncclComm * c, void *memory, size_t size, struct window **ret, int flags))
{
	size_t unused;

	if (fault_is("window", &unused) || !memory || !size || flags != 1)
		return INVALID_ARGUMENT;
	*ret = malloc(sizeof(**ret));
	if (!*ret)
		return SYSTEM_ERROR;
	(*ret)->comm = c;
	return SUCCESS;
}

CALL(int, ncclCommWindowDeregister, (struct ncclComm * c, struct window *window))
{
	const int r = window->comm == c ? SUCCESS : INVALID_ARGUMENT;

	free(window);
	return r;
}
#endif
