/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int base_of(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	if (*s == '-')
		s++;
	return s[0] == '0' && (s[1] == 'x' || s[1] == 'X') ? 16 : 10;
}

static int check_end(const char *s, const char *end)
{
	if (end == s)
		return -EINVAL;
	while (isspace((unsigned char)*end))
		end++;
	return *end ? -EINVAL : 0;
}

int text_to_u64(const char *s, uint64_t *ret)
{
	unsigned long long v;
	char *end;
	int r;

	if (strchr(s, '-'))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, base_of(s));
	r = check_end(s, end);
	if (r < 0)
		return r;
	if (errno)
		return -errno;
	*ret = v;
	return 0;
}

int text_to_count(const char *s, uint64_t *ret)
{
	return s[strspn(s, "0123456789")] ? -EINVAL : text_to_u64(s, ret);
}

int text_to_i64(const char *s, int64_t *ret)
{
	long long v;
	char *end;
	int r;

	errno = 0;
	v = strtoll(s, &end, base_of(s));
	r = check_end(s, end);
	if (r < 0)
		return r;
	if (errno)
		return -errno;
	*ret = v;
	return 0;
}

bool text_starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool text_starts_with_any(const char *s, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text_starts_with(s, prefixes[i]))
			return true;
	return false;
}

const char *text_plural(size_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

const char *text_all(size_t n, char buf[static TEXT_ALL_SIZE])
{
	if (n == 2)
		return "both";
	snprintf(buf, TEXT_ALL_SIZE, "all %zu", n);
	return buf;
}

bool text_ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n >= k && strcmp(s + n - k, suffix) == 0;
}

char *text_trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

bool text_next_line(const char **line, size_t *n, const char *text)
{
	const char *start = *line ? *line + *n : text;
	const char *end;

	if (*line && *start == '\n')
		start++;
	if (!*start)
		return false;
	end = strchr(start, '\n');
	*line = start;
	*n = end ? (size_t)(end - start) : strlen(start);
	return true;
}

void text_copy(char *buf, size_t size, const char *s, size_t n)
{
	if (n >= size)
		n = size - 1;
	memcpy(buf, s, n);
	buf[n] = '\0';
}

void text_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

void text_last_line(const char *text, char *buf, size_t size)
{
	const char *line = NULL;
	size_t n;

	buf[0] = '\0';
	while (text_next_line(&line, &n, text)) {
		size_t first = 0, end = n;

		while (end && strchr(" \t\r", line[end - 1]))
			end--;
		while (first < end && strchr(" \t\r", line[first]))
			first++;
		if (first < end)
			text_copy(buf, size, line + first, end - first);
	}
	text_printable(buf);
}

bool text_list_has(const char *list, const char *separator, const char *item, size_t n)
{
	size_t gap = strlen(separator);

	while (list) {
		const char *end = strstr(list, separator);
		size_t length = end ? (size_t)(end - list) : strlen(list);

		if (length == n && memcmp(list, item, n) == 0)
			return true;
		list = end ? end + gap : NULL;
	}
	return false;
}

bool text_has_word(const char *list, const char *word)
{
	size_t k = strlen(word);
	bool prefix = k && word[k - 1] == '=';
	const char *p = list;

	while (*p) {
		size_t n;

		p += strspn(p, " \t\n");
		n = strcspn(p, " \t\n");
		if (prefix ? n >= k && strncmp(p, word, k) == 0
			   : n == k && strncmp(p, word, k) == 0)
			return true;
		p += n;
	}
	return false;
}

bool text_after(const char *text, const char *prefix, const char **ret, size_t *ret_n)
{
	size_t k = strlen(prefix), n;
	const char *line = NULL;

	while (text_next_line(&line, &n, text)) {
		const char *rest = line + k;

		if (n < k || memcmp(line, prefix, k) != 0)
			continue;
		n -= k;
		while (n && isspace((unsigned char)*rest)) {
			rest++;
			n--;
		}
		while (n && isspace((unsigned char)rest[n - 1]))
			n--;
		*ret = rest;
		*ret_n = n;
		return true;
	}
	return false;
}

const char *bytes_text(uint64_t bytes, char buf[static BYTES_TEXT_SIZE])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;

	while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, BYTES_TEXT_SIZE, "%" PRIu64 " %s", bytes, units[unit]);
	return buf;
}

/* ---- nearest name ---- */

/* Longer words are not typing errors. */
#define MAX_NAME 32

/* Edits (insert, delete, replace, swap two neighbours) from a to b. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][MAX_NAME + 1], la = strlen(a), lb = strlen(b);

	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *second = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t replace = above[j - 1] + (a[i - 1] != b[j - 1]);
			size_t edit = (above[j] < row[j - 1] ? above[j] : row[j - 1]) + 1;

			row[j] = replace < edit ? replace : edit;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    second[j - 2] + 1 < row[j])
				row[j] = second[j - 2] + 1;
		}
	}
	return rows[la % 3][lb];
}

const char *nearest_name(const char *word, const char *const *names, size_t n)
{
	/*
	 * Below this many edits: one in a word of four letters, two in one of six, three in one of
	 * nine.
	 */
	size_t best = strlen(word) > 3 ? strlen(word) / 3 + 1 : 2;
	const char *nearest = NULL;

	if (strlen(word) < 2 || strlen(word) > MAX_NAME)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t d;

		if (!names[i] || strlen(names[i]) > MAX_NAME)
			continue;
		d = text_starts_with(names[i], word) ? 1 : distance(word, names[i]);
		if (d < best) {
			best = d;
			nearest = names[i];
		}
	}
	return nearest;
}

uint64_t text_hash(uint64_t before, const void *bytes, size_t n)
{
	const unsigned char *s = bytes;

	for (size_t i = 0; i < n; i++)
		before = (before ^ s[i]) * UINT64_C(0x100000001b3);
	return before;
}
