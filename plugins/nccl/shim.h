/* SPDX-License-Identifier: Apache-2.0 */
/* What the user asks of the shim, and the thread's state. */
#pragma once

#include <stdbool.h>

enum shim_mode {
	SHIM_OFF,   /* every call is passed on */
	SHIM_TABLE, /* what is known to be faster is taken over (collective/faster.h) */
	SHIM_ALL,   /* all that libonehop can do */
};

/* ONEHOP_SHIM, read once. */
enum shim_mode shim_mode(void);

struct shim_thread {
	/*
	 * While it is in the real NCCL through one of the functions taken over: NCCL calls some of
	 * its own functions by name, and those calls go to it as they are.
	 */
	bool inside;
	bool queued; /* something waits for the end of the outermost group (group.h) */
	int depth;   /* of open groups */
};

/* Of this thread. To find it takes longer than to use it. */
struct shim_thread *shim_self(void);

/* The real function's answer, with what it calls passed on. */
#define SHIM_REAL_IN(thread, call)                                                                 \
	({                                                                                         \
		struct shim_thread *const thread_ = (thread);                                      \
		const bool outer_ = thread_->inside;                                               \
		int status_;                                                                       \
		thread_->inside = true;                                                            \
		status_ = (call);                                                                  \
		thread_->inside = outer_;                                                          \
		status_;                                                                           \
	})
#define SHIM_REAL(call) SHIM_REAL_IN(shim_self(), call)
