// SPDX-License-Identifier: Apache-2.0
/*
 * Sends and receives: one launch moves all of a group. Only the two ranks of a pair take part, so
 * each ordered pair has units, slots and counters of its own (struct collective_pairs_args). In the
 * most common launch, of small items, each thread of a block stores and awaits its own unit, and
 * the block has one barrier.
 */
#include "kernels/collective_copy.h"
#include "kernels/collective_messages.h"

/* The items of one direction that this block works on, one after the other. */
struct cursor {
	u32 item, end; /* in args.item */
	u64 part;      /* of the item */
};

/* State of a thread; where the block decides together, all threads have the same. */
struct pairs {
	const struct collective_pairs_args *a;
	const struct pair_lane *l;
	struct message_wait wait;
	struct cursor sends, takes;
	u32 block;
	u32 slots; /* for chunks, of which all threads know that they are free */
	struct pair_progress state;
};

/* What can be done, and was. */
#define CAN_SEND  1u
#define CAN_TAKE  2u
#define DISAGREES 4u /* what has come is of an item of another size */

/* ---- parts of items ---- */

INLINE u32 is_small(const struct pairs *p, u64 bytes)
{
	return bytes <= p->a->small_bytes;
}

INLINE u64 bytes_at(const struct pairs *p, const struct cursor *c)
{
	return p->a->item[c->item].bytes;
}

INLINE u64 offset_at(const struct pairs *p, const struct cursor *c)
{
	return c->part * p->a->item[c->item].part;
}

/*
 * Moves to the next part of this block. The first part of an item exists even without data: it
 * tells the size.
 */
INLINE void skip(const struct pairs *p, struct cursor *c)
{
	while (c->item < c->end && c->part && offset_at(p, c) >= bytes_at(p, c)) {
		c->item++;
		c->part = p->block;
	}
}

INLINE void advance(const struct pairs *p, struct cursor *c)
{
	c->part += p->a->blocks;
	skip(p, c);
}

INLINE struct cursor cursor_of(const struct pairs *p, u32 first, u32 items)
{
	struct cursor c = {first, first + items, p->block};

	skip(p, &c);
	return c;
}

INLINE u32 is_left(const struct cursor *c)
{
	return c->item < c->end;
}

/* The block's first part of an item. */
INLINE u32 begins(const struct pairs *p, const struct cursor *c)
{
	return c->part == p->block;
}

INLINE u64 address_at(const struct pairs *p, const struct cursor *c)
{
	return p->a->item[c->item].address + offset_at(p, c);
}

INLINE u32 bytes_of_part(const struct pairs *p, const struct cursor *c)
{
	const u64 left = bytes_at(p, c) - offset_at(p, c), most = p->a->item[c->item].part;

	return (u32)(left < most ? left : most);
}

INLINE u64 flags_at(const struct pairs *p, u64 flags)
{
	return flags + p->block * sizeof(struct pair_flags);
}

#define FLAG(p, flags, member)                                                                     \
	(flags_at(p, (p)->l->flags) + __builtin_offsetof(struct pair_flags, member))

/* ---- units ---- */

INLINE struct message message_at(const struct pairs *p, const struct cursor *c, u64 sets,
				 u32 number)
{
	return (struct message){.set = message_set(sets, p->a->set_bytes, p->block, number),
				.address = address_at(p, c),
				.size = bytes_at(p, c),
				.bytes = bytes_of_part(p, c),
				.flag = message_flag(number)};
}

/* Of the next item to send, in which this block has a part. */
INLINE struct message begin_message(struct pairs *p)
{
	const struct message m = message_at(p, &p->sends, p->l->sets_to, p->state.sent);

	if (!message_has_room(p->state.sent, p->state.freed))
		p->state.freed += PAIR_SETS / 2;
	message_clean(m.set, p->a->set_bytes, p->state.sent);
	return m;
}

INLINE void send_units(struct pairs *p)
{
	const struct message m = begin_message(p);

	message_send(&m, thread_id());
}

INLINE void take_units(struct pairs *p)
{
	const struct message m = message_at(p, &p->takes, p->l->sets_from, p->state.taken);

	p->wait.patience = patience_of(p->a->limit_ns, p->a->abort);
	message_take(&m, &p->wait);
}

/* ---- chunks ---- */

INLINE u64 pair_slot(const struct pairs *p, u64 slots, u32 number)
{
	return slots + ((u64)p->block * PAIR_SLOTS + number % PAIR_SLOTS) * p->a->slot_bytes;
}

