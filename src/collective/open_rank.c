// SPDX-License-Identifier: Apache-2.0
/* Communicators whose ranks are processes of one host: they connect and exchange their memory. */
#include "base/err.h"
#include "collective/comm_impl.h"
#include "device/rendezvous.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* What ranks send each other. */
struct card {
	int32_t result;           /* 0, or the errno with which the rank fails */
	uint32_t blocks, threads; /* of its device */
	uint32_t no_p2p;
	char pci[16];
	struct memory_export export; /* kind, size: without its descriptor */
};

struct opening {
	struct rendezvous *meeting;
	int rank, n;
	const struct comm_options *options;
	struct comm_set *shared;
	struct comm_facts facts;
	struct slots slots;
	struct card cards[COLLECTIVE_RANKS_MAX];
	struct memory memories
		[COLLECTIVE_RANKS_MAX]; /* as this process has them; not direct: the first */
	struct memory words[COLLECTIVE_RANKS_MAX]; /* the first: struct comm_words of all ranks */
};

/*
 * A rank that fails does not exit at once: it reports the failure at the next exchange, so that all
 * ranks return an error and none keeps waiting.
 */
static int tell_all(struct opening *x, struct card *mine, int result)
{
	int r;

	mine->result = result;
	r = rendezvous_gather(x->meeting, mine, sizeof(*mine), x->cards);
	if (result < 0)
		return result;
	for (int i = 0; r == 0 && i < x->n; i++)
		if (x->cards[i].result < 0)
			return err_set(-x->cards[i].result,
				       "rank %d could not open its part of the communicator", i);
	return r;
}

/* ---- facts ---- */

static int check_devices(const struct opening *x)
{
	for (int i = 0; i < x->n; i++)
		for (int j = 0; j < i; j++)
			if (x->cards[i].pci[0] && !strcmp(x->cards[i].pci, x->cards[j].pci))
				return err_set(EINVAL, "ranks %d and %d are both on GPU %s", j, i,
					       x->cards[i].pci);
	return 0;
}

static void make_facts(struct opening *x, bool direct)
{
	unsigned blocks = ~0u, threads = ~0u;

	for (int i = 0; i < x->n; i++) {
		if (x->cards[i].blocks < blocks)
			blocks = x->cards[i].blocks;
		if (x->cards[i].threads < threads)
			threads = x->cards[i].threads;
	}
	comm_facts_make((unsigned)x->n, direct, blocks, threads, &x->facts);
	slots_make(&x->facts, &x->slots);
}

static struct card own_card(const struct opening *x)
{
	const struct device_info *info = x->shared ? x->shared->set->info : NULL;
	struct card c = {.no_p2p = x->options->no_p2p};

	if (info) {
		c.blocks = info->blocks;
		c.threads = info->threads;
		memcpy(c.pci, info->pci, sizeof(c.pci));
	}
	return c;
}

/* ---- memory ---- */

