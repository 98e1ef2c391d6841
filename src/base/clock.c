/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/order.h"

#define READINGS 63

uint64_t clock_cost_ns(void)
{
	double took[READINGS];

	for (int i = 0; i < READINGS; i++) {
		uint64_t start = clock_ns();

		took[i] = (double)(clock_ns() - start);
	}
	sort_doubles(took, READINGS);
	return (uint64_t)median_of_sorted(took, READINGS);
}
