/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How kernels/collective_pairs.c sends small and large items one behind the other, for one block of a pair of ranks. Both
 * ranks send and receive. Each item has a unit: its size, and the data of a small one. A large one has chunks too, in
 * slots. (Units that are torn, numbers that wrap, and clearing: messages.pml. Counters that wrap: pairs.pml.)
 *
 * Spin's memory is sequentially consistent, the real one is not: a store only becomes pending, and a process of its own
 * lets it land at any later time and in any order. Counters are stored with release order: they land after the chunks that
 * their rank stored before. (The code stores some of them later than the model, all at once. That is among the orders here,
 * because any may land late, and what a rank may do never depends on its own counters.) The unit of a large item is waited
 * for to compare sizes alone: its data would be right without.
 *
 * -DITEMS: in each direction, each of them small or of 1 to MOST chunks; -DONE_WAY: only one direction has any. Any of the
 * names in tests/spin/check removes one part of the protocol.
 */
#define SETS  2 /* of units; the receiver tells of each item that it took */
#define SLOTS 2

/* A direction is named by its sender. */
#define ITEM(from, item) ((from) * ITEMS + (item))
#define SET(from, item) ((from) * SETS + (item) % SETS)
#define SLOT(from, chunk) ((from) * SLOTS + (chunk) % SLOTS)

byte chunks[2 * ITEMS]; /* of an item; 0: it is small */
/* The number of item or chunk, plus one, stands for the data; 0: never written, or nothing is pending. */
byte unit[2 * SETS], next_unit[2 * SETS];
byte slot[2 * SLOTS], next_slot[2 * SLOTS];
/* Chunks that have arrived and that were taken, items that were taken. next_: the value, plus one; 0: nothing is pending. */
byte arrived[2], freed[2], told[2];
byte next_arrived[2], next_freed[2], next_told[2];

#ifdef NO_RELEASE
#define RELEASED(from) true
#else
#define RELEASED(from) (!next_slot[SLOT(from, 0)] && !next_slot[SLOT(from, 1)])
#endif

#define LAND(memory, i) \
	:: atomic { next_##memory[i] -> memory[i] = next_##memory[i]; next_##memory[i] = 0 }
#define LAND_COUNTER(memory, from, when) \
	:: atomic { next_##memory[from] && (when) -> \
		memory[from] = next_##memory[from] - 1; next_##memory[from] = 0 }

active proctype land()
{
end:	do
	LAND(unit, 0) LAND(unit, 1) LAND(unit, 2) LAND(unit, 3)
	LAND(slot, 0) LAND(slot, 1) LAND(slot, 2) LAND(slot, 3)
	LAND_COUNTER(arrived, 0, RELEASED(0)) LAND_COUNTER(arrived, 1, RELEASED(1))
	LAND_COUNTER(freed, 0, true) LAND_COUNTER(freed, 1, true)
	LAND_COUNTER(told, 0, true) LAND_COUNTER(told, 1, true)
	od
}

#ifdef ONE_WAY
#define COUNT(from) ((from) == 0 -> ITEMS : 0)
#else
#define COUNT(from) ITEMS
#endif

/* A cursor: an item, and the next of its chunks. */
#define ADVANCE(from, item, part) \
	part++; \
	if \
	:: part >= chunks[ITEM(from, item)] -> item++; part = 0 \
	:: else \
	fi

#ifdef NO_ROOM
#define HAS_ROOM true
#else
#define HAS_ROOM (send - told[me] < SETS)
#endif
#ifdef NO_FREED
#define HAS_SLOT true
#else
#define HAS_SLOT (sent - freed[me] < SLOTS)
#endif
#define CAN_SEND \
	(send < COUNT(me) && (sent_part || HAS_ROOM) && (!chunks[ITEM(me, send)] || HAS_SLOT))

#ifdef NO_ARRIVED
#define HAS_ARRIVED true
#else
#define HAS_ARRIVED (arrived[1 - me] > taken)
#endif
#ifdef SENDS_FIRST
#define MAY_TAKE (send == COUNT(me))
#else
#define MAY_TAKE true
#endif
#define CAN_TAKE \
	(take < COUNT(1 - me) && MAY_TAKE && \
	 (taken_part || unit[SET(1 - me, take)] == take + 1) && \
	 (!chunks[ITEM(1 - me, take)] || HAS_ARRIVED))

proctype rank(byte me)
{
	byte send = 0, sent_part = 0, sent = 0; /* sent, taken: chunks */
	byte take = 0, taken_part = 0, taken = 0;

	do
	:: CAN_SEND ->
		/* Two stores to one place land in their order. */
		if
		:: sent_part -> skip
		:: else -> atomic {
			!next_unit[SET(me, send)] -> next_unit[SET(me, send)] = send + 1
		}
		fi;
		if
		:: chunks[ITEM(me, send)] ->
			atomic {
				!next_slot[SLOT(me, sent)] -> next_slot[SLOT(me, sent)] = sent + 1
			};
			atomic { sent++; next_arrived[me] = sent + 1 }
		:: else
		fi;
		atomic { ADVANCE(me, send, sent_part) }
	:: CAN_TAKE ->
#ifdef ACKS_EARLY
		next_told[1 - me] = take + 2;
#endif
		if
		:: chunks[ITEM(1 - me, take)] ->
			assert(slot[SLOT(1 - me, taken)] == taken + 1);
			atomic { taken++; next_freed[1 - me] = taken + 1 }
		:: else -> assert(unit[SET(1 - me, take)] == take + 1)
		fi;
		atomic {
#ifndef ACKS_EARLY
			if
			:: !taken_part -> next_told[1 - me] = take + 2
			:: else
			fi;
#endif
			ADVANCE(1 - me, take, taken_part)
		}
	:: send == COUNT(me) && take == COUNT(1 - me) -> break
	od
}

init
{
	byte i, n;

	atomic {
		for (i : 0 .. ITEMS + COUNT(1) - 1) {
			select(n : 0 .. MOST);
			chunks[i] = n
		}
		run rank(0);
		run rank(1)
	}
}
