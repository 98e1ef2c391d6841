/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a run of `onehop test`, for --resume. */
#pragma once

#include "base/date.h"
#include "bench/test_run.h"
#include "session/store.h"

#include <stdio.h>

struct strbuf;

#define TEST_OPTIONS_MAX 16

/* A run. All but the boot ID must be the same for it to be resumed. Pointers are the caller's. */
struct test_identity {
	const char *device;       /* "cuda", "host" */
	const char *driver;       /* version, "" unknown */
	const char *boot_id;      /* "" unknown */
	const char *const *names; /* of the devices: PCI addresses, "host0" */
	size_t n;
	const char *options[TEST_OPTIONS_MAX]; /* that change what is tested: "--long 60" */
	size_t option_n;
};

/* ---- the journal: a line before each step and one after it, on disk before the run continues ---- */

struct test_journal {
	int fd;
	const struct test_identity *identity;
};

/*
 * What an earlier run left. Where the machine has restarted since, what ran at that moment is the suspect: WRONG_ENDED.
 * Where only the program was killed, it counts as not run and runs again.
 */
struct test_past {
	bool found, complete;      /* complete: it ended by itself */
	bool restarted;            /* the machine, or its boot ID is unknown */
	struct pair_result *known; /* n squared; on the diagonal suspects alone */
	bool all_reduce_suspect;
	struct test_step running[DEVICE_MAX]; /* when it ended; the result is not set */
	size_t running_n;
	char date[DATE_SIZE];
};

/*
 * Of the run whose devices these are: -ENOENT (found is false), -EINVAL and a sentence if it had
 * other devices, other options or another driver, or the file is invalid.
 */
int test_past_read(const struct test_identity *i, struct test_past *ret);
void test_past_done(struct test_past *p);

/* What ran when it ended, or "nothing", with these names of its devices. */
void test_past_running(const struct test_past *p, const char *const *names, struct strbuf *ret);

/* "host0 -> host1 (copies)", with these names of the run's devices. */
void test_step_name(const struct test_step *s, const char *const *names, struct strbuf *ret);

/*
 * Before a run that tests everything: the journal of a run, of any devices, that did not finish is renamed to
 * test-run.previous.jsonl and replaces an older one. *ret_note is a sentence on what ran then, the caller's to free;
 * NULL: nothing was renamed. 0 or a negative errno with a sentence.
 */
int test_journal_keep(const struct test_identity *i, char **ret_note);

/* Begins a new one, or continues the present one. 0 or a negative errno with a sentence. */
int test_journal_open(const struct test_identity *i, bool resume, struct test_journal *ret);
int test_journal_begins(struct test_journal *j, const struct test_step *step);
void test_journal_ended(struct test_journal *j, const struct test_step *step);
/* `complete`: nothing is left to resume. */
void test_journal_close(struct test_journal *j, bool complete);
