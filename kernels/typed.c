// SPDX-License-Identifier: Apache-2.0
/* Fills and checks vectors of every element type, for collectives. */
#include "kernels/typed.h"

#include "kernels/device.h"

static inline void typed_store(u64 address, u64 bytes, u64 bits)
{
	if (bytes == 1)
		AT(unsigned char, address) = (unsigned char)bits;
	else if (bytes == 2)
		AT(unsigned short, address) = (unsigned short)bits;
	else if (bytes == 4)
		AT(u32, address) = (u32)bits;
	else
		AT(u64, address) = bits;
}

static inline u64 typed_load(u64 address, u64 bytes)
{
	if (bytes == 1)
		return AT(const unsigned char, address);
	if (bytes == 2)
		return AT(const unsigned short, address);
	return bytes == 4 ? AT(const u32, address) : AT(const u64, address);
}

KERNEL(typed_fill)
{
	const u64 bytes = typed_bytes(a.type);

	for (u64 i = grid_id(); i < a.count; i += grid_count())
		typed_store(a.target + i * bytes, bytes,
			    typed_encode(a.type, typed_value(a.type, a.first + i, a.rank, a.op),
					 0));
}

/* The bits of `sum` / n, rounded down in the fraction. */
static inline u64 typed_quotient(u64 type, u64 sum, u64 n)
{
	const u32 fraction_bits = typed_fraction_bits(type);
	u32 halvings = 0;

	if (!fraction_bits)
		return sum / n;
	/* As many bits as the fraction holds: sum / n < 8 n / n. */
	while (sum && sum / n >> fraction_bits == 0) {
		sum <<= 1;
		halvings++;
	}
	return typed_encode(type, sum / n, halvings);
}

/*
 * An average of n ranks may be the sum of values that were divided one by one: where n is not a
 * power of two each step rounds, and the last bits are undetermined. Of 8-bit floats only the
 * average of the sum is checked, rounded once: n of their last bits are half of a number.
 */
static inline u64 typed_slack(u64 type, u64 op, u64 n)
{
	if (op != REDUCE_AVG || !typed_fraction_bits(type) || !(n & (n - 1)))
		return 0;
	return typed_is_tiny(type) ? 1 : n;
}

KERNEL(typed_check)
{
	const u64 bytes = typed_bytes(a.type), mask = bytes == 8 ? ~0ul : (1ul << bytes * 8) - 1;
	const u64 slack = typed_slack(a.type, a.op, a.ranks);
	u64 wrong = 0, first_wrong = CHECK_NONE;

	for (u64 i = grid_id(); i < a.count; i += grid_count()) {
		const u64 all = typed_reduced(a.type, a.first + i, a.op, a.first_rank, a.ranks);
		const u64 right = a.op == REDUCE_AVG ? typed_quotient(a.type, all, a.ranks)
						     : typed_encode(a.type, all, 0);
		const u64 off = typed_load(a.origin + i * bytes, bytes) - right + slack;

		if ((off & mask) <= 2 * slack)
			continue;
		if (!wrong++)
			first_wrong = i;
	}
	if (!wrong)
		return;
	add_u64(a.report + __builtin_offsetof(struct typed_report, wrong), wrong);
	min_u64(a.report + __builtin_offsetof(struct typed_report, first_wrong), first_wrong);
}
