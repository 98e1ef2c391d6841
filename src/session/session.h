/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: one run of test, bench p2p or bench nccl. Its file chooses devices, runs the work and keeps the result;
 * its progress goes to the caller's listener.
 */
#pragma once

#include "session/devices.h"

struct figures;

enum session_word {
	SESSION_RUNS, /* what runs now, for a line that the next one replaces */
	SESSION_NOTE, /* a sentence to keep; no error, the run goes on */
};

struct session_ear {
	void *context;
	void (*hear)(void *context, enum session_word w, const char *text);
};

void session_tell(const struct session_ear *ear, enum session_word w, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Device choice and lock in one. 0 or a negative errno with a sentence; devices_done either way. */
int session_begin(const struct device_options *o, const char *from, unsigned parts,
		  struct devices *ret);
/*
 * Stamps new figures of these devices with what they were measured under, and leaves them in the store, unless
 * they are of simulated devices or, `m` being NULL, of several hosts.
 */
void session_keep(const struct session_ear *ear, const struct devices *d, const struct machine *m,
		  struct figures *f);
