/* SPDX-License-Identifier: Apache-2.0 */
/* The one error idiom: a negative errno as the return value, plus one sentence per thread. */
#pragma once

#include <errno.h>

/*
 * Sets the sentence and is -err: `return err_set(EINVAL, "%s:%u: ...", file, line);`
 * These are macros so that compilers and analyzers see that an error is never 0.
 */
#define err_set(err, ...)                                                                          \
	({                                                                                         \
		const int err_ = (err);                                                            \
		err_say(__VA_ARGS__);                                                              \
		err_ > 0 ? -err_ : -EIO;                                                           \
	})
/* The same, with ": " and the text of err appended, for failed system calls. */
#define err_sys(err, ...)                                                                          \
	({                                                                                         \
		const int err_ = (err);                                                            \
		err_say_sys(err_, __VA_ARGS__);                                                    \
		err_ > 0 ? -err_ : -EIO;                                                           \
	})
/* Puts "context: " before the sentence there is and is r. */
#define err_wrap(r, ...)                                                                           \
	({                                                                                         \
		const int wrapped_ __attribute__((unused)) = (r);                                  \
		err_say_before(__VA_ARGS__);                                                       \
		wrapped_;                                                                          \
	})

/* The sentence of this thread's last error; valid until the next err_ call. Never NULL. */
const char *err_msg(void);

/* ---- what the macros use ---- */

void err_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void err_say_sys(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void err_say_before(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
