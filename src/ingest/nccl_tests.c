/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/nccl_tests.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "ingest/text.h"
#include "result/figures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- which collective ---- */

const char *nccl_tests_word(const char *path)
{
	const char *slash = strrchr(path, '/');

	return metric_collective(slash ? slash + 1 : path, "");
}

/*
 * What the columns show if no name does: whether there is an operation and a root, and how bus and
 * algorithm bandwidth relate. All-gather and all-to-all look the same.
 */
static const char *word_of_columns(bool redop, bool root, double ratio, size_t ranks)
{
	double share = ranks ? (double)(ranks - 1) / (double)ranks : 0;

	if (root)
		return redop ? "reduce" : NULL;
	if (!redop)
		return ranks > 1 && fabs(ratio - 1) < 0.01 ? "send-recv" : NULL;
	if (ranks && fabs(ratio - 2 * share) < 0.01)
		return "all-reduce";
	return ranks && fabs(ratio - share) < 0.01 ? "reduce-scatter" : NULL;
}

/* ---- one size ---- */

static double better(double a, double b, bool higher)
{
	if (!(a > 0) || !(b > 0))
		return a > 0 ? a : b;
	return higher ? fmax(a, b) : fmin(a, b);
}

static void add_value(struct figures *f, const char *word, bool rate, const double values[2],
		      uint64_t bytes, const char *from)
{
	struct figure *row;
	double best = better(values[0], values[1], rate);

	if (!(best > 0))
		return;
	row = figures_add(f, metric_of_collective(word, rate, false)->name, -1, -1, best);
	row->bytes = bytes;
	row->from = from;
	if (values[0] > 0 && values[1] > 0) {
		row->low = fmin(values[0], values[1]);
		row->high = fmax(values[0], values[1]);
		row->samples = 2;
	}
}

/* Below this, two decimals are too coarse; the time is used instead. */
#define LEAST_BUSBW 1.0

/* Not per size: one wrong value is enough. */
static void add_verified(struct figures *f, const struct nccl_tests_result result[2],
			 const char *from)
{
	double wrong = fmax(result[0].wrong, result[1].wrong);

	if (wrong >= 0)
		figures_add(f, METRIC_ALL_VERIFIED, -1, -1, wrong == 0)->from = from;
}

void nccl_tests_add(struct figures *f, const char *word, uint64_t bytes,
		    const struct nccl_tests_result result[2], const char *from)
{
	double times[2] = {result[0].time_us, result[1].time_us};
	double busbw[2] = {result[0].busbw, result[1].busbw};

	add_verified(f, result, from);
	add_value(f, word, false, times, bytes, from);
	if (fmax(busbw[0], busbw[1]) >= LEAST_BUSBW)
		add_value(f, word, true, busbw, bytes, from);
}

/* ---- the table ---- */

enum column {
	COLUMN_SIZE,
	COLUMN_TYPE,
	COLUMN_REDOP,
	COLUMN_ROOT,
	COLUMN_TIME,
	COLUMN_ALGBW,
	COLUMN_BUSBW,
	COLUMN_WRONG,
	COLUMN_N
};

static const struct {
	const char *name;
	enum column column;
} column_names[] = {
	{"size", COLUMN_SIZE},   {"type", COLUMN_TYPE},   {"redop", COLUMN_REDOP},
	{"root", COLUMN_ROOT},   {"time", COLUMN_TIME},   {"cputime", COLUMN_TIME},
	{"algbw", COLUMN_ALGBW}, {"busbw", COLUMN_BUSBW}, {"#wrong", COLUMN_WRONG},
};

#define MAX_WORDS 24

struct words {
	char *at[MAX_WORDS];
	size_t n;
};

struct parser {
	struct figures *f;
	const char *named;   /* collective according to a line or the file name; NULL: none yet */
	const char *guessed; /* from the columns of the current table */
	int columns[2][COLUMN_N]; /* out of place and in place; -1: there is none */
	size_t width;             /* words of a row; 0: no header was seen */
	size_t ranks;
	char kind[64]; /* type and operation of the first row; others are left out */
};

/* Splits a line into words in place. */
static void split(char *line, struct words *ret)
{
	ret->n = 0;
	for (char *s = line + strspn(line, " "); *s && ret->n < MAX_WORDS; s += strspn(s, " ")) {
		ret->at[ret->n++] = s;
		s += strcspn(s, " ");
		if (*s)
			*s++ = '\0';
	}
}

