/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the kernels of collective operations: what they do to elements, and how they end. */
#pragma once

#include "kernels/device.h"

/* A function call would spill registers to memory. */
#define INLINE static inline __attribute__((always_inline))

/*
 * Elements that are being reduced: 16 bytes of them; or 8 half types as float; or 16 8-bit floats
 * as float16.
 */
struct total {
	u64 word[4]; /* others use the first two */
};

INLINE u32 is_half(u32 type)
{
	return type == ELEMENT_FLOAT16 || type == ELEMENT_BFLOAT16;
}

INLINE float widen(u32 type, u32 bits)
{
	return type == ELEMENT_FLOAT16 ? half_to_float(bits) : float_of_bits(bits << 16);
}

/* To the nearest, ties to even; a NaN stays one. */
INLINE u32 to_bfloat(float f)
{
	const u32 bits = bits_of_float(f);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return bits >> 16 | 0x40;
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

INLINE u32 narrow(u32 type, float f)
{
	return type == ELEMENT_FLOAT16 ? float_to_half(f) : to_bfloat(f);
}

INLINE u32 is_tiny(u32 type)
{
	return type == ELEMENT_FLOAT8_E4M3 || type == ELEMENT_FLOAT8_E5M2;
}

/* As float16, which holds all values of both types. */
INLINE u32 widen_tiny(u32 type, u32 bits)
{
	const u32 sign = (bits & 0x80) << 8;

	if (type == ELEMENT_FLOAT8_E5M2)
		return bits << 8;
	if ((bits & 0x7f) == 0x7f)
		return sign | 0x7e00;
	/* The exponent's bias is smaller by 8. */
	return sign | float_to_half(half_to_float((bits & 0x7f) << 7) * 256);
}

/*
 * To the nearest, ties to even; too large values, infinity too, become the largest. bias: of the
 * exponent; bits: of the fraction.
 */
INLINE u32 round_tiny(float f, u32 bias, u32 bits, u32 largest)
{
	const u32 whole = bits_of_float(f), sign = whole >> 24 & 0x80, cut = 23 - bits;
	u32 size = whole & 0x7fffffff;

	if (size > 0x7f800000u)
		return sign | 0x7f;
	if (size <
	    (128 -
	     bias) << 23) { /* a multiple of the smallest: adding a large number rounds to one */
		const u32 large = (127 + 24 - bias - bits) << 23;

		return sign | (bits_of_float(float_of_bits(size) + float_of_bits(large)) - large);
	}
	size += (1u << (cut - 1)) - 1 + (size >> cut & 1);
	size = (size >> cut) - ((127 - bias) << bits);
	return sign | (size < largest ? size : largest);
}

INLINE u32 narrow_tiny(u32 type, u32 bits)
{
	const float f = half_to_float(bits);

	return type == ELEMENT_FLOAT8_E4M3 ? round_tiny(f, 7, 3, 0x7e) : round_tiny(f, 15, 2, 0x7b);
}

INLINE u64 widen_four(u32 type, u32 v)
{
	u64 word = 0;

	_Pragma("GCC unroll 4") for (u32 k = 0; k < 4; k++) word |=
		(u64)widen_tiny(type, v >> 8 * k & 0xff) << 16 * k;
	return word;
}

INLINE u32 narrow_four(u32 type, u64 word)
{
	u32 v = 0;

	_Pragma("GCC unroll 4") for (u32 k = 0; k < 4; k++) v |=
		narrow_tiny(type, (u32)(word >> 16 * k) & 0xffff) << 8 * k;
	return v;
}

INLINE u64 float_pair(float a, float b)
{
	return bits_of_float(a) | (u64)bits_of_float(b) << 32;
}

INLINE float float_at(u64 word, u32 k)
{
	return float_of_bits((u32)(word >> 32 * k));
}

INLINE u64 widen_pair(u32 type, u32 halves)
{
	return float_pair(widen(type, halves & 0xffff), widen(type, halves >> 16));
}

INLINE u32 narrow_pair(u32 type, u64 word)
{
	return narrow(type, float_at(word, 0)) | narrow(type, float_at(word, 1)) << 16;
}

INLINE struct total total_of(u32 type, vector16 v)
{
	struct total t = {{v[0] | (u64)v[1] << 32, v[2] | (u64)v[3] << 32, 0, 0}};

	if (is_half(type))
		t = (struct total){{widen_pair(type, v[0]), widen_pair(type, v[1]),
				    widen_pair(type, v[2]), widen_pair(type, v[3])}};
	if (is_tiny(type))
		t = (struct total){{widen_four(type, v[0]), widen_four(type, v[1]),
				    widen_four(type, v[2]), widen_four(type, v[3])}};
	return t;
}

#define WHOLE_OF(type, bits)  ((type)(bits))
#define FLOAT_OF(type, bits)  float_of_bits((u32)(bits))
#define HALF_OF(type, bits)   half_to_float((u32)(bits)&0xffff)
#define DOUBLE_OF(type, bits) double_of_bits(bits)
#define BITS_OF_WHOLE(v)      (v)
#define BITS_OF_FLOAT(v)      bits_of_float(v)
#define BITS_OF_HALF(v)       float_to_half(v)
#define BITS_OF_DOUBLE(v)     bits_of_double(v)

/*
 * 8 bytes of elements. `wide`: the type of sums and products, which wrap for integers, signed or
 * not. `mask`: the bits of an element.
 */
#define ELEMENT(name, type, wide, size, mask, value_of, bits_of)                                   \
	INLINE u64 reduce_##name(u32 op, u64 a, u64 b)                                             \
	{                                                                                          \
		u64 word = 0;                                                                      \
                                                                                                   \
		_Pragma("GCC unroll 8") for (u32 k = 0; k < 64 / (size); k++)                      \
		{                                                                                  \
			const type x = value_of(type, a >> k * (size) % 64);                       \
			const type y = value_of(type, b >> k * (size) % 64);                       \
			type z;                                                                    \
                                                                                                   \
			if (op == REDUCE_PROD)                                                     \
				z = (type)((wide)x * (wide)y);                                     \
			else if (op == REDUCE_MAX)                                                 \
				z = x > y ? x : y;                                                 \
			else if (op == REDUCE_MIN)                                                 \
				z = x < y ? x : y;                                                 \
			else                                                                       \
				z = (type)((wide)x + (wide)y);                                     \
			word |= ((u64)bits_of(z) & (mask)) << k * (size) % 64;                     \
		}                                                                                  \
		return word;                                                                       \
	}                                                                                          \
	INLINE u64 divide_##name(u64 a, type n, type scale, u32 whole)                             \
	{                                                                                          \
		u64 word = 0;                                                                      \
                                                                                                   \
		_Pragma("GCC unroll 8") for (u32 k = 0; k < 64 / (size); k++)                      \
		{                                                                                  \
			const type x = value_of(type, a >> k * (size) % 64);                       \
			const type z = (type)(whole ? x / n : x * scale);                          \
                                                                                                   \
			word |= ((u64)bits_of(z) & (mask)) << k * (size) % 64;                     \
		}                                                                                  \
		return word;                                                                       \
	}

ELEMENT(int8, signed char, u64, 8, 0xff, WHOLE_OF, BITS_OF_WHOLE)
ELEMENT(uint8, unsigned char, u64, 8, 0xff, WHOLE_OF, BITS_OF_WHOLE)
ELEMENT(int32, int, u64, 32, 0xffffffff, WHOLE_OF, BITS_OF_WHOLE)
ELEMENT(uint32, u32, u64, 32, 0xffffffff, WHOLE_OF, BITS_OF_WHOLE)
ELEMENT(int64, i64, u64, 64, ~0ul, WHOLE_OF, BITS_OF_WHOLE)
ELEMENT(uint64, u64, u64, 64, ~0ul, WHOLE_OF, BITS_OF_WHOLE)
ELEMENT(float16, float, float, 16, 0xffff, HALF_OF, BITS_OF_HALF)
ELEMENT(float32, float, float, 32, 0xffffffff, FLOAT_OF, BITS_OF_FLOAT)
ELEMENT(float64, double, double, 64, ~0ul, DOUBLE_OF, BITS_OF_DOUBLE)

INLINE u64 reduce_word(u32 type, u32 op, u64 a, u64 b)
{
	switch (type) {
	case ELEMENT_INT8:
		return reduce_int8(op, a, b);
	case ELEMENT_UINT8:
		return reduce_uint8(op, a, b);
	case ELEMENT_INT32:
		return reduce_int32(op, a, b);
	case ELEMENT_UINT32:
		return reduce_uint32(op, a, b);
	case ELEMENT_INT64:
		return reduce_int64(op, a, b);
	case ELEMENT_UINT64:
		return reduce_uint64(op, a, b);
	case ELEMENT_FLOAT64:
		return reduce_float64(op, a, b);
	case ELEMENT_FLOAT8_E4M3:
	case ELEMENT_FLOAT8_E5M2:
		return reduce_float16(op, a, b);
	default: /* float, and what is widened to it */
		return reduce_float32(op, a, b);
	}
}

/* Whole numbers are divided, towards zero; floats are multiplied by 1 / n. */
INLINE u64 divide_word(u32 type, u64 a, u32 n, double scale)
{
	switch (type) {
	case ELEMENT_INT8:
		return divide_int8(a, (signed char)n, 0, 1);
	case ELEMENT_UINT8:
		return divide_uint8(a, (unsigned char)n, 0, 1);
	case ELEMENT_INT32:
		return divide_int32(a, (int)n, 0, 1);
	case ELEMENT_UINT32:
		return divide_uint32(a, n, 0, 1);
	case ELEMENT_INT64:
		return divide_int64(a, n, 0, 1);
	case ELEMENT_UINT64:
		return divide_uint64(a, n, 0, 1);
	case ELEMENT_FLOAT64:
		return divide_float64(a, n, scale, 0);
	case ELEMENT_FLOAT8_E4M3:
	case ELEMENT_FLOAT8_E5M2:
		return divide_float16(a, (float)n, (float)scale, 0);
	default:
		return divide_float32(a, (float)n, (float)scale, 0);
	}
}

#define EVERY_WORD(type, k)                                                                        \
	_Pragma("GCC unroll 4") for (u32 k = 0; k < 4;                                             \
				     k++) if (k < 2 || is_half(type) || is_tiny(type))

/* b comes after a: ranks are reduced in ascending order on every rank. */
INLINE struct total total_add(u32 type, u32 op, struct total a, struct total b)
{
	EVERY_WORD(type, k)
	a.word[k] = reduce_word(type, op, a.word[k], b.word[k]);
	return a;
}

INLINE vector16 vector_of(u64 low, u64 high)
{
	const vector16 v = {(u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32)};

	return v;
}

/* n, scale: ranks and, as the bits of a double, 1 / ranks. */
INLINE vector16 total_end(u32 type, u32 op, u32 n, u64 scale, struct total t)
{
	if (op == REDUCE_AVG) {
		EVERY_WORD(type, k)
		t.word[k] = divide_word(type, t.word[k], n, double_of_bits(scale));
	}
	if (is_half(type)) {
		const vector16 v = {narrow_pair(type, t.word[0]), narrow_pair(type, t.word[1]),
				    narrow_pair(type, t.word[2]), narrow_pair(type, t.word[3])};

		return v;
	}
	if (is_tiny(type)) {
		const vector16 v = {narrow_four(type, t.word[0]), narrow_four(type, t.word[1]),
				    narrow_four(type, t.word[2]), narrow_four(type, t.word[3])};

		return v;
	}
	return vector_of(t.word[0], t.word[1]);
}

/* ---- pieces ---- */

/* The bytes of a piece from `offset` on, at most `most`. */
INLINE u64 part_of(u64 all, u64 begin, u64 piece, u64 offset, u64 most)
{
	const u64 there = begin < all ? all - begin : 0, size = there < piece ? there : piece;
	const u64 left = offset < size ? size - offset : 0;

	return left < most ? left : most;
}

INLINE u64 part_in(const struct collective_shape *s, u32 rank, u64 offset, u64 most)
{
	return part_of(s->in_bytes, piece_place(s, rank) * s->in_stride, s->piece, offset, most);
}

INLINE u64 part_out(const struct collective_shape *s, u32 rank, u64 offset, u64 most)
{
	return part_of(s->out_bytes, piece_place(s, rank) * s->out_stride, s->piece, offset, most);
}

/* Ranks whose data is reduced here. */
INLINE u32 sources_of(const struct collective_shape *s)
{
	return s->pull | (s->own ? 1u << s->me : 0);
}

/*
 * What comes from one rank alone is passed on unchanged, but for 8-bit floats: infinity becomes
 * their largest value.
 */
INLINE u32 is_passed_on(const struct collective_shape *s)
{
	return !(sources_of(s) & (sources_of(s) - 1)) && !is_tiny(s->type);
}

/* Addresses of pieces. */
INLINE u64 piece_in(const struct collective_shape *s, u32 rank)
{
	return s->in + piece_place(s, rank) * s->in_stride;
}

INLINE u64 piece_out(const struct collective_shape *s, u32 rank)
{
	return s->out + piece_place(s, rank) * s->out_stride;
}

/* ---- up to 16 bytes of the caller's, at any address ---- */

/* n: 1 to 8 bytes; the rest is 0. */
INLINE u64 load_bytes(u64 address, u64 n)
{
	u64 word = 0;

	if (n == 8 && address % 8 == 0)
		return AT(const u64, address);
	if (n == 8 && address % 4 == 0)
		return AT(const u32, address) | (u64)AT(const u32, address + 4) << 32;
	if (n == 4 && address % 4 == 0)
		return AT(const u32, address);
	ROLLED for (u64 k = 0; k < n; k++) word |= (u64)AT(const unsigned char, address + k)
						   << 8 * k;
	return word;
}

INLINE void store_bytes(u64 address, u64 word, u64 n)
{
	if (n == 8 && address % 8 == 0) {
		AT(u64, address) = word;
	} else if (n % 4 == 0 && address % 4 == 0) {
		AT(u32, address) = (u32)word;
		if (n == 8)
			AT(u32, address + 4) = (u32)(word >> 32);
	} else {
		ROLLED for (u64 k = 0; k < n; k++) AT(unsigned char, address + k) =
			(unsigned char)(word >> 8 * k);
	}
}

INLINE vector16 load_part(u64 address, u64 n)
{
	if (n >= 16 && address % 16 == 0)
		return AT(const vector16, address);
	return vector_of(load_bytes(address, n < 8 ? n : 8),
			 n > 8 ? load_bytes(address + 8, n < 16 ? n - 8 : 8) : 0);
}

INLINE void store_part(u64 address, vector16 v, u64 n)
{
	if (n >= 16 && address % 16 == 0) {
		AT(vector16, address) = v;
		return;
	}
	store_bytes(address, v[0] | (u64)v[1] << 32, n < 8 ? n : 8);
	if (n > 8)
		store_bytes(address + 8, v[2] | (u64)v[3] << 32, n < 16 ? n - 8 : 8);
}

/* ---- the end ---- */

/*
 * Written by any block that gave up. `end` is stored last and read first. The abort word then ends
 * the other blocks, which wait for what never comes (those that start only now would do so for a
 * whole limit of their own), and they do not replace the reason.
 */
INLINE void report_end(u64 report, u64 abort, u32 number, u32 end, u32 rank)
{
	if (end == WAIT_ABORTED &&
	    load_acquire(report + __builtin_offsetof(struct collective_report, end)) > WAIT_DONE)
		return;
	store_release(report + __builtin_offsetof(struct collective_report, rank), rank);
	store_release(report + __builtin_offsetof(struct collective_report, number), number);
	store_release(report + __builtin_offsetof(struct collective_report, end), end);
	if (abort)
		store_release(abort, 1);
}
