/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define ERASE   "\r\033[K"
#define PAUSE_S 1

void progress_begin(struct progress *p)
{
	*p = (struct progress){.shown_s = clock_s()};
}

void progress_show(struct progress *p, const char *fmt, ...)
{
	bool terminal = terminal_escapes(STDERR_FILENO);
	AUTO_STRBUF struct strbuf b = {0};
	double now = clock_s();
	va_list ap;

	if (!terminal && now - p->shown_s < PAUSE_S)
		return;
	strbuf_puts(&b, terminal ? ERASE "onehop: " : "onehop: ");
	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	strbuf_puts(&b, terminal ? "" : "\n");
	fputs(strbuf_str(&b), stderr);
	fflush(stderr);
	p->shown_s = now;
	p->open = terminal;
}

void progress_end(struct progress *p)
{
	if (!p->open)
		return;
	fputs(ERASE, stderr);
	fflush(stderr);
	p->open = false;
}

static void hear(void *context, enum session_word w, const char *text)
{
	if (w == SESSION_RUNS) {
		progress_show(context, "%s", text);
		return;
	}
	progress_end(context);
	fail(EXIT_OK, "%s", text);
}

struct session_ear progress_ear(struct progress *p)
{
	*p = (struct progress){0};
	return (struct session_ear){p, hear};
}
