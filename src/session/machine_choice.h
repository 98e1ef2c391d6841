/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that a command is about, as a person names it, and how it is read. */
#pragma once

#include "base/texts.h"

#include <stdbool.h>

struct machine;
struct source;

struct machine_choice {
	struct texts from; /* recordings or texts; none: this host */
	const char *host;  /* of texts of several hosts; NULL: none is chosen */
	int pid;           /* whose settings and library of NCCL count; 0: any */
	/* ---- results that are weighed ---- */
	struct texts observed;
	bool no_store; /* those in the state folder are not */
	/* a map that answers before this host, the caller's; NULL: none */
	struct source *ahead;
};

/*
 * The process is one of this host, and one that runs; a host is one of texts. 0 or a negative errno
 * with a sentence.
 */
int machine_choice_check(const struct machine_choice *c);
/*
 * Reads `parts` as in struct machine_request, and adds the results. 0 or a negative errno with a
 * sentence; -EXDEV: texts of several hosts, none of which was chosen.
 */
int machine_choice_read(const struct machine_choice *c, unsigned parts, struct machine **ret);
/* The same, and the source that it was read from, owned by the caller. */
int machine_choice_read_source(const struct machine_choice *c, unsigned parts, struct machine **ret,
			       struct source **ret_source);
