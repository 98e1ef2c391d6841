/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels of collective operations; included by kernels/args.h. */
#pragma once

#include "kernels/types.h"

#define COLLECTIVE_RANKS_MAX 8

/*
 * Where this rank writes what another one reads (to), and where it reads what another one wrote
 * (from), by rank, as seen by its device. A place that all others read is written once: it is
 * to[me].
 */
struct collective_ways {
	u64 to[COLLECTIVE_RANKS_MAX], from[COLLECTIVE_RANKS_MAX];
};

/*
 * One rank's view of an operation, in one step or two. Buffers are divided into pieces, one per
 * rank. First step: piece d of the input goes to rank d, and what arrives is either placed, rank
 * r's at piece r of the output, or reduced into this rank's piece of the output. Second step: that
 * reduced piece goes to others, and theirs are placed. Masks have one bit per rank, or for push and
 * tokens one bit per place of collective_ways.to.
 */
struct collective_shape {
	u64 in, out;               /* the caller's: any alignment */
	u64 in_bytes, out_bytes;   /* of all pieces; they may cut the last ones short */
	u64 in_stride, out_stride; /* from a piece to the next; 0: the same for all */
	u64 piece;                 /* bytes, at most */
	u64 scale;                 /* 1 / ranks, a double's bits: for averages */
	u64 state;                 /* struct collective_state of each block, zeroed once */
	u64 report;                /* struct collective_report, in host memory */
	u64 abort, limit_ns;       /* of waiting without any progress */
	u32 type, op;              /* op REDUCE_OP_N: pieces are placed */
	u32 n, me;
	u32 push, pull;   /* first step: where data is written, whose is read */
	u32 push2, pull2; /* second step; both 0: there is none */
	u32 tokens;       /* where every step's arrival is signalled, with or without data */
	u32 own;          /* not 0: this rank's own input is reduced with what arrives */
	u32 copied;       /* ranks whose pieces go from this rank's own input to its output */
	u32 keep;         /* not 0: what is reduced is stored in the output */
	u32 number;       /* of the operation, for the report */
	u32 ahead; /* steps for which it need not wait in a piped operation: 1 if others only free slots, else 0 */
	u64 places; /* 4 bits for each rank: where its piece is in both buffers, counted in pieces */
};

static inline u32 piece_place(const struct collective_shape *s, u32 rank)
{
	return (u32)(s->places >> 4 * rank) & 15;
}

/*
 * State of a block, in device memory: each launch, also in a graph, continues where the last one
 * ended.
 */
struct collective_state {
	u32 epoch; /* flagged: of the last round, 16 bits; piped: steps done */
	u32 end;   /* enum wait_end; a launch behind one that gave up stores nothing */
};

/* Which rank did not arrive. `end` is written last. */
struct collective_report {
	u32 end; /* enum wait_end */
	u32 rank, number;
	u32 unused;
};

/*
 * Small operations: data travels in units of 16 bytes, each half of which holds 6 bytes of data and
 * 16 bits that tell the epoch of this block's launch, so that it signals its own arrival: only 8
 * bytes are guaranteed to arrive whole. Block b meets block b only. Two sets of slots take turns: a
 * rank that has heard from all others in this launch knows that they have finished the previous
 * one. What is too much for a set goes in rounds, each of which has a number of its own, as a
 * launch has.
 */
#define FLAGGED_UNIT_BYTES 16ul

/* The data of a unit: of what is reduced, whole elements. wide: as in collective_is_wide() */
#define FLAGGED_DATA_BYTES(wide) ((wide) ? 8u : 12u)

struct collective_flagged_args {
	struct collective_shape s;
	struct collective_ways first, second;
	u32 set_bytes;   /* from one set of slots to the other */
	u32 block_bytes; /* of a block's slots in a set */
	u64 round_bytes; /* of a piece */
	u64 rounds;
	u64 host_rows; /* of this rank: two sets each, one row behind the other */
	u32 hosts;     /* how many they are */
	u32 direct;    /* ranks with rows of this one in their memory */
};

/*
 * The same units and slots for all-reduce alone, in one step or two, for collective_sums_fast().
 * Arguments are read at the start of every launch, uncached, so that what is used by few ranks and
 * in one step comes first and nothing else is in between.
 */
