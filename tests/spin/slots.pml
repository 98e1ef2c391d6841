/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of kernels/collective_piped.c, for one block of each rank: four slots for each sender that take turns for what
 * is sent, two for what was reduced, and a flag for each sender that holds the number of its last step. A chunk is sent before
 * the others have done the last step.
 *
 * Spin's memory is sequentially consistent, the real one is not: a store only becomes pending, and a process of
 * its own lets it land at any later time and in any order. A flag is stored with release order: it lands after
 * what its rank stored before.
 *
 * -DN: ranks. -DOPS: operations, one after the other, each with one or two steps and up to -DCHUNKS chunks. -DFIRST: the
 * number of the first step; -DNUMBERS: how many numbers of steps there are (2^32 in the code). Any of the names in
 * tests/spin/check removes one part of the protocol.
 */
#ifndef FIRST
#define FIRST 0
#endif
#ifndef NUMBERS
#define NUMBERS 8
#endif
#define FIRST_SLOTS  4 /* for what is sent: area 0 */
#define SECOND_SLOTS 2 /* for what was reduced: area 1 */

#define PLACE(area, slot, from, to) ((((area) * FIRST_SLOTS + (slot)) * N + (from)) * N + (to))
#define PLACES ((FIRST_SLOTS + SECOND_SLOTS) * N * N)
#define FLAGS  (N * N)

#ifdef TWO_FIRST_SLOTS
#define FIRST_SLOT(step) ((step) & 1)
#else
#define FIRST_SLOT(step) ((step) & 3)
#endif
#ifdef ONE_SECOND_SLOT
#define SECOND_SLOT(step) 0
#else
#define SECOND_SLOT(step) ((step) & 1)
#endif
#define SLOT_OF(area, step) ((area) -> SECOND_SLOT(step) : FIRST_SLOT(step))
/* Steps are counted without end here; flags hold them modulo NUMBERS, and are compared as signed numbers. */
#ifdef UNSIGNED
#define REACHED(flag, step) ((flag) >= (step) % NUMBERS)
#else
#define REACHED(flag, step) (((flag) + NUMBERS - (step) % NUMBERS) % NUMBERS < NUMBERS / 2)
#endif

/* The step in which it was written, plus one, stands for the data; 0: never written, or nothing is pending. */
byte memory[PLACES], pending[PLACES];
byte flag[FLAGS] = FIRST % NUMBERS;
byte next_flag[FLAGS]; /* the step, plus one */

byte chosen = 0; /* operations: the same for all ranks */
#define RECENT 4 /* older choices are forgotten */
byte chunks_of[RECENT];
bit two_steps[RECENT];

#ifdef NO_RELEASE
#define RELEASED(from, step) true
#else
/* Nothing that the rank stored before this step is pending. */
#define OLDER(place, step) (pending[place] && pending[place] <= (step))
#define FREE(from, to, step) \
	(!OLDER(PLACE(0, 0, from, to), step) && !OLDER(PLACE(0, 1, from, to), step) && \
	 !OLDER(PLACE(0, 2, from, to), step) && !OLDER(PLACE(0, 3, from, to), step) && \
	 !OLDER(PLACE(1, 0, from, to), step) && !OLDER(PLACE(1, 1, from, to), step))
#if N == 2
#define RELEASED(from, step) (FREE(from, 0, step) && FREE(from, 1, step))
#else
#define RELEASED(from, step) (FREE(from, 0, step) && FREE(from, 1, step) && FREE(from, 2, step))
#endif
#endif

#define LAND(i) \
	:: atomic { (i) < PLACES && pending[(i) % PLACES] -> \
		memory[(i) % PLACES] = pending[(i) % PLACES]; pending[(i) % PLACES] = 0 }
#define LAND_FLAG(i) \
	:: atomic { (i) < FLAGS && next_flag[(i) % FLAGS] && \
		    RELEASED((i) % FLAGS / N, next_flag[(i) % FLAGS] - 1) -> \
		flag[(i) % FLAGS] = (next_flag[(i) % FLAGS] - 1) % NUMBERS; next_flag[(i) % FLAGS] = 0 }
