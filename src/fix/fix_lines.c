/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that a file loses when its program makes it again: neither the fix's own, nor those that only differ by a
 * kernel parameter of the fix. A person wrote them, or what they are about is gone.
 */
#include "base/alloc.h"
#include "base/diff.h"
#include "base/text.h"
#include "fix/fix_impl.h"

#include <string.h>

#define LINES_MAX 200 /* that are noted of one file */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* '\0': the line is empty. */
static char first_character(const struct diff_line *l)
{
	size_t i = 0;

	while (i < l->n && is_blank(l->text[i]))
		i++;
	return (char)(i < l->n ? l->text[i] : '\0');
}

/* A kernel parameter that the fix sets: it is in the line before, or after, and no line is lost by it. */
static bool is_parameter(const struct plan *p, const char *word, size_t n)
{
	for (size_t i = 0; i < p->wanted_n; i++)
		if (strcmp(p->wanted[i].kind, "kernel-parameter") == 0 &&
		    strlen(p->wanted[i].value) == n && memcmp(p->wanted[i].value, word, n) == 0)
			return true;
	return false;
}

/* The next word of the line that is no parameter of the fix; 0: its end. */
static size_t next_word(const struct plan *p, const char **at, const char *end)
{
	size_t n = 0;

	do {
		*at += n;
		while (*at < end && is_blank(**at))
			(*at)++;
		for (n = 0; *at + n < end && !is_blank((*at)[n]);)
			n++;
	} while (n && is_parameter(p, *at, n));
	return n;
}

static bool same_but_for_parameters(const struct plan *p, const struct diff_line *a,
				    const struct diff_line *b)
{
	const char *x = a->text, *y = b->text;
	size_t n, m;

	do {
		n = next_word(p, &x, a->text + a->n);
		m = next_word(p, &y, b->text + b->n);
		if (n != m || memcmp(x, y, n) != 0)
			return false;
		x += n;
		y += m;
	} while (n);
	return true;
}

static bool is_there_after(const struct plan *p, const struct diff *d, const struct diff_line *gone)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->lines[i].mark == DIFF_NEW && same_but_for_parameters(p, gone, &d->lines[i]))
			return true;
	return false;
}

/* What the step behind the changed files made; NULL: nothing yet. */
static const char *made_by_fix(const struct plan *p, const struct step *s)
{
	for (size_t i = p->step_n; i-- > 0;)
		if (step_same_target(&p->steps[i], s) && p->steps[i].new.data)
			return p->steps[i].new.data;
	return NULL;
}

static bool is_own(const char *own, const struct diff_line *gone)
{
	const char *line = NULL;
	size_t n;

	while (own && text_next_line(&line, &n, own))
		if (n == gone->n && memcmp(line, gone->text, n) == 0)
			return true;
	return false;
}

/* The journal holds them as text, and they need not be UTF-8, nor without zero bytes. */
static const char *plain(struct arena *a, const struct diff_line *l)
{
	char *text = arena_alloc(a, l->n + 1, 1);

	for (size_t i = 0; i < l->n; i++) {
		const unsigned char c = (unsigned char)l->text[i];

		text[i] = (char)(c == '\t' ? ' ' : c >= ' ' && c < 0x80 ? c : '?');
	}
	return text;
}

const char *const *fix_lost_lines(const struct plan *p, const struct step *s,
				  const struct bytes *before, const struct bytes *after,
				  bool comments)
{
	const char **lost = arena_alloc(p->arena, LINES_MAX + 1, sizeof(*lost));
	const char *own = made_by_fix(p, s);
	struct diff d;
	size_t n = 0;

	diff_texts(before->data, before->size, after->data, after->size, &d);
	for (size_t i = 0; i < d.n && n < LINES_MAX; i++) {
		const struct diff_line *l = &d.lines[i];
		const char first = first_character(l);

		if (l->mark == DIFF_GONE && first && (comments || first != '#') &&
		    !is_there_after(p, &d, l) && !is_own(own, l))
			lost[n++] = plain(p->arena, l);
	}
	diff_done(&d);
	return n ? lost : NULL;
}
