/* SPDX-License-Identifier: Apache-2.0 */
/* Test values of every element type, whose reductions are exact. */
#pragma once

#include "kernels/args.h"

static inline u64 typed_hash(u64 i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15ul;
	return i ^ i >> 29;
}

/* 8-bit floats have few bits, so their values are smaller. */
static inline u32 typed_is_tiny(u64 type)
{
	return type >= ELEMENT_FLOAT8_E4M3;
}

/*
 * Element i of rank r for a reduction by `op`. Of 16 ranks in a row: sums are at most 112, products
 * at most 48, the rest at most 120, so that int8 and bfloat16 hold them exactly. Of 8-bit floats
 * and 8 ranks in a row: sums and the rest at most 8, products 2^a or 3 * 2^a up to 48.
 */
static inline u64 typed_value(u64 type, u64 i, u64 rank, u64 op)
{
	const u64 h = typed_hash(i), place = (h + 5 * rank) % 16;

	if (op == REDUCE_PROD)
		return place < 4 ? 2 : place == 15 ? 3 : 1;
	if (op == REDUCE_MAX || op == REDUCE_MIN)
		return typed_hash(h + rank) % (typed_is_tiny(type) ? 9 : 121);
	return typed_hash(h + rank) % (typed_is_tiny(type) ? 2 : 8);
}

/* The reduction of ranks first .. first + n - 1; for REDUCE_AVG the sum. */
static inline u64 typed_reduced(u64 type, u64 i, u64 op, u64 first, u64 n)
{
	u64 all = typed_value(type, i, first, op);

	for (u64 r = first + 1; r < first + n; r++) {
		const u64 v = typed_value(type, i, r, op);

		if (op == REDUCE_PROD)
			all *= v;
		else if (op == REDUCE_MAX)
			all = v > all ? v : all;
		else if (op == REDUCE_MIN)
			all = v < all ? v : all;
		else
			all += v;
	}
	return all;
}

static inline u64 typed_bytes(u64 type)
{
	if (type <= ELEMENT_UINT8 || typed_is_tiny(type))
		return 1;
	if (type == ELEMENT_FLOAT16 || type == ELEMENT_BFLOAT16)
		return 2;
	return type == ELEMENT_INT32 || type == ELEMENT_UINT32 || type == ELEMENT_FLOAT32 ? 4 : 8;
}

/* Bits of the fraction; 0: a whole number. */
static inline u32 typed_fraction_bits(u64 type)
{
	if (type == ELEMENT_FLOAT16)
		return 10;
	if (type == ELEMENT_BFLOAT16)
		return 7;
	if (typed_is_tiny(type))
		return type == ELEMENT_FLOAT8_E4M3 ? 3 : 2;
	return type == ELEMENT_FLOAT32 ? 23 : type == ELEMENT_FLOAT64 ? 52 : 0;
}

static inline u64 typed_exponent_bias(u64 type)
{
	if (type == ELEMENT_FLOAT8_E4M3)
		return 7;
	if (type == ELEMENT_FLOAT16 || type == ELEMENT_FLOAT8_E5M2)
		return 15;
	return type == ELEMENT_FLOAT64 ? 1023 : 127;
}

/*
 * v / 2^halvings as the bits of an element; from its first 1 to its last, v has no more bits than
 * the fraction, plus one.
 */
static inline u64 typed_encode(u64 type, u64 v, u32 halvings)
{
	const u32 fraction_bits = typed_fraction_bits(type);
	u32 exponent = 0;

	if (!fraction_bits)
		return v >> halvings;
	if (!v)
		return 0;
	while (v >> (exponent + 1))
		exponent++;
	v = exponent > fraction_bits ? v >> (exponent - fraction_bits)
				     : v << (fraction_bits - exponent);
	return ((typed_exponent_bias(type) + exponent - halvings) << fraction_bits) +
	       (v & ((1ul << fraction_bits) - 1));
}
