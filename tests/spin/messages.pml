/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How kernels/collective_messages.c and collective_pairs.c send messages in units, for one block of a pair of ranks: sets
 * of units that the sender fills in turn, a flag in each half of a unit, and a counter of messages that were taken out
 * again, which the receiver stores once for HALF of the sets. The first unit of a message tells its size; in one message,
 * any, or none, rank 0 sends another one than rank 1 expects. Sets are cleared before their flags come back.
 *
 * Spin's memory is sequentially consistent, the real one is not: a store only becomes pending, and a process of
 * its own lets it land at any later time, each half by itself and in any order. Only stores to the same place by the
 * same thread keep their order.
 *
 * -DMESSAGES: in each direction, each of 1 to -DUNITS units; -DONE_WAY: from rank 0 to rank 1 alone, which has nothing
 * else to do, so that each of its threads waits for a unit of its own. -DSETS. -DCLEAN: laps of the sets from one clearing
 * to the next (2^14 in the code). -DFIRST: the number of the first message; numbers are those modulo -DNUMBERS (2^32 in
 * the code). Any of the names in tests/spin/check removes one part of the protocol.
 */
#ifndef SETS
#define SETS 2
#endif
#ifndef CLEAN
#define CLEAN 2
#endif
#ifndef FIRST
#define FIRST 0
#endif
#ifndef NUMBERS
#define NUMBERS 16
#endif
#ifndef HALVES
#define HALVES 1
#endif
#define HALF (SETS / 2)
#ifdef FEW_FLAGS
#define FLAGS CLEAN
#else
#define FLAGS (2 * CLEAN)
#endif

/* A direction is named by its sender. */
#define PLACE(from, set, u, h) ((((from) * SETS + (set)) * UNITS + (u)) * HALVES + (h))
#ifdef ONE_WAY
#define WAYS 1
#else
#define WAYS 2
#endif
#define PLACES (WAYS * SETS * UNITS * HALVES)

/* Messages are counted without end here. */
#define VALUE(message) (((message) + FIRST) % NUMBERS)
#define SET_OF(message) (VALUE(message) % SETS)
#define LAP_OF(message) (VALUE(message) / SETS)
#define FLAG(message)   (1 + LAP_OF(message) % FLAGS)
#ifdef NO_CLEAN
#define MUST_CLEAN(message) false
#else
#define MUST_CLEAN(message) (LAP_OF(message) % CLEAN == 0)
#endif

/* The message's number, plus one, stands for the data and determines the flag; 0: never written, or nothing is pending. */
byte memory[PLACES], pending[PLACES];
bit clean_pending[PLACES]; /* by another thread of the block */
byte acked[2] = VALUE(0);
byte next_acked[2]; /* the value, plus one; 0: nothing is pending */

/* Chosen when the first rank comes to the message. */
byte units_of[WAYS * MESSAGES];
byte odd = MESSAGES;
bool failed;
#define IS_ODD(from, message) ((from) == 0 && (message) == odd)
#define UNITS_SENT(from, message) \
	(IS_ODD(from, message) -> 1 + units_of[(from) * MESSAGES + (message)] % UNITS : \
				  units_of[(from) * MESSAGES + (message)])

inline choose(from, message)
{
	if
	:: units_of[(from) * MESSAGES + (message)] == 0 ->
		select (u : 1 .. UNITS);
		units_of[(from) * MESSAGES + (message)] = u
	:: else
	fi;
	u = 0
}

#define LAND(i) \
	:: atomic { (i) < PLACES && pending[(i) % PLACES] -> \
		memory[(i) % PLACES] = pending[(i) % PLACES]; pending[(i) % PLACES] = 0 } \
	:: atomic { (i) < PLACES && clean_pending[(i) % PLACES] -> \
		memory[(i) % PLACES] = 0; clean_pending[(i) % PLACES] = 0 }
#define LAND4(i) LAND(i) LAND((i) + 1) LAND((i) + 2) LAND((i) + 3)
#define LAND_ACKED(from) \
	:: atomic { next_acked[from] -> acked[from] = next_acked[from] - 1; next_acked[from] = 0 }

#if PLACES > 16
#error the stores to some places would never land
#endif

active proctype land()
{
end:	do
	LAND4(0) LAND4(4) LAND4(8) LAND4(12)
	LAND_ACKED(0) LAND_ACKED(1)
	od
}

/* ---- sending ---- */

/* freed: of what was sent, as was last seen. How many more were taken shows as soon as they are HALF. */
#define ROOM (VALUE(sent) + NUMBERS - freed) % NUMBERS < SETS
#ifdef NO_ACK
#define SEES_ACK true
#elif defined(UNSIGNED)
#define SEES_ACK (acked[me] >= freed + HALF)
#else
#define SEES_ACK ((acked[me] + NUMBERS - freed) % NUMBERS >= HALF && \
		  (acked[me] + NUMBERS - freed) % NUMBERS < NUMBERS / 2)
#endif
#ifdef ADDS_ALL
#define ADDED SETS
#else
#define ADDED HALF
#endif

#define SENDS (me < WAYS -> MESSAGES : 0)
#define TAKES (1 - me < WAYS -> MESSAGES : 0)
#ifdef TAKES_FIRST
#define MAY_SEND (sent < SENDS && taken == TAKES)
#else
#define MAY_SEND (sent < SENDS)
#endif

