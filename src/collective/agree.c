// SPDX-License-Identifier: Apache-2.0
/*
 * Each rank has a ring of records for its calls. A rank stores its record, and then loads those of
 * the others: stores and loads of all ranks have one order, so of two ranks that make a call, at
 * least the later one sees both records.
 */
#include "collective/agree.h"

#include "base/err.h"
#include "base/memory_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * How many calls a rank may be ahead of another. A stream takes no more than about a thousand
 * launches, but one thread may capture all operations of one rank before those of the next.
 */
static const u32 call_room[AGREE_ORDERS] = {[AGREE_EAGER] = 4096, [AGREE_CAPTURED] = 32768};
#define MESSAGE_ROOM 4096u /* of one rank to another */

#define LINE 64 /* bytes that processors keep together */

/* `tag`: the number of the call above, what it is below; 0: none yet. */
struct record {
	u64 tag, count;
};

/* Of one rank, which alone writes it. */
struct progress {
	u32 calls[AGREE_ORDERS]; /* compared with all others */
	u32 messages[AGREE_ORDERS][COLLECTIVE_RANKS_MAX][2];
	struct agree_finding found;
} __attribute__((aligned(LINE)));

/* Records follow: of calls, and of messages. Pages that nobody uses take no memory. */
struct shared {
	u32 failed; /* not 0: a rank plus 1, whose finding counts */
	struct progress ranks[COLLECTIVE_RANKS_MAX] __attribute__((aligned(LINE)));
};

struct agree_board {
	struct shared *shared;
	size_t size;
	unsigned n, width; /* records from a call to the next */
};

/* ---- where records are ---- */

static size_t messages_of(const struct agree_board *b)
{
	return (size_t)b->n * b->n * AGREE_ORDERS * MESSAGE_ROOM * 2;
}

static void set_size(struct agree_board *b, unsigned n)
{
	size_t calls = call_room[AGREE_EAGER] + call_room[AGREE_CAPTURED];

	b->n = n;
	for (b->width = 1; b->width < n; b->width *= 2)
		;
	calls *= b->width;
	b->size = sizeof(struct shared) + (calls + messages_of(b)) * sizeof(struct record);
}

static struct record *records_of(const struct agree_board *b)
{
	return (struct record *)(b->shared + 1);
}

/* Of rank 0; the others' follow, so that all are in one line of the cache, or two. */
static struct record *call_at(const struct agree_board *b, enum agree_order o, u32 number)
{
	const size_t before = o == AGREE_EAGER ? 0 : call_room[AGREE_EAGER];

	return records_of(b) + (before + number % call_room[o]) * b->width;
}

/* That of the sender, then that of the receiver. */
static struct record *message_at(const struct agree_board *b, enum agree_order o, u32 from, u32 to,
				 u32 number)
{
	const size_t ring = ((size_t)from * b->n + to) * AGREE_ORDERS + o;

	return call_at(b, AGREE_CAPTURED, 0) + (size_t)call_room[AGREE_CAPTURED] * b->width +
	       (ring * MESSAGE_ROOM + number % MESSAGE_ROOM) * 2;
}

/* ---- the board ---- */

static int map(unsigned n, int fd, struct agree_board **ret)
{
	const int flags = MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
	struct agree_board *b = calloc(1, sizeof(*b));
	void *p;

	if (!b)
		return err_set(ENOMEM, "no memory for a communicator");
	set_size(b, n);
	p = mmap(NULL, b->size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED) {
		free(b);
		return err_sys(errno, "mapping what ranks tell each other");
	}
	b->shared = p;
	*ret = b;
	return 0;
}

static int make_file(unsigned n)
{
	struct agree_board b = {0};
	int fd;

	set_size(&b, n);
	fd = memory_file(b.size);
	return fd >= 0 ? fd : err_sys(-fd, "a file for what ranks tell each other");
}

