/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks find that they call different things (src/collective/agree.c): a rank stores a record of its call, then
 * loads those of the others, and enqueues the operation if none differs. Records are used again once all have compared.
 *
 * One rank, any, differs in one call, any, or none does. Spin's memory is sequentially consistent, the real one is not:
 * a record's count only becomes pending, and lands at any later time; its tag waits for that (release order), and the
 * rank waits for the tag (the fence between its store and its loads).
 *
 * -DN: ranks; -DOPS: calls of each; -DROOM: records, at least 2, because a rank says with its next call what it has
 * compared. Any of the names in tests/spin/check removes one part.
 */
#define PLACE(rank, op) ((rank) * ROOM + (op) % ROOM)

/* Tags: the call's number, plus one. Counts: 1, or 2 where a rank differs; 0: never written. */
byte tag[N * ROOM], count[N * ROOM];
byte next_tag[N], next_count[N], next_place[N]; /* pending; 0: nothing */
byte compared[N];
byte enqueued[N * OPS]; /* what it was; 0: not */
byte odd, odd_op;       /* odd N: nobody */
bool failed;

#ifdef NO_RELEASE
#define RELEASED(r) true
#else
#define RELEASED(r) (next_count[r] == 0)
#endif

#define LAND(r) \
	:: atomic { next_count[r] -> count[next_place[r]] = next_count[r]; next_count[r] = 0 } \
	:: atomic { next_tag[r] && RELEASED(r) -> tag[next_place[r]] = next_tag[r]; next_tag[r] = 0 }

active proctype land()
{
end:	do
	LAND(0)
	LAND(1)
#if N > 2
	LAND(2)
#endif
	od
}

#ifdef NO_ROOM
#define HAS_ROOM(r, op) true
#elif N > 2
#define HAS_ROOM(r, op) (compared[((r) + 1) % N] + ROOM > op && compared[((r) + 2) % N] + ROOM > op)
#else
#define HAS_ROOM(r, op) (compared[1 - (r)] + ROOM > op)
#endif

proctype rank(byte me)
{
	byte op, mine, peer;
	bool differs;

	for (op : 0 .. OPS - 1) {
		if
		:: failed -> goto stop
		:: HAS_ROOM(me, op)
		fi;
		compared[me] = op;
		mine = (odd == me && odd_op == op -> 2 : 1);
		/* One record is pending at a time. */
		atomic {
			next_count[me] == 0 && next_tag[me] == 0;
			next_place[me] = PLACE(me, op);
			next_count[me] = mine;
			next_tag[me] = op + 1
		}
#ifndef NO_FENCE
		next_tag[me] == 0;
#endif
		differs = false;
		for (peer : 0 .. N - 1) {
			if
			:: peer != me && tag[PLACE(peer, op)] == op + 1 ->
				if
				:: count[PLACE(peer, op)] != mine -> differs = true
				:: else
				fi
			:: else
			fi
		}
		if
		:: differs ->
			failed = true;
			assert(odd < N && odd_op == op);
			goto stop
		:: else
		fi;
		d_step {
			enqueued[me * OPS + op] = mine;
			peer = 0;
			do
			:: peer < N ->
				assert(enqueued[peer * OPS + op] == 0 || enqueued[peer * OPS + op] == mine);
				peer++
			:: else -> break
			od
		}
	}
stop:	skip
}

init {
	select (odd : 0 .. N);
	select (odd_op : 0 .. OPS - 1);
	atomic {
		run rank(0);
		run rank(1);
#if N > 2
		run rank(2)
#endif
	}
}
