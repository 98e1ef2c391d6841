/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that NCCL reads: what kind of value each takes, and which versions know it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nccl_kind {
	NCCL_INTEGER, /* read by strtoll: a word is 0, what follows the digits is dropped */
	NCCL_LEVEL,   /* a distance by its exact name, or a number of the old scale */
	NCCL_LIST,    /* [^][=]name,name */
	NCCL_FILE,    /* a path */
	NCCL_FREE,    /* words of its own */
};

#define NCCL_RELEASE(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))

/* Versions are NCCL_RELEASE numbers. */
struct nccl_variable {
	const char *name;
	enum nccl_kind kind;
	int since;      /* first release looked at that reads it; 0: older than 2.3.5 */
	int deprecated; /* 0: not */
	int until;      /* first release that no longer reads it; 0: 2.30.7 still does */
	const char *note;
};

/* In the order of their names; tests go through them. */
extern const struct nccl_variable nccl_variables[];
extern const size_t nccl_variable_n;

const struct nccl_variable *nccl_variable_find(const char *name);
/* The known name at an edit distance of 1 or 2, the nearest if there are several; else NULL. */
const struct nccl_variable *nccl_variable_near(const char *name);
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
