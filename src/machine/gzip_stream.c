/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/gzip_stream.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/dl.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
#include <zlib.h>

/* X(member, exported name) */
#define ZLIB_SYMBOLS(X)                                                                            \
	X(init, inflateInit2_) X(inflate, inflate) X(reset, inflateReset) X(end, inflateEnd)

struct zlib_api {
#define ZLIB_MEMBER(member, symbol) __typeof__(symbol) *member; /* NOLINT */
	ZLIB_SYMBOLS(ZLIB_MEMBER)
#undef ZLIB_MEMBER
};

static int load(struct zlib_api *ret)
{
#ifdef ONEHOP_LINKED_ARCHIVE
#define ZLIB_LINKED(member, symbol) .member = symbol,
	*ret = (struct zlib_api){ZLIB_SYMBOLS(ZLIB_LINKED)};
	return 0;
#else
#define ZLIB_ROW(member, symbol) {#symbol, offsetof(struct zlib_api, member), true},
	static const struct dl_symbol symbols[] = {ZLIB_SYMBOLS(ZLIB_ROW)};

	return dl_load("libz.so.1", symbols, sizeof(symbols) / sizeof(symbols[0]), ret);
#endif
}

/* zlib's 15 for the largest window, and 16 for gzip and its check sums. */
#define WINDOW_GZIP 31

struct gzip_stream {
	struct zlib_api api;
	z_stream z;
	int fd;
	off_t at;
	unsigned member;
	bool between; /* the next byte begins a member, or is behind the last */
	char *damage;
	unsigned char in[65536], out[65536];
};

static bool refill(struct gzip_stream *s)
{
	ssize_t n;

	if (s->z.avail_in)
		return true;
	n = pread(s->fd, s->in, sizeof(s->in), s->at);
	if (n <= 0)
		return false;
	s->at += n;
	s->z.next_in = s->in;
	s->z.avail_in = (uInt)n;
	return true;
}

/* Behind a damaged member the next one is whole, as a rule. */
static bool find_member(struct gzip_stream *s)
{
	static const unsigned char magic[] = {0x1f, 0x8b, Z_DEFLATED};
	size_t matched = 0;

	while (matched < sizeof(magic) && refill(s)) {
		matched = *s->z.next_in == magic[matched] ? matched + 1 : *s->z.next_in == *magic;
		s->z.next_in++;
		s->z.avail_in--;
	}
	if (matched < sizeof(magic))
		return false;
	/* They may be of two blocks of the file, so that it is read from there again. */
	s->at -= (off_t)(s->z.avail_in + sizeof(magic));
	s->z.avail_in = 0;
	return true;
}

static void note(struct gzip_stream *s, const char *what)
{
	if (!s->damage)
		s->damage = xprintf("member %u of its gzip data %s", s->member, what);
}

/*
 * What follows the last member and does not begin like one is not part of the data; between two
 * something was damaged.
 */
static bool begin_member(struct gzip_stream *s)
{
	if (!refill(s))
		return false;
	if (*s->z.next_in != 0x1f) {
		if (!find_member(s))
			return false;
		note(s, "is followed by something else");
	}
	s->member++;
	s->between = false;
	return s->api.reset(&s->z) == Z_OK;
}

/* After each call of inflate: where to go on; false: nowhere. */
static bool go_on(struct gzip_stream *s, int result)
{
	AUTO_FREE char *fault = NULL;

	if (result == Z_STREAM_END) {
		s->between = true;
		return true;
	}
	if (result == Z_OK || result == Z_BUF_ERROR) {
		if (refill(s))
			return true;
		note(s, "is cut off");
		return false;
	}
	fault = xprintf("is damaged (%s) and may be wrong or incomplete",
			s->z.msg ? s->z.msg : "invalid");
	note(s, fault);
	s->between = true;
	return find_member(s);
}

size_t gzip_stream_read(struct gzip_stream *s, const void **ret)
{
	bool more = true;
	size_t n = 0;

	*ret = s->out;
	s->z.next_out = s->out;
	s->z.avail_out = sizeof(s->out);
	while (more && !n) {
		more = !s->between || begin_member(s);
		if (more)
			more = go_on(s, s->api.inflate(&s->z, Z_NO_FLUSH));
		n = sizeof(s->out) - s->z.avail_out;
	}
	return n;
}

const char *gzip_stream_damage(const struct gzip_stream *s)
{
	return s->damage;
}

struct gzip_stream *gzip_stream_new(int fd)
{
	unsigned char magic[2];
	struct gzip_stream *s;

	if (pread(fd, magic, sizeof(magic), 0) != sizeof(magic) || magic[0] != 0x1f ||
	    magic[1] != 0x8b)
		return NULL;
	s = xcalloc(1, sizeof(*s));
	s->fd = fd;
	s->between = true;
	if (load(&s->api) == 0 &&
	    s->api.init(&s->z, WINDOW_GZIP, ZLIB_VERSION, (int)sizeof(s->z)) == Z_OK)
		return s;
	free(s);
	return NULL;
}

void gzip_stream_free(struct gzip_stream *s)
{
	if (!s)
		return;
	s->api.end(&s->z);
	free(s->damage);
	free(s);
}
