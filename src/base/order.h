/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in rising order, and the middle of them. */
#pragma once

#include <stddef.h>

void sort_doubles(double *values, size_t n);
/* Of at least one value, in rising order; of an even number the mean of the two in the middle. */
double median_of_sorted(const double *values, size_t n);