static void close_all(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Memory that some ranks or all make for all. */
struct handed {
	enum memory_kind kind;
	u64 size, zeroed;        /* bytes; of them must be 0 */
	bool makes;              /* this rank makes one */
	struct memory *memories; /* by rank */
};

/* Makes this rank's part of it (or none) and sends it to all ranks; theirs arrive in x->cards and fds. */
static int hand_out(struct opening *x, const struct handed *h, int *fds)
{
	struct device_set *s = x->shared->set;
	const enum export_kind how = h->kind == MEMORY_DEVICE ? EXPORT_IPC : EXPORT_FD;
	struct memory_export e = {.fd = -1};
	struct card mine = own_card(x);
	int r = 0, told;

	if (h->makes) {
		struct memory *m = &h->memories[x->rank];

		r = s->ops->alloc(s, h->kind == MEMORY_SHARED ? -1 : 0, h->kind, h->size, m);
		if (r == 0)
			r = comm_zero(s, m, h->zeroed);
		if (r == 0)
			r = s->ops->export(s, m, how, &e);
	}
	mine.export = e;
	told = tell_all(x, &mine, r);
	if (told == 0)
		told = rendezvous_gather_fd(x->meeting, e.fd, fds);
	if (e.fd >= 0)
		close(e.fd);
	return told;
}

static int take(struct opening *x, int from, int fd, struct memory *memories)
{
	struct device_set *s = x->shared->set;
	struct memory_export e = x->cards[from].export;

	if (from == x->rank)
		return 0;
	e.fd = fd;
	return s->ops->import(s, 0, &e, &memories[from]);
}

static struct handed slots_of(struct opening *x, enum memory_kind kind, bool makes)
{
	return (struct handed){kind, x->slots.size, x->slots.zeroed, makes, x->memories};
}

/* 1: all ranks reach all others. If one refuses, all use host memory. */
static int try_direct(struct opening *x)
{
	const bool fd = x->shared->set->caps & DEVICE_EXPORT_FD;
	const struct handed h = slots_of(x, fd ? MEMORY_EXPORTABLE : MEMORY_DEVICE, true);
	int fds[COLLECTIVE_RANKS_MAX] = {0}, r, refused = 0;
	struct card mine;

	r = hand_out(x, &h, fds);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < x->n; i++)
		r = take(x, i, fds[i], x->memories);
	close_all(fds, x->n);
	refused = r == -EACCES || r == -ENOTSUP;
	mine = own_card(x);
	mine.no_p2p |= (uint32_t)refused;
	r = tell_all(x, &mine, refused ? 0 : r);
	for (int i = 0; r == 0 && i < x->n; i++)
		refused |= x->cards[i].no_p2p != 0;
	return r < 0 ? r : !refused;
}

static void drop_memories(struct opening *x)
{
	struct device_set *s = x->shared->set;

	for (int i = 0; i < x->n; i++)
		if (x->memories[i].id)
			s->ops->free(s, &x->memories[i]);
	memset(x->memories, 0, sizeof(x->memories));
}

/* Memory of the host that rank 0 makes. */
static int share_host_memory(struct opening *x, const struct handed *h)
{
	int fds[COLLECTIVE_RANKS_MAX] = {0};
	int r = hand_out(x, h, fds);

	if (r < 0)
		return r;
	r = take(x, 0, fds[0], h->memories);
	close_all(fds, x->n);
	return r;
}

static int find_memories(struct opening *x)
{
	struct handed h;
	bool direct = true;
	int r = 0;

	for (int i = 0; i < x->n; i++)
		direct &= !x->cards[i].no_p2p || x->n == 1;
	if (direct) {
		make_facts(x, true);
		r = try_direct(x);
		if (r != 0)
			return r < 0 ? r : 0;
		drop_memories(x);
	}
	make_facts(x, false);
	h = slots_of(x, MEMORY_SHARED, x->rank == 0);
	return share_host_memory(x, &h);
}

/* The words that stop kernels, and what the ranks tell each other. */
static int share_words(struct opening *x)
{
	const u64 size = comm_words_bytes((unsigned)x->n);
	const struct handed h = {MEMORY_SHARED, size, size, x->rank == 0, x->words};

	return share_host_memory(x, &h);
}

static int share_board(struct opening *x)
{
	int fds[COLLECTIVE_RANKS_MAX] = {0}, fd = -1, r = 0;
	struct card mine = own_card(x);

	if (x->rank == 0)
		r = agree_board_make((unsigned)x->n, &fd, &x->shared->board);
	r = tell_all(x, &mine, r);
	if (r == 0)
		r = rendezvous_gather_fd(x->meeting, fd, fds);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return r;
	if (x->rank > 0)
		r = agree_board_map((unsigned)x->n, fds[0], &x->shared->board);
	close_all(fds, x->n);
	return r;
}

/* ---- measured times ---- */

_Static_assert(sizeof(struct tuned_times) <= RENDEZVOUS_BLOB_MAX, "one message");

/* Rank 0's: with different tables ranks would choose different algorithms, and wait for each other forever. */
static int share_times(struct opening *x)
{
	struct tuned_identity now = {.n = (unsigned)x->n};

	for (int i = 0; i < x->n; i++)
		memcpy(now.device[i].key, x->cards[i].pci, sizeof(x->cards[i].pci));
	if (x->rank == 0)
		tuned_apply(x->options->tuned, &now, &x->facts);
	return rendezvous_broadcast(x->meeting, &x->facts.times, sizeof(x->facts.times));
}

/* ---- groups ---- */

