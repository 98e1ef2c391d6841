// SPDX-License-Identifier: Apache-2.0
/*
 * Sends and receives: one launch moves all of a group. Only the two ranks of a pair take part, so each ordered pair has
 * slots and counters of its own.
 */
#include "kernels/collective_copy.h"

/* The items of one direction that this block works on, one after the other. */
struct cursor {
	u32 item, end; /* in args.item */
	u64 chunk;     /* of the item */
};

/* State of a block. */
struct pairs {
	const struct collective_pairs_args *a;
	struct patience patience;
	struct cursor sends, takes;
	u64 tell, hear; /* the flags that the peer reads, and its own that this block reads */
	u64 to, from;   /* slots */
	u32 block, peer;
	struct pair_progress state;
};

/* Both ranks divide an item in the same way. */
INLINE u64 chunk_of(const struct pairs *p, u64 bytes)
{
	const u64 share = (bytes / p->a->blocks + 15) / 16 * 16;
	const u64 least = share < PAIR_CHUNK_MIN ? PAIR_CHUNK_MIN : share;

	return least < p->a->slot_bytes ? least : p->a->slot_bytes;
}

INLINE u64 bytes_at(const struct pairs *p, const struct cursor *c)
{
	return p->a->item[c->item].bytes;
}

INLINE u64 offset_at(const struct pairs *p, const struct cursor *c)
{
	return c->chunk * chunk_of(p, bytes_at(p, c));
}

/* Moves to the next chunk of this block. The first chunk of an item exists even without data: it tells the size. */
INLINE void skip(const struct pairs *p, struct cursor *c)
{
	while (c->item < c->end && c->chunk && offset_at(p, c) >= bytes_at(p, c)) {
		c->item++;
		c->chunk = p->block;
	}
}

INLINE void advance(const struct pairs *p, struct cursor *c)
{
	c->chunk += p->a->blocks;
	skip(p, c);
}

INLINE u32 bytes_of_chunk(const struct pairs *p, const struct cursor *c)
{
	const u64 offset = offset_at(p, c), left = bytes_at(p, c) - offset;
	const u64 chunk = chunk_of(p, bytes_at(p, c));

	return (u32)(left < chunk ? left : chunk);
}

INLINE u64 slot_of(const struct pairs *p, u64 slots, u32 number)
{
	return slots + ((u64)p->block * PAIR_SLOTS + number % PAIR_SLOTS) * p->a->slot_bytes;
}

INLINE u64 size_of_slot(u64 flags, u32 number)
{
	return flags + __builtin_offsetof(struct pair_flags, bytes) + number % PAIR_SLOTS * 8ul;
}

#define FLAG(flags, member) ((flags) + __builtin_offsetof(struct pair_flags, member))

/* ---- what can be done next: decided by thread 0 ---- */

#define CAN_SEND  1u
#define CAN_TAKE  2u
#define DISAGREES 4u /* what has come is of an item of another size */

INLINE u32 look_for_slot(struct pairs *p)
{
	if (p->sends.item == p->sends.end)
		return 0;
	if (p->state.sent - p->state.freed == PAIR_SLOTS)
		p->state.freed = load_acquire(FLAG(p->hear, freed));
	return p->state.sent - p->state.freed < PAIR_SLOTS ? CAN_SEND : 0;
}

INLINE u32 look_for_chunk(const struct pairs *p)
{
	if (p->takes.item == p->takes.end ||
	    (int)(load_acquire(FLAG(p->hear, arrived)) - p->state.taken) <= 0)
		return 0;
	return load_u64(size_of_slot(p->hear, p->state.taken)) == bytes_at(p, &p->takes)
		       ? CAN_TAKE
		       : DISAGREES;
}

/*
 * For the whole block. Through the host's memory a load takes a microsecond, and as many at once as a block has threads take far
 * longer.
 */
INLINE u32 can_do(struct pairs *p)
{
	const u32 mine = thread_id() ? 0 : look_for_slot(p) | look_for_chunk(p);

	return (block_any(mine & CAN_SEND) ? CAN_SEND : 0) |
	       (block_any(mine & (CAN_TAKE | DISAGREES))
			? block_any(mine & CAN_TAKE) ? CAN_TAKE : DISAGREES
			: 0);
}

