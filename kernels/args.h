/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and reports of each kernel: one struct by value, the same on GPU and host. */
#pragma once

#include "kernels/types.h"

/* X(name): kernel `name` takes a struct name_args. The order is that of enum device_kernel. */
#define COMMON_KERNELS(X)                                                                          \
	X(gate)                                                                                    \
	X(copy)                                                                                    \
	X(fill)                                                                                    \
	X(check)                                                                                   \
	X(chain)                                                                                   \
	X(chase)                                                                                   \
	X(ping_pong)                                                                               \
	X(all_reduce)                                                                              \
	X(exchange)                                                                                \
	X(tally)                                                                                   \
	X(typed_fill)                                                                              \
	X(typed_check)

#define COLLECTIVE_KERNELS(X)                                                                      \
	X(collective_flagged)                                                                      \
	X(collective_small)                                                                        \
	X(collective_piped)                                                                        \
	X(collective_levels)                                                                       \
	X(collective_chain)                                                                        \
	X(collective_pairs)                                                                        \
	X(collective_messages)

#define KERNELS(X)                                                                                 \
	COMMON_KERNELS(X)                                                                          \
	COLLECTIVE_KERNELS(X)

/* How a kernel that waits for something ended; written with release order at system scope. */
enum wait_end {
	WAIT_RUNNING = 0,
	WAIT_DONE = 1,
	WAIT_TIMED_OUT = 2,
	WAIT_ABORTED = 3,
	WAIT_DISAGREED = 4, /* another rank does something else */
};

/* Holds a stream back until the host opens it, so that all work queued behind it starts at once. */
struct gate_args {
	u64 open;     /* u32, pinned host memory: not 0 opens */
	u64 report;   /* u32: enum wait_end */
	u64 limit_ns; /* of waiting */
};

/* Copies by loads and stores; any alignment, fastest when all are multiples of 16. */
struct copy_args {
	u64 target, origin, bytes;
	u64 repeats; /* repetitions, so that a launch is long; 0 means 1. For aligned copies */
};

/*
 * The pattern: word i of a buffer (8 bytes each) is pattern_word(tag, first + i), see pattern.h. A
 * word identifies its pair, round and place.
 */
struct fill_args {
	u64 target, words, first, tag;
};

struct check_args {
	u64 origin, words, first, tag;
	u64 report; /* struct check_report, zeroed by the caller, first_wrong as CHECK_NONE */
};

#define CHECK_NONE (~0ul)

struct check_report {
	u64 wrong;       /* words that differ; the five below add up to it */
	u64 zero;        /* that are 0 */
	u64 old;         /* of the same pair, another round, or its poison */
	u64 foreign;     /* of another pair */
	u64 displaced;   /* right tag, another place */
	u64 other;       /* none of these */
	u64 poison;      /* how many of `old` are the poison of this round: never written */
	u64 first_wrong; /* index in the buffer, CHECK_NONE: none */
	u64 last_wrong;
	u64 any_old_tag;   /* the tag of one of `old` or `foreign` */
	i64 any_shift;     /* of one of `displaced`: index found minus index expected, in words */
	u64 shifts_differ; /* displaced words whose shift is not the one seen first by their thread */
};

/* Writes a chain of addresses into a buffer: entry i points to entry i+1, the last to the first. */
struct chain_args {
	u64 buffer;        /* as seen by the device that writes */
	u64 seen_as;       /* the same as seen by the device that will follow it */
	u64 bytes, stride; /* of the buffer; of one entry, at least 8 */
};

/*
 * Follows a chain: `steps` loads, each dependent on the one before, by the first thread of a block.
 */
struct chase_args {
	u64 buffer, steps;
	u64 end;   /* u64: where it ended, so that nothing is optimised away */
	u64 block; /* which one: blocks run on different multiprocessors, not all equally far */
};

/*
 * Two resident kernels send a counter back and forth through flags; `first` sends first. Each polls
 * its own memory and writes the other's. One thread each.
 */
struct ping_pong_args {
	u64 mine, theirs; /* u32 flags, zeroed before */
	u64 rounds, first;
	u64 abort;    /* u32 in pinned memory: not 0 stops */
	u64 limit_ns; /* of waiting in all */
	u64 ticks;    /* u64[rounds]: clock ticks of each round trip; 0: none */
	u64 report;   /* struct ping_pong_report */
};

