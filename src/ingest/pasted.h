/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that people paste, as one machine: what tools printed, wherever in a text it stands. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct machine;
struct source;
struct strbuf;
struct pasted;

/* Whether some part of the text is a known tool's. */
bool pasted_recognise(const char *text, size_t size);

struct pasted *pasted_new(const char *name);
void pasted_free(struct pasted *t); /* NULL is fine */
/* Takes the text's parts; `name` is for messages. Returns how many it knows. */
size_t pasted_add(struct pasted *t, const char *name, const char *text, size_t size);
/* Appends them as a recording keeps them (kept_text.h). */
void pasted_keep(const struct pasted *t, struct strbuf *out);
/* -EINVAL and a sentence that names each, where they are of several hosts: what they state is not of one machine. */
int pasted_check_hosts(const struct pasted *t);
/* What they state, once; the caller frees it. */
struct source *pasted_source(struct pasted *t);
/*
 * Adds to the machine that was read from that source what was measured and logged, what texts disagree about,
 * and which lines were read.
 */
void pasted_complete(struct pasted *t, struct machine *m);