INLINE void send_pair_chunk(struct pairs *p)
{
	if (begins(p, &p->sends)) {
		const struct message m = begin_message(p);

		if (thread_id() == 0)
			message_store(&m, 0, message_unit(&m, 0));
	}
	copy_out(pair_slot(p, p->l->slots_to, p->state.chunks_sent), address_at(p, &p->sends),
		 bytes_of_part(p, &p->sends));
	p->state.chunks_sent++;
	p->slots -= p->slots != 0;
}

INLINE void take_pair_chunk(struct pairs *p)
{
	copy_in(address_at(p, &p->takes), pair_slot(p, p->l->slots_from, p->state.chunks_taken),
		bytes_of_part(p, &p->takes));
	p->state.chunks_taken++;
}

/*
 * done: whether a chunk was sent, and one taken. Two threads of a warp tell the peer of both in the
 * time that one release takes.
 */
INLINE void tell_chunks(const struct pairs *p, u32 done)
{
	block_barrier();
	ROLLED for (u32 k = teller_id(); k < 2; k += thread_count())
	{
		if (done & (k ? CAN_TAKE : CAN_SEND))
			store_release(k ? FLAG(p, tell, freed) : FLAG(p, tell, arrived),
				      k ? p->state.chunks_taken : p->state.chunks_sent);
	}
}

/* ---- what can be done next: decided by thread 0 ---- */

INLINE u32 look_for_room(struct pairs *p)
{
	if (!is_left(&p->sends) ||
	    (begins(p, &p->sends) && !message_has_room(p->state.sent, p->state.freed) &&
	     !message_more_taken(flags_at(p, p->l->hear), p->state.freed)))
		return 0;
	if (is_small(p, bytes_at(p, &p->sends)))
		return CAN_SEND;
	if (p->state.chunks_sent - p->state.chunks_freed == PAIR_SLOTS)
		p->state.chunks_freed = load_acquire(FLAG(p, hear, freed));
	return p->state.chunks_sent - p->state.chunks_freed < PAIR_SLOTS ? CAN_SEND : 0;
}

/* Size and counter are loaded at once: each takes a microsecond in the host's memory. */
INLINE u32 look_for_part(const struct pairs *p)
{
	const u32 first = begins(p, &p->takes);
	u32 arrived = p->state.chunks_taken + 1;
	vector16 unit = vector_of(0, 0);

	if (!is_left(&p->takes))
		return 0;
	if (first)
		unit = load_halves(
			message_set(p->l->sets_from, p->a->set_bytes, p->block, p->state.taken));
	if (!is_small(p, bytes_at(p, &p->takes)))
		arrived = load_acquire(FLAG(p, hear, arrived));
	if (first && !has_come(unit, message_flag(p->state.taken)))
		return 0;
	if (first && message_size(unit) != bytes_at(p, &p->takes))
		return DISAGREES;
	return (int)(arrived - p->state.chunks_taken) > 0 ? CAN_TAKE : 0;
}

/*
 * For the whole block. Through the host's memory a load takes a microsecond, and as many at once as
 * a block has threads take far longer.
 */
INLINE u32 can_do(struct pairs *p)
{
	return block_first(thread_id() ? 0 : look_for_room(p) | look_for_part(p));
}

/* For the whole block, of which thread 0 reports it. */
INLINE void give_up_all(struct pairs *p, u32 end)
{
	if (thread_id() == 0)
		message_give_up(&p->wait, end);
	p->wait.end = end;
}

INLINE void rest(struct pairs *p, u32 polls)
{
	u32 end = WAIT_DONE;

	if (thread_id() == 0) {
		relax(polls);
		end = patience_look(&p->wait.patience);
		end = end == WAIT_RUNNING ? WAIT_DONE : end;
	}
	end = block_end(end);
	if (end != WAIT_DONE)
		give_up_all(p, end);
}

/* ---- a part ---- */

/* CAN_SEND if that was a chunk, of which the peer has to be told; else 0. */
INLINE u32 send_next(struct pairs *p)
{
	const u32 first = begins(p, &p->sends), small = is_small(p, bytes_at(p, &p->sends));

	if (small)
		send_units(p);
	else
		send_pair_chunk(p);
	p->state.sent += first;
	advance(p, &p->sends);
	return small ? 0 : CAN_SEND;
}

/* CAN_TAKE if that was a chunk. */
INLINE u32 take_next(struct pairs *p)
{
	const u32 first = begins(p, &p->takes), small = is_small(p, bytes_at(p, &p->takes));

	if (small)
		take_units(p);
	else
		take_pair_chunk(p);
	if (first)
		message_acknowledge(flags_at(p, p->l->tell), ++p->state.taken, p->wait.end);
	advance(p, &p->takes);
	return small ? 0 : CAN_TAKE;
}

