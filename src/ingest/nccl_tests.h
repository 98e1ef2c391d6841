/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of nccl-tests, of any version and collective, several in one text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct figures;
struct text_line;

/* Result rows alone are not enough: their header must come before them. */
bool nccl_tests_recognise(const char *text, size_t size);
/*
 * Each size becomes a time and, from 1 GB/s on, a bus bandwidth (below, the two decimals of the
 * table say too little): of the faster of out-of-place and in-place, both being low and high.
 * Where values were checked, whether all were right. -EINVAL when no row can be read.
 */
int nccl_tests_parse(const char *text, size_t size, const char *file, struct figures **ret);

/*
 * The collective in the name of a file or program, "all-reduce" for "x/all_reduce_perf"; NULL:
 * none.
 */
const char *nccl_tests_word(const char *path);
/* One placement of one size; 0 or less: not measured. */
struct nccl_tests_result {
	double time_us, busbw;
	double wrong; /* values; below 0: not checked */
};
/*
 * The number of the first line that reports wrong values; 0: none does. Works on incomplete tables
 * too.
 */
unsigned nccl_tests_wrong_line(const struct text_line *lines, size_t n);
void nccl_tests_add(struct figures *f, const char *word, uint64_t bytes,
		    const struct nccl_tests_result result[2], const char *from);
