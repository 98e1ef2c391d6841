// SPDX-License-Identifier: Apache-2.0
#include "collective/faster.h"

#include "collective/operation.h"

/*
 * From the tables of all-reduces there, on H100 and H200. Through the host's memory above 16 MiB:
 * H200 alone, with 4 GPUs 64 and 256 MiB.
 */
static const struct faster_range direct_2[FASTER_RANGES] = {{8u << 10, 0.43, 0.45, 6.53},
							    {64u << 10, 0.45, 0.49, 7.04},
							    {256u << 10, 0.49, 0.51, 8.37},
							    {1u << 20, 0.55, 0.65, 12.74}};
static const struct faster_range host_2[FASTER_RANGES] = {{8u << 10, 0.32, 0.37, 10.88},
							  {64u << 10, 0.34, 0.45, 15.40},
							  {1u << 20, 0.42, 0.76, 63.06},
							  {256u << 20, 0.63, 0.81, 10429.46}};
static const struct faster_range direct_4[FASTER_RANGES] = {{8u << 10, 0.30, 0.35, 9.53},
							    {64u << 10, 0.33, 0.39, 10.51},
							    {256u << 10, 0.47, 0.63, 10.78},
							    {1u << 20, 0.63, 0.76, 16.51}};
static const struct faster_range host_4[FASTER_RANGES] = {{8u << 10, 0.23, 0.27, 17.90},
							  {64u << 10, 0.31, 0.52, 20.66},
							  {1u << 20, 0.46, 0.67, 96.97},
							  {256u << 20, 0.58, 0.93, 15924.71}};

/*
 * Least and greatest ratio, of graphs and eager calls: docs/performance.md, "Collective
 * operations", and without P2P runs before those. Each size that was measured had an interval below
 * 1.
 * With P2P larger sizes were faster too, but where NCCL has NVLink multicast it may be faster
 * there.
 */
static const struct faster rows[] = {
	{OPERATION_ALL_REDUCE, 2, true, 1u << 20, 0.34, 0.65, "2 H100 and 2 H200, NCCL 2.28.9",
	 direct_2},
	{OPERATION_ALL_REDUCE, 2, false, 256u << 20, 0.32, 0.98,
	 "2 H100 and 2 H200 without P2P, NCCL 2.28.9", host_2},
	{OPERATION_ALL_REDUCE, 4, true, 1u << 20, 0.30, 0.76, "4 H100 and 4 H200, NCCL 2.28.9",
	 direct_4},
	{OPERATION_ALL_REDUCE, 4, false, 256u << 20, 0.23, 0.94,
	 "4 H100 and 4 H200 without P2P, NCCL 2.28.9", host_4},
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
