// SPDX-License-Identifier: Apache-2.0
/*
 * Data and flags exchanged between two kernels that run at once, as in inference engines'
 * all-reduce.
 */
#include "kernels/found.h"

/* This block's share of the vectors of a round. */
static inline u64 share_begin(const struct exchange_args *a, u64 block)
{
	return a->bytes / 16 * block / block_count();
}

static inline void produce(const struct exchange_args *a, u64 round)
{
	const u64 to = a->produce + round % a->places * a->stride;
	const u64 tag = pattern_tag_round_on(a->produce_tag, round);
	const u64 end = share_begin(a, block_id() + 1ul);

	for (u64 i = share_begin(a, block_id()) + thread_id(); i < end; i += thread_count()) {
		const u64 low = pattern_word(tag, 2 * i), high = pattern_word(tag, 2 * i + 1);
		vector16 v = {(u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32)};

		store_vector(to + i * 16, v);
	}
}

static inline void consume_word(struct found *f, const struct exchange_args *a, u64 word, u64 tag,
				u64 index)
{
	if (word == pattern_word(tag, index))
		return;
	if (!f->r.wrong++)
		f->r.first_wrong = index;
	f->r.last_wrong = index;
	found_wrong(f, word, tag, index, a->bytes / 8);
}

/* Whether anything was wrong. */
static inline u32 consume(const struct exchange_args *a, u64 round)
{
	const u64 from = a->consume + round % a->places * a->stride;
	const u64 tag = pattern_tag_round_on(a->consume_tag, round);
	const u64 end = share_begin(a, block_id() + 1ul);
	struct found f = {{0}, 0};

	for (u64 i = share_begin(a, block_id()) + thread_id(); i < end; i += thread_count()) {
		const vector16 v = load_vector(from + i * 16);

		consume_word(&f, a, v[0] | (u64)v[1] << 32, tag, 2 * i);
		consume_word(&f, a, v[2] | (u64)v[3] << 32, tag, 2 * i + 1);
	}
	if (f.r.wrong)
		found_report(&f, a->report);
	return f.r.wrong != 0;
}

/*
 * Waits until this block has come here at the other end too. Only the release and the acquire of
 * one thread, with the block's barriers around them, order the data of all: a fence would not help,
 * and the engines use none either.
 */
static inline u32 meet_other(const struct exchange_args *a, u32 count, struct patience *p)
{
	u32 end = WAIT_DONE;

	block_barrier();
	if (thread_id() == 0) {
		store_release(a->post + block_id() * 4ul, count);
		end = wait_for(a->poll + block_id() * 4ul, count, p);
	}
	return block_end(end);
}

/* One round, from flag `count` on. */
static inline u32 exchange_round(const struct exchange_args *a, struct exchange_state *s,
				 struct patience *p)
{
	const u64 round = s->count / 2;
	u32 end, wrong = 0;

	if (a->produce)
		produce(a, round);
	end = meet_other(a, s->count + 1, p);
	if (end != WAIT_DONE)
		return end;
	s->count++;
	if (a->consume)
		wrong = consume(a, round);
	if (block_any(wrong) && !s->wrong_round)
		s->wrong_round = (u32)round + 1;
	end = meet_other(a, s->count + 1, p);
	s->count += end == WAIT_DONE;
	return end;
}

KERNEL(exchange)
{
	const u64 place = a.state + block_id() * sizeof(struct exchange_state);
	struct exchange_state s = AT(struct exchange_state, place);
	struct patience p = patience_of(a.limit_ns, a.abort);

	for (u64 i = 0; i < a.rounds && s.end <= WAIT_DONE; i++)
		s.end = exchange_round(&a, &s, &p);
	block_barrier(); /* all have read the state */
	if (thread_id() == 0)
		AT(struct exchange_state, place) = s;
}
