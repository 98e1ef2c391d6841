/* SPDX-License-Identifier: Apache-2.0 */
/* Files below a tree of driver sources: read whole, replaced by renames; the only code here that writes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What onehop keeps in a tree that it changed: manifest.json, old/ and new/ with the tree's own paths. */
#define STATE_FOLDER ".onehop"

struct tree {
	const char *dir; /* the caller's, for messages */
	int fd;
	bool is_package; /* it holds what releases have in KERNEL_OPEN, without that folder */
	/* NULL, or called before each write with the path; a negative errno makes it fail. For tests. */
	int (*before)(void *context, const char *path);
	void *context;
};

struct tree_file {
	char *data; /* NUL-terminated behind size; the caller frees */
	size_t size;
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

/* 0 or a negative errno with a sentence. */
int tree_open(const char *dir, struct tree *ret);
void tree_close(struct tree *t);

/*
 * Paths are relative. No component may be a link: -ELOOP. Only regular files up to `max` bytes.
 * -ENOENT without a sentence if it is not there.
 */
int tree_read(const struct tree *t, const char *path, size_t max, struct tree_file *ret);
bool tree_has(const struct tree *t, const char *path);

/* Writes a file below STATE_FOLDER, with the folders on the way; on disk once tree_sync has returned. */
int tree_stage(const struct tree *t, const char *path, const struct tree_file *file);
/*
 * Gives a file of ours the owner and permissions of `like`, and the present time: make compares that with what it
 * built. Needs no space. -EMLINK without a sentence: it has another name, under which others would see that.
 */
int tree_renew(const struct tree *t, const char *path, const struct tree_file *like);
/* Puts files that were staged on disk, with the folders that hold them if they stay there. */
int tree_sync(const struct tree *t, const char *const *paths, size_t n, bool folders);
/* Both below the tree. Whoever looks sees the old file or the new one. */
int tree_rename(const struct tree *t, const char *from, const char *to);
/* A file, or a folder with all that is in it; 0 if it is not there. Only for what is ours. */
int tree_remove(const struct tree *t, const char *path);
/* Until the tree is closed: -EBUSY if another process has it. */
int tree_lock(const struct tree *t);
