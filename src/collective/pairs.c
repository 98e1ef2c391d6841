// SPDX-License-Identifier: Apache-2.0
#include "collective/pairs.h"

#include "base/err.h"
#include "collective/slots.h"

#include <errno.h>

/* Of a small item, in a block: the first unit tells the size. */
static u32 part_bytes(const struct comm_facts *f)
{
	return (f->pair_units - 1) * FLAGGED_DATA_BYTES(0);
}

/* Small items fill sets of units; of a large one all blocks get chunks of equal size, at least. */
static u32 part_of(const struct collective_pairs_args *a, u64 bytes)
{
	const u64 share = (bytes / a->blocks + 15) / 16 * 16;
	const u64 least = share < PAIR_CHUNK_MIN ? PAIR_CHUNK_MIN : share;

	if (bytes <= a->small_bytes)
		return a->part_bytes;
	return (u32)(least < a->slot_bytes ? least : a->slot_bytes);
}

/* Appends the calls of one direction to the items of a lane. */
static u32 add_items(struct collective_pairs_args *a, u32 *at, const struct pair_call *calls,
		     size_t n, u32 peer, bool takes)
{
	const u32 first = *at;

	for (size_t i = 0; i < n; i++)
		if ((u32)calls[i].peer == peer && calls[i].takes == takes)
			a->item[(*at)++] = (struct pair_item){calls[i].address, calls[i].bytes,
							      part_of(a, calls[i].bytes), 0};
	return *at - first;
}

/*
 * What the kernel copies within this rank: the same number of sends and receives of the same sizes.
 */
static int check_own(const struct onehop_comm *c, const struct collective_pairs_args *a,
		     const struct pair_lane *l)
{
	const struct pair_item *sends = &a->item[l->first], *takes = sends + l->sends;

	if (l->sends != l->takes)
		return err_set(
			EINVAL,
			"rank %u: send and recv: %u sends to itself, and %u receives from itself "
			"in the same group and stream",
			c->me, l->sends, l->takes);
	for (u32 i = 0; i < l->sends; i++)
		if (sends[i].bytes != takes[i].bytes)
			return err_set(EINVAL,
				       "rank %u: send and recv: it sends %lu bytes to itself, and "
				       "receives %lu",
				       c->me, sends[i].bytes, takes[i].bytes);
	return 0;
}

static struct pair_lane lane_of(const struct onehop_comm *c, u32 peer, u32 first)
{
	const struct pair_routes *w = &c->routes.pairs;

	return (struct pair_lane){
		.peer = peer,
		.first = first,
		.state = c->pairs_state +
			 (u64)peer * c->facts.pair_blocks * sizeof(struct pair_progress),
		.tell = w->flags.to[peer],
		.hear = w->flags.from[peer],
		.sets_to = w->sets.to[peer],
		.sets_from = w->sets.from[peer],
		.slots_to = w->slots.to[peer],
		.slots_from = w->slots.from[peer],
	};
}

/*
 * Lane k pairs the ranks whose sum is k, modulo n: each rank with one other, and both have it at
 * the same place.
 */
static int fill_lanes(const struct onehop_comm *c, const struct pair_call *calls, size_t n,
		      struct collective_pairs_args *a)
{
	u32 items = 0;
	int r = 0;

	for (u32 k = 0; r == 0 && k < a->n; k++) {
		const u32 peer = (k + a->n - c->me) % a->n;
		struct pair_lane l = lane_of(c, peer, items);

		l.sends = add_items(a, &items, calls, n, peer, false);
		l.takes = add_items(a, &items, calls, n, peer, true);
		if (peer == c->me)
			r = check_own(c, a, &l);
		if (l.sends + l.takes)
			a->lane[a->lanes++] = l;
	}
	return r;
}

/* Blocks of a lane: no more than any item has parts. */
static void fill_grid(const struct pair_call *calls, size_t n, struct collective_pairs_args *a)
{
	u64 most = 1;

	a->small = 1;
	for (size_t i = 0; i < n; i++) {
		const u64 part = part_of(a, calls[i].bytes);
		const u64 parts = (calls[i].bytes + part - 1) / part;

		a->small &= calls[i].bytes <= a->small_bytes;
		most = parts > most ? parts : most;
	}
	a->grid = most < a->blocks ? (u32)most : a->blocks;
}

