/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which kernels/collective_pairs.c exchanges with several ranks (src/collective/pairs.c): a launch has a
 * lane for each peer, lane k for the one whose number and this rank's add up to k, modulo N, and several blocks for each
 * lane. Of each rank only one block runs at a time, in ascending order, as if there were no room for more: a launch must
 * end all the same. (How data gets from one rank to the other is in pairs.pml.)
 *
 * -DN: ranks. Each sends 0, 1 or -DMOST chunks to each other one, divided among -DBLOCKS blocks; a rank launches no lane
 * for one with which it has nothing to exchange, and no more blocks of a lane than its largest item has chunks. Any of
 * the names in tests/spin/check removes one part.
 */
#define SLOTS 2
#define FROM_TO(from, to) ((from) * N + (to))
#define CHUNKS(from, to)  chunks[FROM_TO(from, to)]
/* Chunk c is block c % BLOCKS's. */
#define SHARE(from, to)   ((CHUNKS(from, to) + BLOCKS - 1 - block) / BLOCKS)
#define AT(from, to)      (FROM_TO(from, to) * BLOCKS + block)

byte chunks[N * N];
byte sent[N * N * BLOCKS], taken[N * N * BLOCKS];

#ifdef BY_DISTANCE
#define PEER ((me + lane) % N)
#else
#define PEER ((lane + N - me) % N)
#endif
#ifdef SENDS_FIRST
#define MAY_TAKE (sent[AT(me, peer)] == SHARE(me, peer))
#else
#define MAY_TAKE true
#endif
#define CAN_SEND \
	(sent[AT(me, peer)] < SHARE(me, peer) && sent[AT(me, peer)] - taken[AT(me, peer)] < SLOTS)
#define CAN_TAKE (taken[AT(peer, me)] < sent[AT(peer, me)] && MAY_TAKE)
#define IS_OVER  (sent[AT(me, peer)] == SHARE(me, peer) && taken[AT(peer, me)] == SHARE(peer, me))

inline largest()
{
	peer = 0;
	grid = 1;
	do
	:: peer < N ->
		grid = (CHUNKS(me, peer) > grid -> CHUNKS(me, peer) : grid);
#ifndef SENT_ALONE
		grid = (CHUNKS(peer, me) > grid -> CHUNKS(peer, me) : grid);
#endif
		peer++
	:: else -> break
	od;
	grid = (grid < BLOCKS -> grid : BLOCKS)
}

proctype rank(byte me)
{
	byte lane, block, peer, grid;

	d_step { largest() }
	do
	:: lane < N ->
		d_step { peer = PEER; block = 0 }
		do
		:: peer != me && block < grid ->
			do
			:: CAN_SEND -> sent[AT(me, peer)]++
			:: CAN_TAKE -> taken[AT(peer, me)]++
			:: IS_OVER -> break
			od;
			block++
		:: else -> break
		od;
		lane++
	:: else -> break
	od;
	/* The blocks that are not launched had nothing to do. */
	block = grid;
	do
	:: block < BLOCKS ->
		for (peer : 0 .. N - 1) {
			assert(IS_OVER)
		}
		block++
	:: else -> break
	od
}

init
{
	byte from, to;

	for (from : 0 .. N - 1) {
		for (to : 0 .. N - 1) {
			if
			:: from == to
			:: from != to
			:: from != to -> CHUNKS(from, to) = 1
			:: from != to -> CHUNKS(from, to) = MOST
			fi
		}
	}
	atomic {
		for (from : 0 .. N - 1) {
			run rank(from)
		}
	}
}
