/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern in which every word identifies its pair, round and place. */
#pragma once

#include "kernels/args.h"

#define PATTERN_INDEX_BITS 40
#define PATTERN_ROUNDS     128 /* rounds count modulo this */

/* 24 bits: target 8, initiator 8, round 7, poison 1. */
static inline u64 pattern_tag_make(u64 target, u64 initiator, u64 round, u64 poison)
{
	return (target & 0xff) << 16 | (initiator & 0xff) << 8 | (round & 0x7f) << 1 | (poison & 1);
}

static inline u64 pattern_tag_round(u64 tag)
{
	return tag >> 1 & 0x7f;
}

/* The tag of `rounds` rounds later. */
static inline u64 pattern_tag_round_on(u64 tag, u64 rounds)
{
	return (tag & ~0xfeul) | (((tag >> 1) + rounds) & 0x7f) << 1;
}

/*
 * splitmix64's finaliser: every bit of the input reaches every bit of the output, and it can be
 * undone. It maps 0, and only 0, to 0; hence the 1 that is added: only the last index of the last
 * tag becomes a word of 0.
 */
static inline u64 pattern_word(u64 tag, u64 index)
{
	u64 x = (tag << PATTERN_INDEX_BITS | index) + 1;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ul;
	x = (x ^ x >> 27) * 0x94d049bb133111ebul;
	return x ^ x >> 31;
}

/* tag << PATTERN_INDEX_BITS | index of a word. */
static inline u64 pattern_unmix(u64 x)
{
	x = (x ^ x >> 31 ^ x >> 62) * 0x319642b2d24d8ec3ul;
	x = (x ^ x >> 27 ^ x >> 54) * 0x96de1b173f119089ul;
	return (x ^ x >> 30 ^ x >> 60) - 1;
}

static inline u64 pattern_tag(u64 word)
{
	return pattern_unmix(word) >> PATTERN_INDEX_BITS;
}

static inline u64 pattern_index(u64 word)
{
	return pattern_unmix(word) & ((1ul << PATTERN_INDEX_BITS) - 1);
}
