/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986, after the lines that
 * are the same at both ends were taken off. Texts that differ in more than EDITS_MAX lines are
 * shown as a whole: nobody reads that as a difference.
 */
#include "base/diff.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EDITS_MAX 1000

struct text {
	struct diff_line *lines;
	long n;
};

static struct text split(const char *data, size_t size, enum diff_mark mark)
{
	struct text t = {0};
	const char *end = data + size;

	for (const char *s = data; s && s < end;) {
		const char *newline = memchr(s, '\n', (size_t)(end - s));
		const char *stop = newline ? newline : end;

		t.lines = xrealloc(t.lines, (size_t)t.n + 1, sizeof(*t.lines));
		t.lines[t.n++] = (struct diff_line){mark, s, (size_t)(stop - s), 0};
		s = newline ? newline + 1 : end;
	}
	return t;
}

static bool same(const struct diff_line *a, const struct diff_line *b)
{
	return a->n == b->n && memcmp(a->text, b->text, a->n) == 0;
}

/* What of both is left between the ends that are the same. */
struct middle {
	const struct diff_line *a, *b;
	long n, m;
};

/*
 * The furthest place on each diagonal k = x - y, after each number of edits d: row d has the
 * diagonals -d to d.
 */
struct trace {
	int32_t *rows[EDITS_MAX + 1];
	long edits; /* -1: more than EDITS_MAX */
};

static long follow(const struct middle *t, long x, long k)
{
	while (x < t->n && x - k < t->m && same(&t->a[x], &t->b[x - k]))
		x++;
	return x;
}

/*
 * Whether the path comes to diagonal k from the one above it (a line of b), not from the one below
 * (of a).
 */
static bool comes_down(const int32_t *row, long d, long k)
{
	return k == -d || (k != d && row[k - 1] < row[k + 1]);
}

/* `before` is row d - 1, its diagonal 0 in the middle. True: it is at the end of both. */
static bool next_row(const struct middle *t, const int32_t *before, int32_t *row, long d)
{
	bool end = false;

	for (long k = -d; k <= d; k += 2) {
		long x = d == 0 ? 0 : comes_down(before, d, k) ? before[k + 1] : before[k - 1] + 1;

		x = follow(t, x, k);
		row[k] = (int32_t)x;
		end |= x >= t->n && x - k >= t->m;
	}
	return end;
}

static void find_path(const struct middle *t, struct trace *ret)
{
	ret->edits = -1;
	for (long d = 0; d <= EDITS_MAX; d++) {
		/* One more at both ends, which comes_down may look at. */
		int32_t *row = xcalloc((size_t)(2 * d + 3), sizeof(*row));

		ret->rows[d] = row + d + 1;
		if (next_row(t, d ? ret->rows[d - 1] : NULL, ret->rows[d], d)) {
			ret->edits = d;
			return;
		}
	}
}

static void trace_done(struct trace *t)
{
	for (long d = 0; d <= EDITS_MAX; d++)
		if (t->rows[d])
			free(t->rows[d] - d - 1);
}

static void add(struct diff *d, const struct diff_line *line, enum diff_mark mark)
{
	d->lines = xrealloc(d->lines, d->n + 1, sizeof(*d->lines));
	d->lines[d->n] = *line;
	d->lines[d->n++].mark = mark;
}

/* Which lines are on the path as the same, from its end to its start: gone[x], come[y] false. */
static void walk_back(const struct middle *t, const struct trace *path, bool *gone, bool *come)
{
	long x = t->n, y = t->m;

	for (long d = path->edits; d > 0; d--) {
		const int32_t *before = path->rows[d - 1];
		bool down = comes_down(before, d, x - y);
		long k = down ? x - y + 1 : x - y - 1, start = before[k];

		while (x > start + !down && y > start - k + down)
			x--, y--;
		if (down)
			come[--y] = true;
		else
			gone[--x] = true;
	}
}

static void add_middle(const struct middle *t, struct diff *ret)
{
	struct trace path = {0};
	bool *gone = xcalloc((size_t)t->n + 1, sizeof(*gone));
	bool *come = xcalloc((size_t)t->m + 1, sizeof(*come));
	long x = 0, y = 0;

	find_path(t, &path);
	if (path.edits < 0) {
		memset(gone, true, (size_t)t->n);
		memset(come, true, (size_t)t->m);
	} else {
		walk_back(t, &path, gone, come);
	}
	while (x < t->n || y < t->m) {
		while (x < t->n && gone[x])
			add(ret, &t->a[x++], DIFF_GONE);
		while (y < t->m && come[y])
			add(ret, &t->b[y++], DIFF_NEW);
		while (x < t->n && y < t->m && !gone[x] && !come[y])
			add(ret, &t->b[y++], DIFF_SAME), x++;
	}
	trace_done(&path);
	free(gone);
	free(come);
}

static void number_lines(struct diff *d)
{
	size_t number = 1;

	for (size_t i = 0; i < d->n; i++) {
		d->lines[i].number = number;
		number += d->lines[i].mark != DIFF_GONE;
	}
}

void diff_texts(const char *old, size_t old_size, const char *new, size_t new_size,
		struct diff *ret)
{
	struct text a = split(old, old_size, DIFF_GONE), b = split(new, new_size, DIFF_NEW);
	long head = 0, tail = 0, shorter = a.n < b.n ? a.n : b.n;

	*ret = (struct diff){0};
	while (head < shorter && same(&a.lines[head], &b.lines[head]))
		add(ret, &b.lines[head++], DIFF_SAME);
	while (tail < shorter - head && same(&a.lines[a.n - 1 - tail], &b.lines[b.n - 1 - tail]))
		tail++;
	add_middle(&(struct middle){a.lines + head, b.lines + head, a.n - head - tail,
				    b.n - head - tail},
		   ret);
	for (long i = b.n - tail; i < b.n; i++)
		add(ret, &b.lines[i], DIFF_SAME);
	number_lines(ret);
	free(a.lines);
	free(b.lines);
}

void diff_done(struct diff *d)
{
	free(d->lines);
	*d = (struct diff){0};
}