#define LAND4(i)  LAND(i) LAND((i) + 1) LAND((i) + 2) LAND((i) + 3)
#define LAND12(i) LAND4(i) LAND4((i) + 4) LAND4((i) + 8)

#if PLACES > 60 || FLAGS > 9
#error the stores to some places would never land
#endif

active proctype land()
{
end:	do
	LAND12(0) LAND12(12)
#if N > 2
	LAND12(24) LAND12(36) LAND12(48)
#endif
	LAND_FLAG(0) LAND_FLAG(1) LAND_FLAG(2) LAND_FLAG(3) LAND_FLAG(4)
	LAND_FLAG(5) LAND_FLAG(6) LAND_FLAG(7) LAND_FLAG(8)
	od
}

inline choose()
{
	if
	:: chosen >= op
	:: else ->
		chosen++;
		select (i : 1 .. CHUNKS);
		chunks_of[op % RECENT] = i;
		if
		:: two_steps[op % RECENT] = 0
		:: two_steps[op % RECENT] = 1
		fi;
		chunks_of[(op + 2) % RECENT] = 0;
		two_steps[(op + 2) % RECENT] = 0
	fi
}

/* One flag after the other, as far as they have come: waiting in another order changes nothing. */
inline wait_for_step()
{
#ifdef NO_WAIT
	skip
#else
	atomic {
		r = 0;
		do
		:: r < N && r != me -> REACHED(flag[r * N + me], step); r++
		:: r < N && r == me -> r++
		:: else -> break
		od;
		r = 0
	}
#endif
}

/* The stores of a step, in any order: they land later. */
inline send(area)
{
	atomic {
		r = 0;
		do
		:: r < N ->
			if
			:: r != me -> pending[PLACE(area, SLOT_OF(area, step), me, r)] = step + 1
			:: else
			fi;
			r++
		:: else -> break
		od;
		r = 0
	}
}

/* What was written in the step before. The loads of different senders are separate. */
inline take(area)
{
	r = 0;
	do
	:: atomic { r < N && r != me ->
		assert(memory[PLACE(area, SLOT_OF(area, step - 1), r, me)] == step);
		r++ }
	:: atomic { r < N && r == me -> r++ }
	:: atomic { r == N -> r = 0; break }
	od
}

inline tell_step()
{
	atomic {
		r = 0;
		do
		:: r < N ->
			if
#ifdef NO_TELL
			:: r != me && chunk < chunks_of[op % RECENT] -> next_flag[me * N + r] = step + 1
#else
			:: r != me -> next_flag[me * N + r] = step + 1
#endif
			:: else
			fi;
			r++
		:: else -> break
		od;
		r = 0
	}
}

#define CHUNKS_OF chunks_of[op % RECENT]
#define STEPS     (CHUNKS_OF + 1 + two_steps[op % RECENT])

proctype rank(byte me)
{
	byte step = FIRST, op = 0, chunk = 0, r = 0, i = 0;

	do
	:: op < OPS ->
		atomic {
			op++;
			choose();
			i = 0;
			chunk = 0
		}
		do
		:: chunk < STEPS ->
			if
			:: chunk < CHUNKS_OF -> send(0)
			:: else
			fi;
			wait_for_step();
#ifdef TELL_EARLY
			step++;
			tell_step();
			step--;
#endif
			if
			:: chunk >= 1 && chunk - 1 < CHUNKS_OF ->
				take(0);
				if
				:: two_steps[op % RECENT] -> send(1)
				:: else
				fi
			:: else
			fi;
			if
			:: chunk >= 2 && chunk - 2 < CHUNKS_OF && two_steps[op % RECENT] -> take(1)
			:: else
			fi;
			step++;
#ifndef TELL_EARLY
			tell_step();
#endif
			chunk++
		:: else -> break
		od
	:: else -> break
	od
}

init
{
	atomic {
		byte k;

		for (k : 0 .. N - 1) {
			run rank(k)
		}
	}
}
