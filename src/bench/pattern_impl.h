/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the patterns share: two kernels that exchange data and flags, and what came of
 * it.
 */
#pragma once

#include "bench/pattern.h"

/* As many blocks as inference engines' all-reduce takes: few enough to run at once on every GPU. */
#define MEETING_BLOCKS_MAX 36

/*
 * Of the memory that both share, a single allocation each: flags, then data behind them, at an
 * offset that is a multiple of 16 and of nothing more.
 */
#define MEETING_FLAGS_AT  0
#define MEETING_VALUES_AT 1024 /* u32: flags that a copy engine brings */
#define MEETING_ZEROS_AT  2048 /* PATTERN_THIRD_BYTES */
#define MEETING_DATA_AT   (4096 + 16)
#define MEETING_PLACES    5

/* One of two devices, and the other's memory as it sees it. */
struct end {
	const struct bench_device *device;
	const struct area *own; /* what the other shares */
	struct area other;
	struct exchange_args args; /* what every launch has in common */
};

struct meeting {
	const struct pattern_pair *pair;
	enum pattern pattern;
	struct end ends[2];
	unsigned blocks;
	uint64_t stride;   /* room for a round's data */
	unsigned blame[2]; /* the direction whose data ends[i] checks */
	uint64_t words[2]; /* that ends[i] checks */
};

/*
 * The other's memory comes by IPC where the driver allows it; meeting_close
 * lets go of it, unless what came of it (`r`) leaves kernels that may still use it.
 */
int meeting_open(const struct pattern_pair *p, enum pattern pattern, struct meeting *ret);
void meeting_close(struct meeting *m, int r);

/* Zeroes flags, state and reports of both: rounds begin at 0. */
int meeting_reset(struct meeting *m);
/* `rounds` of `bytes` (clipped to the room there is) more in the end's stream. */
int meeting_launch(struct meeting *m, unsigned end, uint64_t rounds, uint64_t bytes);
/*
 * Waits for both ends in any case, `r` being what enqueueing gave, and judges what they found.
 * `says` is the variant, "flags on the host"; "": there is one only.
 */
int meeting_end(struct meeting *m, int r, uint64_t rounds, const char *says);

/*
 * Rounds that fit the device: a host device has one thread a block, and a turn may cost a time
 * slice.
 */
uint64_t pattern_rounds(const struct pattern_pair *p, uint64_t gpu, uint64_t host);
u64 pattern_tag_of(const struct bench_device *initiator, const struct bench_device *owner,
		   u64 round);
/* What a check of `words` against `tag` found; no wrong words are well. */
void pattern_found(const struct pattern_pair *p, unsigned direction, enum pattern pattern,
		   const struct check_report *report, uint64_t words, u64 tag, const char *says);

/* Fills, or checks, the `bytes` at an address as this device sees it, and waits. */
int pattern_fill(const struct bench_device *s, u64 at, uint64_t bytes, u64 tag);
int pattern_check(const struct bench_device *s, u64 at, uint64_t bytes, u64 tag,
		  struct check_report *ret);

/*
 * What the owner wrote is read by ends[from], and what that wrote by the owner. What is read wrong
 * is not written to: it may be anybody's memory. A wrong result is not an error; `says` is the
 * variant.
 */
int pattern_use(const struct pattern_pair *p, unsigned from, const struct area *owned,
		const struct area *seen, enum pattern pattern, u64 round, const char *says);

int pattern_pull(const struct pattern_pair *p, unsigned from);
int pattern_graph(const struct pattern_pair *p, unsigned from);
int pattern_sustained(const struct pattern_pair *p, unsigned from);
int pattern_flags(const struct pattern_pair *p, unsigned from);
int pattern_reread(const struct pattern_pair *p, unsigned from);
int pattern_remap(const struct pattern_pair *p, unsigned from);
int pattern_host_memory(const struct pattern_pair *p, unsigned from);
int pattern_compressible(const struct pattern_pair *p, unsigned from);
int pattern_atomics(const struct pattern_pair *p, unsigned from);
int pattern_last(const struct pattern_pair *p, unsigned from);
