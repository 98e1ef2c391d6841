/* SPDX-License-Identifier: Apache-2.0 */
/* A source in memory: answers by path and question, in a hash table over an arena. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/source_impl.h"
#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct slot {
	struct source_entry entry; /* path NULL: free */
	bool dropped;
};

struct map {
	struct source base;
	struct arena *arena;
	struct slot *slots;
	size_t n, size; /* size is a power of two */
};

/*
 * A path's origin, and why something is missing below it, are kept like answers to questions of
 * their own.
 */
enum { ASKED_ORIGIN = SOURCE_LIST + 1, ASKED_GAP };

static uint64_t hash_of(const char *path, enum source_kind asked)
{
	return text_hash(TEXT_HASH_START + (uint64_t)asked, path, strlen(path));
}

static struct slot *find_slot(const struct map *m, const char *path, enum source_kind asked)
{
	size_t i = hash_of(path, asked) & (m->size - 1);

	while (m->slots[i].entry.path &&
	       (m->slots[i].entry.kind != asked || strcmp(m->slots[i].entry.path, path) != 0))
		i = (i + 1) & (m->size - 1);
	return &m->slots[i];
}

static void grow(struct map *m)
{
	struct slot *old = m->slots;
	size_t old_size = m->size;

	m->size = old_size ? 2 * old_size : 1024;
	m->slots = xcalloc(m->size, sizeof(*m->slots));
	for (size_t i = 0; i < old_size; i++)
		if (old[i].entry.path)
			*find_slot(m, old[i].entry.path, old[i].entry.kind) = old[i];
	free(old);
}

static struct slot *put(struct source *s, const char *path, enum source_kind asked)
{
	struct map *m = (struct map *)s;
	struct slot *slot;

	if (4 * m->n >= 3 * m->size)
		grow(m);
	slot = find_slot(m, path, asked);
	if (!slot->entry.path) {
		m->n++;
		slot->entry.path = arena_strdup(m->arena, path);
		slot->entry.kind = asked;
	}
	slot->dropped = false;
	slot->entry.error = 0;
	return slot;
}

static void put_bytes(struct source *s, const char *path, enum source_kind kind, const char *data,
		      size_t size)
{
	struct map *m = (struct map *)s;
	struct slot *slot = put(s, path, kind);
	char *copy = arena_alloc(m->arena, size + 1, 1);

	memcpy(copy, data, size);
	slot->entry.data = copy;
	slot->entry.size = size;
}

void source_put_file(struct source *map, const char *path, const char *data, size_t size)
{
	put_bytes(map, path, SOURCE_FILE, data, size);
}

void source_put_link(struct source *map, const char *path, const char *target)
{
	put_bytes(map, path, SOURCE_LINK, target, strlen(target));
}

void source_put_list(struct source *map, const char *path, const char *names)
{
	put_bytes(map, path, SOURCE_LIST, names, strlen(names));
}

void source_put_error(struct source *map, const char *path, enum source_kind kind, int error)
{
	struct slot *slot = put(map, path, kind);

	slot->entry.error = error;
	slot->entry.data = NULL;
	slot->entry.size = 0;
}

void source_drop(struct source *map, const char *path)
{
	static const enum source_kind questions[] = {SOURCE_FILE, SOURCE_LINK, SOURCE_LIST};
	struct map *m = (struct map *)map;

	for (size_t i = 0; i < 3 && m->size; i++) {
		struct slot *slot = find_slot(m, path, questions[i]);

		if (slot->entry.path)
			slot->dropped = true;
	}
}

static int by_path(const void *a, const void *b)
{
	const struct source_entry *x = a, *y = b;
	int r = strcmp(x->path, y->path);

	return r ? r : (int)x->kind - (int)y->kind;
}

struct source_entry *source_entries(const struct source *map, size_t *ret_n)
{
	const struct map *m = (const struct map *)map;
	struct source_entry *entries = xcalloc(m->n + 1, sizeof(*entries));
	size_t n = 0;