int agree_board_make(unsigned n, int *ret_fd, struct agree_board **ret)
{
	int fd, r;

	if (!ret_fd)
		return map(n, -1, ret);
	fd = make_file(n);
	if (fd < 0)
		return fd;
	r = map(n, fd, ret);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

int agree_board_map(unsigned n, int fd, struct agree_board **ret)
{
	struct agree_board b = {0};
	struct stat st;

	set_size(&b, n);
	if (fd < 0 || fstat(fd, &st) < 0 || (u64)st.st_size != b.size)
		return err_set(EPROTO, "rank 0 sent no file for what ranks tell each other");
	return map(n, fd, ret);
}

void agree_board_free(struct agree_board *b)
{
	if (!b)
		return;
	munmap(b->shared, b->size);
	free(b);
}

void agree_start(struct agree *a, struct agree_board *b, unsigned me)
{
	*a = (struct agree){.board = b, .n = b->n, .me = me};
}

/* ---- findings ---- */

/* The first finding of all ranks counts. */
static int fail(const struct agree *a, const struct agree_finding *f)
{
	struct shared *s = a->board->shared;
	u32 none = 0;

	s->ranks[a->me].found = *f;
	__atomic_compare_exchange_n(&s->failed, &none, a->me + 1, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
	return -EPROTO;
}

bool agree_failed(const struct agree *a, struct agree_finding *ret)
{
	const struct shared *s = a->board->shared;
	const u32 who = __atomic_load_n(&s->failed, __ATOMIC_ACQUIRE);

	if (!who || who > a->n)
		return false;
	*ret = s->ranks[who - 1].found;
	return true;
}

/* ---- records ---- */

static void store(struct record *r, u32 number, u32 what, u64 count)
{
	__atomic_store_n(&r->count, count, __ATOMIC_RELAXED);
	__atomic_store_n(&r->tag, (u64)number << 32 | what, __ATOMIC_SEQ_CST);
}

/* false: that call has no record yet. It stays there until this rank has compared it. */
static bool load(const struct record *r, u32 number, struct agree_call *ret)
{
	const u64 tag = __atomic_load_n(&r->tag, __ATOMIC_SEQ_CST);

	*ret = (struct agree_call){(u32)tag, __atomic_load_n(&r->count, __ATOMIC_RELAXED)};
	return ret->what && tag >> 32 == number;
}

static bool same(const struct agree_call *a, const struct agree_call *b)
{
	return a->what == b->what && a->count == b->count;
}

/* ---- calls ---- */

/* Whether record `stored` may be written: all have compared what was there. */
static bool has_room(struct agree *a, enum agree_order o, u32 *ret_behind)
{
	const struct shared *s = a->board->shared;
	u32 least = call_room[o];

	if ((int)(a->calls[o].room - a->calls[o].stored) > 0)
		return true;
	for (u32 r = 0; r < a->n; r++) {
		const u32 done = __atomic_load_n(&s->ranks[r].calls[o], __ATOMIC_ACQUIRE);
		const u32 room = done + call_room[o] - a->calls[o].stored;

		if (r == a->me || (int)room >= (int)least)
			continue;
		least = room;
		*ret_behind = r;
	}
	a->calls[o].room = a->calls[o].stored + least;
	return least > 0;
}

static int compare_call(const struct agree *a, enum agree_order o, u32 number, u32 peer,
			const struct record *at, const struct agree_call *mine)
{
	struct agree_finding f = {.number = number, .order = (unsigned char)o};
	const unsigned me = peer < a->me; /* its place in the finding */

	if (!load(&at[peer], number, &f.call[!me]) || same(&f.call[!me], mine))
		return 0;
	f.call[me] = *mine;
	f.rank[me] = a->me;
	f.rank[!me] = peer;
	return fail(a, &f);
}

int agree_call(struct agree *a, enum agree_order o, const struct agree_call *call, u32 *ret_behind)
{
	const u32 number = a->calls[o].stored;
	struct record *at = call_at(a->board, o, number);
	int r = 0;

	if (!has_room(a, o, ret_behind))
		return -EAGAIN;
	__atomic_store_n(&a->board->shared->ranks[a->me].calls[o], number, __ATOMIC_RELEASE);
	store(&at[a->me], number, call->what, call->count);
	for (u32 p = 0; r == 0 && p < a->n; p++)
		if (p != a->me)
			r = compare_call(a, o, number, p, at, call);
	a->calls[o].stored++;
	return r;
}

void agree_undo_call(struct agree *a, enum agree_order o)
{
	a->calls[o].stored--;
}

/* A rank counts a call only when it makes the next one. */
u32 agree_calls_of(const struct agree *a, enum agree_order o, u32 rank)
{
	const u32 number =
		__atomic_load_n(&a->board->shared->ranks[rank].calls[o], __ATOMIC_ACQUIRE);
	struct agree_call call;

	return number + load(&call_at(a->board, o, number)[rank], number, &call);
}

/* ---- messages ---- */

/* `more`: messages to come. */
static bool message_has_room(struct agree *a, enum agree_order o, const struct agree_message *m,
			     u32 more)
{
	const u32 *done = &a->board->shared->ranks[m->peer].messages[o][a->me][!m->takes];
	const u32 stored = a->messages[o][m->peer][m->takes].stored;
	u32 *room = &a->messages[o][m->peer][m->takes].room;

	if ((int)(*room - stored - more) < 0)
		*room = __atomic_load_n(done, __ATOMIC_ACQUIRE) + MESSAGE_ROOM;
	return (int)(*room - stored - more) >= 0;
}

static int tell_message(struct agree *a, enum agree_order o, const struct agree_message *m)
{
	u32 *stored = &a->messages[o][m->peer][m->takes].stored;
	const u32 from = m->takes ? m->peer : a->me, to = m->takes ? a->me : m->peer;
	struct record *at = message_at(a->board, o, from, to, *stored);
	struct agree_finding f = {.rank = {from, to},
				  .number = *stored,
				  .order = (unsigned char)o,
				  .message = 1};

	__atomic_store_n(&a->board->shared->ranks[a->me].messages[o][m->peer][m->takes], *stored,
			 __ATOMIC_RELEASE);
	f.call[m->takes] = (struct agree_call){1, m->bytes};
	store(&at[m->takes], *stored, 1, m->bytes);
	if (!load(&at[!m->takes], (*stored)++, &f.call[!m->takes]) || same(&f.call[0], &f.call[1]))
		return 0;
	return fail(a, &f);
}

int agree_messages(struct agree *a, enum agree_order o, const struct agree_message *m, size_t n,
		   u32 *ret_behind)
{
	int r = 0;

	for (size_t i = 0; i < n; i++)
		if (!message_has_room(a, o, &m[i], (u32)n)) {
			*ret_behind = m[i].peer;
			return -EAGAIN;
		}
	for (size_t i = 0; r == 0 && i < n; i++)
		r = tell_message(a, o, &m[i]);
	return r;
}

void agree_undo_messages(struct agree *a, enum agree_order o, const struct agree_message *m,
			 size_t n)
{
	for (size_t i = 0; i < n; i++)
		a->messages[o][m[i].peer][m[i].takes].stored--;
}
