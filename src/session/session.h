/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: one run of test, bench p2p or bench nccl. Its file chooses devices, runs the work and
 * keeps the result; its progress goes to the caller's listener.
 */
#pragma once

#include "session/devices.h"

struct figures;
struct strbuf;

enum session_word {
	SESSION_RUNS, /* what runs now, for a line that the next one replaces */
	SESSION_NOTE, /* a sentence to keep; no error, the run goes on */
	SESSION_DONE, /* a line on what was done, or begins: part of what a person is shown */
	SESSION_LOG,  /* lines of another program, on an error */
};

struct session_ear {
	void *context;
	void (*hear)(void *context, enum session_word w, const char *text);
};

void session_tell(const struct session_ear *ear, enum session_word w, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* How a run goes on, for its percentage and the time that is left. Zeroed before it. */
struct session_pace {
	double begun_s;     /* when all was left */
	double total, left; /* in any unit */
};

/*
 * SESSION_RUNS with ": 37 %, about 12 s left" behind it. `left` is work that has not been done,
 * this part included; when it grows, another part of the run begins.
 */
void session_tell_left(const struct session_ear *ear, struct session_pace *p, double left,
		       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/*
 * What it adds after so many seconds. The time needs a second and some work done to go by. Here for
 * tests.
 */
void session_pace_text(const struct session_pace *p, double elapsed_s, struct strbuf *out);

/* Device choice and lock in one. 0 or a negative errno with a sentence; devices_done either way. */
int session_begin(const struct device_options *o, const char *from, unsigned parts,
		  struct devices *ret);
/*
 * Stamps new figures of these devices with what they were measured under, and leaves them in the
 * store, unless they are of simulated devices or, `m` being NULL, of several hosts.
 */
void session_keep(const struct session_ear *ear, const struct devices *d, const struct machine *m,
		  struct figures *f);
