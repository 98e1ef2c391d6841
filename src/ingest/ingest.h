/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the arguments of --from: a recording, a copied tree, or texts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct machine;
struct source;
struct texts;

/*
 * One folder or archive goes to recording_open. Several texts describe one machine: outputs of
 * tools are found anywhere in them, and what none of them states is unknown. "-" is standard input.
 * Of texts of several hosts `host` is read; NULL: texts of several are refused. 0, or a negative
 * errno with one sentence that names file and place; -EXDEV: texts of several hosts, which
 * ingest_hosts lists.
 */
int ingest_open_all(const char *const *paths, size_t n, const char *host, struct source **ret);

/* The hosts that the texts name, each of which can be read by itself. */
int ingest_hosts(const char *const *paths, size_t n, struct arena *a, struct texts *ret);

/*
 * Everything that a full reading asks of them (without arguments: of the live host) goes into
 * `map`; texts go there as texts (kept_text.h), of several hosts those of `host`. *ret is the
 * machine, owned by the caller. 0 or a negative errno with a sentence.
 */
int ingest_record(const char *const *from, size_t n, const char *host, int pid, struct source *map,
		  struct machine **ret);

/*
 * Reads them, `host` as for ingest_open_all, or without arguments the live host: `parts` as in
 * struct machine_request, NCCL's settings as process `pid` has them (0: any). 0 or a negative errno
 * with a sentence; a machine larger than any real one is -E2BIG.
 */
int ingest_machine(const char *const *from, size_t n, const char *host, int pid, unsigned parts,
		   struct machine **ret);
/*
 * The same, and the source that it was read from, owned by the caller: a plan asks it for files.
 * `ahead`: a map that answers before the live host, and outlives the source; NULL: none.
 */
int ingest_machine_source(const char *const *from, size_t n, const char *host, int pid,
			  unsigned parts, struct source *ahead, struct machine **ret,
			  struct source **ret_source);

/* ---- what is read ---- */

struct ingest_format {
	const char *name, *gives;
	const char *use; /* "--from", or the commands that read it */
};

/* Format i of all that onehop reads; false: there are no more. */
bool ingest_format_at(size_t i, struct ingest_format *ret);