struct ping_pong_report {
	u64 end;       /* enum wait_end */
	u64 rounds;    /* done */
	u64 ticks, ns; /* of all rounds but the first, by both clocks: gives the length of a tick */
};

/*
 * Sum of u32 (modulo 2^32) over n devices, in one launch each: barrier, then block b of device d
 * reads a share of slice d from all inputs and writes the sum to all outputs, barrier. All
 * devices must use the same grid.
 */
struct all_reduce_args {
	u64 inputs, outputs; /* u64[n]: addresses of u32[count], as this device sees them */
	u64 flags;           /* u64[n]: of each device's u32[2 * blocks * n] inbox, zeroed once */
	u64 n, me, count;
	u64 epoch; /* 1, 2, ...: the number of the run on these flags */
	u64 abort, limit_ns;
	u64 report; /* u32[blocks]: enum wait_end */
};

/*
 * One end of an exchange of data between two kernels that run at once, round after round without
 * the host: write this round's data, post a flag, wait for the other's; read and check the other's
 * data, post, wait. The caller chooses where the data of each end and the flags are: a pull, a
 * push, or flags alone. Both ends have the same grid, and block b meets block b only.
 */
struct exchange_args {
	u64 produce, consume;         /* data of place 0, as this device sees them; 0: none */
	u64 bytes;                    /* of a round, a multiple of 16 */
	u64 places, stride;           /* round r is at place r % places, `stride` bytes apart */
	u64 rounds;                   /* of this launch; 0: does nothing */
	u64 produce_tag, consume_tag; /* of the pattern in round 0 */
	u64 post, poll; /* u32[blocks]: the other end's flags, which count up, and this end's */
	u64 state;      /* struct exchange_state[blocks], in this device's memory, zeroed once */
	u64 report;     /* struct check_report, as for check */
	u64 abort, limit_ns;
};

/*
 * State of a block. Each launch continues where the previous one ended, so a captured launch can be
 * repeated.
 */
struct exchange_state {
	u32 count;       /* flags that were waited for, two a round */
	u32 end;         /* enum wait_end; a launch after one that gave up does nothing */
	u32 wrong_round; /* the first with wrong data, plus one; 0: none */
	u32 unused;
};

/* Adds 1 to a counter, by single atomic operations at system scope. */
struct tally_args {
	u64 counter; /* u32 */
	u64 adds;    /* of all threads together */
};

/* Element types and operations, numbered as NCCL numbers them. */
enum element_type {
	ELEMENT_INT8,
	ELEMENT_UINT8,
	ELEMENT_INT32,
	ELEMENT_UINT32,
	ELEMENT_INT64,
	ELEMENT_UINT64,
	ELEMENT_FLOAT16,
	ELEMENT_FLOAT32,
	ELEMENT_FLOAT64,
	ELEMENT_BFLOAT16,
	ELEMENT_FLOAT8_E4M3,
	ELEMENT_FLOAT8_E5M2,
	ELEMENT_TYPE_N
};

enum reduce_op { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_AVG, REDUCE_OP_N };

/*
 * Element i of rank r is a small whole number typed_value(type, i, r, op), see typed.h: every sum,
 * product and average of up to 16 ranks is exact in every type, but of 8-bit floats that of up to
 * 8.
 */
struct typed_fill_args {
	u64 target, count, first; /* first: index of element 0 in the whole vector */
	u64 type, op, rank;
};

/*
 * Compares with the reduction over ranks first_rank .. first_rank + ranks - 1 (ranks 1: that rank's
 * own).
 */
struct typed_check_args {
	u64 origin, count, first;
	u64 type, op, first_rank, ranks;
	u64 report; /* struct typed_report, zeroed, first_wrong as CHECK_NONE */
};

struct typed_report {
	u64 wrong, first_wrong;
};

#include "kernels/collective_args.h"

/* The types and operations of most programs, for which kernels have specialised code. */
static inline u32 collective_sums_fast(u32 type, u32 op)
{
	return (op == REDUCE_SUM || op == REDUCE_AVG) &&
	       (type == ELEMENT_FLOAT32 || type == ELEMENT_FLOAT16 || type == ELEMENT_BFLOAT16);
}

/* Of elements that are reduced (op REDUCE_OP_N: none are), 8 bytes each. */
static inline u32 collective_is_wide(u32 type, u32 op)
{
	return op != REDUCE_OP_N &&
	       (type == ELEMENT_INT64 || type == ELEMENT_UINT64 || type == ELEMENT_FLOAT64);
}
