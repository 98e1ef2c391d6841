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
	int32_t result;                     /* 0, or the errno with which the rank fails */
	uint32_t blocks, threads, resident; /* of its device: device_info */
	uint32_t no_p2p;
	uint32_t reach; /* a bit for each rank whose memory it may store into, as far as it knows */
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
	uint32_t reach;                              /* this rank's */
	struct memory inboxes[COLLECTIVE_RANKS_MAX]; /* as this process has them */
	/* The first of each: slots in the host's memory, and struct comm_words of all ranks. */
	struct memory host[COLLECTIVE_RANKS_MAX], words[COLLECTIVE_RANKS_MAX];
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

/* By the cards. If a rank is to use no P2P, no rank does. */
static void make_facts(struct opening *x)
{
	uint32_t reach[COLLECTIVE_RANKS_MAX], no_p2p = 0;
	unsigned blocks = ~0u, threads = ~0u, resident = ~0u;

	for (int i = 0; i < x->n; i++)
		no_p2p |= x->cards[i].no_p2p;
	for (int i = 0; i < x->n; i++) {
		reach[i] = no_p2p ? 0 : x->cards[i].reach;
		if (x->cards[i].blocks < blocks)
			blocks = x->cards[i].blocks;
		if (x->cards[i].threads < threads)
			threads = x->cards[i].threads;
		if (x->cards[i].resident < resident)
			resident = x->cards[i].resident;
	}
	comm_facts_mix((unsigned)x->n, reach, blocks, threads, &x->facts);
	comm_facts_fit(&x->facts, resident);
	slots_make(&x->facts, &x->slots);
}

static struct card own_card(const struct opening *x)
{
	const struct device_info *info = x->shared ? x->shared->set->info : NULL;
	struct card c = {.no_p2p = x->options->no_p2p, .reach = x->reach};

	if (info) {
		c.blocks = info->blocks;
		c.threads = info->threads;
		c.resident = info->resident_threads;
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

/*
 * Makes this rank's part of it (or none) and sends it to all ranks; theirs arrive in x->cards and
 * fds.
 */
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

/* Of the inboxes: those that this rank reaches. A refusal is not an error. */
static int take_inboxes(struct opening *x, const int *fds)
{
	int r = 0;

	for (int i = 0; r == 0 && i < x->n; i++) {
		if (!is_direct(&x->facts, (unsigned)x->rank, (unsigned)i))
			continue;
		r = take(x, i, fds[i], x->inboxes);
		if (r == -EACCES || r == -ENOTSUP) {
			x->reach &= ~(1u << i);
			r = 0;
		}
	}
	return r;
}

static int share_inboxes(struct opening *x)
{
	const bool fd = x->shared->set->caps & DEVICE_EXPORT_FD;
	const struct handed h = {fd ? MEMORY_EXPORTABLE : MEMORY_DEVICE, x->slots.inbox.size,
				 x->slots.inbox.zeroed, true, x->inboxes};
	int fds[COLLECTIVE_RANKS_MAX] = {0}, r = hand_out(x, &h, fds);
	struct card mine;

	if (r < 0)
		return r;
	r = take_inboxes(x, fds);
	close_all(fds, x->n);
	mine = own_card(x);
	return tell_all(x, &mine, r);
}

static void drop_inboxes(struct opening *x)
{
	struct device_set *s = x->shared->set;

	for (int i = 0; i < x->n; i++)
		if (x->inboxes[i].id)
			s->ops->free(s, &x->inboxes[i]);
	memset(x->inboxes, 0, sizeof(x->inboxes));
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

/* Whether a pair was refused that the facts count as direct. */
static bool has_refused(const struct opening *x)
{
	for (int i = 0; i < x->n; i++)
		if (x->facts.reach[i] & ~x->cards[i].reach)
			return true;
	return false;
}

/*
 * What a pair that is refused needs instead changes the size of all slots, so they are made again.
 */
static int find_memories(struct opening *x)
{
	struct handed h;
	int r = 0;

	for (make_facts(x); r == 0 && x->slots.inbox.size; make_facts(x)) {
		r = share_inboxes(x);
		if (r < 0 || !has_refused(x))
			break;
		drop_inboxes(x);
	}
	if (r < 0 || !x->slots.host.size)
		return r;
	h = (struct handed){MEMORY_SHARED, x->slots.host.size, x->slots.host.zeroed, x->rank == 0,
			    x->host};
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

/*
 * Rank 0's: with different tables ranks would choose different algorithms, and wait for each other
 * forever.
 */
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

	if (!has_direct(&x->facts))
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
	struct slots_seen seen = {0};
	u64 words = 0;
	int r = comm_new(x->shared, 0, (u32)x->rank, &x->facts, x->options, ret);

	for (int i = 0; r == 0 && i < x->n; i++)
		if (x->inboxes[i].id)
			r = s->ops->address(s, &x->inboxes[i], 0, &seen.inbox[i]);
	if (r == 0 && x->host[0].id)
		r = s->ops->address(s, &x->host[0], 0, &seen.host);
	if (r == 0)
		r = s->ops->address(s, &x->words[0], 0, &words);
	if (r == 0)
		comm_count_slots(*ret, &x->slots);
	return r < 0 ? r : comm_connect(*ret, &x->slots, &seen, words);
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
	x.reach = comm_may_reach(o, (unsigned)rank);
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
