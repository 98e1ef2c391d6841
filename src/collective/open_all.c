// SPDX-License-Identifier: Apache-2.0
/* Communicators whose ranks are all in this process. */
#include "base/err.h"
#include "collective/comm_impl.h"

#include <errno.h>
#include <string.h>

struct opening {
	struct comm_set *shared;
	struct comm_facts facts;
	struct slots slots;
	size_t n;
	struct onehop_comm **comms;
	struct memory inboxes[COLLECTIVE_RANKS_MAX], host; /* with slots */
	struct memory words;                               /* struct comm_words of all ranks */
};

/* A refusal is not an error. */
static int reach_each(struct device_set *s, const struct comm_options *o, uint32_t *ret)
{
	for (unsigned i = 0; i < s->n; i++) {
		ret[i] = comm_may_reach(o, i);
		for (unsigned j = 0; j < s->n; j++) {
			int r = i == j || !(ret[i] >> j & 1)
					? 0
					: s->ops->peer_access(s, (int)i, (int)j, true);

			if (r == -EACCES || r == -ENOTSUP)
				ret[i] &= ~(1u << j);
			else if (r < 0)
				return r;
		}
	}
	return 0;
}

/* CUDA knows the addresses of its devices, and nothing else that a table is of. */
static void find_times(struct opening *x, const struct comm_options *o)
{
	const struct device_set *s = x->shared->set;
	struct tuned_identity now = {.n = (unsigned)s->n};

	for (size_t i = 0; i < s->n; i++)
		memcpy(now.device[i].key, s->info[i].pci, sizeof(s->info[i].pci));
	tuned_apply(o->tuned, &now, &x->facts);
}

static void find_groups(struct opening *x, const struct comm_options *o)
{
	enum nearness near[COLLECTIVE_RANKS_MAX * COLLECTIVE_RANKS_MAX];
	struct device_set *s = x->shared->set;
	char pci[COLLECTIVE_RANKS_MAX][16];

	if (!has_direct(&x->facts))
		return;
	for (size_t i = 0; i < s->n; i++)
		memcpy(pci[i], s->info[i].pci, sizeof(pci[i]));
	for (unsigned i = 0; i < s->n; i++)
		comm_near(s, (int)i, (unsigned)s->n, pci, i, &near[i * s->n]);
	comm_place(&x->facts, near, o);
}

static int find_facts(struct opening *x, const struct comm_options *o)
{
	struct device_set *s = x->shared->set;
	unsigned blocks = ~0u, threads = ~0u, resident = ~0u;
	uint32_t reach[COLLECTIVE_RANKS_MAX];
	int r = reach_each(s, o, reach);

	if (r < 0)
		return r;
	for (size_t i = 0; i < s->n; i++) {
		if (s->info[i].blocks < blocks)
			blocks = s->info[i].blocks;
		if (s->info[i].threads < threads)
			threads = s->info[i].threads;
		if (s->info[i].resident_threads < resident)
			resident = s->info[i].resident_threads;
	}
	comm_facts_mix((unsigned)s->n, reach, blocks, threads, &x->facts);
	comm_facts_fit(&x->facts, resident);
	find_times(x, o);
	find_groups(x, o);
	slots_make(&x->facts, &x->slots);
	return 0;
}

static int make_memory(struct device_set *s, int device, enum memory_kind kind,
		       const struct slots_layout *l, struct memory *ret)
{
	int r = s->ops->alloc(s, device, kind, l->size, ret);

	return r < 0 ? r : comm_zero(s, ret, l->zeroed);
}

static int make_memories(struct opening *x)
{
	struct device_set *s = x->shared->set;
	int r = 0;

	for (size_t i = 0; r == 0 && x->slots.inbox.size && i < x->n; i++)
		r = make_memory(s, (int)i, MEMORY_DEVICE, &x->slots.inbox, &x->inboxes[i]);
	if (r == 0 && x->slots.host.size)
		r = make_memory(s, -1, MEMORY_PINNED, &x->slots.host, &x->host);
	return r;
}

static int make_words(struct opening *x)
{
	struct device_set *s = x->shared->set;
	const u64 size = comm_words_bytes((unsigned)x->n);
	int r = s->ops->alloc(s, -1, MEMORY_PINNED, size, &x->words);

	if (r == 0)
		r = comm_zero(s, &x->words, size);
	return r < 0 ? r : agree_board_make((unsigned)x->n, NULL, &x->shared->board);
}

static int connect(struct opening *x, struct onehop_comm *c)
{
	struct device_set *s = x->shared->set;
	struct slots_seen seen = {0};
	u64 words;
	int r = s->ops->address(s, &x->words, c->device, &words);

	for (unsigned i = 0; r == 0 && x->slots.inbox.size && i < x->n; i++)
		if (i == c->me || is_direct(&x->facts, c->me, i))
			r = s->ops->address(s, &x->inboxes[i], c->device, &seen.inbox[i]);
	if (r == 0 && x->slots.host.size)
		r = s->ops->address(s, &x->host, c->device, &seen.host);
	comm_count_slots(c, &x->slots);
	return r < 0 ? r : comm_connect(c, &x->slots, &seen, words);
}

static int open_ranks(struct opening *x, const struct comm_options *o)
{
	int r = find_facts(x, o);

	if (r == 0)
		r = make_memories(x);
	if (r == 0)
		r = make_words(x);
	for (size_t i = 0; r == 0 && i < x->n; i++) {
		r = comm_new(x->shared, (int)i, (u32)i, &x->facts, o, &x->comms[i]);
		if (r == 0)
			r = connect(x, x->comms[i]);
	}
	return r;
}

/* Two kernels on one device that wait for each other may never run at the same time. */
static int check_request(const struct device_request *q)
{
	if (q->n < 1 || q->n > COLLECTIVE_RANKS_MAX)
		return err_set(EINVAL, "the number of ranks must be 1 to %d, not %zu",
			       COLLECTIVE_RANKS_MAX, q->n);
	for (size_t i = 0; i < q->n; i++)
		for (size_t j = 0; q->kind == DEVICE_CUDA && j < i; j++)
			if (q->ordinal[i] == q->ordinal[j])
				return err_set(EINVAL,
					       "ranks %zu and %zu are both on CUDA device %d", j, i,
					       q->ordinal[i]);
	return 0;
}

int comm_open_set(struct device_set *set, const struct comm_options *o, struct onehop_comm **ret)
{
	struct opening x = {.n = set->n, .comms = ret};
	int r = comm_set_new(set, &x.shared);

	if (r < 0)
		return r;
	for (size_t i = 0; i < x.n; i++)
		ret[i] = NULL;
	r = open_ranks(&x, o);
	if (r == 0)
		return 0;
	if (x.shared->open == 0)
		comm_set_leave(x.shared);
	for (size_t i = 0; i < x.n; i++)
		comm_close(ret[i]);
	return r;
}

int comm_open_all(const struct device_request *q, const struct comm_options *o,
		  struct onehop_comm **ret)
{
	struct device_set *set = NULL;
	int r = check_request(q);

	if (r == 0)
		r = device_open(q, &set);
	return r < 0 ? r : comm_open_set(set, o, ret);
}