/* "#       size         count      type   redop    root     time   algbw   busbw #wrong ..." */
static bool read_header(struct parser *p, const struct words *w)
{
	size_t first = w->n && strcmp(w->at[0], "#") == 0;
	int columns[2][COLUMN_N];

	if (w->n < first + 2 || strcmp(w->at[first], "size") != 0 ||
	    strcmp(w->at[first + 1], "count") != 0)
		return false;
	memset(columns, -1, sizeof(columns));
	for (size_t i = first; i < w->n; i++) {
		for (size_t k = 0; k < sizeof(column_names) / sizeof(*column_names); k++) {
			enum column c = column_names[k].column;

			if (strcmp(w->at[i], column_names[k].name) == 0)
				columns[columns[0][c] >= 0][c] = (int)(i - first);
		}
	}
	if (columns[0][COLUMN_TIME] < 0 || columns[0][COLUMN_BUSBW] < 0)
		return false;
	memcpy(p->columns, columns, sizeof(columns));
	p->width = w->n - first;
	p->guessed = NULL;
	p->kind[0] = '\0';
	return true;
}

static const char *word_at(const struct words *w, int column)
{
	return column >= 0 && (size_t)column < w->n ? w->at[column] : "";
}

/* A non-negative number that fills the word; else -1. "N/A" does not count. */
static double number_at(const struct words *w, int column)
{
	const char *s = word_at(w, column);
	char *end;
	double v = strtod(s, &end);

	return end > s && !*end && isfinite(v) && v >= 0 ? v : -1;
}

/* The collective of this row, determined once per table; NULL if it cannot be determined. */
static const char *collective(struct parser *p, const struct words *w)
{
	const int *c = p->columns[0];
	const char *redop = word_at(w, c[COLUMN_REDOP]), *root = word_at(w, c[COLUMN_ROOT]);
	double algbw = number_at(w, c[COLUMN_ALGBW]), busbw = number_at(w, c[COLUMN_BUSBW]);

	if (p->named)
		return p->named;
	if (!p->guessed && algbw >= 1) /* below that, two decimals are too coarse for the ratio */
		p->guessed =
			word_of_columns(*redop && strcmp(redop, "none") != 0,
					*root && strcmp(root, "-1") != 0, busbw / algbw, p->ranks);
	return p->guessed;
}

/* One type and operation per table: otherwise several would become one measurement. */
static bool same_kind(struct parser *p, const struct words *w)
{
	char kind[sizeof(p->kind)];

	snprintf(kind, sizeof(kind), "%.20s %.20s", word_at(w, p->columns[0][COLUMN_TYPE]),
		 word_at(w, p->columns[0][COLUMN_REDOP]));
	if (!p->kind[0])
		memcpy(p->kind, kind, sizeof(kind));
	return strcmp(p->kind, kind) == 0;
}

/* A row is as wide as its header and starts with two numbers. */
static bool is_row(const struct parser *p, const struct words *w, uint64_t *ret_bytes)
{
	uint64_t count;

	return p->width && w->n >= 2 && text_to_u64(w->at[0], ret_bytes) == 0 &&
	       text_to_u64(w->at[1], &count) == 0;
}

static bool read_row(struct parser *p, const struct words *w, unsigned line, const char *word)
{
	const char *from = arena_printf(p->f->arena, "%s:%u", p->f->name, line);
	struct nccl_tests_result results[2];
	uint64_t bytes;

	if (!is_row(p, w, &bytes))
		return false;
	if (w->n != p->width) {
		figures_trouble(p->f, "%s: a row of %zu columns below a header of %zu", from, w->n,
				p->width);
		return false;
	}
	if (!same_kind(p, w)) {
		figures_trouble(p->f, "%s: another type or operation than %s: left out", from,
				p->kind);
		return false;
	}
	for (int i = 0; i < 2; i++)
		results[i] = (struct nccl_tests_result){
			.time_us = number_at(w, p->columns[i][COLUMN_TIME]),
			.busbw = number_at(w, p->columns[i][COLUMN_BUSBW]),
			.wrong = number_at(w, p->columns[i][COLUMN_WRONG]),
		};
	if (bytes)
		nccl_tests_add(p->f, word, bytes, results, from);
	return true;
}

/*
 * "# Rank 0 Group 0 Pid 33895 on host device 0 [0x01] NVIDIA GeForce RTX 4090"; newer:
 * [0000:01:00]. The old form has no domain, so it gives no address.
 */
static void read_rank(struct parser *p, const char *line)
{
	unsigned rank, device, domain, bus, slot;
	const char *s = strstr(line, "Rank "), *d = s ? strstr(s, " device ") : NULL;
	const char *open = d ? strchr(d, '[') : NULL, *close = open ? strchr(open, ']') : NULL;
	struct figure_gpu *g;

	if (!close || sscanf(s, "Rank %4u", &rank) != 1 || rank >= FIGURES_MAX_GPUS ||
	    sscanf(d, " device %4u", &device) != 1)
		return;
	p->ranks = rank + 1 > p->ranks ? rank + 1 : p->ranks;
	figures_need_gpus(p->f, rank + 1);
	g = &p->f->gpus[rank];
	g->cuda_ordinal = (int)device;
	g->name = close[1] ? arena_strdup(p->f->arena, close + 1 + strspn(close + 1, " ")) : NULL;
	if (sscanf(open, "[%8x:%2x:%2x]", &domain, &bus, &slot) == 3)
		g->pci = arena_printf(p->f->arena, "%04x:%02x:%02x.0", domain, bus, slot);
}

