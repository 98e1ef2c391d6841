/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/module_file.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
	COMPRESSED_MAX = 40 << 20, /* the largest that takes less than about a second */
	IMAGE_MAX = 512 << 20,
};

/* ---- ELF ---- */

static bool is_key_of_interest(const char *s, size_t n)
{
	static const char *const keys[] = {"name",    "version",  "license",
					   "depends", "vermagic", "srcversion"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		size_t k = strlen(keys[i]);

		if (n > k && s[k] == '=' && memcmp(s, keys[i], k) == 0)
			return true;
	}
	return false;
}

/* "key=value" strings, each ended by a NUL. */
static void add_strings(const char *s, size_t size, struct strbuf *out)
{
	const char *end = s + size;

	while (s < end) {
		size_t n = strnlen(s, (size_t)(end - s));

		if (is_key_of_interest(s, n)) {
			for (size_t i = 0; i < n; i++)
				strbuf_putc(out, s[i] == '\n' ? ' ' : s[i]);
			strbuf_putc(out, '\n');
		}
		s += n + 1;
	}
}

static int add_modinfo(Elf *elf, struct strbuf *out)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names) < 0)
		return -EINVAL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		Elf_Data *data;
		GElf_Shdr head;

		if (!gelf_getshdr(section, &head))
			continue;
		name = elf_strptr(elf, names, head.sh_name);
		if (!name || strcmp(name, ".modinfo") != 0 || head.sh_type == SHT_NOBITS)
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf)
			return -EINVAL;
		add_strings(data->d_buf, data->d_size, out);
		return 0;
	}
	return -EINVAL;
}

int module_file_parse(void *image, size_t size, struct strbuf *out)
{
	Elf *elf;
	int r;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -EINVAL;
	elf = elf_memory(image, size);
	if (!elf)
		return -EINVAL;
	r = add_modinfo(elf, out);
	elf_end(elf);
	return r;
}

/* ---- files ---- */

static int parse_plain(int fd, size_t size, struct strbuf *out)
{
	void *image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	int r;

	if (image == MAP_FAILED)
		return -errno;
	r = module_file_parse(image, size, out);
	munmap(image, size);
	return r;
}

static int unpack(struct archive *a, struct strbuf *image)
{
	struct archive_entry *entry;
	const void *block;
	la_int64_t offset;
	size_t n;
	int r;

	if (archive_read_next_header(a, &entry) != ARCHIVE_OK)
		return -EINVAL;
	while ((r = archive_read_data_block(a, &block, &n, &offset)) == ARCHIVE_OK) {
		if (image->len + n > IMAGE_MAX)
			return -EFBIG;
		strbuf_add(image, block, n);
	}
	return r == ARCHIVE_EOF && image->len ? 0 : -EINVAL;
}

static int parse_compressed(int fd, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf image = {0};
	struct archive *a = archive_read_new();
	int r = -EINVAL;

	if (!a)
		return -ENOMEM;
	archive_read_support_filter_xz(a);
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_zstd(a);
	archive_read_support_format_raw(a);
	if (archive_read_open_fd(a, fd, 65536) == ARCHIVE_OK)
		r = unpack(a, &image);
	archive_read_free(a);
	return r < 0 ? r : module_file_parse(image.text, image.len, out);
}

int module_file_read(int dir_fd, const char *path, struct strbuf *out)
{
	AUTO_CLOSE int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	if (text_ends_with(path, ".ko"))
		return st.st_size > IMAGE_MAX ? -EFBIG : parse_plain(fd, (size_t)st.st_size, out);
	return st.st_size > COMPRESSED_MAX ? -EFBIG : parse_compressed(fd, out);
}