struct collective_small_args {
	u64 state, in, out, bytes; /* as in struct collective_shape */
	u32 set_bytes, block_bytes;
	u32 n, me, type, op;
	u64 from, from_stride; /* of rank r: from + r * from_stride */
	u32 places, places2;   /* how many of to, to2 are written */
	/* One step: the same to each. Two: in the order of ranks, this one left out. */
	u64 to[COLLECTIVE_RANKS_MAX];
	u64 piece; /* bytes of a rank's share in two steps; 0: in one step */
	u64 from2, from2_stride;
	u64 to2[COLLECTIVE_RANKS_MAX]; /* what is reduced */
	u64 scale, report, abort, limit_ns;
	u64 host_rows;      /* as in struct collective_flagged_args */
	u32 hosts, directs; /* directs: how many of to and of to2 are in others' memory */
	u32 number, unused;
};

/* For large operations. */
struct collective_routes {
	struct collective_ways first, second, flags;
};

#define PIPED_FLAG_BYTES 32u /* from a block's flag to the next */

/*
 * Large operations: every block moves its share of all pieces chunk by chunk. In step i it sends
 * chunk i; when all others have done step i - 1, it reduces or places chunk i - 1, and places chunk
 * i - 2 of the second step; then one flag tells all others that the step is done. A chunk is sent
 * while step i - 1 may still be read, and chunk i - 1 waits to be: it needs three slots for each
 * sender and block; four, because numbers of steps wrap, and a rank that only sends can be one more
 * step ahead. What is reduced is written after the wait and read in the next step: two.
 */
#define PIPED_FIRST_SLOTS  4ul
#define PIPED_SECOND_SLOTS 2ul

struct collective_piped_args {
	struct collective_shape s;
	struct collective_routes
		routes; /* here, because caches forget memory at each flag that is read */
	u64 slot_bytes; /* of a chunk, at most */
	u64 turn_bytes; /* of all blocks' slots that are filled in one step */
	u64 chunk;      /* bytes, a multiple of 16 */
	u64 chunks;     /* a block */
};

/*
 * From rank to rank: each piece goes the same way round, chunk by chunk, and begins `shift` ranks
 * behind its own one. What arrives is stored in the output, or this rank's own is added to it; all
 * but the last rank pass it on. So of data for all ranks a link that many share carries each byte
 * once.
 *
 * Of one piece, a root's, a chunk starts in each step. Of n pieces a chunk of each starts in every
 * (n - 1)th step, when the last ones have arrived where they end. So in a step a rank sends or
 * passes on one chunk at most; it goes into the first slots, and is taken in the next step.
 */
enum chain_place { CHAIN_FIRST, CHAIN_MIDDLE, CHAIN_LAST, CHAIN_PLACES };

struct collective_chain_args {
	struct collective_shape
		s[CHAIN_PLACES]; /* what is done with a piece, by this rank's place on its way */
	struct collective_routes routes;
	u64 slot_bytes, turn_bytes, chunk, chunks; /* as in struct collective_piped_args */
	u32 shift;
	u32 period; /* steps from the start of a chunk to that of the next one: 1, or n - 1 */
	u32 place;  /* how many ranks the only piece passes before this one; of n pieces: 0 */
	u32 unused;
};

/*
 * How many ranks the piece of rank `of` passes before rank `me`; and the other way round, whose
 * piece passes `of` ranks before it.
 */
static inline u32 chain_distance(u32 n, u32 shift, u32 me, u32 of)
{
	return (me + 2 * n - of - shift) % n;
}

static inline u64 chain_steps(u64 chunks, u32 period, u32 n)
{
	return (chunks - 1) * period + n;
}

/*
 * All-reduce on a machine whose ranks are in groups of equal size, with links between the groups
 * that the ranks of a group share. A piece belongs to one rank of each group. Each rank reduces its
 * piece within its group, and sends that to the other groups' owners of the piece. Each of them
 * reduces what they have sent, and sends the sum to its own group.
 *
 * Of more than two groups each one's owner would so send its sum to all others. There they share
 * the piece: chunk c of block b is group (b + c) % shares's. Its owner alone gets the others' sums,
 * reduces them, and sends the result to them; in a third stage each owner passes it on to its
 * group.
 *
 * With chunk i stage k does in step i + 1 + k what s[k * shares + the chunk's group] says. What is
 * sent first is in s[0] too.
 */