/*
 * Rows show their collective only from 1 GB/s on, and slower rows before them belong to the same
 * table: without a name the lines are read twice.
 */
static void guess_collective(struct parser *p, const struct text_line *lines, size_t n, size_t at)
{
	for (size_t i = at + 1; i < n && !p->guessed; i++) {
		AUTO_FREE char *copy = xstrdup(lines[i].text);
		struct words w;
		uint64_t bytes;

		split(copy, &w);
		if (is_row(p, &w, &bytes) && w.n == p->width)
			collective(p, &w);
		else if (strstr(lines[i].text, "busbw"))
			return;
	}
}

static int read_line(struct parser *p, const struct text_line *lines, size_t n, size_t at)
{
	const struct text_line *l = &lines[at];
	const char *word =
		strstr(l->text, "concluded") ? NULL : metric_collective(l->text, "_perf");
	AUTO_FREE char *copy = xstrdup(l->text);
	struct words w;
	uint64_t bytes;

	if (word)
		p->named = word;
	read_rank(p, l->text);
	split(copy, &w);
	if (read_header(p, &w))
		guess_collective(p, lines, n, at);
	else if (is_row(p, &w, &bytes) && !collective(p, &w))
		return err_set(
			EINVAL,
			"%s:%u: the table does not show its collective; name the file after it, as "
			"in all_gather.txt",
			p->f->name, l->number);
	else
		read_row(p, &w, l->number, collective(p, &w));
	return 0;
}

/* "# Out of bounds values : 4 FAILED", which is printed even if the columns do not count. */
static bool is_failed_summary(const char *line)
{
	const char *s = strstr(line, "# Out of bounds values : ");

	return s && strstr(s, " FAILED");
}

static bool is_wrong_row(const struct parser *p, const struct words *w)
{
	uint64_t bytes;

	return is_row(p, w, &bytes) && w->n == p->width &&
	       fmax(number_at(w, p->columns[0][COLUMN_WRONG]),
		    number_at(w, p->columns[1][COLUMN_WRONG])) > 0;
}

unsigned nccl_tests_wrong_line(const struct text_line *lines, size_t n)
{
	struct parser p = {0};

	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *copy = xstrdup(lines[i].text);
		struct words w;

		split(copy, &w);
		if (!read_header(&p, &w) &&
		    (is_wrong_row(&p, &w) || is_failed_summary(lines[i].text)))
			return lines[i].number;
	}
	return 0;
}

/* Rows that are left out, as those of another type, may be the wrong ones. */
static void add_wrong_line(struct figures *f, const struct text_line *lines, size_t n)
{
	unsigned line = nccl_tests_wrong_line(lines, n);
	bool known = false;

	for (size_t i = 0; i < f->row_n; i++)
		known = known || figure_is_failure(&f->rows[i]);
	if (line && !known)
		figures_add(f, METRIC_ALL_VERIFIED, -1, -1, 0)->from =
			arena_printf(f->arena, "%s:%u", f->name, line);
}

int nccl_tests_parse(const char *text, size_t size, const char *file, struct figures **ret)
{
	struct parser p = {.f = figures_new(file, "nccl-tests"), .named = nccl_tests_word(file)};
	size_t n;
	struct text_line *lines = text_lines(p.f->arena, text, size, &n);
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = read_line(&p, lines, n, i);
	if (r == 0)
		add_wrong_line(p.f, lines, n);
	if (r == 0 && !p.f->row_n)
		r = err_set(ENODATA, "%s: output of nccl-tests without any result", file);
	if (r < 0)
		figures_free(p.f);
	else
		*ret = p.f;
	return r;
}

bool nccl_tests_recognise(const char *text, size_t size)
{
	static const char last[] = "busbw";
	const char *s = memmem(text, size, last, strlen(last));

	while (s) { /* "size" and "count" before it on the same line */
		const char *start = memrchr(text, '\n', (size_t)(s - text));
		const char *count;

		start = start ? start : text;
		count = memmem(start, (size_t)(s - start), "count", 5);
		if (count && memmem(start, (size_t)(count - start), "size", 4))
			return true;
		s = memmem(s + 1, size - (size_t)(s + 1 - text), last, strlen(last));
	}
	return false;
}
