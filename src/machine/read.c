/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/read.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

#define FORMAT(r, fmt)                                                                             \
	({                                                                                         \
		va_list ap_;                                                                       \
		va_start(ap_, fmt);                                                                \
		const char *s_ = arena_vprintf((r)->m->arena, fmt, ap_);                           \
		va_end(ap_);                                                                       \
		s_;                                                                                \
	})

/* The line of the text that states it, otherwise the path itself. */
static const char *place(const struct reader *r, const char *path)
{
	const char *origin = source_origin(r->s, path);

	return origin ? arena_strdup(r->m->arena, origin) : path;
}

const char *read_gap(const struct reader *r, const char *path)
{
	const char *gap = source_gap(r->s, path);

	return gap ? arena_strdup(r->m->arena, gap) : NULL;
}

static const char *why_missing(const struct reader *r, const char *path)
{
	const char *origin = source_origin(r->s, path), *stated = source_stated(r->s);
	const char *gap = origin ? NULL : read_gap(r, path);

	if (origin)
		return arena_strdup(r->m->arena, origin);
	return arena_printf(r->m->arena, "%s: %s",
			    gap      ? gap
			    : stated ? stated
				     : "not in the recording",
			    path);
}

const char *read_why(struct reader *r, int error, const char *path)
{
	struct arena *a = r->m->arena;

	switch (-error) {
	case ENOENT:
		return NULL;
	case ENODATA:
		return why_missing(r, path);
	case EACCES:
	case EPERM:
		return arena_printf(a, FACT_NEEDS_ROOT ": %s", path);
	default:
		return arena_printf(a, "%s: %s", path, strerror(-error));
	}
}

/* An errno says absent (the machine does not have it) or unknown, and why. */
#define FACT_FROM_ERROR(type, r, error, path)                                                      \
	({                                                                                         \
		const char *why_ = read_why(r, error, path);                                       \
		why_ ? type##_unknown(why_) : type##_absent(place(r, path));                       \
	})

void read_trouble(struct reader *r, const char *where, const char *fmt, ...)
{
	struct machine *m = r->m;
	struct trouble *t = ARENA_PUSH(m->arena, m->troubles, m->trouble_n);

	*t = (struct trouble){.where = where, .what = FORMAT(r, fmt)};
}

/* A file that exists but cannot be read (a device that vanished, EIO) is reported. */
static void note_failure(struct reader *r, int error, const char *path)
{
	switch (-error) {
	case ENOENT:
	case ENODATA:
	case EACCES:
	case EPERM:
		return;
	default:
		read_trouble(r, path, "cannot be read: %s", strerror(-error));
	}
}

struct fact_int read_int(struct reader *r, const char *fmt, ...)
{
	const char *path = FORMAT(r, fmt);
	char buf[64];
	int64_t value;
	int e = source_read_line(r->s, buf, sizeof(buf), "%s", path);

	if (e < 0) {
		note_failure(r, e, path);
		return FACT_FROM_ERROR(fact_int, r, e, path);
	}
	if (text_to_i64(buf, &value) < 0) {
		read_trouble(r, path, "holds '%s', which is not a number",
			     arena_strdup(r->m->arena, buf));
		return fact_int_unknown(arena_printf(r->m->arena, "no number in %s", path));
	}
	return fact_int(value, place(r, path));
}

struct fact_str read_str(struct reader *r, const char *fmt, ...)
{
	const char *path = FORMAT(r, fmt);
	char buf[4096];
	int e = source_read_line(r->s, buf, sizeof(buf), "%s", path);

	if (e < 0) {
		note_failure(r, e, path);
		return FACT_FROM_ERROR(fact_str, r, e, path);
	}
	return fact_str(arena_strdup(r->m->arena, buf), place(r, path));
}

struct fact_str read_link_name(struct reader *r, const char *fmt, ...)
{
	const char *path = FORMAT(r, fmt), *slash;
	AUTO_FREE char *target = NULL;
	int e = source_read_link(r->s, &target, "%s", path);

	if (e < 0)
		return FACT_FROM_ERROR(fact_str, r, e, path);
	slash = strrchr(target, '/');
	return fact_str(arena_strdup(r->m->arena, slash ? slash + 1 : target), place(r, path));
}

/* One question is asked and recorded: whether a file of that path can be opened (EINVAL: a folder).
 */
struct fact_int read_exists(struct reader *r, const char *fmt, ...)
{
	const char *path = FORMAT(r, fmt);
	AUTO_FREE char *target = NULL;
	int e = source_read_link(r->s, &target, "%s", path);

	if (e == 0 || e == -EINVAL)
		return fact_int(1, path);
	if (e == -ENOENT)
		return fact_int(0, path);
	return fact_int_unknown(read_why(r, e, path));
}

struct fact_int read_list(struct reader *r, char ***ret_names, size_t *ret_n, const char *fmt, ...)
{
	const char *path = FORMAT(r, fmt);
	int e = source_list(r->s, ret_names, ret_n, "%s", path);

	if (e < 0) {
		*ret_names = NULL;
		*ret_n = 0;
		return FACT_FROM_ERROR(fact_int, r, e, path);
	}
	return fact_int((int64_t)*ret_n, path);
}

struct fact_str read_text(struct reader *r, const char *fmt, ...)
{
	const char *path = FORMAT(r, fmt);
	AUTO_FREE char *text = NULL;
	size_t size;
	int e = source_read(r->s, &text, &size, "%s", path);

	if (e < 0) {
		note_failure(r, e, path);
		return FACT_FROM_ERROR(fact_str, r, e, path);
	}
	return fact_str(arena_strndup(r->m->arena, text, size), place(r, path));
}
