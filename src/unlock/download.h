/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a release from NVIDIA's public repository: fetched, checked, and only then a tree. */
#pragma once

#include "fix/sha256.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct fix_host;
struct strbuf;

/*
 * Where trees lie, below the root: SOURCES_FOLDER/RELEASE. Only root writes there, because their makefiles
 * are run as root. A tree is there with its release's name once it is whole and was checked; until then all is
 * in RELEASE.part. A run that leaves neither leaves no folder either.
 */
#define CACHE_FOLDER   "var/cache/onehop"
#define SOURCES_FOLDER CACHE_FOLDER "/sources"

struct download {
	const char *release;
	/* of its sources; NULL: not known, so that what arrives cannot be checked */
	const char *hash;
	const char *program; /* "curl", "wget" or "git"; NULL: none is here */
	const char *url;     /* of the archive; of the repository for git, or without a program */
	const char *shown;   /* the same for people, without a name and password */
	const char *folder;  /* absolute: where the tree will be */
	int64_t bytes;       /* as the server announced; 0: it did not */
};

/* http or https, and nothing that would not be plain in a command. */
bool download_is_url(const char *url);
/* A text with an address's name and password, "https://NAME:PASSWORD@host/", as "***". The caller frees. */
char *download_hide(const char *text, const char *url);

/*
 * What would be fetched. `program` of those here; `repository` is NVIDIA's or a mirror of it. Looks at
 * nothing. In the arena.
 */
struct download *download_of(const char *release, const char *program, const char *repository,
			     const char *folder, struct arena *a);
/* "14.2 MB"; "312 bytes", where that would be 0.0 MB. */
void download_add_size(int64_t bytes, struct strbuf *out);
/* The programs in the order of preference; ends with NULL. */
extern const char *const download_programs[];

/*
 * Whether the tree of a release that lies in `folder`, below the host's root, is what download_fetch or an edit
 * of it left there. Looks only. 0, or a negative errno with a sentence: others can write there; it is
 * another tree, or cannot be read.
 */
int download_check(struct fix_host *h, const char *release, const char *folder);

/* SOURCES_FOLDER, absolute, where a tree or a part of one lies in it; NULL: nothing does. In the arena. */
const char *download_left(struct fix_host *h, struct arena *a);

struct download_watch {
	/* About once a second, with the bytes that are there (0: not known); false: stop. May be NULL. */
	bool (*progress)(void *context, int64_t bytes);
	void *context;
};

/*
 * Asks the server for it, for half a minute at most: 0 and `bytes`, or a negative errno with a sentence, without the
 * address; -EFBIG: too large for a release. w->progress gets 0.
 */
int download_ask(struct download *d, const struct download_watch *w);

/*
 * Fetches, unpacks and checks it; 0: the tree is in d->folder, below the host's root, be it of this run
 * or of an earlier one. What a run that was cut off left is continued, or fetched again. A negative errno with a
 * sentence: -EINVAL: what arrived is not this release, and was removed; -EBUSY: another onehop is
 * at it; -ECANCELED: stopped, what came so far is kept; else it could not be fetched.
 */
int download_fetch(struct fix_host *h, const struct download *d, const struct download_watch *w);
