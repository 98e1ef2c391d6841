/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How kernels/collective_pairs.c sends chunks of large messages, for one block of a pair of ranks: slots that the sender
 * fills in turn, a counter of chunks that arrived, and one of chunks that were taken out again. Both ranks send and
 * receive. (Where a message begins, a unit tells its size: messages.pml.)
 *
 * Spin's memory is sequentially consistent, the real one is not: a store only becomes pending, and a process of its own
 * lets it land at any later time and in any order. A counter is stored with release order: it lands after what its rank
 * stored before. (The code stores both counters after it has sent one chunk and taken another. That is among the orders here, because both
 * may land late, and what a rank may do never depends on its own counters.)
 *
 * -DCHUNKS: in each direction. -DFIRST: what the counters start with; -DNUMBERS: how many values they have (2^32 in the
 * code). Any of the names in tests/spin/check removes one part of the protocol.
 */
#define SLOTS 2
#ifndef FIRST
#define FIRST 0
#endif
#ifndef NUMBERS
#define NUMBERS 8
#endif

/* A direction is named by its sender. */
#define PLACE(from, slot) ((from) * SLOTS + (slot))
#ifdef ONE_SLOT
#define SLOT_OF(chunk) 0
#else
#define SLOT_OF(chunk) ((chunk) % SLOTS)
#endif
/* Chunks are counted without end here; counters hold them modulo NUMBERS, and are compared as signed numbers. */
#define VALUE(chunk) (((chunk) + FIRST) % NUMBERS)
#ifdef UNSIGNED
#define BEYOND(counter, chunk) ((counter) > VALUE(chunk))
#else
#define BEYOND(counter, chunk) \
	(((counter) + NUMBERS - VALUE(chunk)) % NUMBERS != 0 && \
	 ((counter) + NUMBERS - VALUE(chunk)) % NUMBERS < NUMBERS / 2)
#endif
#define IN_USE(from, chunk) ((VALUE(chunk) + NUMBERS - freed[from]) % NUMBERS)

/* The chunk's number, plus one, stands for the data; 0: never written, or nothing is pending. */
byte memory[2 * SLOTS], pending[2 * SLOTS];
byte arrived[2] = VALUE(0);
byte freed[2] = VALUE(0);
byte next_arrived[2], next_freed[2]; /* the value, plus one; 0: nothing is pending */

#ifdef NO_RELEASE
#define RELEASED(from) true
#else
#define RELEASED(from) (!pending[PLACE(from, 0)] && !pending[PLACE(from, 1)])
#endif

#define LAND(i) \
	:: atomic { pending[i] -> memory[i] = pending[i]; pending[i] = 0 }
#define LAND_ARRIVED(from) \
	:: atomic { next_arrived[from] && RELEASED(from) -> \
		arrived[from] = next_arrived[from] - 1; next_arrived[from] = 0 }
#define LAND_FREED(from) \
	:: atomic { next_freed[from] -> freed[from] = next_freed[from] - 1; next_freed[from] = 0 }

active proctype land()
{
end:	do
	LAND(0) LAND(1) LAND(2) LAND(3)
	LAND_ARRIVED(0) LAND_ARRIVED(1)
	LAND_FREED(0) LAND_FREED(1)
	od
}

#ifdef NO_FREED
#define CAN_SEND (sent < CHUNKS)
#else
#define CAN_SEND (sent < CHUNKS && IN_USE(me, sent) < SLOTS)
#endif
#ifdef NO_ARRIVED
#define MAY_TAKE true
#else
#define MAY_TAKE BEYOND(arrived[1 - me], taken)
#endif
#ifdef SENDS_FIRST
#define CAN_TAKE (sent == CHUNKS && taken < CHUNKS && MAY_TAKE)
#else
#define CAN_TAKE (taken < CHUNKS && MAY_TAKE)
#endif

proctype rank(byte me)
{
	byte sent = 0, taken = 0;

	do
	:: CAN_SEND ->
		/* Two stores to one place land in their order. */
		atomic {
			pending[PLACE(me, SLOT_OF(sent))] == 0 ->
			pending[PLACE(me, SLOT_OF(sent))] = sent + 1
		}
		atomic { sent++; next_arrived[me] = VALUE(sent) + 1 }
	:: CAN_TAKE ->
#ifdef FREES_EARLY
		next_freed[1 - me] = VALUE(taken + 1) + 1;
#endif
		assert(memory[PLACE(1 - me, SLOT_OF(taken))] == taken + 1);
		atomic { taken++; next_freed[1 - me] = VALUE(taken) + 1 }
	:: sent == CHUNKS && taken == CHUNKS -> break
	od
}

init
{
	atomic {
		run rank(0);
		run rank(1)
	}
}
