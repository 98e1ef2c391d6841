/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured times of operations on certain devices: the table that `onehop tune` writes, and its
 * text form.
 */
#pragma once

#include "base/date.h"
#include "collective/choose.h"

#include <stdio.h>

#define TUNED_WORD_SIZE 48
/* More than the largest table. */
#define TUNED_TEXT_MAX (256u << 10)

/* What the times depend on. "": unknown. Words have no blanks. */
struct tuned_identity {
	unsigned n; /* ranks, in the order of the devices */
	char driver[TUNED_WORD_SIZE];
	struct {
		char key[TUNED_WORD_SIZE]; /* "0000:41:00.0", "host0" */
		char uuid[TUNED_WORD_SIZE];
	} device[COLLECTIVE_RANKS_MAX];
	/* "NV18", "PIX": row initiator, column target */
	char path[COLLECTIVE_RANKS_MAX][COLLECTIVE_RANKS_MAX][TUNED_WORD_SIZE];
};

enum tuned_kind { TUNED_HOST, TUNED_DIRECT, TUNED_MIXED, TUNED_KIND_N };

static inline enum tuned_kind tuned_kind_of(bool direct, bool mixed)
{
	return direct ? TUNED_DIRECT : mixed ? TUNED_MIXED : TUNED_HOST;
}

/* A value: it is sent to the process that measures. */
struct tuned {
	struct tuned_identity identity;
	char date[DATE_SIZE];
	struct tuned_times times[TUNED_KIND_N];
};

/*
 * Reads the text form (docs/collectives.md). -EINVAL: the sentence names `name` and the line, and
 * *ret is unchanged. Neither allocates nor depends on the locale.
 */
int tuned_parse(const char *text, size_t size, const char *name, struct tuned *ret);
/* The same of a file. Errors of reading it too. */
int tuned_read(const char *path, struct tuned *ret);
/* Errors are those of the stream. */
void tuned_write(const struct tuned *t, FILE *out);

/*
 * Whether a table does not hold for these devices. Then `why` gets what has changed: "the driver
 * was 580.1 and is 580.2". What one of them does not know is not compared, except the number of
 * ranks.
 */
#define TUNED_WHY_SIZE 192
bool tuned_differs(const struct tuned_identity *then, const struct tuned_identity *now,
		   char why[static TUNED_WHY_SIZE]);
/*
 * Whether it has times of all ways but of levels, or but of the chain, though the ranks are in
 * groups, for which these were made: then it is older, and would keep them out, because only
 * measured times are compared with measured ones.
 */
bool tuned_is_older(const struct tuned_times *t, const struct comm_facts *f);
/*
 * Gives the facts of a communicator the times of a table (NULL: none) that holds for its devices.
 */
void tuned_apply(const struct tuned *t, const struct tuned_identity *now, struct comm_facts *f);
