/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/host_lines.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "ingest/part.h"
#include "ingest/part_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct split {
	struct arena *arena;
	struct host_lines hosts[MOST_TEXT_HOSTS];
	size_t n;
};

/*
 * The length of the host's name in "gpu7: text"; 0: there is none. Hosts of a cluster are numbered,
 * unlike "kernel: ". pdsh prints an empty line as "gpu7: ", whose blank is gone here.
 */
static size_t name_length(const char *s)
{
	size_t n = host_name_length(s);

	return n && s[n] == ':' && (s[n + 1] == ' ' || !s[n + 1]) && strcspn(s, "0123456789") < n &&
			       strspn(s, "0123456789.-") < n
		       ? n
		       : 0;
}

static struct host_lines *host_of(struct split *s, const char *name, size_t length)
{
	for (size_t i = 0; i < s->n; i++)
		if (strlen(s->hosts[i].host) == length &&
		    strncmp(s->hosts[i].host, name, length) == 0)
			return &s->hosts[i];
	if (s->n == MOST_TEXT_HOSTS)
		return NULL;
	s->hosts[s->n] = (struct host_lines){.host = arena_strndup(s->arena, name, length)};
	return &s->hosts[s->n++];
}

static void add_line(struct split *s, const struct text_line *l)
{
	size_t length = name_length(l->text);
	struct host_lines *h = length ? host_of(s, l->text, length) : NULL;

	if (h)
		*ARENA_PUSH(s->arena, h->lines, h->n) =
			(struct text_line){l->text + length + 1 + (l->text[length + 1] == ' '),
					   l->number, l->alike, l->open};
}

static size_t lines_in_parts(struct text_line *lines, size_t n)
{
	struct arena *scratch = arena_new();
	size_t part_n, used = 0;
	struct part *parts = parts_find(scratch, "", lines, n, &part_n);

	for (size_t i = 0; i < part_n; i++)
		used += parts[i].n;
	arena_free(scratch);
	return used;
}

/* Without the names there are outputs in them, and more than with the names. */
static bool is_of_host(struct split *s, const struct host_lines *h)
{
	struct text_line *named = arena_alloc(s->arena, h->n, sizeof(*named));

	for (size_t i = 0; i < h->n; i++)
		named[i] = (struct text_line){arena_printf(s->arena, "%s: %s", h->host,
							   h->lines[i].text),
					      0, 0, false};
	return h->n > 1 && lines_in_parts(h->lines, h->n) > lines_in_parts(named, h->n);
}

static bool is_named(const struct split *s, const struct text_line *l)
{
	size_t length = name_length(l->text);

	for (size_t i = 0; length && i < s->n; i++)
		if (strlen(s->hosts[i].host) == length &&
		    strncmp(s->hosts[i].host, l->text, length) == 0)
			return true;
	return false;
}

/* ---- one heading for each output ---- */

/* The lines of dashes around a heading: 15 of clush -b and clubak, 16 of dshbak. */
static bool is_frame(const struct text_line *l)
{
	const size_t n = strspn(l->text, "-");

	return (n == 15 || n == 16) && !l->text[n];
}

struct names {
	const char *items[MOST_TEXT_HOSTS];
	size_t n;
};

static bool add_name(struct names *names, const char *name)
{
	if (names->n == MOST_TEXT_HOSTS)
		return false;
	names->items[names->n++] = name;
	return true;
}

/* "7-9,12" between "gpu" and "-ib": leading zeros are kept. */
static bool add_range(struct arena *a, struct names *names, const char *before, size_t before_n,
		      const char *range, const char *behind, size_t behind_n)
{
	while (*range != ']') {
		const size_t width = strspn(range, "0123456789");
		unsigned first, last;
		int end = 0;

		if (sscanf(range, "%6u%n", &first, &end) != 1)
			return false;
		range += end;
		last = first;
		if (*range == '-' && sscanf(range, "-%6u%n", &last, &end) == 1)
			range += end;
		for (; first <= last; first++)
			if (!add_name(names,
				      arena_printf(a, "%.*s%0*u%.*s", (int)before_n, before,
						   (int)width, first, (int)behind_n, behind)))
				return false;
		if (*range != ',' && *range != ']')
			return false;
		range += *range == ',';
	}
	return true;
}

/*
 * "gpu[7-8,12],login1 (4)": false: it is something else, without a number, or names too many hosts.
 */
static bool read_heading(struct arena *a, const char *s, struct names *ret)
{
	*ret = (struct names){0};
	if (!strpbrk(s, "0123456789"))
		return false;
	do {
		const size_t before = host_name_length(s);
		const char *range = s + before, *close = *range == '[' ? strchr(range, ']') : NULL;
		const size_t behind = close ? host_name_length(close + 1) : 0;

		if (!before || (*range == '[' && !close) ||
		    !(close ? add_range(a, ret, s, before, range + 1, close + 1, behind)
			    : add_name(ret, arena_strndup(a, s, before))))
			return false;
		s = close ? close + 1 + behind : range;
	} while (*s == ',' && *++s);
	return !*s || text_starts_with(s, " (");
}

static void add_lines(struct split *s, const char *name, struct text_line *lines, size_t n)
{
	struct host_lines *h = host_of(s, name, strlen(name));

	if (!h)
		return;
	if (!h->lines) { /* shared by the hosts that printed the same */
		h->lines = lines;
		h->n = n;
		return;
	}
	if (h->lines == lines)
		return;
	h->lines = memcpy(arena_alloc(s->arena, h->n + n + 1, sizeof(*lines)), h->lines,
			  h->n * sizeof(*lines));
	memcpy(h->lines + h->n, lines, n * sizeof(*lines));
	h->n += n;
}

