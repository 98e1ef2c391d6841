/* SPDX-License-Identifier: Apache-2.0 */
/* The host that is changed: files below a root, durable writes, programs; the only code that writes. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct source;
struct stat;
struct strbuf;

/* What a file holds. */
struct bytes {
	const char *data; /* NULL: the file is not there. NUL-terminated behind size. */
	size_t size;
};

/* Moments at which a test can make a write fail, or kill the process: before each of them. */
enum fix_point {
	POINT_OPEN,
	POINT_WRITE,
	POINT_FSYNC,
	POINT_LINK, /* the old file gets the name under which it is kept */
	POINT_RENAME,
	POINT_EXCHANGE, /* -EINVAL: the file system cannot */
	POINT_COMPARE,  /* what came out of its place with what was seen */
	POINT_UNLINK,
	POINT_FSYNC_FOLDER,
	POINT_REGISTER,
	POINT_RUN,
	POINT_N
};

/* Before a program's words: what changes its environment, which is in English otherwise. */
#define HOST_ENV "env"

/*
 * Runs argv on the host; *ret_status is its exit status. What a program wrote that ended well is on the
 * disk when this returns. 0 or a negative errno with a sentence.
 */
typedef int fix_runner(void *context, const char *const *argv, unsigned deadline_s,
		       struct strbuf *output, int *ret_status);

struct fix_host {
	const char *root; /* "/", or the folder of a mounted system image */
	int root_fd;
	/* not the running system: no program is run, no register or attribute written */
	bool image;
	/* all that writes does nothing, and says that it went well; `run` is the caller's, who runs nothing either */
	bool rehearsal;
	/* A rehearsal's: a map that gets the content of each file that would be written; NULL: nobody asks. */
	struct source *would;
	fix_runner *run;
	void *run_context;
	bool all_fat; /* for tests: every file system counts as FAT */
	/* NULL, or called at each point, with the path; a negative errno makes it fail. For tests. */
	int (*before)(void *context, enum fix_point point, const char *path);
	void *before_context;
};

/*
 * "/" is the running system. Refuses a root that is no folder. 0 or a negative errno with a sentence.
 * Close with fix_host_close.
 */
int fix_host_open(const char *root, struct fix_host *ret);
void fix_host_close(struct fix_host *h);

/*
 * Paths are relative to the root. Links in folders on the way are followed, but never out of the
 * root; the last component must be no link, and the folders and the file must belong to root or to
 * who runs this and be writable by nobody else: else -ELOOP or -EPERM with a sentence.
 */

/* The whole file; -ENOENT if it is not there, without a sentence. The caller frees. */
int host_read(struct fix_host *h, const char *path, char **ret, size_t *ret_size);
/*
 * Puts a file of onehop's own in place so that whoever looks, at any moment and after a power cut, sees the old
 * one or the new one, whole: a new file next to it, fsync, rename, fsync of the folder. Owner,
 * permissions and extended attributes (the SELinux label among them) are the old file's; a new
 * file's are `mode` and its folder's defaults. Missing folders are made (0755), and stay. On
 * failure the old file is untouched; only if the last fsync, of the folder, fails, the new one is
 * in place and may not survive a power cut.
 */
int host_replace(struct fix_host *h, const char *path, const char *data, size_t size,
		 unsigned mode);
/*
 * Whether a file can be replaced or made, as far as that shows before: not on a file system that is mounted read-only,
 * and not where chattr has set "i" or "a".
 */
int host_check_writable(struct fix_host *h, const char *path);
/* To `would`: a program that is not run in a rehearsal would remove that link. */
void host_would_unlink(struct fix_host *h, const char *path);
/* Removes a file, durably; folders stay. 0 if it is not there. */
int host_remove(struct fix_host *h, const char *path);
/* Adds to the end of a file of onehop's own (made with 0600), on disk when this returns. */
int host_append(struct fix_host *h, const char *path, const char *data, size_t size);
/* Opens a file of the host's own, to lock it; made with 0600 if it is not there. */
int host_open_own(struct fix_host *h, const char *path, int *ret_fd);
/* Opens a regular file to read a part of it. -ENOENT as host_read. */
int host_open_read(struct fix_host *h, const char *path, int *ret_fd);
/* The names in a folder, sorted; source_free_names frees them. -ENOENT as host_read. */
int host_list(struct fix_host *h, const char *path, char ***ret, size_t *ret_n);

/*
 * -ENOMEDIUM with a sentence if the system's etc/fstab mounts a file system at the path or above it, and
 * none is: what is written there would be hidden by it later, and what it holds is not seen.
 */
int host_check_mounted(struct fix_host *h, const char *path);

/* A file system, as far as writing to it goes. */
struct host_room {
	char mount[PATH_MAX];
	uint64_t free, block; /* bytes */
	bool full;            /* nothing more can be written */
	const char *remove;   /* what to remove where room is missing */
};

