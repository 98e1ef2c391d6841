/* SPDX-License-Identifier: Apache-2.0 */
/* What a process may use: df of /dev/shm (coreutils), ulimit -a (bash) and /proc/PID/limits. */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- df ---- */

/*
 * "Filesystem Size Used Avail Use% Mounted on", "Filesystem 1K-blocks Used Available Use% Mounted
 * on"
 */
static bool is_heading(const struct text_line *l)
{
	return text_starts_with(line_text(l), "Filesystem ") && strstr(l->text, "Mounted on");
}

/* "tmpfs            63G  1.2M   63G   1% /dev/shm": size and free space as printed. */
static bool read_row(const struct text_line *l, char size[24], char avail[24])
{
	const char *s = line_text(l);
	int end = 0;

	return sscanf(s, "%*63s %23[0-9.KMGT] %*23[0-9.KMGT] %23[0-9.KMGT] %*3u%% /dev/shm%n", size,
		      avail, &end) == 2 &&
	       end && !s[end + (int)strspn(s + end, " ")];
}

/* A row of another file system. */
static bool is_row(const struct text_line *l)
{
	return strstr(l->text, "% /") != NULL;
}

/* Without a heading the numbers need their units. */
size_t df_match(struct part *p, const struct text_line *lines, size_t n)
{
	const bool headed = is_heading(&lines[0]);
	char size[24], avail[24];
	bool found = false;
	size_t end = headed;

	(void)p;
	for (; end < n && (is_row(&lines[end])); end++) {
		found |= read_row(&lines[end], size, avail);
		if (!headed)
			return found && isalpha((unsigned char)size[strlen(size) - 1]);
	}
	return found ? end : 0;
}

/* "64M", "1.2G"; a number alone is in units of `block`. -1: it has neither. */
static int64_t bytes_of(const char *s, int64_t block)
{
	static const char units[] = "KMGT";
	char *end;
	double v = strtod(s, &end);
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (end == s || v < 0 || v > 1e15 || (*end && (!unit || end[1])))
		return -1;
	for (const char *u = units; unit && u <= unit; u++)
		v *= 1024;
	if (!unit && v > 0 && !block)
		return -1;
	return (int64_t)(unit ? v : v * (double)block);
}

static void claim_bytes_of(const struct part *p, struct claims *c, const struct text_line *l,
			   const char *key, int64_t bytes)
{
	char line[48];

	if (bytes < 0)
		return;
	snprintf(line, sizeof(line), "%s %" PRId64, key, bytes);
	claim_line(c, CLAIM_AT(p, l), line, "process.txt");
}

void df_decode(const struct part *p, struct claims *c)
{
	const int64_t block = strstr(p->lines[0].text, " 1K-blocks ") ? 1024 : 0;
	char size[24], avail[24];

	for (size_t i = 0; i < p->n; i++) {
		if (!read_row(&p->lines[i], size, avail))
			continue;
		claim_bytes_of(p, c, &p->lines[i], "shm_bytes", bytes_of(size, block));
		claim_bytes_of(p, c, &p->lines[i], "shm_free_bytes", bytes_of(avail, block));
		return;
	}
}

/* ---- locked memory ---- */

/*
 * "max locked memory           (kbytes, -l) 8192" of ulimit -a; "Max locked memory         8388608              8388608
 * bytes" of /proc/PID/limits. "unlimited" is a number too.
 */
static bool read_memlock(const struct text_line *l, char soft[24], char hard[24], int64_t *ret_unit)
{
	const char *s = line_text(l);

	*hard = '\0';
	*ret_unit = 1024;
	if (sscanf(s, "max locked memory (kbytes, -l) %23[0-9a-z]", soft) == 1)
		return true;
	*ret_unit = 1;
	return sscanf(s, "Max locked memory %23[0-9a-z] %23[0-9a-z] bytes", soft, hard) == 2;
}

size_t memlock_match(struct part *p, const struct text_line *lines, size_t n)
{
	char soft[24], hard[24];
	int64_t unit;

	(void)p;
	(void)n;
	return read_memlock(&lines[0], soft, hard, &unit);
}

static void claim_limit(const struct part *p, struct claims *c, const char *key, const char *value,
			int64_t unit)
{
	int64_t v;

	if (strcmp(value, "unlimited") == 0)
		v = -1;
	else if (text_to_i64(value, &v) < 0 || v < 0 || v > INT64_MAX / unit)
		return;
	if (v < 0)
		claim_line(c, CLAIM_AT(p, p->lines),
			   strcmp(key, "memlock") == 0 ? "memlock unlimited"
						       : "memlock_hard unlimited",
			   "process.txt");
	else
		claim_bytes_of(p, c, p->lines, key, v * unit);
}

void memlock_decode(const struct part *p, struct claims *c)
{
	char soft[24], hard[24];
	int64_t unit;

	if (!read_memlock(p->lines, soft, hard, &unit))
		return;
	claim_limit(p, c, "memlock", soft, unit);
	if (*hard)
		claim_limit(p, c, "memlock_hard", hard, unit);
}
