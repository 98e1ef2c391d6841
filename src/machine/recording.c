/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/recording.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/recording_text.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum {
	MAX_MEMBERS = 64,
	MAX_BASES = 8,
};

/* Names that a recording's members may have; anything else in the folder or archive is ignored. */
static bool is_member(const char *name)
{
	return text_ends_with(name, ".txt") || text_ends_with(name, ".json");
}

static int add_member(struct source *map, const char *name, const char *text, size_t size,
		      const char *file)
{
	if (strcmp(name, "machine.txt") == 0)
		return recording_parse(text, size, file, map);
	if (strcmp(name, "config-space.txt") == 0)
		return recording_parse_config_space(text, size, file, map);
	source_put_file(map, name, text, size);
	return 0;
}

/* ---- folders ---- */

static int read_file(const char *path, char **ret, size_t *ret_size)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(EINVAL, "%s: is no regular file", path);
	r = fd_read_all(fd, SOURCE_MAX_FILE, ret, ret_size);
	if (r == -EFBIG)
		return err_set(EFBIG, "%s: is larger than 16 MiB", path);
	return r < 0 ? err_sys(-r, "%s", path) : 0;
}

static int load_folder(struct source *map, const char *folder, unsigned depth);

static int load_base(struct source *map, const char *folder, const char *text, unsigned depth)
{
	AUTO_FREE char *path = NULL;
	char base[PATH_MAX];
	int r;

	if (!recording_base(text, base, sizeof(base)))
		return 0;
	path = xprintf("%s/%s", folder, base);
	if (depth >= MAX_BASES)
		return err_set(ELOOP, "%s/machine.txt: its bases lead more than %d deep, or round",
			       folder, MAX_BASES);
	r = load_folder(map, path, depth + 1);
	return r < 0 ? err_wrap(r, "%s/machine.txt: base %s", folder, base) : 0;
}

/* machine.txt comes first: its base must be there before anything replaces it. */
static int load_folder(struct source *map, const char *folder, unsigned depth)
{
	AUTO_FREE char *main_path = xprintf("%s/machine.txt", folder), *text = NULL;
	struct dirent **names;
	size_t size = 0;
	int n, r = read_file(main_path, &text, &size);

	if (r == 0)
		r = load_base(map, folder, text, depth);
	if (r == 0)
		r = recording_parse(text, size, main_path, map);
	if (r < 0)
		return r;
	n = scandir(folder, &names, NULL, alphasort);
	if (n < 0)
		return err_sys(errno, "%s", folder);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;

		if (r == 0 && is_member(name) && strcmp(name, "machine.txt") != 0) {
			AUTO_FREE char *path = xprintf("%s/%s", folder, name), *data = NULL;

			r = read_file(path, &data, &size);
			if (r == 0)
				r = add_member(map, name, data, size, path);
		}
		free(names[i]);
	}
	free(names);
	return r;
}

static bool has(const char *folder, const char *name)
{
	AUTO_FREE char *path = xprintf("%s/%s", folder, name);

	return access(path, F_OK) == 0;
}

static int open_folder(const char *path, struct source **ret)
{
	struct source *map;
	int r;

	if (!has(path, "machine.txt") && (has(path, "sys") || has(path, "proc")))
		return source_open_root(path, NULL, NULL, ret);
	if (!has(path, "machine.txt"))
		return err_set(EINVAL, "%s: is no recording: neither machine.txt nor sys/ is in it",
			       path);
	map = source_new_map(path);
	r = load_folder(map, path, 0);
	if (r < 0)
		source_free(map);
	else
		*ret = map;
	return r;
}

/* ---- archives ---- */

static void cleanup_reader(struct archive **a)
{
	archive_read_free(*a);
}

static int archive_error(struct archive *a, const char *path)
{
	const char *text = archive_error_string(a);

	return err_set(EINVAL, "%s: %s", path, text ? text : "cannot be read as an archive");
}

static int read_member(struct archive *a, const char *path, const char *name, char **ret,
		       size_t *ret_size)
{
	AUTO_STRBUF struct strbuf data = {0};

	for (;;) {
		char buf[16384];
		la_ssize_t n = archive_read_data(a, buf, sizeof(buf));

		if (n < 0)
			return archive_error(a, path);
		if (n == 0)
			break;
		strbuf_add(&data, buf, (size_t)n);
		if (data.len > SOURCE_MAX_FILE)
			return err_set(EFBIG, "%s: member %s is larger than 16 MiB", path, name);
	}
	*ret_size = data.len;
	strbuf_add(&data, "", 0);
	*ret = TAKE_PTR(data.text);
	return 0;
}

/* Members may lie in one folder: "my-machine/machine.txt". */
static int load_member(struct archive *a, struct archive_entry *e, const char *path,
		       struct source *map, bool *ret_has_main)
{
	const char *full = archive_entry_pathname(e), *slash, *name;
	AUTO_FREE char *text = NULL, *file = NULL;
	size_t size = 0;
	int r;

	slash = full ? strrchr(full, '/') : NULL;
	name = slash ? slash + 1 : full;
	if (!name || archive_entry_filetype(e) != AE_IFREG || !is_member(name))
		return 0;
	r = read_member(a, path, name, &text, &size);
	if (r < 0)
		return r;
	file = xprintf("%s:%s", path, name);
	if (strcmp(name, "machine.txt") == 0) {
		char base[PATH_MAX];

		if (recording_base(text, base, sizeof(base)))
			return err_set(EINVAL, "%s: only a folder can have a base", file);
		*ret_has_main = true;
	}
	return add_member(map, name, text, size, file);
}

