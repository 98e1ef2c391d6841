/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/text_time.h"

#include "base/array.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HOUR = 3600, WIDEST_ZONES = 14 * HOUR };

/* 0 to 11; -1: no name of a month in English. */
static int month_of(const char *s)
{
	static const char *const names[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
					    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

	for (int i = 0; i < (int)ARRAY_LEN(names); i++)
		if (strcmp(s, names[i]) == 0)
			return i;
	return -1;
}

static int64_t seconds_of(struct tm t)
{
	if (t.tm_year < 70 || t.tm_year > 300 || t.tm_mon < 0 || t.tm_mon > 11 || t.tm_mday < 1 ||
	    t.tm_mday > 31 || t.tm_hour > 23 || t.tm_min > 59 || t.tm_sec > 60)
		return 0;
	return timegm(&t);
}

/* date prints hours to 12 in some locales. */
static void add_half(struct tm *t, const char *half)
{
	if (strcmp(half, "AM") == 0 || strcmp(half, "PM") == 0)
		t->tm_hour = t->tm_hour % 12 + (*half == 'P' ? 12 : 0);
}

static bool is_zone(const char *word)
{
	return strcmp(word, "UTC") == 0 || strcmp(word, "GMT") == 0;
}

/* "Sun Nov 22 09:40:35 2026", "Sun Nov 22 09:40:35 AM CET 2026" */
static struct text_time read_date(const char *s, const char **rest)
{
	char month[4] = "", words[2][8] = {"", ""};
	struct tm t = {0};
	int n = 0;

	if (sscanf(s, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %n", month, &t.tm_mday, &t.tm_hour,
		   &t.tm_min, &t.tm_sec, &n) != 5 ||
	    !n)
		return (struct text_time){0};
	s += n;
	for (int i = 0; i < 2 && isalpha((unsigned char)*s); i++) {
		n = 0;
		if (sscanf(s, "%7[A-Z] %n", words[i], &n) != 1 || !n)
			return (struct text_time){0};
		s += n;
	}
	n = 0;
	if (sscanf(s, "%4d%n", &t.tm_year, &n) != 1 || n != 4)
		return (struct text_time){0};
	*rest = s + n;
	t.tm_year -= 1900;
	t.tm_mon = month_of(month);
	add_half(&t, words[0]);
	return (struct text_time){seconds_of(t), is_zone(words[0]) || is_zone(words[1])};
}

/* "Z", "+0100", " -05:00": what is to be subtracted; false: there is none. */
static bool read_offset(const char *s, int64_t *ret, const char **rest)
{
	unsigned hours, minutes;
	char sign;
	int n = 0;

	if (*s == 'Z' || text_starts_with(s, " UTC")) {
		*ret = 0;
		*rest = s + (*s == 'Z' ? 1 : strlen(" UTC"));
		return true;
	}
	if (sscanf(s, " %c%2u%*[:]%2u%n", &sign, &hours, &minutes, &n) != 3 || !n)
		if (sscanf(s, " %c%2u%2u%n", &sign, &hours, &minutes, &n) != 3 || !n)
			return false;
	if ((sign != '+' && sign != '-') || hours > 14 || minutes > 59)
		return false;
	*ret = ((int64_t)hours * 60 + minutes) * 60 * (sign == '-' ? -1 : 1);
	*rest = s + n;
	return true;
}

/* "2026-11-22T09:40:35,123456+00:00", "2026-11-22 09:40:37.700000000 +0000" */
static struct text_time read_iso(const char *s, const char **rest)
{
	struct tm t = {0};
	int64_t offset = 0;
	bool zoned;
	int n = 0;

	if (sscanf(s, "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
		   &t.tm_hour, &t.tm_min, &t.tm_sec, &n) != 6 ||
	    n != (int)strlen("2026-11-22T09:40:35"))
		return (struct text_time){0};
	s += n;
	if (*s == '.' || *s == ',')
		s += 1 + strspn(s + 1, "0123456789");
	zoned = read_offset(s, &offset, &s);
	*rest = s;
	t.tm_year -= 1900;
	t.tm_mon--;
	return (struct text_time){seconds_of(t) ? seconds_of(t) - offset : 0, zoned};
}

struct text_time text_time_at(const char *s, const char **ret_rest)
{
	const char *rest = s;
	struct text_time t;

	s += strspn(s, " [");
	t = isdigit((unsigned char)*s) ? read_iso(s, &rest) : read_date(s, &rest);
	if (ret_rest)
		*ret_rest = rest;
	return t;
}

int text_time_order(struct text_time a, struct text_time b)
{
	const int64_t apart = a.zoned == b.zoned ? 0 : WIDEST_ZONES;

	if (!a.s || !b.s)
		return 0;
	return a.s - b.s > apart ? 1 : b.s - a.s > apart ? -1 : 0;
}

const char *text_time_words(struct text_time t, char buf[TEXT_TIME_SIZE])
{
	const time_t s = (time_t)t.s;
	struct tm tm;

	if (!gmtime_r(&s, &tm) ||
	    !strftime(buf, TEXT_TIME_SIZE, t.zoned ? "%Y-%m-%d %H:%M:%S UTC" : "%Y-%m-%d %H:%M:%S",
		      &tm))
		*buf = '\0';
	return buf;
}
