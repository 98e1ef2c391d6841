/* SPDX-License-Identifier: Apache-2.0 */
/* What host*.c share: where a path leads, and the checks of who else could change what is there. */
#pragma once

#include "fix/host.h"

#include <limits.h>
#include <sys/stat.h>

/* A file that may not be there yet: the folder it stands in, and its name. */
struct place {
	int folder; /* O_PATH, of the folder itself */
	char name[NAME_MAX + 1];
	char *shown; /* the whole path, as a person would type it */
};

#define PLACE_NONE                                                                                 \
	{                                                                                          \
		.folder = -1                                                                       \
	}
#define AUTO_PLACE CLEANUP(place_done)
void place_done(struct place *p);

/* What host_find does about folders that are missing. */
enum missing { MISSING_FAILS, MISSING_IS_MADE };

/* -ENOENT without a sentence if a folder is missing; -ELOOP, -EPERM, ... with one. */
int host_find(struct fix_host *h, const char *path, enum missing missing, struct place *ret);
/* The file at the place: a regular one, no link, of somebody who is trusted. -ENOENT as above. */
int place_look(const struct place *p, struct stat *ret);
/* The same, and opens it: no O_CREAT. */
int place_open(const struct place *p, int flags, int *ret_fd);
/* The folder that a path leads to, opened for reading, with the same checks. */
int host_open_folder(struct fix_host *h, const char *path, int *ret_fd);

/* Tells h->before; its refusal becomes the sentence. */
int host_point(struct fix_host *h, enum fix_point point, const char *shown);
/* On disk: the names in a folder. */
int host_sync_folder(struct fix_host *h, int folder, const char *shown);
/* All of it, however often write() stops short. 0 or a negative errno without a sentence. */
int host_write_all(int fd, const char *data, size_t size);
/* The path below the root as a person would type it; the caller frees. */
char *host_shown(const struct fix_host *h, const char *path);
