/* SPDX-License-Identifier: Apache-2.0 */
#include "recording/recording.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/archive_api.h"
#include "machine/gzip_stream.h"
#include "recording/recording_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define WANTED "a recording of onehop"

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
	AUTO_CLOSE int fd = file_open(path);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return file_unreadable(errno, path);
	if (!S_ISREG(st.st_mode))
		return err_set(EINVAL, "%s: not a regular file", path);
	r = fd_read_all(fd, SOURCE_MAX_FILE, ret, ret_size);
	if (r == -EFBIG)
		return err_set(EFBIG, "%s: is larger than 16 MiB", path);
	return r < 0 ? file_unreadable(-r, path) : 0;
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
		return err_set(EINVAL, "%s: a folder without machine.txt and without sys/, not %s",
			       path, WANTED);
	map = source_new_map(path);
	r = load_folder(map, path, 0);
	if (r < 0)
		source_free(map);
	else
		*ret = map;
	return r;
}

/* ---- archives ---- */

/* An archive that is open for reading or writing. */
struct packed {
	struct archive_api api;
	struct archive *archive;
	const char *path;
	struct archive_budget budget; /* for reading */
	struct gzip_stream *gzip;     /* for reading; NULL: libarchive reads the file itself */
};

static void cleanup_reader(struct packed *p)
{
	if (p->archive)
		p->api.read_free(p->archive);
	gzip_stream_free(p->gzip);
}

static const char *damage_of(const struct packed *p)
{
	return p->gzip ? gzip_stream_damage(p->gzip) : NULL;
}

static int archive_error(const struct packed *p)
{
	const char *text = damage_of(p) ? damage_of(p) : p->api.error_string(p->archive);

	return err_set(EINVAL, "%s: %s", p->path, text ? text : "cannot be read as an archive");
}

static int read_member(struct packed *p, const char *name, char **ret, size_t *ret_size)
{
	AUTO_STRBUF struct strbuf data = {0};

	for (;;) {
		char buf[16384];
		la_ssize_t n = p->api.read_data(p->archive, buf, sizeof(buf));

		if (n < 0)
			return archive_error(p);
		if (n == 0)
			break;
		strbuf_add(&data, buf, (size_t)n);
		if (data.len > SOURCE_MAX_FILE)
			return err_set(EFBIG, "%s: member %s is larger than 16 MiB", p->path, name);
		if (archive_budget_use(&p->budget, (size_t)n) < 0)
			return -EFBIG;
	}
	*ret_size = data.len;
	strbuf_add(&data, "", 0);
	*ret = TAKE_PTR(data.text);
	return 0;
}

/* Members may lie in one folder: "my-machine/machine.txt". */
static int load_member(struct packed *p, struct archive_entry *e, struct source *map,
		       bool *ret_has_main)
{
	const char *full = p->api.entry_pathname(e), *slash, *name;
	AUTO_FREE char *text = NULL, *file = NULL;
	size_t size = 0;
	int r;

	slash = full ? strrchr(full, '/') : NULL;
	name = slash ? slash + 1 : full;
	if (!name || p->api.entry_filetype(e) != AE_IFREG || !is_member(name))
		return archive_skip(&p->api, p->archive, &p->budget);
	r = read_member(p, name, &text, &size);
	if (r < 0)
		return r;
	file = xprintf("%s:%s", p->path, name);
	if (strcmp(name, "machine.txt") == 0) {
		char base[PATH_MAX];

		if (recording_base(text, base, sizeof(base)))
			return err_set(EINVAL, "%s: only a folder can have a base", file);
		*ret_has_main = true;
	}
	return add_member(map, name, text, size, file);
}

static int open_reader(struct packed *p, int fd)
{
	int r = archive_read_packed(&p->api, fd, false, &p->archive, &p->gzip);

	if (r == ARCHIVE_OK)
		return 0;
	/* libarchive's "Unrecognized archive format" */
	return p->api.error_number(p->archive) == EILSEQ && !damage_of(p)
		       ? file_refuse(fd, p->path, WANTED)
		       : archive_error(p);
}

