// SPDX-License-Identifier: Apache-2.0
/*
 * The most common sends and receives: small ones, at most one to each rank and one from it. The
 * protocol, the units and the counters are those of collective_pairs.c, which does the rest. Few
 * instructions are executed: each thread stores and awaits a unit of its own, and the block has one
 * barrier.
 */
#include "kernels/collective_messages.h"

/* State of a thread. */
struct messages {
	const struct collective_messages_args *a;
	const struct message_lane *l;
	struct message out, in;
	struct message_wait wait;
	u32 block;
	u32 sends, takes; /* whether the block has a part of the item */
	u32 sent, taken, freed;
};

INLINE u32 has_part(const struct messages *p, u32 item, u32 bytes)
{
	return (p->l->items & item) && (!p->block || p->block * p->a->part_bytes < bytes);
}

INLINE struct message part_of_item(const struct messages *p, u64 address, u32 bytes)
{
	const u32 offset = p->block * p->a->part_bytes, left = bytes - offset;

	return (struct message){.address = address + offset,
				.size = bytes,
				.bytes = left < p->a->part_bytes ? left : p->a->part_bytes};
}

INLINE void take_message(struct messages *p)
{
	message_take(&p->in, &p->wait);
	p->takes = 0;
	message_acknowledge(p->l->tell + p->block * sizeof(struct pair_flags), ++p->taken,
			    p->wait.end);
}

/* For the whole block, of which thread 0 looks. */
INLINE void look_again(struct messages *p, u32 polls)
{
	u32 end = WAIT_DONE;

	if (thread_id() == 0) {
		relax(polls);
		end = patience_look(&p->wait.patience);
		end = end == WAIT_RUNNING ? WAIT_DONE : end;
		if (end != WAIT_DONE)
			message_give_up(&p->wait, end);
	}
	p->wait.end = block_end(end);
}

/*
 * All sets are in use. What is to be taken may come first: a block never waits for one direction
 * while the other one could move.
 */
INLINE void wait_for_room(struct messages *p)
{
	const u64 hear = p->l->hear + p->block * sizeof(struct pair_flags);

	ROLLED for (u32 polls = 0; p->wait.end == WAIT_DONE; polls++)
	{
		u32 room = 0, come = 0;

		if (thread_id() == 0) {
			room = message_more_taken(hear, p->freed);
			come = p->takes && has_come(load_halves(p->in.set), p->in.flag);
		}
		if (block_any(room)) {
			p->freed += PAIR_SETS / 2;
			return;
		}
		if (block_any(come)) {
			take_message(p);
			p->wait.end = block_end(p->wait.end);
			p->wait.patience = patience_of(p->a->limit_ns, p->a->abort);
			polls = 0;
		} else {
			look_again(p, polls);
		}
	}
}

/* first: this thread's first unit, loaded while the state was. */
INLINE void send_message(struct messages *p, vector16 first)
{
	if (__builtin_expect(!message_has_room(p->sent, p->freed), 0)) {
		wait_for_room(p);
		if (p->wait.end != WAIT_DONE)
			return;
	}
	message_clean(p->out.set, p->a->set_bytes, p->sent);
	if (thread_id() < message_units(&p->out))
		message_store(&p->out, thread_id(), first);
	message_send(&p->out, thread_id() + thread_count());
	p->sent++;
}

/* For the next launch; all but the end. */
INLINE void keep_counters(const struct messages *p, u64 place)
{
	GLOBAL struct pair_progress *kept = (GLOBAL struct pair_progress *)place;

	block_barrier(); /* all have read the state */
	if (thread_id())
		return;
	kept->sent = p->sent;
	kept->taken = p->taken + p->takes;
	kept->freed = p->freed;
}

/* Within this rank. */
INLINE void copy_message(const struct messages *p)
{
	const struct message in = part_of_item(p, p->l->in, p->l->in_bytes),
			     out = part_of_item(p, p->l->out, p->l->out_bytes);

	if (!has_part(p, MESSAGE_SENT, p->l->in_bytes) || in.address == out.address)
		return;
	ROLLED for (u32 i = 1 + thread_id(); i < message_units(&in); i += thread_count())
		store_unit_data(out.address + unit_place(i), message_unit(&in, i),
				unit_size(&in, i));
}

KERNEL(collective_messages)
{
	struct messages p = {.a = &a,
			     .wait = {.patience = patience_of(a.limit_ns, a.abort),
				      .report = a.report,
				      .number = a.number,
				      .end = WAIT_DONE},
			     .block = block_id()};
	vector16 state, first = vector_of(0, 0);
	u32 lane = 0; /* a pointer that moves would have the arguments copied to memory */
	u64 place;

	ROLLED for (; p.block >= a.grid; p.block -= a.grid) lane++;
	p.l = &a.lane[lane];
	if (__builtin_expect(p.l->peer == a.me, 0)) {
		copy_message(&p);
		return;
	}
	p.wait.peer = p.l->peer;
	place = p.l->state + p.block * sizeof(struct pair_progress);
	state = AT(const vector16, place);
	p.sends = has_part(&p, MESSAGE_SENT, p.l->in_bytes);
	p.takes = has_part(&p, MESSAGE_TAKEN, p.l->out_bytes);
	p.out = part_of_item(&p, p.l->in, p.l->in_bytes);
	p.in = part_of_item(&p, p.l->out, p.l->out_bytes);
	if (p.sends && thread_id() < message_units(&p.out))
		first = message_unit(&p.out, thread_id());
	if (__builtin_expect(state[3] > WAIT_DONE, 0))
		return;
	p.sent = state[0];
	p.taken = state[1];
	p.freed = state[2];
	p.out.set = message_set(p.l->sets_to, a.set_bytes, p.block, p.sent);
	p.out.flag = message_flag(p.sent);
	p.in.set = message_set(p.l->sets_from, a.set_bytes, p.block, p.taken);
	p.in.flag = message_flag(p.taken);
	if (p.sends)
		send_message(&p, first);
	keep_counters(&p, place);
	if (p.takes)
		take_message(&p);
	if (p.wait.end != WAIT_DONE)
		AT(u32, place + __builtin_offsetof(struct pair_progress, end)) = p.wait.end;
}
