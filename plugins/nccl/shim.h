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

/*
 * Set while this thread is in the real NCCL through one of the functions taken over: NCCL calls some of its own
 * functions by name, and those calls go to it as they are.
 */
extern _Thread_local bool shim_inside;

/* The real function's answer, with what it calls passed on. */
#define SHIM_REAL(call)                                                                            \
	({                                                                                         \
		const bool outer_ = shim_inside;                                                   \
		int status_;                                                                       \
		shim_inside = true;                                                                \
		status_ = (call);                                                                  \
		shim_inside = outer_;                                                              \
		status_;                                                                           \
	})