#define LEVELS_STAGES 3
#define LEVELS_SHARES (COLLECTIVE_RANKS_MAX / 2)

/* Which slots a stage reads and fills: second ones of one are first ones of the next. */
struct collective_stage {
	struct collective_routes routes;
	u64 first_slots, second_slots; /* of a sender and block */
};

struct collective_levels_args {
	struct collective_stage stage[LEVELS_STAGES];
	struct collective_shape s[LEVELS_STAGES * LEVELS_SHARES];
	u64 slot_bytes, turn_bytes, chunk, chunks; /* as in struct collective_piped_args */
	u32 stages, shares;                        /* 2 and 1, or 3 and the number of groups */
};

/*
 * Sends and receives: an item is divided into parts of equal size; part c is block c % blocks's,
 * and block b meets block b only. Each ordered pair and block has sets of units
 * (FLAGGED_UNIT_BYTES) in the receiver's memory (or the host's), which the sender fills in turn,
 * one for each item of which the block has a part. The first unit tells the item's size. What is
 * small comes in the others: for each block not more than they hold. The flag is the number of laps
 * through the sets. Once for half of the sets the receiver says how many items it has taken.
 *
 * The parts of what is large are chunks, in slots that are filled in turn, with counters: of chunks
 * that have arrived, and of slots that are free again.
 */
#define PAIR_SETS      8u    /* of units, a block and direction; a power of two */
#define PAIR_SLOTS     2u    /* of chunks */
#define PAIR_CHUNK_MIN 1024u /* bytes */
#define PAIR_ITEMS     96u

/* What one rank tells another, for one block. */
struct pair_flags {
	u32 arrived; /* chunks that were stored in the other's slots so far */
	u32 unused[7];
	u32 freed; /* chunks that were taken out of its own slots */
	u32 unused2[7];
	u32 taken; /* items that were taken, counted once for half of the sets */
	u32 unused3[15];
};

/* Of a block and peer, in device memory; kept from launch to launch. */
struct pair_progress {
	u32 sent, taken; /* items of which this block has a part */
	u32 freed;       /* at least so many of what was sent were taken */
	u32 end;         /* enum wait_end; a launch behind one that gave up does nothing */
	u32 chunks_sent, chunks_taken;
	u32 chunks_freed; /* of what was sent, by the peer, as was last seen */
	u32 unused;
};

/* A send or a receive: the caller's memory. */
struct pair_item {
	u64 address, bytes;
	u32 part; /* bytes, at most: both ranks divide an item in the same way */
	u32 unused;
};

/* What is exchanged with one peer: items from `first` on, first those that are sent. */
struct pair_lane {
	u32 peer, first, sends, takes;
	u64 state;      /* struct pair_progress[blocks], zeroed once */
	u64 tell, hear; /* struct pair_flags[blocks]: the peer's to read, and its own */
	u64 sets_to, sets_from;
	u64 slots_to, slots_from;
};

struct collective_pairs_args {
	u32 grid;        /* of a lane that are launched, because the others have nothing to do */
	u32 small;       /* not 0: all items are */
	u32 small_bytes; /* an item of so many is still small */
	u32 set_bytes;   /* from one set of units to the next */
	u32 part_bytes;  /* of data that a set holds */
	u32 number;      /* of the operation, for the report */
	struct pair_lane lane[COLLECTIVE_RANKS_MAX];
	u64 slot_bytes; /* of a chunk, at most */
	u64 report, abort, limit_ns;
	u32 n, me;
	u32 blocks; /* that parts are divided among: always the same */
	u32 lanes;
	struct pair_item item[PAIR_ITEMS];
};

/*
 * What is exchanged with one peer, where that is at most one small item each way. What most
 * launches use comes first.
 */
#define MESSAGE_SENT  1u
#define MESSAGE_TAKEN 2u
struct message_lane {
	u64 state, in, out;
	u64 sets_to, sets_from;
	u32 in_bytes, out_bytes;
	u32 items; /* MESSAGE_SENT, MESSAGE_TAKEN */
	u32 peer;
	u64 tell, hear;
};

struct collective_messages_args {
	u32 grid, me;
	u32 set_bytes, part_bytes;
	struct message_lane lane[COLLECTIVE_RANKS_MAX];
	u64 report, abort, limit_ns;
	u32 number, unused;
};
