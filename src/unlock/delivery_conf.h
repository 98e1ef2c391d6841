/* SPDX-License-Identifier: Apache-2.0 */
/* What a dkms.conf says, read without running it: it is bash. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* A record of the arrays; NULL: not set, "?": not to be known without running it. */
struct dkms_module {
	const char *built, *location, *dest;
};

#define DKMS_MODULES 64

/*
 * Assignments at the start of a line whose values are plain or quoted words, with variables of the
 * same file in them. Of all else, commands among it, nothing is known.
 */
struct dkms_conf {
	const char *name, *version;
	struct dkms_module modules[DKMS_MODULES];
	size_t module_n;      /* the highest index that was named, and one */
	const char **patches; /* file names in patches/ */
	size_t patch_n;
	const char *certificate; /* of framework.conf: mok_certificate */
};

/* Never fails; reads on from what `ret` holds, which starts zeroed. In the arena. */
void dkms_conf_read(const char *text, struct arena *a, struct dkms_conf *ret);
/* The file name, without ".ko", that a module gets when it is installed; NULL or "?": not known. */
const char *dkms_conf_dest(const struct dkms_conf *c, const char *built);

/* A name that may be used in a path, in a file that bash reads, and as an argument. */
bool dkms_is_plain(const char *name);
