/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/log_text.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "ingest/part.h"
#include "ingest/text.h"
#include "ingest/text_reduce.h"
#include "machine/archive_api.h"
#include "machine/gzip_stream.h"

#include <errno.h>
#include <string.h>

/* What is held of a log as it is. */
#define MOST_HELD ((size_t)8 << 20)
enum { HEAD = 1 << 16 };

struct log_reader {
	struct log_text *t;
	struct text_reducer *lines;
};

static void take_piece(void *to, const char *data, size_t n)
{
	struct log_reader *r = to;
	struct log_text *t = r->t;

	if (t->head.len < HEAD)
		strbuf_add(&t->head, data, n < HEAD ? n : HEAD);
	if (!t->reduced && t->text.len + n <= MOST_HELD) {
		strbuf_add(&t->text, data, n);
		return;
	}
	if (!t->reduced)
		text_reduce_add(r->lines, t->text.text, t->text.len);
	t->reduced = true;
	strbuf_done(&t->text);
	t->text = (struct strbuf){0};
	text_reduce_add(r->lines, data, n);
}

/* A log of few lines may yet be a text of many. */
static bool is_kept(const struct text_line *l)
{
	return !line_is_short(l) && strcmp(l->text, "...") != 0;
}

void log_text_join(struct log_text *t)
{
	unsigned number = 1;

	for (size_t i = 0; i < t->n; i++) {
		if (!is_kept(&t->lines[i]))
			continue;
		for (; number < t->lines[i].number; number++)
			strbuf_putc(&t->text, '\n');
		strbuf_puts(&t->text, t->lines[i].text);
	}
}

static int unpack(const char *path, int fd, struct gzip_stream *s, struct log_reader *r)
{
	struct archive_budget budget = archive_budget(path, fd);
	const void *data;
	size_t n;

	while ((n = gzip_stream_read(s, &data)) > 0) {
		if (archive_budget_use(&budget, n) < 0)
			return -EFBIG;
		take_piece(r, data, n);
	}
	return gzip_stream_damage(s)
		       ? err_set(EINVAL, "%s: %s; onehop check --from reads it as far as possible",
				 path, gzip_stream_damage(s))
		       : 0;
}

static int read_pieces(const char *path, struct log_reader *r)
{
	AUTO_CLOSE int fd = strcmp(path, "-") == 0 ? -1 : file_open(path);
	struct gzip_stream *s = fd < 0 ? NULL : gzip_stream_new(fd);
	int e;

	if (!s)
		return text_read_pieces(path, INGEST_MAX_TEXT, take_piece, r);
	e = unpack(path, fd, s, r);
	gzip_stream_free(s);
	return e;
}

int log_text_read(const char *path, struct log_text *ret)
{
	struct text_reducer *lines;
	struct log_reader r = {.t = ret};
	int e;

	ret->arena = arena_new();
	ret->reducer = lines = arena_alloc(ret->arena, 1, sizeof(*lines));
	*lines = text_reducer(ret->arena);
	r.lines = lines;
	e = read_pieces(path, &r);
	if (e < 0 || !ret->reduced)
		return e;
	text_reduce_end(lines);
	ret->lines = lines->lines;
	ret->n = lines->n;
	ret->lost = text_reduce_lost(lines);
	return 0;
}

void log_text_done(struct log_text *t)
{
	if (t->reducer)
		text_reduce_free(t->reducer);
	arena_free(t->arena);
	strbuf_done(&t->text);
	strbuf_done(&t->head);
}
