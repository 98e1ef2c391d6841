/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A time limit for a run that may hang in a library while it reads a machine. A thread of its own
 * keeps it. One that hangs in the kernel keeps the process all the same; the limit of whoever
 * started it then counts.
 */
#pragma once

#include <stdatomic.h>

struct deadline {
	int seconds;
	/*
	 * In that thread, and ends the process. `what`: "not done after 5 s: waiting for
	 * /dev/nvidiactl".
	 */
	void (*late)(void *context, const char *what);
	void *context;
	_Atomic(const char *) doing; /* what is not reached yet */
};

/* From here on `d` is read until the process ends. 0 or a negative errno with a sentence. */
int deadline_start(struct deadline *d);
