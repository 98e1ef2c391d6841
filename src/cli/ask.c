/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include "base/text.h"
#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

bool can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static bool is_yes(char *answer)
{
	const char *word = text_trim(answer);

	return strcasecmp(word, "y") == 0 || strcasecmp(word, "yes") == 0;
}

int ask(const char *fmt, ...)
{
	char answer[80];
	va_list ap;

	printf("\n");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf(" [y/N] ");
	fflush(stdout);
	if (fgets(answer, sizeof(answer), stdin) && is_yes(answer))
		return EXIT_OK;
	return fail(EXIT_REFUSED, "nothing was changed");
}
