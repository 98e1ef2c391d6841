// SPDX-License-Identifier: Apache-2.0
#include "collective/pairs.h"

#include "base/err.h"
#include "collective/slots.h"

#include <errno.h>

/* Appends the calls of one direction to the items of a lane. */
static u32 add_items(struct collective_pairs_args *a, u32 *at, const struct pair_call *calls,
		     size_t n, u32 peer, bool takes)
{
	const u32 first = *at;

	for (size_t i = 0; i < n; i++)
		if ((u32)calls[i].peer == peer && calls[i].takes == takes)
			a->item[(*at)++] = (struct pair_item){calls[i].address, calls[i].bytes};
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

/*
 * Lane k pairs the ranks whose sum is k, modulo n: each rank with one other, and both have it at the same place. Blocks
 * start in ascending order, so launches end even if only one block of each rank runs at a time.
 */
static int fill_lanes(const struct onehop_comm *c, const struct pair_call *calls, size_t n,
		      struct collective_pairs_args *a)
{
	u32 items = 0;
	int r = 0;

	for (u32 k = 0; r == 0 && k < a->n; k++) {
		const u32 peer = (k + a->n - c->me) % a->n;
		struct pair_lane l = {.peer = peer, .first = items};

		l.sends = add_items(a, &items, calls, n, peer, false);
		l.takes = add_items(a, &items, calls, n, peer, true);
		if (peer == c->me)
			r = check_own(c, a, &l);
		if (l.sends + l.takes)
			a->lane[a->lanes++] = l;
	}
	return r;
}

/* Blocks of a lane: no more than the largest item has chunks. */
static u32 grid_of(const struct pair_call *calls, size_t n, u32 blocks)
{
	u64 most = 1;

	for (size_t i = 0; i < n; i++) {
		const u64 chunks = (calls[i].bytes + PAIR_CHUNK_MIN - 1) / PAIR_CHUNK_MIN;

		most = chunks > most ? chunks : most;
	}
	return most < blocks ? (u32)most : blocks;
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

int pairs_enqueue(struct onehop_comm *c, void *stream, const struct pair_call *calls, size_t n)
{
	struct collective_pairs_args a = {.routes = c->routes.pairs,
					  .state = c->pairs_state,
					  .slot_bytes = c->facts.pair_slot_bytes,
					  .report = c->report,
					  .abort = c->abort,
					  .limit_ns = 1000 * comm_limit_us(c),
					  .number = c->number,
					  .n = c->facts.n,
					  .me = c->me,
					  .blocks = c->facts.pair_blocks};
	struct launch l = {.kernel = KERNEL_collective_pairs,
			   .threads = c->facts.piped_threads,
			   .args = &a,
			   .args_size = sizeof(a)};
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
	a.grid = grid_of(calls, n, a.blocks);
	l.blocks = a.lanes * a.grid;
	shown.n = list_messages(c, calls, n, messages);
	r = comm_launch(c, stream, &l, &shown);
	if (r == 0)
		comm_count(c, COMM_PAIRS);
	return r;
}