INLINE u32 sends_at_once(const struct pairs *p)
{
	return is_left(&p->sends) &&
	       (!begins(p, &p->sends) || message_has_room(p->state.sent, p->state.freed)) &&
	       (is_small(p, bytes_at(p, &p->sends)) || p->slots);
}

/* Nothing else can go on: each thread waits for its own units, without the others. */
INLINE u32 only_takes_units(const struct pairs *p)
{
	return p->a->small && !is_left(&p->sends);
}

/*
 * Whatever can go on, does: a block never waits for one direction while the other one could move,
 * so that two ranks that send to each other first both end.
 */
INLINE void exchange_items(struct pairs *p)
{
	u32 polls = 0;

	while ((is_left(&p->sends) || is_left(&p->takes)) && p->wait.end == WAIT_DONE &&
	       !only_takes_units(p)) {
		u32 can = CAN_SEND, chunks = 0;

		if (!sends_at_once(p))
			can = can_do(p);
		if (can & CAN_SEND)
			chunks = send_next(p);
		if (can & CAN_TAKE) {
			const u32 taken = take_next(p);

			if (!taken) /* a small one, each thread by itself */
				p->wait.end = block_end(p->wait.end);
			chunks |= taken;
		}
		if (chunks)
			tell_chunks(p, chunks);
		if (can & DISAGREES)
			give_up_all(p, WAIT_DISAGREED);
		if (can) {
			p->wait.patience = patience_of(p->a->limit_ns, p->a->abort);
			polls = 0;
		} else {
			rest(p, polls++);
		}
	}
}

/* ---- launches ---- */

/* Small items that this block still has to take. */
INLINE u32 takes_left(const struct pairs *p)
{
	struct cursor c = p->takes;
	u32 n = 0;

	for (; is_left(&c); n++)
		advance(p, &c);
	return n;
}

/* For the next launch; all but the end. */
INLINE void keep_progress(const struct pairs *p, u64 place, u32 taken)
{
	GLOBAL struct pair_progress *kept = (GLOBAL struct pair_progress *)place;

	block_barrier(); /* all have read the state */
	if (thread_id())
		return;
	kept->sent = p->state.sent;
	kept->taken = taken;
	kept->freed = p->state.freed;
	if (p->a->small)
		return;
	kept->chunks_sent = p->state.chunks_sent;
	kept->chunks_taken = p->state.chunks_taken;
	kept->chunks_freed = p->state.chunks_freed;
}

/* Sends to this rank itself, and receives from it, in the same order. */
INLINE void copy_items(const struct pairs *p)
{
	ROLLED for (u32 i = 0; i < p->l->sends; i++)
	{
		const struct pair_item *from = &p->a->item[p->l->first + i],
				       *to = from + p->l->sends;
		const u64 chunk = p->a->small ? PAIR_CHUNK_MIN : from->part,
			  each = chunk * p->a->grid;

		ROLLED for (u64 at = chunk * p->block; at < from->bytes; at += each)
		{
			const u64 left = from->bytes - at;

			copy_own(to->address + at, from->address + at,
				 (u32)(left < chunk ? left : chunk));
		}
	}
}

KERNEL(collective_pairs)
{
	const struct pair_lane *l = &a.lane[block_id() / a.grid];
	struct pairs p = {.a = &a,
			  .l = l,
			  .wait = {.patience = patience_of(a.limit_ns, a.abort),
				   .report = a.report,
				   .number = a.number,
				   .peer = l->peer,
				   .end = WAIT_DONE},
			  .block = block_id() % a.grid};
	const u64 place = l->state + p.block * sizeof(struct pair_progress);

	if (l->peer == a.me) {
		copy_items(&p);
		return;
	}
	p.state = AT(const struct pair_progress, place);
	p.sends = cursor_of(&p, l->first, l->sends);
	p.takes = cursor_of(&p, l->first + l->sends, l->takes);
	if (p.state.end > WAIT_DONE)
		return;
	p.slots = PAIR_SLOTS - (p.state.chunks_sent - p.state.chunks_freed);
	exchange_items(&p);
	if (p.wait.end == WAIT_DONE && a.small) {
		keep_progress(&p, place, p.state.taken + takes_left(&p));
		while (is_left(&p.takes))
			take_next(&p);
	} else {
		keep_progress(&p, place, p.state.taken);
	}
	if (p.wait.end != WAIT_DONE)
		AT(u32, place + __builtin_offsetof(struct pair_progress, end)) = p.wait.end;
}
