/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[1024];

void err_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
}

void err_say_sys(int err, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	n = strlen(sentence);
	snprintf(sentence + n, sizeof(sentence) - n, ": %s", strerror(err));
}

void err_say_before(const char *fmt, ...)
{
	char inner[sizeof(sentence)];
	va_list ap;
	size_t n;

	memcpy(inner, sentence, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	n = strlen(sentence);
	snprintf(sentence + n, sizeof(sentence) - n, ": %.*s", (int)(sizeof(sentence) - n), inner);
}

const char *err_msg(void)
{
	return sentence;
}