static int load_archive(struct packed *p, struct source *map)
{
	bool has_main = false;
	struct archive_entry *e;
	unsigned members = 0;
	int r;

	while ((r = p->api.read_next_header(p->archive, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
		if (++members > MAX_MEMBERS)
			return err_set(E2BIG,
				       "%s: has more than %d members: no recording of onehop's",
				       p->path, MAX_MEMBERS);
		r = load_member(p, e, map, &has_main);
		if (r < 0)
			return r;
	}
	if (r != ARCHIVE_EOF)
		return archive_error(p);
	if (!has_main)
		return err_set(EINVAL, "%s: an archive without machine.txt, not %s", p->path,
			       WANTED);
	return 0;
}

/*
 * Damage explains whatever else is wrong, and a damaged recording would state other facts. The
 * check sum is behind the end of the tar, where libarchive stops. `r`: how reading it ended, which
 * is returned if there is none.
 */
static int check_gzip(struct packed *p, int r)
{
	const void *data;
	size_t n;

	if (!p->gzip || r == -EFBIG)
		return r;
	while ((n = gzip_stream_read(p->gzip, &data)) > 0)
		if (archive_budget_use(&p->budget, n) < 0)
			return -EFBIG;
	return damage_of(p) ? archive_error(p) : r;
}

static int open_archive(const char *path, struct source **ret)
{
	CLEANUP(cleanup_reader) struct packed p = {.path = path};
	AUTO_CLOSE int fd = file_open(path);
	struct source *map;
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return file_unreadable(errno, path);
	if (!S_ISREG(st.st_mode))
		return err_set(EINVAL, "%s: neither a file nor a folder", path);
	r = archive_api_load(&p.api);
	if (r < 0)
		return r;
	p.budget = archive_budget(path, fd);
	r = open_reader(&p, fd);
	if (r < 0)
		return r;
	map = source_new_map(path);
	r = check_gzip(&p, load_archive(&p, map));
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
		return file_unreadable(errno, path);
	return S_ISDIR(st.st_mode) ? open_folder(path, ret) : open_archive(path, ret);
}

/* ---- saving ---- */

/* Where members go. */
struct sink {
	int (*add)(struct sink *s, const char *name, const char *data, size_t size);
	const char *path;
	const struct packed *packed; /* NULL: a folder */
};

/* After open() or mkdir(). */
static int cannot_create(const char *path)
{
	if (errno == EEXIST)
		return err_set(EEXIST, "%s exists already; choose another name", path);
	return err_sys(errno, "%s", path);
}

static int add_to_folder(struct sink *s, const char *name, const char *data, size_t size)
{
	AUTO_FREE char *path = xprintf("%s/%s", s->path, name);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return cannot_create(path);
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
	const struct packed *p = s->packed;
	struct archive_entry *e = p->api.entry_new();
	int r = 0;

	p->api.entry_set_pathname(e, name);
	p->api.entry_set_size(e, (la_int64_t)size);
	p->api.entry_set_filetype(e, AE_IFREG);
	p->api.entry_set_perm(e, 0644);
	if (p->api.write_header(p->archive, e) != ARCHIVE_OK ||
	    p->api.write_data(p->archive, data, size) < 0)
		r = archive_error(p);
	p->api.entry_free(e);
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
	size_t add_filter; /* which function of struct archive_api */
} compressions[] = {
	{".tar.gz", offsetof(struct archive_api, write_filter_gzip)},
	{".tgz", offsetof(struct archive_api, write_filter_gzip)},
	{".tar.zst", offsetof(struct archive_api, write_filter_zstd)},
	{".tar.xz", offsetof(struct archive_api, write_filter_xz)},
	{".tar", offsetof(struct archive_api, write_filter_none)},
};

static int add_filter(const struct packed *p)
{
	int (*add)(struct archive * a);

	for (size_t i = 0; i < sizeof(compressions) / sizeof(*compressions); i++) {
		if (!text_ends_with(p->path, compressions[i].suffix))
			continue;
		memcpy(&add, (const char *)&p->api + compressions[i].add_filter, sizeof(add));
		return add(p->archive) < 0 ? archive_error(p) : 0;
	}
	return err_set(EINVAL,
		       "%s: a recording's name ends in .tar.gz, .tar.zst, .tar.xz, .tar or /",
		       p->path);
}

static void cleanup_writer(struct packed *p)
{
	if (p->archive)
		p->api.write_free(p->archive);
}

static int write_archive(struct source *map, const char *path, int fd)
{
	CLEANUP(cleanup_writer) struct packed p = {.path = path};
	struct sink sink = {.add = add_to_archive, .path = path, .packed = &p};
	int r = archive_api_load(&p.api);

	if (r < 0)
		return r;
	p.archive = p.api.write_new();
	p.api.write_format_pax(p.archive);
	r = add_filter(&p);
	if (r < 0)
		return r;
	/* refused by the others, which is fine */
	p.api.write_set_options(p.archive, "gzip:!timestamp");
	if (p.api.write_open_fd(p.archive, fd) != ARCHIVE_OK)
		return archive_error(&p);
	r = write_members(map, &sink);
	if (r == 0 && p.api.write_close(p.archive) != ARCHIVE_OK)
		r = archive_error(&p);
	return r;
}

static int save_archive(struct source *map, const char *path)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r;

	if (fd < 0)
		return cannot_create(path);
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
