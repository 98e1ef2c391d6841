/* SPDX-License-Identifier: Apache-2.0 */
#include "base/source.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/source_impl.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

const char *source_name(const struct source *s)
{
	return s->name;
}

const char *source_stated(const struct source *s)
{
	return s->stated;
}

void source_free(struct source *s)
{
	if (!s)
		return;
	s->ops->free(s);
	free(s->name);
	free(s);
}

static int __attribute__((format(printf, 2, 0)))
format_path(char path[static PATH_MAX], const char *fmt, va_list ap)
{
	char raw[PATH_MAX - 2];
	int n = vsnprintf(raw, sizeof(raw), fmt, ap);

	if (n < 0 || (size_t)n >= sizeof(raw))
		return -ENAMETOOLONG;
	path_clean(raw, path);
	return 0;
}

#define FORMAT_PATH(path, fmt)                                                                     \
	({                                                                                         \
		va_list ap_;                                                                       \
		va_start(ap_, fmt);                                                                \
		int r_ = format_path(path, fmt, ap_);                                              \
		va_end(ap_);                                                                       \
		r_;                                                                                \
	})

int source_read(struct source *s, char **ret, size_t *ret_size, const char *fmt, ...)
{
	char path[PATH_MAX];
	int r = FORMAT_PATH(path, fmt);

	return r < 0 ? r : s->ops->read(s, path, ret, ret_size);
}

int source_read_line(struct source *s, char *buf, size_t size, const char *fmt, ...)
{
	AUTO_FREE char *text = NULL;
	char path[PATH_MAX];
	const char *line;
	size_t n;
	int r = FORMAT_PATH(path, fmt);

	if (r >= 0)
		r = s->ops->read(s, path, &text, &n);
	if (r < 0)
		return r;
	line = text_trim(text);
	text_copy(buf, size, line, strlen(line));
	return 0;
}

int source_list(struct source *s, char ***ret_names, size_t *ret_n, const char *fmt, ...)
{
	char path[PATH_MAX];
	int r = FORMAT_PATH(path, fmt);

	return r < 0 ? r : s->ops->list(s, path, ret_names, ret_n);
}

int source_read_link(struct source *s, char **ret, const char *fmt, ...)
{
	char path[PATH_MAX];
	int r = FORMAT_PATH(path, fmt);

	return r < 0 ? r : s->ops->link(s, path, ret);
}

void source_free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

void source_split_names(const char *text, char ***ret_names, size_t *ret_n)
{
	const char *line = NULL;
	char **names = NULL;
	size_t n = 0, len;

	while (text_next_line(&line, &len, text)) {
		if (!len)
			continue;
		names = xrealloc(names, n + 1, sizeof(*names));
		names[n++] = xstrndup(line, len);
	}
	*ret_names = names;
	*ret_n = n;
}

/* ---- a tee: answers from one source, remembered in a map ---- */

struct tee {
	struct source base;
	struct source *inner, *map;
	pthread_mutex_t lock; /* of the map: readers may ask from several threads */
};

static int tee_read(struct source *s, const char *path, char **ret, size_t *ret_size)
{
	struct tee *t = (struct tee *)s;
	int r = t->inner->ops->read(t->inner, path, ret, ret_size);

	pthread_mutex_lock(&t->lock);
	if (r < 0)
		source_put_error(t->map, path, SOURCE_FILE, -r);
	else
		source_put_file(t->map, path, *ret, *ret_size);
	pthread_mutex_unlock(&t->lock);
	return r;
}

static int tee_list(struct source *s, const char *path, char ***ret_names, size_t *ret_n)
{
	struct tee *t = (struct tee *)s;
	AUTO_STRBUF struct strbuf names = {0};
	int r = t->inner->ops->list(t->inner, path, ret_names, ret_n);

	for (size_t i = 0; r == 0 && i < *ret_n; i++)
		if (!strchr((*ret_names)[i], '\n'))
			strbuf_printf(&names, "%s\n", (*ret_names)[i]);
	pthread_mutex_lock(&t->lock);
	if (r < 0)
		source_put_error(t->map, path, SOURCE_LIST, -r);
	else
		source_put_list(t->map, path, strbuf_str(&names));
	pthread_mutex_unlock(&t->lock);
	return r;
}

static int tee_link(struct source *s, const char *path, char **ret)
{
	struct tee *t = (struct tee *)s;
	int r = t->inner->ops->link(t->inner, path, ret);

	pthread_mutex_lock(&t->lock);
	if (r < 0)
		source_put_error(t->map, path, SOURCE_LINK, -r);
	else
		source_put_link(t->map, path, *ret);
	pthread_mutex_unlock(&t->lock);
	return r;
}

static void tee_free(struct source *s)
{
	pthread_mutex_destroy(&((struct tee *)s)->lock);
}

struct source *source_new_tee(struct source *inner, struct source *map)
{
	static const struct source_ops ops = {tee_read, tee_list, tee_link, tee_free};
	struct tee *t = xcalloc(1, sizeof(*t));

	t->base.ops = &ops;
	t->base.name = xstrdup(inner->name);
	t->inner = inner;
	t->map = map;
	pthread_mutex_init(&t->lock, NULL);
	return &t->base;
}

/* ---- a map over another source ---- */

struct over {
	struct source base;
	struct source *inner, *map;
};

static struct source *layer_of(struct source *s, const char *path, enum source_kind kind)
{
	const struct over *o = (struct over *)s;

	return source_entry_of(o->map, path, kind) ? o->map : o->inner;
}

static int over_read(struct source *s, const char *path, char **ret, size_t *ret_size)
{
	struct source *layer = layer_of(s, path, SOURCE_FILE);

	return layer->ops->read(layer, path, ret, ret_size);
}

static int over_list(struct source *s, const char *path, char ***ret_names, size_t *ret_n)
{
	struct source *layer = layer_of(s, path, SOURCE_LIST);

	return layer->ops->list(layer, path, ret_names, ret_n);
}

static int over_link(struct source *s, const char *path, char **ret)
{
	struct source *layer = layer_of(s, path, SOURCE_LINK);

	return layer->ops->link(layer, path, ret);
}

static void over_free(struct source *s)
{
	source_free(((struct over *)s)->inner);
}

struct source *source_new_over(struct source *inner, struct source *map)
{
	static const struct source_ops ops = {over_read, over_list, over_link, over_free};
	struct over *o = xcalloc(1, sizeof(*o));

	o->base.ops = &ops;
	o->base.name = xstrdup(inner->name);
	o->inner = inner;
	o->map = map;
	return &o->base;
}
