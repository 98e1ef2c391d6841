/* SPDX-License-Identifier: Apache-2.0 */
#include "base/date.h"

#include <time.h>

#define FORMAT "%Y-%m-%dT%H:%M:%SZ"

void date_now(char buf[static DATE_SIZE])
{
	time_t now = time(NULL);
	struct tm t;

	if (!gmtime_r(&now, &t) || !strftime(buf, DATE_SIZE, FORMAT, &t))
		*buf = '\0';
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
