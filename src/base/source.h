/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes by path: from a live machine's root, a copied tree, or a recording held in memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Paths are relative to the root and carry no leading slash:
 * "sys/bus/pci/devices/0000:41:00.0/vendor". A name without any slash is a virtual file that a live
 * source makes up ("nvml.json"). What is asked is spelled as base/path.h says before it is looked
 * up, so "lib64//x" and "lib64/x" are one file; what is put into a map has to be spelled so.
 *
 * Every call returns 0 or a negative errno. Three of them mean something:
 *   -ENOENT   the machine does not have it: the fact is known to be absent
 *   -ENODATA  not collected when this was recorded: the fact is unknown
 *   -EACCES, -EPERM  it is there, but more privilege is needed to see it
 */
struct source;

/*
 * What a live source makes up instead of reading it, malloc'ed: the text of the virtual file `name`
 * (`make`), or, where name is "*SUFFIX", every file whose path ends in SUFFIX (`read`, with the
 * folder that the path is below).
 */
struct source_provider {
	const char *name;
	int (*make)(void *context, char **ret, size_t *ret_size);
	int (*read)(int root_fd, const char *path, char **ret, size_t *ret_size);
};

/* Files below a folder; "/" is the machine itself. The providers (NULL-name ended, or NULL) are
 * kept by pointer. */
int source_open_root(const char *folder, const struct source_provider *providers, void *context,
		     struct source **ret);
/* An empty map in memory; fill it with source_put_...; `name` is for messages. */
struct source *source_new_map(const char *name);
/* Reads through to `inner` and remembers every answer in `map`, so that `map` replays them. */
struct source *source_new_tee(struct source *inner, struct source *map);
/* Answers from `map` what is in it, and from `inner`, which it frees with itself, all else. */
struct source *source_new_over(struct source *inner, struct source *map);
void source_free(struct source *s); /* a tee frees neither of its two; NULL is fine */

/* What the source was opened from, for messages: "/", "machine.tar.gz". */
const char *source_name(const struct source *s);

/* The whole file, NUL-terminated for convenience (the NUL is not counted); the caller frees. */
int source_read(struct source *s, char **ret, size_t *ret_size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The file's text without white space around it, cut to size - 1. Nothing is allocated by the
 * caller. */
int source_read_line(struct source *s, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The names in a folder, sorted; free with source_free_names. */
int source_list(struct source *s, char ***ret_names, size_t *ret_n, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void source_free_names(char **names, size_t n);
/* Where a symbolic link points; the caller frees. */
int source_read_link(struct source *s, char **ret, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- maps ---- */

/* What was asked of a path. */
enum source_kind { SOURCE_FILE, SOURCE_LINK, SOURCE_LIST };

struct source_entry {
	const char *path;
	enum source_kind kind;
	int error; /* the errno that was the answer; 0: the answer is data */
	/*
	 * file: bytes; link: target; list: names, one a line; a name that holds a newline is left
	 * out
	 */
	const char *data;
	size_t size;
};

/* Later entries replace earlier ones of the same path and kind of question (file, link or list). */
void source_put_file(struct source *map, const char *path, const char *data, size_t size);
void source_put_link(struct source *map, const char *path, const char *target);
void source_put_list(struct source *map, const char *path, const char *names);
/* `kind` says which question got the error. */
void source_put_error(struct source *map, const char *path, enum source_kind kind, int error);
/* Makes the path unknown again, whatever was asked of it. */
void source_drop(struct source *map, const char *path);
/* The entry that answers, as source_entries has it; NULL: there is none. */
const struct source_entry *source_entry_of(const struct source *map, const char *path,
					   enum source_kind kind);
/* All entries of a map sorted by path, in an array that the caller frees; the entries stay the
 * map's. */
struct source_entry *source_entries(const struct source *map, size_t *ret_n);

/*
 * A map that is made from texts: what they do not state is unknown for the reason `why`, "not in
 * the text", and a fact is named by the line that states it. Without an entry the origin is the
 * reason why none is there.
 */
void source_set_stated(struct source *map, const char *why);
/* NULL: the source is not such a map. */
const char *source_stated(const struct source *s);
void source_put_origin(struct source *map, const char *path, const char *origin);
/* "paste.md:41"; NULL: unknown. The map's. */
const char *source_origin(const struct source *s, const char *path);
/*
 * What lies at the path or below it, and has no answer, is missing for the reason `why`; "": for no
 * other than what lies anywhere else. The path nearest to what is asked decides.
 */
void source_put_gap(struct source *map, const char *path, const char *why);
/* NULL: there is none. The map's. */
const char *source_gap(const struct source *s, const char *path);

/* A cap on one file, so that no source, however hostile, can fill the memory. */
#define SOURCE_MAX_FILE (16u << 20)
