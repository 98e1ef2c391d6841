/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which communicators are open, so that a pointer to one that was closed is recognised without
 * looking at it.
 */
#pragma once

#include <stdbool.h>

/* -EMFILE: too many are open. */
int live_add(const void *comm);
/* Whether it was open. */
bool live_remove(const void *comm);
/* For any thread; takes no lock. */
bool live_has(const void *comm);
/* It was open in the process that forked this one, where it cannot be used. */
bool live_was_forked(const void *comm);
