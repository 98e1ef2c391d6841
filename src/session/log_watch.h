/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the kernel log during a test and ties new error lines to the steps that may have caused
 * them.
 */
#pragma once

#include "bench/test_run.h"
#include "session/log_tail.h"

/* A line of the kernel log that appeared while a pair ran. */
struct test_log_line {
	int initiator, target; /* indexes in the run; -1: all devices at once */
	const char *text;
};

struct log_watch {
	const char *const *keys; /* the devices' addresses; the caller's */
	size_t n;                /* 0: nothing is watched */
	struct test_step running[DEVICE_MAX];
	size_t running_n;
	struct log_tail tail;
	struct test_log_line *lines;
	size_t line_n;
};

/* Lines that are already in the log are not reported. */
void log_watch_open(struct log_watch *w, const char *const *keys, size_t n);
void log_watch_begins(struct log_watch *w, const struct test_step *step);
/* Reads what is new and ties it to what runs, this step included. */
void log_watch_ended(struct log_watch *w, const struct test_step *step);
void log_watch_done(struct log_watch *w); /* also of one that was never opened */
