/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/unpack.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "machine/archive_api.h"
#include "unlock/source_hash.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct unpacking {
	struct archive_api api;
	struct archive *archive;
	const char *name; /* for messages */
	const struct tree *into;
	size_t entries, bytes;
};

static int refuse(const struct unpacking *u, const char *path, const char *why)
{
	AUTO_FREE char *shown = xstrdup(path);

	for (char *p = shown; *p; p++)
		*p = (unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p;
	return err_set(EINVAL, "%s: '%s' %s", u->name, shown, why);
}

static int failed(const struct unpacking *u)
{
	const char *why = u->api.error_string(u->archive);

	return err_set(EINVAL, "%s is not a whole archive: %s", u->name, why ? why : "no reason");
}

/* All of one file; data past the limits is not read. The caller frees. */
static int read_file(struct unpacking *u, const char *path, struct strbuf *ret)
{
	char buf[64 << 10];
	ssize_t n;

	while ((n = u->api.read_data(u->archive, buf, sizeof(buf))) > 0) {
		u->bytes += (size_t)n;
		if (ret->len + (size_t)n > SOURCE_FILE_MAX || u->bytes > SOURCE_BYTES_MAX)
			return refuse(u, path, "is too large");
		strbuf_add(ret, buf, (size_t)n);
	}
	return n < 0 ? failed(u) : 0;
}

/* The tree was empty: a file in place of a folder, or the other way round, is the archive's doing. */
static bool is_of_archive(int r)
{
	return r == -ENOTDIR || r == -EISDIR || r == -ELOOP || r == -ENAMETOOLONG;
}

static int write_file(struct unpacking *u, struct archive_entry *e, const char *path)
{
	AUTO_STRBUF struct strbuf data = {0};
	struct tree_file file = {
		.mode = u->api.entry_perm(e) & S_IXUSR ? 0755 : 0644,
		.uid = geteuid(),
		.gid = getegid(),
	};
	int r = read_file(u, path, &data);

	if (r < 0)
		return r;
	file.data = data.text;
	file.size = data.len;
	r = tree_stage(u->into, path, &file);
	return is_of_archive(r) ? refuse(u, path, "conflicts with another path in the archive") : r;
}

/* "open-gpu-kernel-modules-595.45.04/src/x.c" is src/x.c. NULL: nothing is behind the first folder. */
static const char *behind_folder(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash && slash > path && slash[1] ? slash + 1 : NULL;
}

static int take_entry(struct unpacking *u, struct archive_entry *e)
{
	const char *path = u->api.entry_pathname(e), *below = path ? behind_folder(path) : NULL;
	unsigned type = u->api.entry_filetype(e);

	if (!path)
		return refuse(u, "", "has no name that can be read");
	if (u->entries++ == SOURCE_FILES_MAX)
		return refuse(u, path, "is one entry too many");
	if (type == AE_IFDIR)
		return 0; /* made with the files in it */
	if (type != AE_IFREG || u->api.entry_hardlink(e))
		return refuse(u, path, "is not a regular file");
	if (!below || !source_path_is_plain(below) || strncmp(path, "../", strlen("../")) == 0)
		return refuse(u, path, "is not the path of a file in a release");
	return write_file(u, e, below);
}

static int take_all(struct unpacking *u)
{
	struct archive_entry *e;
	int r = 0, status = ARCHIVE_OK;

	/* Asking for the next entry unpacks the rest of this one: not of one that was refused. */
	while (r == 0 && (status = u->api.read_next_header(u->archive, &e)) == ARCHIVE_OK)
		r = take_entry(u, e);
	if (r < 0)
		return r;
	return status == ARCHIVE_EOF ? 0 : failed(u);
}

int archive_unpack(int fd, const char *name, const struct tree *into)
{
	struct unpacking u = {.name = name, .into = into};
	int r = archive_api_load(&u.api);

	if (r < 0)
		return r;
	u.archive = u.api.read_new();
	u.api.read_filter_gzip(u.archive);
	u.api.read_format_tar(u.archive);
	r = u.api.read_open_fd(u.archive, fd, 64 << 10) == ARCHIVE_OK ? take_all(&u) : failed(&u);
	u.api.read_free(u.archive);
	return r;
}
