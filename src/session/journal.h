/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a run of `onehop test`, for --resume. */
#pragma once

#include "base/date.h"
#include "bench/test_run.h"
#include "session/store.h"

#include <stdio.h>

struct strbuf;

/* What has to be the same for a run to be gone on with. Pointers are the caller's. */
struct test_identity {
	const char *device; /* "cuda", "host" */
	const char *inject; /* "" or "mirror:0->1" */
	const char *driver; /* version, "" unknown */
	const char
		*boot_id; /* "" unknown; another one does not keep a run from being gone on with */
	const char *const *names; /* of the devices: PCI addresses, "host0" */
	size_t n;
};

/* ---- the journal: a line before each step and one behind it, on disk before anything goes on ---- */

struct test_journal {
	int fd;
	const struct test_identity *identity;
};

/* What an earlier run left. */
struct test_past {
	bool found, complete;      /* complete: it ended by itself */
	bool restarted;            /* the machine was started again since */
	struct pair_result *known; /* n squared; those that ran when it ended are WRONG_ENDED */
	struct test_step running[DEVICE_MAX]; /* when it ended; the result is not set */
	size_t running_n;
	char date[DATE_SIZE];
};

/*
 * Of the run whose devices these are: -ENOENT (found is false), -EINVAL and a sentence when it was
 * one of other devices, of another driver, or the file makes no sense.
 */
int test_past_read(const struct test_identity *i, struct test_past *ret);
void test_past_done(struct test_past *p);

/* "host0 -> host1 (copies)", with these names of the run's devices. */
void test_step_name(const struct test_step *s, const char *const *names, struct strbuf *ret);

/*
 * Before a run that starts anew: the journal of one, of whatever devices, that did not end by
 * itself goes to test-run.previous.jsonl, over an older one. *ret_note is a sentence on what ran
 * then, the caller's to free; NULL: there was none to keep. 0 or a negative errno with a sentence.
 */
int test_journal_keep(const struct test_identity *i, char **ret_note);

/* Begins a new one, or goes on with the one there is. 0 or a negative errno with a sentence. */
int test_journal_open(const struct test_identity *i, bool resume, struct test_journal *ret);
int test_journal_begins(struct test_journal *j, const struct test_step *step);
void test_journal_ended(struct test_journal *j, const struct test_step *step);
/* `complete`: nothing is left to go on with. */
void test_journal_close(struct test_journal *j, bool complete);