/* Of a small item each thread has a unit. */
static u32 threads_of(const struct comm_facts *f, bool small)
{
	return !small ? f->piped_threads : f->threads < f->pair_units ? f->threads : f->pair_units;
}

/* What the peers are shown: all that is not to this rank itself. */
static size_t list_messages(const struct onehop_comm *c, const struct pair_call *calls, size_t n,
			    struct agree_message *ret)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		if ((u32)calls[i].peer != c->me)
			ret[found++] = (struct agree_message){(u32)calls[i].peer, calls[i].takes,
							      calls[i].bytes};
	return found;
}

/* Whether collective_messages can do it. */
static bool is_simple(const struct collective_pairs_args *a)
{
	for (u32 i = 0; i < a->lanes; i++)
		if (a->lane[i].sends > 1 || a->lane[i].takes > 1)
			return false;
	return a->small;
}

static struct message_lane simple_lane(const struct collective_pairs_args *a,
				       const struct pair_lane *l)
{
	const struct pair_item *in = &a->item[l->first], *out = in + l->sends;

	return (struct message_lane){
		.state = l->state,
		.in = l->sends ? in->address : 0,
		.out = l->takes ? out->address : 0,
		.sets_to = l->sets_to,
		.sets_from = l->sets_from,
		.in_bytes = l->sends ? (u32)in->bytes : 0,
		.out_bytes = l->takes ? (u32)out->bytes : 0,
		.items = (l->sends ? MESSAGE_SENT : 0) | (l->takes ? MESSAGE_TAKEN : 0),
		.peer = l->peer,
		.tell = l->tell,
		.hear = l->hear,
	};
}

static struct collective_messages_args simplify(const struct collective_pairs_args *a)
{
	struct collective_messages_args ret = {.grid = a->grid,
					       .me = a->me,
					       .set_bytes = a->set_bytes,
					       .part_bytes = a->part_bytes,
					       .report = a->report,
					       .abort = a->abort,
					       .limit_ns = a->limit_ns,
					       .number = a->number};

	for (u32 i = 0; i < a->lanes; i++)
		ret.lane[i] = simple_lane(a, &a->lane[i]);
	return ret;
}

int pairs_enqueue(struct onehop_comm *c, void *stream, const struct pair_call *calls, size_t n)
{
	struct collective_pairs_args a = {.set_bytes = slots_pair_set_bytes(&c->facts),
					  .part_bytes = part_bytes(&c->facts),
					  .small_bytes =
						  part_bytes(&c->facts) * c->facts.pair_blocks,
					  .slot_bytes = c->facts.pair_slot_bytes,
					  .report = c->report,
					  .abort = c->abort,
					  .limit_ns = 1000 * comm_limit_us(c),
					  .number = c->number,
					  .n = c->facts.n,
					  .me = c->me,
					  .blocks = c->facts.pair_blocks};
	struct launch l = {.kernel = KERNEL_collective_pairs,
			   .args = &a,
			   .args_size = sizeof(a),
			   .together = true};
	struct collective_messages_args simple;
	struct agree_message messages[PAIR_ITEMS];
	struct comm_shown shown = {.name = "send and recv", .messages = messages};
	int r;

	if (n > PAIR_ITEMS)
		return err_set(
			EINVAL,
			"rank %u: send and recv: %zu of one stream are in a group, at most %u "
			"can be",
			c->me, n, PAIR_ITEMS);
	r = fill_lanes(c, calls, n, &a);
	if (r < 0)
		return r;
	fill_grid(calls, n, &a);
	l.blocks = a.lanes * a.grid;
	l.threads = threads_of(&c->facts, a.small);
	if (is_simple(&a)) {
		simple = simplify(&a);
		l.kernel = KERNEL_collective_messages;
		l.args = &simple;
		l.args_size = sizeof(simple);
	}
	shown.n = list_messages(c, calls, n, messages);
	r = comm_launch(c, stream, &l, &shown);
	if (r == 0)
		comm_count(c, COMM_PAIRS);
	return r;
}
