/* SPDX-License-Identifier: Apache-2.0 */
/* Pasted texts as one machine: outputs of tools anywhere in the texts. */
#pragma once

#include "ingest/text_reduce.h"
#include "ingest/text_time.h"

#include <stdbool.h>
#include <stddef.h>

struct machine;
struct source;
struct text_hosts;
struct pasted;

/* Whether some part of the text is the output of a known tool. */
bool pasted_recognise(const char *text, size_t size);

struct pasted *pasted_new(const char *name);
void pasted_free(struct pasted *t); /* NULL is fine */
/* A text that is read in pieces; only its lines are kept, and its first bytes. */
struct pasted_text {
	struct text_reducer lines;
	/* May be JSON: all of it so far, until it is known. */
	enum { FORM_UNKNOWN, FORM_TEXT, FORM_JSON } form;
	struct strbuf json;
	bool issue;               /* it is a page of GitHub (issue_json.h) */
	struct text_time time;    /* of the file; {0}: unknown */
	struct strbuf head;       /* what it seems to be, if it has no known part */
	struct pasted_text *next; /* all that were begun */
};

enum { PASTED_HEAD = 1 << 16 };

struct pasted_text *pasted_begin(struct pasted *t);
/* The next piece; a text_sink, `to` being the text. */
void pasted_feed(void *to, const char *data, size_t n);
/* Adds the text's parts; `name` is for messages. Returns the number of known parts. */
size_t pasted_end(struct pasted *t, const char *name, struct pasted_text *x);
/* Frees what is left of it, added or not. */
void pasted_drop(struct pasted_text *x);
/* Something is wrong with the file as a whole: a clause, for the machine's troubles. */
void pasted_add_trouble(struct pasted *t, const char *file, const char *what);
/* All of these for a text in one piece; also for tests. */
size_t pasted_add(struct pasted *t, const char *name, const char *text, size_t size);
/* Appends them as a recording keeps them (kept_text.h). */
void pasted_keep(const struct pasted *t, struct strbuf *out);
/* The hosts that the texts are of, as far as they name them. */
void pasted_hosts(struct pasted *t, struct text_hosts *ret);
/*
 * Only the outputs of this host are read; NULL: of the one whose outputs they are. 0, or a
 * sentence:
 * -EXDEV: the texts are of several hosts, each of which can be chosen; -EINVAL: they cannot be
 * distinguished, or are not of this one. A log of several hosts can be read as a whole.
 */
int pasted_choose(struct pasted *t, const char *host);
/* What they state; may be called once, the caller frees it. */
struct source *pasted_source(struct pasted *t);
/*
 * Adds to the machine that was read from that source the measurements and logs, the disagreements
 * between texts, and the lines that were read.
 */
void pasted_complete(struct pasted *t, struct machine *m);
