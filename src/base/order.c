/* SPDX-License-Identifier: Apache-2.0 */
#include "base/order.h"

#include <stdlib.h>

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void sort_doubles(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), rising);
}

double median_of_sorted(const double *values, size_t n)
{
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
