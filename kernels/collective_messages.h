/* SPDX-License-Identifier: Apache-2.0 */
/* What a block does with its part of a small send or receive: struct collective_pairs_args. */
#pragma once

#include "kernels/collective_units.h"

struct message {
	u64 set;     /* of units */
	u64 address; /* the caller's data */
	u64 size;    /* of the item */
	u32 bytes;   /* of the part */
	u32 flag;
};

/* How a thread waits for units. */
struct message_wait {
	struct patience patience;
	u64 report;
	u32 number, peer; /* for the report */
	u32 end;          /* enum wait_end */
};

/* ---- sets of units ---- */

INLINE u64 message_set(u64 sets, u32 set_bytes, u32 block, u32 number)
{
	return sets + (u64)(block * PAIR_SETS + number % PAIR_SETS) * set_bytes;
}

/*
 * A lap's flag comes again after twice as many laps as are between two cleanings: at a cleaning,
 * what it removes has other flags than what comes next. It is never 0, which memory has that was
 * never written.
 */
INLINE u32 message_flag(u32 number)
{
	return 1 + number / PAIR_SETS % (2 * CLEAN_EVERY);
}

/* Of the sender, who knows that what was in the set before has been taken. */
INLINE void message_clean(u64 set, u32 set_bytes, u32 number)
{
	if (__builtin_expect(number / PAIR_SETS % CLEAN_EVERY != 0, 1))
		return;
	clean_place(set, set_bytes);
	fence_system();
	block_barrier();
}

/*
 * freed: so many of those that were sent, at least, were taken. More show as soon as they are half
 * of the sets.
 */
INLINE u32 message_has_room(u32 sent, u32 freed)
{
	return sent - freed < PAIR_SETS;
}

INLINE u32 message_more_taken(u64 flags, u32 freed)
{
	const u64 taken = flags + __builtin_offsetof(struct pair_flags, taken);

	return (int)(load_acquire(taken) - freed) >= (int)(PAIR_SETS / 2);
}

/* After each message. Rarely, because all threads have to have loaded their units. */
INLINE void message_acknowledge(u64 flags, u32 taken, u32 end)
{
	if (taken % (PAIR_SETS / 2))
		return;
	if (!block_any(end != WAIT_DONE) && thread_id() == 0)
		store_release(flags + __builtin_offsetof(struct pair_flags, taken), taken);
}

/* ---- units: the first one is the size ---- */

INLINE u32 message_units(const struct message *m)
{
	return 1 + (m->bytes + FLAGGED_DATA_BYTES(0) - 1) / FLAGGED_DATA_BYTES(0);
}

INLINE u32 unit_place(u32 i)
{
	return (i - 1) * FLAGGED_DATA_BYTES(0);
}

INLINE u32 unit_size(const struct message *m, u32 i)
{
	const u32 left = m->bytes - unit_place(i);

	return left < FLAGGED_DATA_BYTES(0) ? left : FLAGGED_DATA_BYTES(0);
}

INLINE vector16 message_unit(const struct message *m, u32 i)
{
	return i ? load_unit_data(m->address + unit_place(i), unit_size(m, i))
		 : vector_of(m->size, 0);
}

INLINE void message_store(const struct message *m, u32 i, vector16 v)
{
	store_unit(m->set + i * FLAGGED_UNIT_BYTES, v, m->flag);
}

/* From this thread's unit `first` on. */
INLINE void message_send(const struct message *m, u32 first)
{
	ROLLED for (u32 i = first; i < message_units(m); i += thread_count())
		message_store(m, i, message_unit(m, i));
}

/* ---- taking ---- */

INLINE void message_give_up(struct message_wait *w, u32 end)
{
	report_end(w->report, w->patience.abort, w->number, end, w->peer);
	w->end = end;
}

INLINE u64 message_size(vector16 unit)
{
	const vector16 v = data_of_unit(unit);

	return v[0] | (u64)v[1] << 32;
}

INLINE vector16 message_await(const struct message *m, u32 i, struct message_wait *w)
{
	vector16 unit = vector_of(0, 0);

	ROLLED for (u32 polls = 0; w->end == WAIT_DONE; polls++)
	{
		u32 look;

		unit = load_halves(m->set + i * FLAGGED_UNIT_BYTES);
		if (has_come(unit, m->flag))
			break;
		relax(polls);
		look = patience_look(&w->patience);
		if (look != WAIT_RUNNING)
			message_give_up(w, look);
	}
	return unit;
}

/* Each thread takes its own units, without the others. */
INLINE void message_take(const struct message *m, struct message_wait *w)
{
	ROLLED for (u32 i = thread_id(); i < message_units(m); i += thread_count())
	{
		const vector16 unit = message_await(m, i, w);

		if (w->end != WAIT_DONE)
			return;
		if (i)
			store_unit_data(m->address + unit_place(i), data_of_unit(unit),
					unit_size(m, i));
		else if (message_size(unit) != m->size)
			message_give_up(w, WAIT_DISAGREED);
	}
}
