/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/text.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "ingest/nccl_log.h"
#include "ingest/nccl_tests.h"
#include "ingest/p2p_test.h"
#include "ingest/pasted.h"
#include "ingest/result_json.h"

#include <errno.h>
#include <string.h>

/* A log may hold the table of the run that wrote it, so the table comes first. */
const struct text_kind text_kinds[] = {
	{"JSON", "onehop compare", result_json_recognise, result_json_parse},
	{"the output of p2pBandwidthLatencyTest", "onehop compare", p2p_test_recognise,
	 p2p_test_parse},
	{"the output of nccl-tests", "onehop compare", nccl_tests_recognise, nccl_tests_parse},
	{"a debug log of NCCL", "onehop log", nccl_log_recognise, NULL},
	{"the output of lspci, nvidia-smi or the like", "onehop check --from", pasted_recognise,
	 NULL},
	{0},
};

int text_refuse(const char *text, size_t size, const char *path, const char *wanted)
{
	for (const struct text_kind *k = text_kinds; k->what; k++) {
		if (k->recognise(text, size))
			return err_set(EINVAL, "%s: is %s, not %s: use %s", path, k->what, wanted,
				       k->use);
	}
	return content_refuse(path, text, size, wanted);
}

/* ---- reading ---- */

static int read_fd(int fd, const char *path, size_t max, struct strbuf *ret)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		strbuf_add(ret, buf, (size_t)n);
		if (ret->len > max)
			return err_set(EFBIG, "%s: is larger than %zu MiB", path, max >> 20);
	}
	return n < 0 ? file_unreadable(errno, path) : 0;
}

static bool is_standard_input(const char *path)
{
	return strcmp(path, "-") == 0;
}

const char *text_file_name(const char *path)
{
	return is_standard_input(path) ? "standard input" : path;
}

/* Standard input can be read only once, but diagnosis and plan both need its content. */
static int read_standard_input(size_t max, struct strbuf *ret)
{
	static struct strbuf kept;
	int r = read_fd(STDIN_FILENO, text_file_name("-"), max, &kept);

	if (r == 0)
		strbuf_add(ret, strbuf_str(&kept), kept.len);
	return r;
}

int text_read_file(const char *path, size_t max, struct strbuf *ret)
{
	AUTO_CLOSE int fd = -1;

	if (is_standard_input(path))
		return read_standard_input(max, ret);
	fd = file_open(path);
	return fd < 0 ? fd : read_fd(fd, path, max, ret);
}

/* ---- cleaning ---- */

/* The bytes of an escape sequence that starts here: "\033[1;31m"; 0: none does. */
static size_t escape_length(const char *s, const char *end)
{
	const char *p = s;

	if (*p++ != '\033')
		return 0;
	if (p < end && *p == '[')
		for (p++; p < end && (unsigned char)*p < 0x40; p++)
			if (*p == '\n')
				return (size_t)(p - s);
	return (size_t)(p - s) + (p < end && *p != '\n');
}

/* Characters that web pages and word processors use instead of blanks and quotes. */
static const struct {
	const char *bytes, *plain;
} look_alikes[] = {
	{"\xc2\xa0", " "},     /* no-break space */
	{"\xef\xbb\xbf", ""},  /* byte order mark */
	{"\xe2\x80\x8b", ""},  /* zero width space */
	{"\xe2\x80\x98", "'"}, /* quotes */
	{"\xe2\x80\x99", "'"}, {"\xe2\x80\x9c", "\""}, {"\xe2\x80\x9d", "\""},
};

/* The number of bytes at s that are replaced by the plain character *to; 0: none. */
static size_t plain_length(const char *s, const char *end, char **to)
{
	if ((unsigned char)*s < 0xc2)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(look_alikes); i++) {
		size_t n = strlen(look_alikes[i].bytes);

		if ((size_t)(end - s) >= n && memcmp(s, look_alikes[i].bytes, n) == 0) {
			*to = mempcpy(*to, look_alikes[i].plain, strlen(look_alikes[i].plain));
			return n;
		}
	}
	return 0;
}

/* Copies without terminal control sequences; returns the new end. */
static char *clean(const char *text, size_t size, char *to)
{
	const char *end = text + size;

	for (const char *s = text; s < end; s++) {
		size_t n = escape_length(s, end);

		n = n ? n : plain_length(s, end, &to);
		if (n)
			s += n - 1;
		else if (*s == '\r' || *s == '\t')
			*to++ = ' ';
		else if (*s)
			*to++ = *s;
	}
	return to;
}

/* At most: the last line may lack its end. */
static size_t count_lines(const char *s, const char *end)
{
	size_t n = 1;

	while ((s = memchr(s, '\n', (size_t)(end - s)))) {
		n++;
		s++;
	}
	return n;
}

struct text_line *text_lines(struct arena *arena, const char *text, size_t size, size_t *ret_n)
{
	char *copy = arena_alloc(arena, size + 1, 1), *end = clean(text, size, copy);
	struct text_line *lines = arena_alloc(arena, count_lines(copy, end), sizeof(*lines));
	size_t n = 0;

	for (char *s = copy, *next; s < end; s = next) {
		struct text_line *line;
		char *stop = memchr(s, '\n', (size_t)(end - s));

		stop = stop ? stop : end;
		next = stop + 1;
		while (stop > s && stop[-1] == ' ')
			stop--;
		*stop = '\0';
		line = &lines[n++];
		*line = (struct text_line){s, (unsigned)n};
	}
	*ret_n = n;
	return lines;
}
