/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What texts state about one machine: answers by path, as a live machine would give them, each with
 * the text and line that states it. Where two texts disagree, the newer one counts if both show
 * their times; else the answer is unknown. Both lines are named.
 */
#pragma once

#include "ingest/text_time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct part;
struct source;
struct text_line;

struct claims;

/* `name`: the source of the machine, "paste.md". */
struct claims *claims_new(const char *name);
void claims_free(struct claims *c); /* NULL is fine */
/*
 * The answers as a source; may be called once, the caller frees it. What texts do not state is
 * unknown there.
 */
struct source *claims_source(struct claims *c);
struct machine;
/* Adds what texts disagree about to the machine's troubles. */
void claims_add_disagreements(const struct claims *c, struct machine *m);

/* The place of a statement in a text. */
struct claim_at {
	const char *file;
	unsigned line;
	struct text_time time; /* when that was so; {0}: unknown */
};
#define CLAIM_AT(part, text_line)                                                                  \
	((struct claim_at){(part)->file, (text_line)->number, (part)->time})

/* The content of a file, one line of text. */
void claim(struct claims *c, struct claim_at at, const char *value, const char *path, ...)
	__attribute__((format(printf, 4, 5)));
void claim_number(struct claims *c, struct claim_at at, int64_t value, const char *path, ...)
	__attribute__((format(printf, 4, 5)));
/* Content with arbitrary bytes. */
void claim_bytes(struct claims *c, struct claim_at at, const char *data, size_t size,
		 const char *path, ...) __attribute__((format(printf, 5, 6)));
/* The target of a link. */
void claim_link(struct claims *c, struct claim_at at, const char *target, const char *path, ...)
	__attribute__((format(printf, 4, 5)));
/* The machine does not have this path. */
void claim_absent(struct claims *c, struct claim_at at, const char *path, ...)
	__attribute__((format(printf, 3, 4)));
/* Appends a line to a file of lines, such as the kernel log; "": the file exists. */
void claim_line(struct claims *c, struct claim_at at, const char *line, const char *path, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * An output that would state the path, or what lies below it, was cut off here. Of two paths the
 * longer decides, and what is stated is known.
 */
void claim_cut(struct claims *c, struct claim_at at, const char *path, ...)
	__attribute__((format(printf, 3, 4)));
/* An output states all of it that it would: what is missing there is not in the text. */
void claim_whole(struct claims *c, const char *path, ...) __attribute__((format(printf, 2, 3)));
/* One of both: the lines from..to of the part are what it says of the path. */
void claim_extent(struct claims *c, const struct part *p, size_t from, size_t to, const char *path,
		  ...) __attribute__((format(printf, 5, 6)));

/* ---- PCI functions and GPUs ---- */

/* There is a function with this address, in any form. False: not a PCI address. */
bool claim_function(struct claims *c, struct claim_at at, const char *address,
		    char ret_name[static 20]);
/* nvidia-smi's GPU `index` is at this address. */
void claim_gpu_at(struct claims *c, struct claim_at at, unsigned index, const char *address);
/* The function is one of NVIDIA's GPUs. */
void claim_nvidia(struct claims *c, struct claim_at at, const char *address);
/* Whether any text gives an address of a GPU, or of any other function. */
bool claims_has_addresses(const struct claims *c);
/* nvidia-smi lists a GPU `index`. */
void claim_gpu(struct claims *c, struct claim_at at, unsigned index);
