/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_caller.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/waits.h"
#include "cli/command.h"
#include "report/report_caller.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * The deadline is kept by a thread of its own, which ends the process: what reads the machine may hang in a library. A thread
 * that hangs in the kernel keeps the process all the same; the caller's own limit then counts.
 */
struct deadline {
	const struct caller *caller;
	int seconds;
	atomic_int code;
	_Atomic(const char *) doing; /* what is not reached yet */
};

/* A pipe that nobody reads must not keep the process: the status is the answer. */
static void say_if_heard(int fd, const struct strbuf *line)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	if (poll(&room, 1, 0) == 1 && room.revents == POLLOUT &&
	    write(fd, line->text, line->len) < 0)
		return;
}

static void *keep_deadline(void *p)
{
	struct deadline *d = p;
	struct timespec left = {.tv_sec = d->seconds};
	AUTO_STRBUF struct strbuf line = {0}, text = {0};
	char file[PATH_MAX];

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
	strbuf_printf(&text, "unknown: not done after %d s: ", d->seconds);
	if (waits_for_file(file, sizeof(file)))
		strbuf_printf(&text, "waiting for %s", file);
	else
		strbuf_puts(&text, atomic_load(&d->doing));
	caller_line(&line, d->caller, strbuf_str(&text));
	say_if_heard(d->caller->metrics ? STDERR_FILENO : STDOUT_FILENO, &line);
	_exit(atomic_load(&d->code));
}

static int start_deadline(struct deadline *d)
{
	pthread_attr_t detached;
	pthread_t thread;
	int e;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	e = pthread_create(&thread, &detached, keep_deadline, d);
	pthread_attr_destroy(&detached);
	return e ? err_sys(e, "cannot start a thread") : 0;
}

/* The file is replaced: that must not befall a device such as /dev/null, or a link to what is kept elsewhere. */
static int check_textfile(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0 || S_ISREG(st.st_mode))
		return 0;
	return err_set(EINVAL, "--textfile: %s is not a regular file, and is left as it is", path);
}

/* Whole or not at all: node_exporter reads the folder at any time. */
static int write_textfile(const char *path, const struct strbuf *b)
{
	AUTO_FREE char *staged = xprintf("%s.%ld", path, (long)getpid());
	int r = file_replace(path, staged, b->text, b->len, 0644);

	return r < 0 ? err_sys(-r, "--textfile: cannot write %s", staged) : 0;
}

/*
 * The status is the answer: it does not change because the line could not be written. Of metrics, which are all of the answer,
 * it does.
 */
static int answer_with(struct deadline *late, const struct strbuf *line, int code)
{
	int written = EXIT_OK;

	atomic_store(&late->code, code);
	atomic_store(&late->doing, "the answer was being written");
	if (line->len)
		written = print_text(line, EXIT_OK);
	return late->caller->metrics && written != EXIT_OK ? written : code;
}

static int answer(struct deadline *late, const struct caller_options *o,
		  const struct check_session *s)
{
	const struct caller *c = late->caller;
	int fail_on = s->o->fail_on;
	int threshold = fail_on ? fail_on - 1 : SEVERITY_WARNING;
	int code = caller_code(c, s->verdict, s->o->require.n > 0);
	AUTO_STRBUF struct strbuf b = {0};

	if (!c->metrics)
		report_caller(&b, c, s->diagnosis, &s->requirements, s->verdict, threshold);
	else
		report_metrics(&b, s->diagnosis, (long long)time(NULL));
	if (!o->textfile)
		return answer_with(late, &b, code);
	if (check_textfile(o->textfile) < 0 || write_textfile(o->textfile, &b) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	return code;
}

/* What cannot be read at all is unknown. */
static int answer_unread(struct deadline *late, bool required)
{
	const struct caller *c = late->caller;
	AUTO_STRBUF struct strbuf b = {0}, text = {0};

	if (c->metrics)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	strbuf_printf(&text, "unknown: %s", err_msg());
	caller_line(&b, c, strbuf_str(&text));
	return answer_with(late, &b, caller_code(c, VERDICT_UNKNOWN, required));
}

int check_for_caller(const struct caller_options *o, const struct check_choice *choice,
		     const struct machine_choice *from)
{
	const struct caller *c = &callers[o->caller - 1];
	bool required = choice->require.n > 0;
	struct deadline *late;
	struct check_choice whole = *choice;
	struct check_session s;
	struct arena *a;
	struct texts hosts;
	int r;

	if (o->textfile && !c->metrics)
		return fail(EXIT_REFUSED, "--textfile needs --for prometheus");
	if (o->textfile && !text_ends_with(o->textfile, ".prom"))
		return fail(
			EXIT_REFUSED,
			"--textfile: node_exporter reads only files whose names end in .prom, not '%s'",
			o->textfile);
	late = xcalloc(1, sizeof(*late));
	*late = (struct deadline){.caller = c,
				  .seconds = o->deadline_s,
				  .code = c->metrics ? EXIT_NOT_JUDGED
						     : caller_code(c, VERDICT_UNKNOWN, required),
				  .doing = "the machine was being read"};
	if (o->deadline_s && start_deadline(late) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	whole.whole = true;
	a = arena_new();
	r = check_session_read(&s, &whole, from, a, &hosts);
	atomic_store(&late->doing, "the facts were being judged");
	if (r < 0)
		r = answer_unread(late, required);
	else if (check_session_judge(&s) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = answer(late, o, &s);
	check_session_done(&s);
	arena_free(a);
	if (!o->deadline_s) /* else its thread reads it until the process has ended */
		free(late);
	return r;
}