/* Of the file system on which a path, or what is there of its way, lies. Negative: it does not say. */
int host_find_room(struct fix_host *h, const char *path, struct host_room *ret);
/* A folder without anything in it, as a file system that is not mounted leaves. */
bool host_is_empty(struct fix_host *h, const char *path);

/* 16 bits of a device's configuration space; the device is "0000:22:00.0". Not in an image. */
int host_config_read(struct fix_host *h, const char *device, unsigned offset, unsigned *ret);
int host_config_write(struct fix_host *h, const char *device, unsigned offset, unsigned value);
/* A file of sysfs or proc: written with one write(), never made. */
int host_attribute_write(struct fix_host *h, const char *path, const char *text);

/*
 * Runs a program of the host, found in its usual folders, with a clean environment. -ENOENT: no such
 * program; -ETIMEDOUT: killed at the deadline; -EIO: it failed, with its last line as the sentence.
 */
int host_run(struct fix_host *h, const char *const *argv, unsigned deadline_s,
	     struct strbuf *output);
/* Those folders, below the root; ends with NULL. */
extern const char *const host_program_folders[];
/* The path of a program of the running system, "/usr/sbin/update-grub"; NULL: none. The caller frees. */
char *host_program(const char *name);
/* The runner of a rehearsal: only whether the program is there. */
int host_rehearse_program(void *context, const char *const *argv, unsigned deadline_s,
			  struct strbuf *output, int *ret_status);
/* The runner of the running system, which fix_host_open sets. */
int host_run_program(void *context, const char *const *argv, unsigned deadline_s,
		     struct strbuf *output, int *ret_status);

/* ---- host_folder.c ---- */

/* What is at a path; the last component may be a link and is not followed. -ENOENT as host_read. */
int host_stat(struct fix_host *h, const char *path, struct stat *ret);
/*
 * Where a link leads, as it is written there; the caller frees. -ENOENT: nothing is there, or no link;
 * without a sentence.
 */
int host_read_link(struct fix_host *h, const char *path, char **ret);
/*
 * Removes a link, durably, if it leads to a file of the same name as its own. 0 if nothing is there; -EEXIST
 * with a sentence if it is anything else.
 */
int host_remove_link(struct fix_host *h, const char *path);
/* Takes all permissions away but the owner's, of a file or a folder. -ENOENT as host_read. */
int host_close_to_others(struct fix_host *h, const char *path);
/* Removes a folder, durably, if it is empty: 0 also if it is not, or is not there, or is a link by now. */
int host_remove_folder(struct fix_host *h, const char *path);

/* ---- host_change.c: files that other programs write too ---- */

struct host_change {
	struct bytes seen; /* what was there when the change was decided on */
	struct bytes put;  /* what is to be there */
	unsigned mode;     /* of a file that appears */
	/*
	 * A boot loader reads it, with a file system driver that knows no journal: it may still see the
	 * folder as it was. So the file that was there keeps a second name (path + HOST_OLD), until
	 * host_forget_old once another boot has been seen.
	 */
	bool for_boot;
	bool going_back; /* for_boot: however many second names there are */
};

#define HOST_OLD ".onehop-old" /* of further ones before the next boot: ".onehop-old-2", ... */

/*
 * Puts a file in place as host_replace does, makes it appear, or removes it; but only what was seen is
 * replaced. -EBUSY with a sentence: it is something else, or another program has it open to write. What
 * that program wrote stays, and nothing is changed.
 * A second name that has the very content is put back, which needs no room on the file system.
 * 1: done, but this file system cannot exchange two names at once, so it was compared only right before
 * it was replaced.
 */
int host_change(struct fix_host *h, const char *path, const struct host_change *c);
/*
 * Removes what a killed run left next to a file while it made this change, or the one that takes it back. What
 * another program wrote is put in its place again. 0 if there is nothing. Only after a run that was killed: `c` has
 * what that run knew, not what the file holds by now.
 */
int host_settle(struct fix_host *h, const char *path, const struct host_change *c);
/* What host_settle would judge; -ENOENT: nothing. The caller frees. */
int host_read_left(struct fix_host *h, const char *path, char **ret, size_t *ret_size);
int host_forget_old(struct fix_host *h, const char *path);

/* ---- host_entry.c: entries of boot partitions ---- */

/*
 * Replaces an entry, as a text, if it is as it was `seen`; "": empty, or not there. On FAT a power cut can
 * leave an empty file once the file system was checked: so the old entry is next to it, whole and under a
 * name that the boot loader reads, until the new one is on disk. Elsewhere it is host_change, for_boot.
 * -EBUSY: another program has changed it.
 */
int host_replace_entry(struct fix_host *h, const char *path, const char *seen, const char *text);
/* Removes an entry; it is gone on disk when this returns. 0 if it is not there. */
int host_remove_entry(struct fix_host *h, const char *path);
/* The name of that copy, of an entry's path; the caller frees. */
char *host_kept_entry(const char *path);
/* Whether an entry's name leaves room for the names that files have while it is replaced. */
bool host_has_room_beside(const char *name);
