/* SPDX-License-Identifier: Apache-2.0 */
#include "base/date.h"

#include "base/text.h"

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

static bool parse(const char *text, time_t *ret)
{
	struct tm t = {0};
	const char *end = strptime(text, FORMAT, &t);

	if (!end || *end)
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
