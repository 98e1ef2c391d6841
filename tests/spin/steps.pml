/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What slots.pml and levels.pml share, as their kernels share collective_steps.h: numbers of steps, slots that take turns
 * by them, and with LANDS stores that land late.
 *
 * Spin's memory is sequentially consistent, the real one is not: a store only becomes pending, and a process of
 * its own lets it land at any later time and in any order. A flag is stored with release order: it lands after
 * what its rank stored before.
 *
 * -DFIRST: the number of the first step; -DNUMBERS: how many numbers of steps there are (2^32 in the code).
 */
#ifndef FIRST
#define FIRST 0
#endif
#ifndef NUMBERS
#define NUMBERS 8
#endif
#define FIRST_SLOTS  4 /* PIPED_FIRST_SLOTS; for what is sent: area 0 */
#define SECOND_SLOTS 2 /* PIPED_SECOND_SLOTS; for what was reduced: area 1 */

#define PLACE(area, slot, from, to) ((((area) * FIRST_SLOTS + (slot)) * N + (from)) * N + (to))
#define PLACES ((FIRST_SLOTS + SECOND_SLOTS) * N * N)
#define FLAGS  (N * N)

#ifdef TWO_FIRST_SLOTS
#define FIRST_SLOT(step) ((step) % 2)
#else
#define FIRST_SLOT(step) ((step) % FIRST_SLOTS)
#endif
#ifdef ONE_SECOND_SLOT
#define SECOND_SLOT(step) 0
#else
#define SECOND_SLOT(step) ((step) % SECOND_SLOTS)
#endif
#define SLOT_OF(area, step) ((area) -> SECOND_SLOT(step) : FIRST_SLOT(step))
/* Steps are counted without end here; flags hold them modulo NUMBERS, and are compared as signed numbers. */
#ifdef UNSIGNED
#define REACHED(flag, step) ((flag) >= (step) % NUMBERS)
#else
#define REACHED(flag, step) (((flag) + NUMBERS - (step) % NUMBERS) % NUMBERS < NUMBERS / 2)
#endif

/* A step and what was stored in it stand for the data. 0: never written, or nothing is pending. */
#define KINDS 4 /* of stores in a step */
#define DATA(step, what) ((step) * KINDS + (what) + 1)
#define STEP_OF(data)    (((data) - 1) / KINDS)
byte memory[PLACES];

#ifdef LANDS
byte pending[PLACES];
byte flag[FLAGS] = FIRST % NUMBERS;
byte next_flag[FLAGS]; /* the step, plus one */

#ifdef NO_RELEASE
#define RELEASED(from, step) true
#else
/* Nothing that the rank stored before this step is pending. */
#define OLDER(place, step) (pending[place] && STEP_OF(pending[place]) < (step))
#define FREE(from, to, step)                                                                       \
	(!OLDER(PLACE(0, 0, from, to), step) && !OLDER(PLACE(0, 1, from, to), step) &&             \
	 !OLDER(PLACE(0, 2, from, to), step) && !OLDER(PLACE(0, 3, from, to), step) &&             \
	 !OLDER(PLACE(1, 0, from, to), step) && !OLDER(PLACE(1, 1, from, to), step))
#if N == 2
#define RELEASED(from, step) (FREE(from, 0, step) && FREE(from, 1, step))
#elif N == 3
#define RELEASED(from, step) (FREE(from, 0, step) && FREE(from, 1, step) && FREE(from, 2, step))
#else
#define RELEASED(from, step)                                                                       \
	(FREE(from, 0, step) && FREE(from, 1, step) && FREE(from, 2, step) && FREE(from, 3, step))
#endif
#endif

#define LAND(i)                                                                                    \
	:: atomic { (i) < PLACES && pending[(i) % PLACES] ->                                       \
		memory[(i) % PLACES] = pending[(i) % PLACES]; pending[(i) % PLACES] = 0 }
#define LAND_FLAG(i)                                                                               \
	:: atomic { (i) < FLAGS && next_flag[(i) % FLAGS] &&                                       \
		    RELEASED((i) % FLAGS / N, next_flag[(i) % FLAGS] - 1) ->                       \
		flag[(i) % FLAGS] = (next_flag[(i) % FLAGS] - 1) % NUMBERS; next_flag[(i) % FLAGS] = 0 }
#define LAND4(i)  LAND(i) LAND((i) + 1) LAND((i) + 2) LAND((i) + 3)
#define LAND12(i) LAND4(i) LAND4((i) + 4) LAND4((i) + 8)

#if N > 4 || FIRST_SLOTS != 4 || SECOND_SLOTS != 2
#error the stores to some places would never land
#endif

active proctype land()
{
end:	do
	LAND12(0) LAND12(12)
#if N > 2
	LAND12(24) LAND12(36) LAND12(48)
#endif
#if N > 3
	LAND12(60) LAND12(72) LAND12(84)
	LAND_FLAG(9) LAND_FLAG(10) LAND_FLAG(11) LAND_FLAG(12)
	LAND_FLAG(13) LAND_FLAG(14) LAND_FLAG(15)
#endif
	LAND_FLAG(0) LAND_FLAG(1) LAND_FLAG(2) LAND_FLAG(3) LAND_FLAG(4)
	LAND_FLAG(5) LAND_FLAG(6) LAND_FLAG(7) LAND_FLAG(8)
	od
}
#endif
