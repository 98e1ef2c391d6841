/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by claims*.c. */
#pragma once

#include "base/strbuf.h"
#include "ingest/claims.h"

#include <stdbool.h>

struct arena;
struct source_entry;

enum {
	CLAIMS_MAX = 1 << 20,       /* answers: more than any machine has */
	CLAIMS_MAX_LINES = 1 << 18, /* of one file */
	CLAIMS_MAX_DISAGREEMENTS = 256,
	CLAIMS_MAX_GPUS = 256,
	CLAIMS_MAX_NICS = 256,
};

/* A file whose lines come from all over the texts. */
struct line_file {
	const char *path, *at; /* at: of the first line; NULL: it has none */
	struct strbuf text;
	size_t n;
};

/* One of two answers that differ, in its first words. */
struct rival {
	const char *value, *at;
	struct text_time time;
};

struct disagreement {
	const char *path;
	struct rival first, second;
	bool settled; /* the second is the newer one, and counts */
};

/* Two statements that cannot be of one machine, though none of their paths has two answers. */
void claims_add_doubt(struct claims *c, const char *path, const struct source_entry *first,
		      const struct source_entry *second);

/* Where an output ends too early; `at` NULL: it does not. */
struct claim_gap {
	const char *path, *at;
};

/*
 * Besides paths of a machine the map holds, until claims_source takes them out:
 *   function/ADDRESS            a PCI function is listed
 *   gpu/#INDEX/KEY, gpu/ADDRESS/KEY, gpu/~ORDER/KEY
 *                               what nvidia-smi says of a GPU, KEY as in nvml.json; ~ORDER: the nth of
 *                               outputs that do not name theirs
 *   nic/LABEL/KEY               of a NIC of a matrix: "listed", "name", "level/INDEX" of a GPU; of other
 *                               outputs: "named", "pci", "port/NUMBER"
 *   environment/NAME            the value of a variable
 *   identity/KEY                what a machine has only one of: "root", "board", "matrix"
 *   cpu/KEY                     of all CPUs: "vendor_id" and others as in /proc/cpuinfo, "sockets", "hypervisor"
 *   pair/KEY/INDEX/INDEX        of two GPUs: "level", "nvlinks", "p2p-read", ...
 */
struct claims {
	struct arena *arena;
	const char *name;
	struct source *map; /* NULL once claims_source has handed it out */
	/* Of answers whose time is known: struct text_time by path. */
	struct source *times;
	size_t answer_n;
	struct line_file *line_files;
	size_t line_file_n;
	struct disagreement *disagreements;
	size_t disagreement_n;
	struct claim_gap *gaps;
	size_t gap_n;
	size_t function_n;
	bool has_addresses;
	bool too_many; /* everything after that is ignored */
};

/* The place of what no text states. */
#define CLAIM_NOWHERE ((struct claim_at){.file = ""})

/* Entries whose path starts with `prefix`, sorted; the caller frees the array. */
struct source_entry *claims_entries(const struct claims *c, const char *prefix, size_t *ret_n);
/* When the answer was so. */
struct text_time claims_time_of(const struct claims *c, const char *path);
/* The same answer, with its place, under another path. */
void claims_move(struct claims *c, const struct source_entry *e, const char *to);
/* What matrices say of NICs; `gpus`: addresses by number, "": there is none. claims_nics.c */
void claims_put_nics(struct claims *c, char (*gpus)[20], size_t gpu_n);

/* ---- claims_words.c ---- */

/* "NVLink between GPU0 and GPU1": what an answer is about; perhaps allocated in the arena. */
const char *claims_path_words(struct arena *a, const char *path);
/* "PIX" for a number that stands for it; "": it is not a line of text. */
const char *claims_value_words(struct arena *a, const char *path, const char *value);
/* What changes while a machine runs: that two outputs differ means nothing. */
bool claims_is_momentary(const char *path);
/* What only other hardware changes: outputs that differ may be of two machines. */
bool claims_is_of_one_machine(const char *path);
/* Whether some tools print only the beginning of it. */
bool claims_is_shortened(const char *path);