/* 0: there is no such heading, or nothing that is read behind them. */
static size_t split_groups(struct arena *a, struct text_line *lines, size_t n,
			   struct host_lines **ret)
{
	struct split s = {.arena = a};
	struct host_lines rest = {.lines = lines, .n = n};
	struct names names = {0};
	size_t start = 0, used = 0, ret_n = 0;

	for (size_t i = 0; i <= n; i++) {
		const bool heading = i + 2 < n && is_frame(&lines[i]) && is_frame(&lines[i + 2]);
		struct names next;

		if (i < n && !(heading && read_heading(a, lines[i + 1].text, &next)))
			continue;
		if (!names.n)
			rest.n = i;
		for (size_t k = 0; k < names.n; k++)
			add_lines(&s, names.items[k], lines + start, i - start);
		if (i == n)
			break;
		names = next;
		i += 2;
		start = i + 1;
	}
	for (size_t i = 0; i < s.n; i++)
		used += lines_in_parts(s.hosts[i].lines, s.hosts[i].n);
	if (!used)
		return 0;
	*ret = NULL;
	*ARENA_PUSH(a, *ret, ret_n) = rest;
	for (size_t i = 0; i < s.n; i++)
		*ARENA_PUSH(a, *ret, ret_n) = s.hosts[i];
	return ret_n;
}

/* ---- both ---- */

/* *ret_grouped: headings name the hosts. */
static size_t split_lines(struct arena *a, struct text_line *lines, size_t n,
			  struct host_lines **ret, bool *ret_grouped)
{
	struct split s = {.arena = a};
	struct host_lines rest = {0};
	size_t kept = 0, ret_n;

	parts_peel(lines, n);
	ret_n = split_groups(a, lines, n, ret);
	*ret_grouped = ret_n > 0;
	if (ret_n)
		return ret_n;
	for (size_t i = 0; i < n; i++)
		add_line(&s, &lines[i]);
	for (size_t i = 0; i < s.n; i++)
		if (is_of_host(&s, &s.hosts[i]))
			s.hosts[kept++] = s.hosts[i];
	s.n = kept;
	if (!s.n)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!is_named(&s, &lines[i]))
			*ARENA_PUSH(a, rest.lines, rest.n) = lines[i];
	*ret = NULL;
	*ARENA_PUSH(a, *ret, ret_n) = rest;
	for (size_t i = 0; i < s.n; i++)
		*ARENA_PUSH(a, *ret, ret_n) = s.hosts[i];
	return ret_n;
}

size_t host_lines_split(struct arena *a, struct text_line *lines, size_t n, struct host_lines **ret)
{
	bool grouped;

	return split_lines(a, lines, n, ret, &grouped);
}

/* ---- pieces ---- */

bool host_stream_begin(struct host_stream *s, struct arena *a, struct text_line *lines, size_t n)
{
	struct arena *scratch = arena_new();
	struct text_line *copy = arena_alloc(scratch, n + 1, sizeof(*copy));
	struct host_lines *hosts = NULL;

	*s = (struct host_stream){.arena = a, .names = {NULL}, .n = 1, .now_n = 1};
	for (size_t i = 0; i < n; i++) {
		copy[i] = lines[i];
		copy[i].text = arena_strdup(scratch, lines[i].text);
	}
	n = split_lines(scratch, copy, n, &hosts, &s->grouped);
	for (size_t i = 1; i < n && !s->grouped; i++)
		s->names[s->n++] = arena_strdup(a, hosts[i].host);
	arena_free(scratch);
	return n > 0;
}

/* The number of a host; 0: there is no room for another one. */
static size_t number_of(struct host_stream *s, const char *name)
{
	for (size_t i = 1; i < s->n; i++)
		if (strcmp(s->names[i], name) == 0)
			return i;
	if (s->n > MOST_TEXT_HOSTS)
		return 0;
	s->names[s->n] = arena_strdup(s->arena, name);
	return s->n++;
}

/* The third line of a heading shows that it is one. */
static void read_group(struct host_stream *s, const struct text_line *l)
{
	const bool frame = is_frame(l);
	struct names names;

	if (frame && s->heading && read_heading(s->arena, s->heading, &names)) {
		s->now_n = 0;
		for (size_t i = 0; i < names.n; i++)
			s->now[s->now_n++] = number_of(s, names.items[i]);
	}
	free(s->heading);
	s->heading = s->framed && !frame ? xstrdup(l->text) : NULL;
	s->framed = frame;
}

/* Hosts that the first piece does not have are named like those that it has. */
static bool is_listed(const struct host_stream *s, const char *name)
{
	for (size_t i = 1; i < s->n; i++)
		if (strcmp(s->names[i], name) == 0 || host_is_sibling(s->names[i], name))
			return true;
	return false;
}

const size_t *host_stream_line(struct host_stream *s, struct text_line *l, size_t *ret_n)
{
	const size_t length = s->grouped ? 0 : name_length(l->text);
	char name[256];

	*ret_n = s->now_n;
	if (s->grouped) {
		read_group(s, l);
		return s->now;
	}
	s->now[0] = 0;
	if (!length || length >= sizeof(name))
		return s->now;
	text_copy(name, sizeof(name), l->text, length);
	s->now[0] = is_listed(s, name) ? number_of(s, name) : 0;
	if (s->now[0])
		l->text += length + 1 + (l->text[length + 1] == ' ');
	return s->now;
}
