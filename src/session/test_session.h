/* SPDX-License-Identifier: Apache-2.0 */
/* A run of test: devices chosen, each pair tested, journalled, the results kept. */
#pragma once

#include "bench/test_run.h"
#include "session/journal.h"
#include "session/log_watch.h"
#include "session/session.h"

struct diagnosis;

/* The options as a person writes them. */
struct test_choice {
	struct device_options devices;
	const char *from, *inject; /* inject: "mirror:0->1" */
	int deadline_s, long_s;
	bool resume, include_suspects;
	bool atomics, compressible, host_memory; /* patterns for information */
	/* Those that change what is tested, besides those that choose devices, as the user knows them: "--long 60". A
	 * resumed run must have the same. At most TEST_OPTIONS_MAX. */
	const char *const *options;
	size_t option_n;
};

struct test_session {
	const struct test_choice *o;
	const struct session_ear *ear;
	struct session_pace pace;
	struct devices devices;
	struct diagnosis *diagnosis; /* NULL for simulated devices */
	struct test_identity identity;
	struct test_past past;
	struct pair_result *known; /* what is not to be tested again; NULL: nothing */
	struct test_result result;
	struct figures *figures; /* of the result; NULL: nothing was run */
	char *note;              /* of an earlier run; NULL: none */

	/* ---- while it runs ---- */
	struct test_request request;
	int journal_lock; /* file descriptor; -1: none */
	struct test_journal journal;
	struct log_watch log; /* not begun for simulated devices */
	char boot_id[BOOT_ID_SIZE];
};

/*
 * 0 or a negative errno with a sentence: refused. No device may be left. test_session_done whatever
 * the answer.
 */
int test_session_begin(struct test_session *s, const struct test_choice *o,
		       const struct session_ear *ear);
/* *ret_refused: before anything was run. 0 or a negative errno with a sentence. */
int test_session_run(struct test_session *s, bool *ret_refused);
void test_session_done(struct test_session *s);

/*
 * Edits of the driver without the gate for managed memory are older than the one that keeps
 * compressible memory away from peers: tags of compression replace bits of the address, and a
 * peer's write lands in the host's memory. 0, or -EPERM with a sentence. Declared for tests.
 */
int test_check_compressible(const struct diagnosis *d);
