/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"

#include <stdio.h>
#include <unistd.h>

#define ERASE   "\r\033[K"
#define PAUSE_S 1

void progress_begin(struct progress *p)
{
	p->shown_s = clock_s();
	p->open = false;
}

static void show(struct progress *p, const char *text)
{
	bool terminal = terminal_escapes(STDERR_FILENO);
	double now = clock_s();

	if (!terminal && now - p->shown_s < PAUSE_S)
		return;
	fprintf(stderr, "%sonehop: %s%s", terminal ? ERASE : "", text, terminal ? "" : "\n");
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
	struct progress *p = context;

	if (w == SESSION_RUNS) {
		if (!p->quiet)
			show(p, text);
		return;
	}
	progress_end(p);
	if (w == SESSION_NOTE) {
		fail(EXIT_OK, "%s", text);
	} else if (w == SESSION_LOG) {
		fprintf(stderr, "%s%s", text, text_ends_with(text, "\n") ? "" : "\n");
	} else if (!p->quiet) {
		printf("%s\n", text);
		fflush(stdout);
		progress_begin(p);
	}
}

struct session_ear progress_ear(struct progress *p)
{
	*p = (struct progress){0};
	return (struct session_ear){p, hear};
}