inline clean_set()
{
	atomic {
		u = 0;
		do
		:: u < UNITS ->
			clean_pending[PLACE(me, SET_OF(sent), u, 0)] = 1;
			clean_pending[PLACE(me, SET_OF(sent), u, HALVES - 1)] = 1;
			u++
		:: else -> break
		od;
		u = 0
	}
#ifndef NO_FENCE
	/* fence_system() and the barrier of the block */
	atomic {
		do
		:: u < UNITS ->
			!clean_pending[PLACE(me, SET_OF(sent), u, 0)] &&
				!clean_pending[PLACE(me, SET_OF(sent), u, HALVES - 1)];
			u++
		:: else -> break
		od;
		u = 0
	}
#endif
}

/* Two stores to one place land in their order. */
inline send_units()
{
	atomic {
		choose(me, sent);
		do
		:: u < UNITS_SENT(me, sent) ->
			!pending[PLACE(me, SET_OF(sent), u, 0)] &&
				!pending[PLACE(me, SET_OF(sent), u, HALVES - 1)];
			pending[PLACE(me, SET_OF(sent), u, 0)] = sent + 1;
			pending[PLACE(me, SET_OF(sent), u, HALVES - 1)] = sent + 1;
			u++
		:: else -> break
		od;
		u = 0;
		sent++
	}
}

inline send_message()
{
	if
	:: MUST_CLEAN(sent) -> clean_set()
	:: else
	fi;
	send_units()
}

/* ---- taking ---- */

/* 16 bytes are loaded at once and used when both flags are the wanted one; each half is whole. */
#define HALF_AT(u, h)  memory[PLACE(1 - me, SET_OF(taken), u, h)]
#define IS_NOW(half)   ((half) != 0 && FLAG((half) - 1) == FLAG(taken))
#ifdef ONE_FLAG
#define HAS_COME(u) IS_NOW(HALF_AT(u, 0))
#else
#define HAS_COME(u) (IS_NOW(HALF_AT(u, 0)) && IS_NOW(HALF_AT(u, HALVES - 1)))
#endif
#ifdef SENDS_FIRST
#define MAY_TAKE (taken < TAKES && sent == SENDS)
#else
#define MAY_TAKE (taken < TAKES)
#endif
#ifdef NO_SIZE
#define AGREES true
#else
#define AGREES (!IS_ODD(1 - me, taken))
#endif
#define ACKS_NOW(number) (VALUE(number) % HALF == 0)

inline acknowledge(number)
{
	if
	:: ACKS_NOW(number) -> atomic { next_acked[1 - me] == 0; next_acked[1 - me] = VALUE(number) + 1 }
	:: else
	fi
}

/* Each unit may come at any time; a wait ends when another thread has given up. */
inline take_message()
{
#ifdef ACKS_EARLY
	acknowledge(taken + 1);
#endif
	assert(HALF_AT(0, 0) == taken + 1 && HALF_AT(0, HALVES - 1) == taken + 1);
	if
	:: AGREES ->
		assert(!IS_ODD(1 - me, taken));
		u = 1;
		do
		:: u < units_of[(1 - me) * MESSAGES + taken] ->
			atomic {
				HAS_COME(u);
				assert(HALF_AT(u, 0) == taken + 1);
				assert(HALF_AT(u, HALVES - 1) == taken + 1);
				u++
			}
		:: else -> break
		od;
		u = 0;
#ifndef ACKS_EARLY
		acknowledge(taken + 1);
#endif
		taken++
	:: else ->
		assert(IS_ODD(1 - me, taken));
		failed = true
	fi
}

/*
 * One thread of a receiver that has nothing else to do: each waits for its own unit, and all for each other only where the
 * counter is stored.
 */
byte passed[UNITS]; /* messages, by thread */
#define ALL_PASSED(number) (passed[0] >= (number) && passed[UNITS - 1] >= (number))
#if UNITS > 2 && defined(ONE_WAY)
#error ALL_PASSED leaves out a thread
#endif

proctype thread(byte mine)
{
	byte me = 1, taken = 0, u = 0;

	do
	:: failed || taken == MESSAGES -> break
	:: !failed && taken < MESSAGES ->
		atomic { choose(0, taken) }
#ifdef ACKS_EARLY
		if
		:: mine == 0 -> acknowledge(taken + 1)
		:: else
		fi;
#endif
		atomic {
			if
			:: mine >= units_of[taken]
			:: mine < units_of[taken] && HAS_COME(mine) ->
				assert(HALF_AT(mine, 0) == taken + 1 && HALF_AT(mine, HALVES - 1) == taken + 1);
				if
				:: mine == 0 && !AGREES -> failed = true
				:: else -> assert(mine || !IS_ODD(0, taken))
				fi
			:: failed
			fi;
			taken++;
			passed[mine] = taken
		}
#ifndef ACKS_EARLY
		if
		:: ACKS_NOW(taken) ->
#ifndef NO_BARRIER
			ALL_PASSED(taken) || failed;
#endif
			if
			:: mine == 0 && !failed -> acknowledge(taken)
			:: else
			fi
		:: else
		fi
#endif
	od
}

proctype rank(byte me)
{
	byte sent = 0, taken = 0, freed = VALUE(0), u = 0;

	do
	:: failed -> break
	:: !failed && MAY_SEND && ROOM -> send_message()
	:: !failed && MAY_SEND && !(ROOM) && SEES_ACK -> freed = (freed + ADDED) % NUMBERS
	:: !failed && MAY_TAKE && HAS_COME(0) -> take_message()
	:: sent == SENDS && taken == TAKES -> break
	od
}

init
{
	select (odd : 0 .. MESSAGES);
	atomic {
		run rank(0);
#ifdef ONE_WAY
		run thread(0);
		run thread(UNITS - 1)
#else
		run rank(1)
#endif
	}
}
