/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a session ended that may be refused or fail half-way; all but ENDED_WELL with a sentence
 * (base/err.h).
 */
#pragma once

#include "base/err.h"

/* With a sentence. */
#define ended_refused(...) ((void)err_set(EPERM, __VA_ARGS__), ENDED_REFUSED)

enum ending {
	ENDED_WELL,
	ENDED_REFUSED,   /* or wrong usage; nothing was changed */
	ENDED_UNDECIDED, /* the machine could not be read or judged */
	ENDED_FAILED,    /* a change failed */
};
