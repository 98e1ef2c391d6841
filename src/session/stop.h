/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask a run to stop. */
#pragma once

#include <stdbool.h>

/*
 * Ctrl-C, SIGTERM and SIGHUP no longer end this process or the threads that it starts from here on:
 * the run asks for them. A file descriptor or a negative errno.
 */
int stop_signals_open(void);
/* Whether one came; it stays pending, so that every later call says so too. */
bool stop_signals_seen(int fd);
