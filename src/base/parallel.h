/* SPDX-License-Identifier: Apache-2.0 */
/* Runs independent jobs on a few threads, for calls that mostly wait for something else. */
#pragma once

#include <stddef.h>

/*
 * Calls job(context, i) once for each i below n, on at most `threads` threads, and returns when all
 * are done. Where no thread can be started the caller's own does the work.
 */
void parallel_for(size_t n, unsigned threads, void (*job)(void *context, size_t i), void *context);
