// SPDX-License-Identifier: Apache-2.0
#include "collective/faster.h"

#include "collective/operation.h"

/*
 * Least and greatest ratio, of graphs and eager calls: docs/performance.md, "Collective operations". Each size of a row had an interval below 1.
 * With P2P larger sizes were faster too, but where NCCL has NVLink multicast it may be faster there.
 */
static const struct faster rows[] = {
	{OPERATION_ALL_REDUCE, 2, true, 1u << 20, 0.34, 0.95, "2 H100, NCCL 2.28.9"},
	{OPERATION_ALL_REDUCE, 2, false, 64u << 20, 0.32, 0.98, "2 H100 without P2P, NCCL 2.28.9"},
	{OPERATION_ALL_REDUCE, 4, true, 512u << 10, 0.34, 0.77, "4 H100, NCCL 2.28.9"},
	{OPERATION_ALL_REDUCE, 4, false, 64u << 20, 0.33, 0.94, "4 H100 without P2P, NCCL 2.28.9"},
};

const struct faster *faster_at(size_t i)
{
	return i < sizeof(rows) / sizeof(*rows) ? &rows[i] : NULL;
}

static bool was_measured(unsigned type, unsigned op)
{
	return (type == ELEMENT_FLOAT32 || type == ELEMENT_FLOAT16 || type == ELEMENT_BFLOAT16) &&
	       (op == REDUCE_SUM || op == REDUCE_AVG);
}

const struct faster *faster_find(enum operation operation, unsigned ranks, bool direct,
				 uint64_t count, unsigned type, unsigned op)
{
	const uint64_t bytes = count * (type == ELEMENT_FLOAT32 ? 4 : 2);

	for (size_t i = 0; was_measured(type, op) && i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].operation == operation && rows[i].ranks == ranks &&
		    rows[i].direct == direct && bytes <= rows[i].bytes)
			return &rows[i];
	return NULL;
}
