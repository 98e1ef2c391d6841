/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of communication libraries: which library reads them, and which of several takes
 * effect.
 */
#pragma once

#include <stddef.h>

struct setting;

enum library {
	LIBRARY_NCCL,
	LIBRARY_UCX,
	LIBRARY_OPEN_MPI,
	LIBRARY_NVSHMEM,
	LIBRARY_GLOO,
	LIBRARY_N
};

const char *library_name(enum library l); /* "Open MPI" */
/*
 * Which of them reads NAME, or the name in "NAME=VALUE"; LIBRARY_N: none. NCCL_ in any case: a
 * variable that NCCL ignores because of its case is worth a warning.
 */
enum library library_of_variable(const char *name);

/*
 * Settings strongest first, and within one origin the first line: only what is not set yet is set.
 */
void settings_judge(struct setting *settings, size_t n);
