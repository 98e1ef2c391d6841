/* SPDX-License-Identifier: Apache-2.0 */
/* Is what one device writes into another's memory, or reads from it, what is really there? The owner
 * of the target checks, with a kernel of its own; never the one who moved the data. */
#pragma once

#include "bench/bench_device.h"

/* How the initiator moves data. */
enum way { WAY_WRITE_COPY, WAY_WRITE_KERNEL, WAY_READ_COPY, WAY_READ_KERNEL, WAY_N };

/* What was wrong; for a pair, that of the first way that failed. */
enum wrong_kind {
	WRONG_NOTHING,
	WRONG_REFUSED, /* the driver does not give access */
	WRONG_HANG,    /* a deadline passed */
	WRONG_DIED,    /* the worker process ended */
	WRONG_FAULT,   /* the device reported a fault */
	WRONG_MIRROR,  /* the writer reads its data back, the owner has nothing of it */
	WRONG_LOST,    /* nothing arrived */
	WRONG_ZEROS,
	WRONG_OLD,     /* data of an earlier round */
	WRONG_FOREIGN, /* another pair's data */
	WRONG_SHIFTED, /* the right data, elsewhere */
	WRONG_PARTIAL, /* right up to some place, then not written */
	WRONG_OUTSIDE, /* right, and something around it was overwritten */
	WRONG_GARBAGE,
	WRONG_STALL, /* copies are right, flags do not get through between running kernels */
	WRONG_SLOW,  /* right, and far slower than it should be */
	WRONG_ENDED, /* the whole run ended while the pair was tested (an earlier run's) */
	WRONG_N,
};

const char *way_word(enum way w);              /* "write-copy" */
const char *way_text(enum way w);              /* "write by copy engine" */
const char *wrong_word(enum wrong_kind k);     /* "shifted" */
enum wrong_kind wrong_parse(const char *word); /* WRONG_N: no such word */

/* Patterns of use in which paths fail that pass all copies; the rows are in bench/pattern.h. */
enum pattern {
	PATTERN_NONE,
	PATTERN_PULL,      /* what inference engines' all-reduce does */
	PATTERN_GRAPH,     /* the same, captured and launched again and again */
	PATTERN_FLAGS,     /* data here, flags elsewhere */
	PATTERN_REREAD,    /* read, rewritten by the owner, read again */
	PATTERN_REMAP,     /* freed, allocated and mapped again, read again */
	PATTERN_LAST,      /* on request: all of the last memory there is */
	PATTERN_SUSTAINED, /* on request: the first one, for long */
	/* On request, for information: */
	PATTERN_HOST_MEMORY,  /* one writes, the other reads host memory that the driver created */
	PATTERN_COMPRESSIBLE, /* the same with memory that its device may keep compressed */
	PATTERN_ATOMICS,      /* two devices add to one word */
	PATTERN_N,
};

/* ---- one transfer's reports into a kind ---- */

/* Where the check kernel looked: at the range itself and at what lies before and behind it. */
enum part { PART_RANGE, PART_BEFORE, PART_BEHIND, PART_N };

struct range_check {
	struct check_report reports[PART_N];
	uint64_t words[PART_N]; /* of each part */
	u64 data_tag;           /* of what should have arrived */
};

struct wrong {
	enum wrong_kind kind;
	uint64_t words, wrong_words; /* of the range */
	uint64_t from_bytes;         /* where in the range the first wrong byte is */
	int64_t shift_bytes;         /* shifted: by how much the data arrive behind their place */
	bool shifts_differ;          /* shifted: by different amounts */
	u64 rounds_ago;              /* old: 0: not known */
};

struct wrong classify(const struct range_check *c);
/* "right up to byte 4096, then not written" */
void wrong_say(const struct wrong *w, char *buf, size_t size);

/* ---- one pair ---- */

struct way_result {
	enum wrong_kind kind;
	bool done;
	bool high;                   /* the failing check was at a high address */
	unsigned checks;             /* transfers that were checked */
	uint64_t bytes;              /* checked in all */
	uint64_t case_bytes, offset; /* of the failing check */
	struct wrong wrong;
};

enum pair_state {
	PAIR_NOT_RUN,
	PAIR_RIGHT,
	PAIR_WRONG,
	PAIR_NOT_TESTED,
	PAIR_INCOMPLETE, /* copies are right, but not all patterns that always run have run */
	PAIR_STATE_N,
};

/* "ok", "failed", "incomplete", "not-tested", "not-run" */
const char *pair_state_word(enum pair_state s);

/* Nanoseconds of a round trip of a flag; n 0: not measured. */
struct round_trip {
	uint64_t n;
	double median_ns, p99_ns, max_ns;
};

struct pattern_result {
	bool done;
	bool not_offered; /* driver or device cannot: nothing was run */
	enum wrong_kind kind;
	uint64_t rounds; /* of data that were checked; atomics: additions */
	uint64_t lost;   /* of these additions */
	bool by_ipc;     /* how the memory was shared; else as a file descriptor */
	double ms;
};

struct pair_result {
	enum pair_state state;
	enum wrong_kind kind;
	enum pattern pattern; /* that found the kind; PATTERN_NONE: copies or round trips did */
	bool sets_lost;       /* what ran may still be running: the sets are of no more use */
	struct way_result ways[WAY_N];
	double copy_gbps; /* the fastest of the largest copies, GB/s; 0: not measured */
	struct round_trip round_trip;
	struct pattern_result patterns[PATTERN_N];
	char sentence[BENCH_SENTENCE]; /* what is wrong, or why it was not tested */
};

/*
 * Writes and reads between the initiator and the owner, which are in sets of their own or in one.
 * The same device twice checks the device's own memory.
 */
void verify_pair(const struct bench_device *initiator, const struct bench_device *owner,
		 struct pair_result *ret);
/* Rounds of a flag between two running kernels; changes state, kind and sentence when it stalls. */
void verify_round_trip(const struct bench_device *initiator, const struct bench_device *owner,
		       struct pair_result *ret);
/* Copies once more, timed; a faster one than before replaces copy_gbps. */
void verify_rate(const struct bench_device *initiator, const struct bench_device *owner,
		 struct pair_result *ret);
/* Of a pair that something could not be run on: its copies may have been right before. */
enum pair_state verify_untested(enum pair_state before);
/*
 * For the other files of bench/: state, sets_lost and sentence from a negative errno; returns the
 * kind.
 */
enum wrong_kind verify_error(struct pair_result *p, int error);
/* Whether after this errno something may still be running, or the worker is gone. */
bool verify_loses_sets(int error);
