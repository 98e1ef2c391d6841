/* SPDX-License-Identifier: Apache-2.0 */
/* Being asked to stop. */
#pragma once

#include <stdbool.h>

/*
 * Ctrl-C, SIGTERM and SIGHUP as something to ask for instead of a sudden end, from here on and in
 * what is started from here on. A file descriptor or a negative errno.
 */
int stop_signals_open(void);
/* And from then on: what came is left there for others who ask. */
bool stop_signals_seen(int fd);
