/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that communication libraries read: what kind of value each takes, which versions know it, and for
 * those that onehop advises on what it does, when it is needed and when it harms. */
#pragma once

#include "machine/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum variable_kind {
	VARIABLE_INTEGER, /* read by strtoll: a word is 0, what follows the digits is dropped */
	VARIABLE_LEVEL,   /* a distance by its exact name, or a number of the old scale */
	VARIABLE_LIST,    /* [^][=]name,name */
	VARIABLE_FILE,    /* a path */
	VARIABLE_FREE,    /* words of its own */
	VARIABLE_KIND_N
};

#define NCCL_RELEASE(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))

struct variable_use {
	const char *does;
	const char *needed; /* when to set it */
	const char *harms;  /* when not to */
	/* the value that it has when nobody sets it; NULL: there is no one value */
	const char *normal;
	const char *before; /* the same before release `changed`; NULL: it was always so */
	int changed;
};

/* Versions are NCCL_RELEASE numbers; of other libraries than NCCL none is looked up. */
struct variable {
	const char *name;
	enum variable_kind kind;
	int since;      /* first release looked at that reads it; 0: older than 2.3.5 */
	int deprecated; /* 0: not */
	int until;      /* first release that no longer reads it; 0: 2.30.7 still does */
	const char *note;
	const struct variable_use *use; /* NULL: onehop does not advise on it */
};

/* In the order of their names; for tests too. */
extern const struct variable variable_table[];
extern const size_t variable_n;

const struct variable *variable_find(const char *name);
/* NULL with a sentence, which names one that may be meant. */
const struct variable *variable_named(const char *name);
/* NCCL's known name at an edit distance of 1 or 2, the nearest if there are several; else NULL. */
const struct variable *variable_near(const char *name);
/*
 * The value that it has in this release of NCCL (0: not known) when nobody sets it; NULL: it
 * depends.
 */
const char *variable_normal(const struct variable *v, int version);
const char *variable_kind_word(enum variable_kind kind); /* "integer" */

/* Names that begin with NCCL_ and belong to others: images, builds, plugins, PyTorch. */
bool nccl_variable_is_foreign(const char *name);
/* Some known name begins with the same word: NCCL_IB_... */
bool nccl_variable_has_family(const char *name);

/* Insertions, deletions, changes and swaps of neighbours that lead from one to the other. */
unsigned nccl_name_distance(const char *a, const char *b);

/* NCCL's own numbers in today's form: 2.8.3 was 2803, 2.28.9 is 22809. */
int nccl_version_number(int64_t version);
/* "2.28.9" */
const char *nccl_version_format(int number, char *buf, size_t size);
