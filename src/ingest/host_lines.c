/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/host_lines.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "ingest/part.h"
#include "ingest/part_hosts.h"

#include <string.h>

struct split {
	struct arena *arena;
	struct host_lines hosts[MOST_TEXT_HOSTS];
	size_t n;
};

/*
 * The length of the host's name in "gpu7: text"; 0: there is none. Hosts of a cluster are numbered, unlike "kernel: ".
 * pdsh prints an empty line as "gpu7: ", whose blank is gone here.
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
					   l->number};
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
					      0};
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

size_t host_lines_split(struct arena *a, struct text_line *lines, size_t n, struct host_lines **ret)
{
	struct split s = {.arena = a};
	struct host_lines rest = {0};
	size_t kept = 0, ret_n = 0;

	parts_peel(lines, n);
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
