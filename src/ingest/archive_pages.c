/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/archive_pages.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/log_fields.h"
#include "ingest/pasted.h"
#include "ingest/text.h"
#include "machine/archive_api.h"
#include "machine/gzip_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A sosreport has some ten thousand files, of which few are relevant. */
enum { MOST_MEMBERS = 1 << 16 };

struct pages {
	struct archive_api api;
	struct archive *archive;
	struct gzip_stream *gzip; /* NULL: libarchive reads the file itself */
	const char *path;
	struct archive_budget budget;
	char *damage; /* of other archives than gzip; NULL: none */
};

static void cleanup_pages(struct pages *p)
{
	if (p->archive)
		p->api.read_free(p->archive);
	gzip_stream_free(p->gzip);
	free(p->damage);
}

/*
 * The readable part of the member: a truncated archive gives what came before the cut. Content
 * beyond the remaining limit is refused, however small the archive is.
 */
static int read_member(struct pages *p, struct pasted_text *ret, bool *ret_damaged)
{
	char buf[65536];
	la_ssize_t n;
	bool first = true, text = false;

	while ((n = p->api.read_data(p->archive, buf, sizeof(buf))) > 0) {
		int r = archive_budget_use(&p->budget, (size_t)n);

		if (r < 0)
			return r;
		if (first)
			text = !content_fault(buf, (size_t)n < 512 ? (size_t)n : 512) ||
			       log_fields_begin(buf, (size_t)n);
		first = false;
		if (text)
			pasted_feed(ret, buf, (size_t)n);
	}
	*ret_damaged = n < 0;
	return 0;
}

/*
 * What is missing is not absent. Only the first damage is named: what follows it is a consequence.
 */
static void add_damage(struct pages *p, struct pasted *t, const char *name)
{
	const char *what = p->api.error_string(p->archive);
	AUTO_FREE char *sentence = NULL;

	if (p->gzip || p->damage)
		return;
	p->damage = xprintf("%s: cannot be read to its end (%s)", name, what ? what : "damaged");
	sentence = xprintf("%s: what came before was read", p->damage + strlen(name) + 2);
	pasted_add_trouble(t, name, sentence);
}

/* A zip file has the times of a clock in an unknown time zone. */
static struct text_time time_of(const struct pages *p, struct archive_entry *e)
{
	const bool tar =
		(p->api.format(p->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
	const int64_t s = tar ? (int64_t)p->api.entry_mtime(e) : 0;

	return (struct text_time){s > 0 ? s : 0, true};
}

static int add_member(struct pages *p, struct archive_entry *e, struct pasted *t, size_t *parts)
{
	struct pasted_text *x;
	AUTO_FREE char *name = NULL;
	const char *member = p->api.entry_pathname(e);
	bool damaged = false;
	int r;

	if (p->api.entry_filetype(e) != AE_IFREG || p->api.entry_hardlink(e))
		return archive_skip(&p->api, p->archive, &p->budget);
	x = pasted_begin(t);
	r = read_member(p, x, &damaged);
	/* libarchive calls the only member of a compressed file "data". */
	name = member && strcmp(member, "data") != 0 ? xprintf("%s:%s", p->path, member)
						     : xstrdup(p->path);
	/* A damaged recording is not a collection of texts: what it lacks would count as absent. */
	if (r == 0 && text_starts_with(strbuf_str(&x->head), "onehop recording "))
		r = err_set(EINVAL, "%s: is part of a recording", name);
	x->time = time_of(p, e);
	if (r == 0 && x->head.len)
		*parts += pasted_end(t, name, x);
	if (r == 0 && damaged)
		add_damage(p, t, name);
	pasted_drop(x);
	return r;
}

static int open_pages(struct pages *p, int fd)
{
	int r = archive_api_load(&p->api);

	if (r < 0)
		return r;
	r = archive_read_packed(&p->api, fd, true, &p->archive, &p->gzip);
	return r == ARCHIVE_OK ? 0 : err_set(EINVAL, "%s: cannot be read as an archive", p->path);
}

int archive_pages_add(const char *path, struct pasted *t, size_t *ret_n)
{
	CLEANUP(cleanup_pages) struct pages p = {.path = path};
	AUTO_CLOSE int fd = file_open(path);
	struct archive_entry *e;
	unsigned members = 0;
	int r, next = ARCHIVE_EOF;

	*ret_n = 0;
	if (fd < 0)
		return fd;
	p.budget = archive_budget(path, fd);
	r = open_pages(&p, fd);
	while (r == 0 && ((next = p.api.read_next_header(p.archive, &e)) == ARCHIVE_OK ||
			  next == ARCHIVE_WARN)) {
		if (++members > MOST_MEMBERS)
			return err_set(E2BIG, "%s: has more than %d members", path, MOST_MEMBERS);
		r = add_member(&p, e, t, ret_n);
	}
	if (r == 0 && next != ARCHIVE_EOF)
		add_damage(&p, t, path);
	if (r == 0 && p.gzip && gzip_stream_damage(p.gzip)) {
		AUTO_FREE char *what =
			xprintf("%s: what it unpacks to was read", gzip_stream_damage(p.gzip));

		pasted_add_trouble(t, path, what);
	}
	/* Nothing is left of it, a password may be needed. */
	return r == 0 && p.damage && !*ret_n ? err_set(EBADMSG, "%s", p.damage) : r;
}
