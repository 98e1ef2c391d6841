/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/archive_api.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/dl.h"
#include "base/err.h"
#include "machine/gzip_stream.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>

#ifdef ONEHOP_LINKED_ARCHIVE
/*
 * Takes the place of libarchive's, which would need libxml2 and ICU linked in for a format that is
 * not used here.
 */
int archive_write_set_format_xar(struct archive *a)
{
	archive_set_error(a, ENOSYS, "xar archives are not written");
	return ARCHIVE_FATAL;
}

int archive_api_load(struct archive_api *ret)
{
#define ARCHIVE_LINKED(member, symbol) .member = symbol,
	*ret = (struct archive_api){ARCHIVE_SYMBOLS(ARCHIVE_LINKED)};
	return 0;
}
#else

#define LIBRARY                     "libarchive.so.13"

int archive_api_load(struct archive_api *ret)
{
#define ARCHIVE_ROW(member, symbol) {#symbol, offsetof(struct archive_api, member), true},
	static const struct dl_symbol symbols[] = {ARCHIVE_SYMBOLS(ARCHIVE_ROW)};
	AUTO_FREE char *why = NULL;
	int r = dl_load(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]), ret);

	if (r != -ENOENT)
		return r;
	why = xstrdup(err_msg());
	return err_set(ENOENT, "archives need libarchive, which cannot be loaded: %s", why);
}
#endif

static la_ssize_t read_gzip(struct archive *a, void *stream, const void **ret)
{
	(void)a;
	return (la_ssize_t)gzip_stream_read(stream, ret);
}

int archive_read_packed(const struct archive_api *api, int fd, bool other_too, struct archive **ret,
			struct gzip_stream **ret_gzip)
{
	struct archive *a = api->read_new();

	api->read_filter_gzip(a);
	api->read_filter_bzip2(a);
	api->read_filter_xz(a);
	api->read_filter_zstd(a);
	api->read_format_tar(a);
	api->read_format_zip(a);
	if (other_too)
		api->read_format_raw(a);
	*ret = a;
	*ret_gzip = gzip_stream_new(fd);
	return *ret_gzip ? api->read_open(a, *ret_gzip, NULL, read_gzip, NULL)
			 : api->read_open_fd(a, fd, 65536);
}

/* ---- limits ---- */

/*
 * A kernel log that is flooded with one error is 17 times its gzip file and 29 times its xz file.
 * What is below `always` is read quickly, however it is packed.
 */
enum { MOST_TIMES = 50 };
static const size_t always = (size_t)32 << 20, never = (size_t)2 << 30;

struct archive_budget archive_budget(const char *path, int fd)
{
	struct stat st;
	size_t packed = fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : 0;
	size_t total = packed > never / MOST_TIMES ? never : packed * MOST_TIMES;

	total = total > always ? total : always;
	return (struct archive_budget){.path = path, .total = total, .left = total};
}

int archive_budget_use(struct archive_budget *b, size_t n)
{
	if (n > b->left)
		return err_set(
			EFBIG,
			"%s: unpacks to more than %zu MiB%s: unpack it and give the texts in it",
			b->path, b->total >> 20, b->total < never ? ", far more than logs do" : "");
	b->left -= n;
	return 0;
}

int archive_skip(const struct archive_api *api, struct archive *a, struct archive_budget *b)
{
	const void *data;
	la_int64_t at;
	size_t n;

	if ((api->format(a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP)
		return 0; /* libarchive seeks to the next member */
	while (api->read_data_block(a, &data, &n, &at) == ARCHIVE_OK) {
		int r = archive_budget_use(b, n);

		if (r < 0)
			return r;
	}
	return 0;
}
