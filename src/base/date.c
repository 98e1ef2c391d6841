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

int64_t date_age_s(const char *text)
{
	struct tm t = {0};
	const char *end = strptime(text, FORMAT, &t);
	time_t now = time(NULL), then = end && !*end ? timegm(&t) : now + 1;

	return then <= now ? now - then : -1;
}