/* Each rank only knows how it is joined to the others. */
static int share_groups(struct opening *x)
{
	enum nearness near[COLLECTIVE_RANKS_MAX * COLLECTIVE_RANKS_MAX], mine[COLLECTIVE_RANKS_MAX];
	char pci[COLLECTIVE_RANKS_MAX][16];
	int r;

	if (!x->facts.direct)
		return 0; /* on every rank */
	for (int i = 0; i < x->n; i++)
		memcpy(pci[i], x->cards[i].pci, sizeof(pci[i]));
	comm_near(x->shared->set, 0, (unsigned)x->n, pci, (unsigned)x->rank, mine);
	r = rendezvous_gather(x->meeting, mine, (size_t)x->n * sizeof(*mine), near);
	if (r == 0)
		comm_place(&x->facts, near, x->options);
	return r;
}

/* ---- opening ---- */

static int connect(struct opening *x, struct onehop_comm **ret)
{
	struct device_set *s = x->shared->set;
	u64 seen[COLLECTIVE_RANKS_MAX] = {0}, words = 0;
	int r = comm_new(x->shared, 0, (u32)x->rank, &x->facts, x->options, ret);

	for (int i = 0; r == 0 && i < (x->facts.direct ? x->n : 1); i++)
		r = s->ops->address(s, &x->memories[i], 0, &seen[i]);
	if (r == 0)
		r = s->ops->address(s, &x->words[0], 0, &words);
	if (r == 0)
		comm_count_slots(*ret, &x->slots);
	return r < 0 ? r : comm_connect(*ret, &x->slots, seen, words);
}

/* Where the device comes from: a request, or a set that is open. */
struct device_source {
	const struct device_request *request;
	struct device_set *set;
};

static int open_device(struct device_source *from, struct comm_set **ret)
{
	struct device_set *set = from->set;
	int r = set ? 0 : device_open(from->request, &set);

	from->set = NULL;
	return r < 0 ? r : comm_set_new(set, ret);
}

static int open_together(struct opening *x, struct device_source *from, struct onehop_comm **ret)
{
	int r = open_device(from, &x->shared);
	struct card mine = own_card(x);

	r = tell_all(x, &mine, r);
	if (r == 0)
		r = check_devices(x);
	if (r == 0)
		r = find_memories(x);
	if (r == 0)
		r = share_times(x);
	if (r == 0)
		r = share_groups(x);
	if (r < 0)
		return r;
	r = share_words(x);
	mine = own_card(x);
	r = tell_all(x, &mine, r);
	if (r == 0)
		r = share_board(x);
	if (r == 0)
		r = connect(x, ret);
	mine = own_card(x);
	return tell_all(x, &mine, r); /* no rank starts before all are ready */
}

static int open_rank(struct device_source *from, const char *key, int rank, int n,
		     const struct comm_options *o, struct onehop_comm **ret)
{
	const struct rendezvous_request meeting = {.key = key,
						   .rank = rank,
						   .n = n,
						   .limit_us = o->limit_us};
	struct opening x = {.rank = rank, .n = n, .options = o};
	int r;

	*ret = NULL;
	if (n < 1 || n > COLLECTIVE_RANKS_MAX)
		return err_set(EINVAL, "the number of ranks must be 1 to %d, not %d",
			       COLLECTIVE_RANKS_MAX, n);
	r = rendezvous_join(&meeting, &x.meeting);
	if (r < 0)
		return r;
	r = open_together(&x, from, ret);
	rendezvous_leave(x.meeting);
	if (r < 0 && *ret)
		comm_close(*ret);
	else if (r < 0 && x.shared)
		comm_set_leave(x.shared);
	if (r < 0)
		*ret = NULL;
	return r;
}

int comm_open_rank(const struct device_request *q, const char *key, int rank, int n,
		   const struct comm_options *o, struct onehop_comm **ret)
{
	struct device_source from = {.request = q};

	return open_rank(&from, key, rank, n, o, ret);
}

int comm_open_rank_set(struct device_set *set, const char *key, int rank, int n,
		       const struct comm_options *o, struct onehop_comm **ret)
{
	struct device_source from = {.set = set};
	int r = open_rank(&from, key, rank, n, o, ret);

	device_close(from.set);
	return r;
}