	for (size_t i = 0; i < m->size; i++)
		if (m->slots[i].entry.path && !m->slots[i].dropped &&
		    m->slots[i].entry.kind <= SOURCE_LIST)
			entries[n++] = m->slots[i].entry;
	qsort(entries, n, sizeof(*entries), by_path);
	*ret_n = n;
	return entries;
}

const struct source_entry *source_entry_of(const struct source *map, const char *path,
					   enum source_kind kind)
{
	const struct map *m = (const struct map *)map;
	const struct slot *slot = m->size ? find_slot(m, path, kind) : NULL;

	return slot && slot->entry.path && !slot->dropped ? &slot->entry : NULL;
}

/* The entry that answers; NULL: the answer is the error. */
static const struct source_entry *answer(struct source *s, const char *path, enum source_kind asked,
					 int *ret_error)
{
	struct map *m = (struct map *)s;
	const struct slot *slot = m->size ? find_slot(m, path, asked) : NULL;

	if (!slot || !slot->entry.path || slot->dropped) {
		*ret_error = -ENODATA;
		return NULL;
	}
	*ret_error = -slot->entry.error;
	return slot->entry.error ? NULL : &slot->entry;
}

void source_set_stated(struct source *map, const char *why)
{
	map->stated = arena_strdup(((struct map *)map)->arena, why);
}

void source_put_origin(struct source *map, const char *path, const char *origin)
{
	put_bytes(map, path, (enum source_kind)ASKED_ORIGIN, origin, strlen(origin));
}

/* Only maps that are made from texts have origins. */
const char *source_origin(const struct source *s, const char *path)
{
	const struct source_entry *e =
		s->stated ? source_entry_of(s, path, (enum source_kind)ASKED_ORIGIN) : NULL;

	return e ? e->data : NULL;
}

void source_put_gap(struct source *map, const char *path, const char *why)
{
	put_bytes(map, path, (enum source_kind)ASKED_GAP, why, strlen(why));
}

const char *source_gap(const struct source *s, const char *path)
{
	AUTO_FREE char *above = NULL;

	if (!s->stated)
		return NULL;
	above = xstrdup(path);
	for (;;) {
		const struct source_entry *e =
			source_entry_of(s, above, (enum source_kind)ASKED_GAP);
		char *slash = strrchr(above, '/');

		if (e)
			return *e->data ? e->data : NULL;
		if (!slash)
			return NULL;
		*slash = '\0';
	}
}

static int map_read(struct source *s, const char *path, char **ret, size_t *ret_size)
{
	int r;
	const struct source_entry *e = answer(s, path, SOURCE_FILE, &r);

	if (!e)
		return r;
	*ret = xmalloc(e->size + 1);
	memcpy(*ret, e->data, e->size + 1);
	*ret_size = e->size;
	return 0;
}

static int map_list(struct source *s, const char *path, char ***ret_names, size_t *ret_n)
{
	int r;
	const struct source_entry *e = answer(s, path, SOURCE_LIST, &r);

	if (!e)
		return r;
	source_split_names(e->data, ret_names, ret_n);
	return 0;
}

static int map_link(struct source *s, const char *path, char **ret)
{
	int r;
	const struct source_entry *e = answer(s, path, SOURCE_LINK, &r);

	if (!e)
		return r;
	*ret = xstrdup(e->data);
	return 0;
}

static void map_free(struct source *s)
{
	struct map *m = (struct map *)s;

	free(m->slots);
	arena_free(m->arena);
}

struct source *source_new_map(const char *name)
{
	static const struct source_ops ops = {map_read, map_list, map_link, map_free};
	struct map *m = xcalloc(1, sizeof(*m));

	m->base.ops = &ops;
	m->base.name = xstrdup(name);
	m->arena = arena_new();
	return &m->base;
}
