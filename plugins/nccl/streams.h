/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a communicator's operations: NCCL runs them one after the other whatever their
 * streams, and libonehop wants that of its callers.
 */
#pragma once

#include <stdbool.h>

struct streams;

/*
 * device: CUDA's number. mixed: what graphs contain is put in order with other graphs and with what
 * is in none, which costs a graph two nodes. 0 or a negative errno with its sentence (base/err.h).
 */
int streams_open(int device, bool mixed, struct streams **ret);
void streams_close(struct streams *s); /* NULL does nothing */

/* Around an operation that is enqueued in the stream. By one thread at a time. */
int streams_before(struct streams *s, void *stream);
int streams_after(struct streams *s, void *stream);
/* Whether all of them are done. With `mixed` this includes graphs that were launched. */
bool streams_are_done(struct streams *s);
