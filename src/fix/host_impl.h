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
int place_stat(const struct place *p, struct stat *ret);
/* The same, and opens it: no O_CREAT. */
int place_open(const struct place *p, int flags, int *ret_fd);
/* host_check_writable of what is at the place, or may come there. */
int place_check_writable(const struct place *p);
/* The folder that a path leads to, opened for reading, with the same checks. */
int host_open_folder(struct fix_host *h, const char *path, int *ret_fd);

/* host_mount.c: where the file system of an absolute path, or of what is there of its way, is mounted. */
void host_mount_of(const char *path, char ret[static PATH_MAX]);
/* What writing, or making a name, failed for; of a full file system: which one, and what to free. */
int host_failed(int err, const char *doing, const char *shown);
/* Tells h->before; its refusal becomes the sentence. */
int host_point(struct fix_host *h, enum fix_point point, const char *shown);
/* On disk: the names in a folder. */
int host_sync_folder(struct fix_host *h, int folder, const char *shown);
/* A name made of the file's; -ENAMETOOLONG with a sentence. */
int host_name_beside(const struct place *p, const char *before, const char *after,
		     char ret[static NAME_MAX + 1]);
/*
 * A new file next to the place, whole and on disk; *ret_name is its name. It is like the open file
 * `like` (owner, permissions, attributes), or has `mode` if there is none (-1). On failure it is gone.
 */
int host_make_new(struct fix_host *h, const struct place *p, int like, unsigned mode,
		  const struct bytes *content, char ret_name[static NAME_MAX + 1]);
/* Gives an open file another's owner, permissions and attributes. No sentence. */
int host_be_like(int old, int fd);
/* 1: it was there. */
int host_unlink_name(struct fix_host *h, const struct place *p, const char *name);
/* host_would.c: to `would`, that the file would have that content; data NULL: that it would be gone. */
void host_would_write(struct fix_host *h, const char *path, const struct bytes *content);
/* The same of some bytes of a file that is there. */
void host_would_patch(struct fix_host *h, const char *path, size_t at, const void *bytes, size_t n);
/* The same of a folder, if it would be empty. */
void host_would_remove_folder(struct fix_host *h, const char *path);
/* The path below the root as a person would type it; the caller frees. */
char *host_shown(const struct fix_host *h, const char *path);
