/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of known tools within a text that people paste: where each begins and ends. */
#pragma once

#include "ingest/text.h"
#include "ingest/text_time.h"

#include <stdint.h>

struct claims;
struct machine;
struct part_kind;

/* A stretch of lines that one tool printed. */
struct part {
	const struct part_kind *kind;
	const char *file;
	const struct text_line *lines; /* n of them, without quote marks, indented as in the text */
	size_t n;
	/* The last shell command above it, "nvidia-smi topo -p2p r"; "": none is shown. */
	const char *command;
	const struct text_line *command_line; /* NULL: none is shown */
	bool cut;                             /* not all of what the tool printed */
	unsigned
		cut_at; /* the line behind which the rest of it was; 0: nothing shows that there is a rest */
	bool ended; /* its last line is the last that the tool prints */
	bool torn;  /* its last line may go on: behind a break, or behind the end of the text */
	struct text_time time; /* when it was made; of lines that have times the first */
	char about[64];        /* "8 GPUs", "" */
	/* That printed it, of texts of several hosts; NULL: not shown (part_hosts.h). */
	const char *host;
	bool elsewhere; /* of another host than the one that is read */
};

/* What is read at once: of a large text that repeats it without end it is kept once. */
struct text_unit {
	size_t n;         /* lines */
	uint64_t subject; /* what it is about; 0: it is always kept */
	uint64_t says;    /* what it says about that; the same again adds nothing */
	bool begins;      /* what comes after it is not about what came before it */
	bool failure;     /* how a run failed: kept where there is room for nothing else */
};

enum { MOST_MISSING = 2 };

struct part_kind {
	const char *name; /* "nvidia-smi topo -m" */
	/*
	 * The number of lines, of n, that belong to this part; 0: no part begins here. May set
	 * `cut` and `about` of the part, whose command is already set.
	 */
	size_t (*match)(struct part *p, const struct text_line *lines, size_t n);
	void (*decode)(const struct part *p, struct claims *c); /* what it states about a machine */
	/* Observed in a run: the readers of logs and results decode it, all of a text at once. */
	enum { PART_STATES, PART_LOG, PART_FIGURES } observed;
	/* Where the rest of it would be among the answers, if it is cut off; NULL-ended. */
	const char *missing[MOST_MISSING + 1];
	/* Adds what it reports to the machine, once that is complete; NULL: nothing. */
	void (*observe)(const struct part *p, struct machine *m);
	/*
	 * The name of the host that printed it; false: it does not name one. NULL: this kind never
	 * does.
	 */
	bool (*host)(const struct part *p, char *buf, size_t size);
	/*
	 * The possible starts of its first line, after blanks; NULL: anything. Most lines of a log
	 * belong to no part.
	 */
	const char *first;
	/* It is an output of nothing: the prompt below it shows that, and a recording keeps one. */
	bool prompt_below;
	/* What a recording keeps of a line, perhaps in the arena; NULL: all of it. */
	const char *(*keep)(const struct part *p, const struct text_line *l, struct arena *a);
	/* The unit that begins the part, or what is left of it: n lines. NULL: the part is one. */
	struct text_unit (*unit)(const struct text_line *lines, size_t n);
	bool keeps_some;   /* of a large text, not all lines that matter are kept */
	const char *gives; /* what is read from it, for --formats */
};

/* Takes away the marks of quotations, as parts_find does first. */
void parts_peel(struct text_line *lines, size_t n);
/* Finds the parts of a text of n lines, in their order. The array is allocated in the arena. */
struct part *parts_find(struct arena *a, const char *file, struct text_line *lines, size_t n,
			size_t *ret_n);

/* Goes on from a hash with the texts of the lines, apart from blank ones. */
uint64_t lines_hash(uint64_t before, const struct text_line *lines, size_t n);
/* The unit of the part that begins at its line `at`. */
struct text_unit part_unit(const struct part *p, size_t at);

/* The name of kind i, and what is read from it; false: there are no more. */
bool part_kind_at(size_t i, const char **ret_name, const char **ret_gives);
/* Finds those of kind i alone, as if it were the only one; for tests and fuzzers. */
struct part *parts_of_kind(struct arena *a, size_t i, const char *file, struct text_line *lines,
			   size_t n, size_t *ret_n);

/* ---- for the kinds ---- */

/* Blanks in front of a line. */
size_t line_indent(const struct text_line *l);
/* A fence or a tag, which may be between a command and its output. */
bool line_is_skipped(const struct text_line *l);
/*
 * "Thu Sep  4 10:00:00 2025", which nvidia-smi prints above its table, or what nvidia-bug-report.sh has above a file: the
 * time; {0}: another line.
 */
struct text_time line_date(const struct text_line *l);
bool line_is_date(const struct text_line *l);
/* "[...]", "<snip>", "... 120 lines truncated": what people leave in place of lines. */
bool line_is_omission(const struct text_line *l);
/* Where the lines from..to of the part lack some, by their number; 0: nothing shows that. */
unsigned part_cut_in(const struct part *p, size_t from, size_t to);
/* Whether it is empty or has only blanks. */
bool line_is_blank(const struct text_line *l);
/*
 * Fewer characters than any output begins with, and than any line of a log has; JSON begins with a
 * brace.
 */
bool line_is_short(const struct text_line *l);
/* The text without the blanks in front. */
const char *line_text(const struct text_line *l);
/* Splits a copy of the line at blanks; at most `max` words. The arena is the caller's. */
size_t line_words(struct arena *a, const struct text_line *l, const char **words, size_t max);
/* "KEY : value" or "KEY: value": the value, NULL: it has another key. */
const char *line_value(const struct text_line *l, const char *key);
