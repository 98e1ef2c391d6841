/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a run of `onehop test`: for --resume, and for what the machine did not survive. */
#pragma once

#include "base/date.h"
#include "bench/test_run.h"
#include "session/store.h"

#include <stdio.h>

struct strbuf;

#define TEST_OPTIONS_MAX 16
#define TEST_NAME_SIZE   32

/*
 * A run. All but the boot ID and include_suspects must be the same for it to be resumed. Pointers
 * are the caller's.
 */
struct test_identity {
	const char *device;       /* "cuda", "host" */
	const char *driver;       /* version, "" unknown */
	const char *boot_id;      /* "" unknown */
	const char *const *names; /* of the devices: PCI addresses, "host0" */
	size_t n;
	const char *options[TEST_OPTIONS_MAX]; /* that change what is tested: "--long 60" */
	size_t option_n;
	bool include_suspects; /* what the machine stopped in is run again */
};

/* ---- the lock: one run at a time uses the journal of a state folder ---- */

/*
 * Before anything else of this file. Held until *ret_fd is closed or the process ends. -EBUSY:
 * another run has it.
 */
int test_journal_lock(const struct test_identity *i, int *ret_fd);

/* ---- what earlier runs left ---- */

/* A step, by the names of its devices, which need not be in the present run. */
struct test_mark {
	enum test_phase phase;
	char initiator[TEST_NAME_SIZE], target[TEST_NAME_SIZE]; /* "": TEST_ALL_REDUCE */
	char date[DATE_SIZE];                                   /* of the run */
};

/*
 * Where the machine has restarted since a run, what ran at that moment is a suspect, until the step
 * ends in a run that includes suspects. Where only the program was killed, it counts as not run and
 * runs again.
 */
struct test_past {
	bool found, complete; /* complete: it ended by itself */
	bool restarted;       /* the machine, or its boot ID is unknown */
	bool torn; /* the last line is incomplete: its step had not begun, or not ended */
	unsigned damaged_line;     /* the first that cannot be read; 0: none */
	struct pair_result *known; /* n squared, without suspects; NULL after test_past_review */
	struct test_mark running[DEVICE_MAX]; /* when it ended */
	size_t running_n;
	struct test_mark *suspects; /* of this run and of those before it */
	size_t suspect_n;
	char date[DATE_SIZE];
};

/*
 * To resume the run whose devices these are: -ENOENT (found is false), -EINVAL and a sentence if it
 * had other devices, other options or another driver, or the file is invalid or damaged.
 */
int test_past_read(const struct test_identity *i, struct test_past *ret);
/* For a run that tests everything: the last run, whatever its devices, options and damage. */
int test_past_review(const struct test_identity *i, struct test_past *ret);
void test_past_done(struct test_past *p);

/*
 * Marks the suspects among this run's devices in `known` (n squared, on the diagonal of own memory)
 * as WRONG_ENDED, and adds their names to `ret`. Nothing if the run includes them.
 */
void test_past_hold(const struct test_past *p, const struct test_identity *i,
		    struct pair_result *known, bool *ret_all_reduce, struct strbuf *ret);
/* "host0 -> host1 (copies), ...": what ran when it ended. "" for nothing. */
void test_past_running(const struct test_past *p, struct strbuf *ret);

/* "host0 -> host1 (copies)", with these names of the run's devices. */
void test_step_name(const struct test_step *s, const char *const *names, struct strbuf *ret);

/* ---- the journal: a line before each step and one after it, on disk before the run continues ---- */

struct test_journal {
	int fd;      /* -1: not open */
	bool failed; /* a line could not be written: the run does not count as complete */
	char *path;
	const struct test_identity *identity;
};

#define TEST_JOURNAL_NONE                                                                          \
	(struct test_journal)                                                                      \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * Begins a new one, which holds the suspects of `past`. The journal of a run that did not finish
 * becomes test-run.previous.jsonl and replaces an older one: *ret_kept is its path, the caller's to
 * free; NULL: nothing was kept. 0 or a negative errno with a sentence.
 */
int test_journal_start(const struct test_identity *i, const struct test_past *past,
		       struct test_journal *ret, char **ret_kept);
/* Continues the present one. */
int test_journal_resume(const struct test_identity *i, struct test_journal *ret);
int test_journal_begins(struct test_journal *j, const struct test_step *step);
void test_journal_ended(struct test_journal *j, const struct test_step *step);
/* `complete`: nothing is left to resume. */
void test_journal_close(struct test_journal *j, bool complete);

/* ---- the file, for the two parts of this ---- */

#define TEST_JOURNAL_VERSION 2

/*
 * The path of the journal; `make`: its folder too. `end`: ".jsonl", ".previous.jsonl", ... The
 * caller frees.
 */
int test_state_path(const struct test_identity *i, bool make, const char *end, char **ret);
