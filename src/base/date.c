/* SPDX-License-Identifier: Apache-2.0 */
#include "base/date.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <time.h>

#define FORMAT "%Y-%m-%dT%H:%M:%SZ"

static void format(time_t when, char buf[static DATE_SIZE])
{
	struct tm t;

	if (!gmtime_r(&when, &t) || !strftime(buf, DATE_SIZE, FORMAT, &t))
		*buf = '\0';
}

void date_now(char buf[static DATE_SIZE])
{
	format(time(NULL), buf);
}

void date_to_state(char buf[static DATE_SIZE])
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	uint64_t s;

	if (epoch && text_to_count(epoch, &s) == 0)
		format((time_t)s, buf);
	else
		date_now(buf);
}

static bool has_shape(const char *text)
{
	static const char shape[DATE_SIZE] = "0000-00-00T00:00:00Z";

	for (size_t i = 0; i < sizeof(shape); i++)
		if (shape[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != shape[i])
			return false;
	return true;
}

static unsigned two_digits(const char *at)
{
	return 10 * (unsigned)(at[0] - '0') + (unsigned)(at[1] - '0');
}

static unsigned days_of(unsigned year, unsigned month)
{
	static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

bool date_is_one(const char *text)
{
	unsigned year, month, day;

	if (!has_shape(text))
		return false;
	year = 100 * two_digits(text) + two_digits(text + 2);
	month = two_digits(text + 5);
	day = two_digits(text + 8);
	return month >= 1 && month <= 12 && day >= 1 && day <= days_of(year, month) &&
	       two_digits(text + 11) < 24 && two_digits(text + 14) < 60 &&
	       two_digits(text + 17) < 60;
}

static bool parse(const char *text, time_t *ret)
{
	struct tm t = {0};

	if (!date_is_one(text) || !strptime(text, FORMAT, &t))
		return false;
	*ret = timegm(&t);
	return true;
}

int64_t date_age_s(const char *text)
{
	time_t now = time(NULL), then;

	return parse(text, &then) && then <= now ? now - then : -1;
}

/* Clocks of one machine differ by less than a minute, before and after they are set. */
bool date_is_ahead(const char *text)
{
	time_t then;

	return parse(text, &then) && then > time(NULL) + 60;
}
