/* SPDX-License-Identifier: Apache-2.0 */
/* The one error idiom: a negative errno as the return value, plus one sentence per thread. */
#pragma once

#include <stdarg.h>

/* Sets the sentence and returns -err: `return err_set(EINVAL, "%s:%u: ...", file, line);` */
int err_set(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, with ": " and the text of err appended, for failed system calls. */
int err_sys(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Puts "context: " before the sentence there is and returns r. */
int err_wrap(int r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The sentence of this thread's last error; valid until the next err_ call. Never NULL. */
const char *err_msg(void);