static int load_archive(struct archive *a, const char *path, struct source *map)
{
	bool has_main = false;
	struct archive_entry *e;
	unsigned members = 0;
	int r;

	while ((r = archive_read_next_header(a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
		if (++members > MAX_MEMBERS)
			return err_set(E2BIG,
				       "%s: has more than %d members: no recording of onehop's",
				       path, MAX_MEMBERS);
		r = load_member(a, e, path, map, &has_main);
		if (r < 0)
			return r;
	}
	if (r != ARCHIVE_EOF)
		return archive_error(a, path);
	if (!has_main)
		return err_set(EINVAL, "%s: is no recording: no machine.txt is in it", path);
	return 0;
}

static int open_archive(const char *path, struct source **ret)
{
	CLEANUP(cleanup_reader) struct archive *a = archive_read_new();
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct source *map;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(EINVAL, "%s: is neither a file nor a folder", path);
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_bzip2(a);
	archive_read_support_filter_xz(a);
	archive_read_support_filter_zstd(a);
	archive_read_support_format_tar(a);
	archive_read_support_format_zip(a);
	if (archive_read_open_fd(a, fd, 65536) != ARCHIVE_OK)
		return archive_error(a, path);
	map = source_new_map(path);
	r = load_archive(a, path, map);
	if (r < 0)
		source_free(map);
	else
		*ret = map;
	return r;
}

int recording_open(const char *path, struct source **ret)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(errno, "%s", path);
	return S_ISDIR(st.st_mode) ? open_folder(path, ret) : open_archive(path, ret);
}

/* ---- saving ---- */

/* Where members go. */
struct sink {
	int (*add)(struct sink *s, const char *name, const char *data, size_t size);
	const char *path;
	struct archive *archive;
};

static int add_to_folder(struct sink *s, const char *name, const char *data, size_t size)
{
	AUTO_FREE char *path = xprintf("%s/%s", s->path, name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_sys(errno, "%s", path);
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0)
			return err_sys(errno, "%s", path);
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

static int add_to_archive(struct sink *s, const char *name, const char *data, size_t size)
{
	struct archive_entry *e = archive_entry_new();
	int r = 0;

	archive_entry_set_pathname(e, name);
	archive_entry_set_size(e, (la_int64_t)size);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0644);
	if (archive_write_header(s->archive, e) != ARCHIVE_OK ||
	    archive_write_data(s->archive, data, size) < 0)
		r = archive_error(s->archive, s->path);
	archive_entry_free(e);
	return r;
}

/* Members in a fixed order: machine.txt, config-space.txt, then the virtual files. */
static int write_members(struct source *map, struct sink *sink)
{
	AUTO_STRBUF struct strbuf config = {0}, text = {0};
	AUTO_FREE struct source_entry *entries = NULL;
	AUTO_FREE struct source_entry *small = NULL;
	size_t n, small_n = 0;
	int r;

	entries = source_entries(map, &n);
	small = xcalloc(n, sizeof(*small));
	for (size_t i = 0; i < n; i++) {
		if (recording_is_config(&entries[i]))
			recording_write_config(&entries[i], &config);
		else if (entries[i].error || strchr(entries[i].path, '/'))
			small[small_n++] = entries[i];
	}
	recording_write(small, small_n, &text);
	r = sink->add(sink, "machine.txt", strbuf_str(&text), text.len);
	if (r == 0 && config.len)
		r = sink->add(sink, "config-space.txt", strbuf_str(&config), config.len);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!entries[i].error && !strchr(entries[i].path, '/'))
			r = sink->add(sink, entries[i].path, entries[i].data, entries[i].size);
	return r;
}

static int save_folder(struct source *map, const char *path)
{
	struct sink sink = {.add = add_to_folder, .path = path};

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_sys(errno, "%s", path);
	return write_members(map, &sink);
}

static const struct {
	const char *suffix;
	int (*add_filter)(struct archive *a);
} compressions[] = {
	{".tar.gz", archive_write_add_filter_gzip},  {".tgz", archive_write_add_filter_gzip},
	{".tar.zst", archive_write_add_filter_zstd}, {".tar.xz", archive_write_add_filter_xz},
	{".tar", archive_write_add_filter_none},
};

static int add_filter(struct archive *a, const char *path)
{
	for (size_t i = 0; i < sizeof(compressions) / sizeof(*compressions); i++)
		if (text_ends_with(path, compressions[i].suffix))
			return compressions[i].add_filter(a) < 0 ? archive_error(a, path) : 0;
	return err_set(EINVAL,
		       "%s: a recording's name ends in .tar.gz, .tar.zst, .tar.xz, .tar or /",
		       path);
}

static void cleanup_writer(struct archive **a)
{
	archive_write_free(*a);
}

static int write_archive(struct source *map, const char *path, int fd)
{
	CLEANUP(cleanup_writer) struct archive *a = archive_write_new();
	struct sink sink = {.add = add_to_archive, .path = path, .archive = a};
	int r;

	archive_write_set_format_pax_restricted(a);
	r = add_filter(a, path);
	if (r < 0)
		return r;
	archive_write_set_options(a, "gzip:!timestamp"); /* refused by the others, which is fine */
	if (archive_write_open_fd(a, fd) != ARCHIVE_OK)
		return archive_error(a, path);
	r = write_members(map, &sink);
	if (r == 0 && archive_write_close(a) != ARCHIVE_OK)
		r = archive_error(a, path);
	return r;
}

static int save_archive(struct source *map, const char *path)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r;

	if (fd < 0)
		return err_sys(errno, "%s", path);
	r = write_archive(map, path, fd);
	if (r < 0)
		unlink(path);
	return r;
}

int recording_save(struct source *map, const char *path, const char *note)
{
	struct stat st;

	if (note && *note)
		source_put_file(map, "note.txt", note, strlen(note));
	if (text_ends_with(path, "/") || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return save_folder(map, path);
	return save_archive(map, path);
}
