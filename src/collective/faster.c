// SPDX-License-Identifier: Apache-2.0
#include "collective/faster.h"

#include "collective/operation.h"

/* From the tables of all-reduces there, in graphs, on H200; rounded outwards. */
static const struct faster_range direct_2[FASTER_RANGES] = {{8u << 10, 0.34, 0.39, 6.29},
							    {64u << 10, 0.35, 0.38, 6.77},
							    {256u << 10, 0.39, 0.42, 8.05},
							    {1u << 20, 0.45, 0.53, 12.65}};
static const struct faster_range host_2[FASTER_RANGES] = {{8u << 10, 0.27, 0.34, 10.34},
							  {64u << 10, 0.34, 0.42, 14.85},
							  {1u << 20, 0.36, 0.76, 62.56},
							  {256u << 20, 0.65, 0.82, 9963.47}};
static const struct faster_range direct_4[FASTER_RANGES] = {{8u << 10, 0.27, 0.31, 9.24},
							    {64u << 10, 0.28, 0.35, 10.31},
							    {256u << 10, 0.42, 0.51, 10.66},
							    {1u << 20, 0.52, 0.66, 16.38}};
static const struct faster_range host_4[FASTER_RANGES] = {{8u << 10, 0.22, 0.27, 16.98},
							  {64u << 10, 0.29, 0.48, 20.23},
							  {1u << 20, 0.43, 0.66, 94.17},
							  {256u << 20, 0.58, 0.91, 15924.71}};

/*
 * Least and greatest ratio, of graphs and eager calls: docs/performance.md, "Collective
 * operations". Each size that was measured had an interval below 1. Without P2P on 4 GPUs
 * the greatest is of eager calls with kernels before those of now.
 * With P2P larger sizes were faster too, but where NCCL has NVLink multicast it may be faster
 * there.
 */
static const struct faster rows[] = {
	{OPERATION_ALL_REDUCE, 2, true, 1u << 20, 0.34, 0.53, "2 H200, NCCL 2.28.9", direct_2},
	{OPERATION_ALL_REDUCE, 2, false, 256u << 20, 0.27, 0.83, "2 H200 without P2P, NCCL 2.28.9",
	 host_2},
	{OPERATION_ALL_REDUCE, 4, true, 1u << 20, 0.27, 0.66, "4 H200, NCCL 2.28.9", direct_4},
	{OPERATION_ALL_REDUCE, 4, false, 256u << 20, 0.22, 0.94, "4 H200 without P2P, NCCL 2.28.9",
	 host_4},
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