INLINE void give_up(struct pairs *p, u32 end)
{
	if (thread_id() == 0)
		report_end(p->a->report, p->a->abort, p->a->number, end, p->peer);
	p->state.end = end;
}

INLINE void rest(struct pairs *p, u32 polls)
{
	u32 end = WAIT_DONE;

	if (thread_id() == 0) {
		relax(polls);
		end = patience_look(&p->patience);
		end = end == WAIT_RUNNING ? WAIT_DONE : end;
	}
	end = block_end(end);
	if (end != WAIT_DONE)
		give_up(p, end);
}

/* ---- a chunk ---- */

INLINE void send_next(struct pairs *p)
{
	copy_out(slot_of(p, p->to, p->state.sent),
		 p->a->item[p->sends.item].address + offset_at(p, &p->sends),
		 bytes_of_chunk(p, &p->sends));
	if (thread_id() == 0)
		store_u64(size_of_slot(p->tell, p->state.sent), bytes_at(p, &p->sends));
	p->state.sent++;
	block_barrier();
	if (thread_id() == 0)
		store_release(FLAG(p->tell, arrived), p->state.sent);
	advance(p, &p->sends);
}

INLINE void take_next(struct pairs *p)
{
	copy_in(p->a->item[p->takes.item].address + offset_at(p, &p->takes),
		slot_of(p, p->from, p->state.taken), bytes_of_chunk(p, &p->takes));
	p->state.taken++;
	block_barrier();
	if (thread_id() == 0)
		store_release(FLAG(p->tell, freed), p->state.taken);
	advance(p, &p->takes);
}

/*
 * Whatever can go on, does: a block never waits for one direction while the other one could move, so that two ranks
 * that send to each other first both end.
 */
INLINE void exchange_items(struct pairs *p)
{
	u32 polls = 0;

	while ((p->sends.item < p->sends.end || p->takes.item < p->takes.end) &&
	       p->state.end <= WAIT_DONE) {
		const u32 can = can_do(p);

		if (can & CAN_SEND)
			send_next(p);
		if (can & CAN_TAKE)
			take_next(p);
		if (can & DISAGREES)
			give_up(p, WAIT_DISAGREED);
		if (can) {
			p->patience = patience_of(p->a->limit_ns, p->a->abort);
			polls = 0;
		} else {
			rest(p, polls++);
		}
	}
}

/* Sends to this rank itself, and receives from it, in the same order. */
INLINE void copy_items(const struct pairs *p, const struct pair_lane *l)
{
	ROLLED for (u32 i = 0; i < l->sends; i++)
	{
		const struct pair_item *from = &p->a->item[l->first + i], *to = from + l->sends;
		const u64 chunk = chunk_of(p, from->bytes), each = chunk * p->a->blocks;

		ROLLED for (u64 at = chunk * p->block; at < from->bytes; at += each)
		{
			const u64 left = from->bytes - at;

			copy_own(to->address + at, from->address + at, left < chunk ? left : chunk);
		}
	}
}

KERNEL(collective_pairs)
{
	const struct pair_lane *l = &a.lane[block_id() / a.grid];
	struct pairs p = {.a = &a,
			  .patience = patience_of(a.limit_ns, a.abort),
			  .block = block_id() % a.grid,
			  .peer = l->peer};
	const u64 place =
		a.state + ((u64)l->peer * a.blocks + p.block) * sizeof(struct pair_progress);

	if (l->peer == a.me) {
		copy_items(&p, l);
		return;
	}
	p.state = AT(const struct pair_progress, place);
	if (p.state.end > WAIT_DONE)
		return;
	p.tell = a.routes.flags.to[l->peer] + p.block * sizeof(struct pair_flags);
	p.hear = a.routes.flags.from[l->peer] + p.block * sizeof(struct pair_flags);
	p.to = a.routes.slots.to[l->peer];
	p.from = a.routes.slots.from[l->peer];
	p.sends = (struct cursor){l->first, l->first + l->sends, p.block};
	p.takes = (struct cursor){l->first + l->sends, l->first + l->sends + l->takes, p.block};
	skip(&p, &p.sends);
	skip(&p, &p.takes);
	exchange_items(&p);
	block_barrier(); /* all have read the state */
	if (thread_id() == 0)
		AT(struct pair_progress, place) = p.state;
}
