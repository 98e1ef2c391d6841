/* SPDX-License-Identifier: Apache-2.0 */
/* The section table of a PE image, read piece by piece: an image has hundreds of megabytes. */
#include "machine/boot_image.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* PE format: sizes of headers, and where in them a field is, in bytes. */
enum {
	DOS_SIZE = 64,
	DOS_PE_AT = 60,
	COFF_SIZE = 24, /* with its signature */
	COFF_SECTIONS = 6,
	COFF_OPTIONAL_SIZE = 20,
	SECTION_SIZE = 40,
	SECTION_NAME_SIZE = 8,
	SECTION_USED = 8,
	SECTION_SIZE_IN_FILE = 16,
	SECTION_AT = 20,
};

/* No kernel takes as long a line. */
#define LINE_MAX_BYTES ((uint32_t)64 << 10)

static uint32_t number(const unsigned char *at, unsigned bytes)
{
	uint32_t n = 0;

	for (unsigned i = bytes; i-- > 0;)
		n = n << 8 | at[i];
	return n;
}

/* 1: all of it was read; 0: the file ends before. */
static int read_at(int fd, uint64_t at, void *ret, size_t size)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = pread(fd, (char *)ret + have, size - have, (off_t)(at + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		have += (size_t)n;
	}
	return 1;
}

/* Where the section table is. 1, or as read_at; 0 also if it is another kind of file. */
static int find_sections(int fd, uint64_t *ret_at, unsigned *ret_n)
{
	unsigned char dos[DOS_SIZE], coff[COFF_SIZE];
	uint64_t at;
	int r = read_at(fd, 0, dos, sizeof(dos));

	if (r <= 0 || memcmp(dos, "MZ", 2) != 0)
		return r < 0 ? r : 0;
	at = number(dos + DOS_PE_AT, 4);
	r = read_at(fd, at, coff, sizeof(coff));
	if (r <= 0 || memcmp(coff, "PE\0\0", 4) != 0)
		return r < 0 ? r : 0;
	*ret_at = at + COFF_SIZE + number(coff + COFF_OPTIONAL_SIZE, 2);
	*ret_n = number(coff + COFF_SECTIONS, 2);
	return 1;
}

/* Up to a zero byte; each line break becomes a blank. */
static void add_words(struct strbuf *words, char *text, size_t size)
{
	text[size] = '\0';
	for (char *c = text; *c; c++)
		*c = *c == '\n' || *c == '\r' ? ' ' : *c;
	for (size_t n = strlen(text); n && text[n - 1] == ' ';)
		text[--n] = '\0';
	if (*text)
		strbuf_printf(words, "%s%s", words->len ? " " : "", text);
}

static int read_section(int fd, const unsigned char *section, struct strbuf *words)
{
	const uint32_t used = number(section + SECTION_USED, 4);
	const uint32_t in_file = number(section + SECTION_SIZE_IN_FILE, 4);
	const uint32_t size = used && used < in_file ? used : in_file;
	AUTO_FREE char *text = NULL;
	int r;

	if (memcmp(section, ".cmdline", SECTION_NAME_SIZE) != 0 || size > LINE_MAX_BYTES)
		return 0;
	text = xcalloc((size_t)size + 1, 1);
	r = read_at(fd, number(section + SECTION_AT, 4), text, size);
	if (r > 0)
		add_words(words, text, size);
	return r < 0 ? r : 0;
}

int boot_image_words(int fd, char **ret)
{
	AUTO_STRBUF struct strbuf words = {0};
	uint64_t at = 0;
	unsigned n = 0;
	int r = find_sections(fd, &at, &n);

	*ret = NULL;
	for (unsigned i = 0; r > 0 && i < n; i++) {
		unsigned char section[SECTION_SIZE];
		int read;

		r = read_at(fd, at + (uint64_t)i * SECTION_SIZE, section, sizeof(section));
		read = r > 0 ? read_section(fd, section, &words) : 0;
		r = read < 0 ? read : r;
	}
	if (r >= 0 && words.len)
		*ret = xstrdup(words.text);
	return r < 0 ? r : 0;
}
