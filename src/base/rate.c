/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rate.h"

#include "base/order.h"

/*
 * Of the path: every healthy pair that somebody published reaches 85 % or more of what is expected
 * here (RTX 4090 and 3090 on EPYC Rome, Milan and Genoa, within and between sockets, and on Xeon
 * 4416+; CMP 170HX below a switch; H200), what is routed up from a switch or through a translating
 * IOMMU 40 % or less. Of the others: links of one machine differ by design (x4 behind a chipset and
 * x16, PCIe and NVLink by a factor of seven), so only what is below a tenth of their median is sure
 * to have another cause. Of own memory: nothing is between, and a busy host holds single copies up.
 */
static const double shares[RATE_BY_N] = {
	[RATE_BY_PATH] = 0.6,
	[RATE_BY_OTHERS] = 0.1,
	[RATE_BY_OWN] = 0.1,
};

struct rate_yardstick rate_yardstick(double expected, double median, uint64_t bytes)
{
	if (expected > 0 && (!bytes || bytes >= RATE_MIN_BYTES))
		return (struct rate_yardstick){RATE_BY_PATH, expected};
	if (median > 0)
		return (struct rate_yardstick){RATE_BY_OTHERS, median};
	return (struct rate_yardstick){RATE_BY_NOTHING, 0};
}

struct rate_yardstick rate_yardstick_own(double own)
{
	return (struct rate_yardstick){own > 0 ? RATE_BY_OWN : RATE_BY_NOTHING, own};
}

bool rate_is_slow(double gbps, struct rate_yardstick y)
{
	return gbps < shares[y.by] * y.gbps;
}

/* Expected is what a good copy reaches, some 80 % of what the links carry. */
#define PLAUSIBLE 1.3

bool rate_is_implausible(double gbps, double expected)
{
	return gbps > PLAUSIBLE * expected;
}

double rate_slow_share(enum rate_by by)
{
	return shares[by];
}

double rate_median(double *values, size_t n)
{
	if (n < 3)
		return 0;
	sort_doubles(values, n);
	return median_of_sorted(values, n);
}
