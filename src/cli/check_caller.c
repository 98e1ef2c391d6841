/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_caller.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/command.h"
#include "report/report_caller.h"
#include "session/deadline.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct answer {
	const struct caller *caller;
	struct deadline deadline;
	atomic_int code; /* that of the process, if the time is up */
};

/* A pipe that nobody reads must not keep the process: the status is the answer. */
static void say_if_heard(int fd, const struct strbuf *line)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	if (poll(&room, 1, 0) == 1 && room.revents == POLLOUT &&
	    write(fd, line->text, line->len) < 0)
		return;
}

static void add_unknown(const struct caller *c, const char *why, struct strbuf *line)
{
	AUTO_STRBUF struct strbuf text = {0};

	strbuf_printf(&text, "unknown: %s", why);
	caller_line(line, c, strbuf_str(&text));
}

static void give_up(void *context, const char *what)
{
	struct answer *x = context;
	AUTO_STRBUF struct strbuf line = {0};

	add_unknown(x->caller, what, &line);
	say_if_heard(x->caller->metrics ? STDERR_FILENO : STDOUT_FILENO, &line);
	_exit(atomic_load(&x->code));
}

/*
 * The file is replaced: that must not befall a device such as /dev/null, or a link to what is kept
 * elsewhere.
 */
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
 * The status is the answer: it does not change because the line could not be written. Of metrics,
 * which are all of the answer, it does.
 */
static int answer_with(struct answer *x, const struct strbuf *line, int code)
{
	int written = EXIT_OK;

	atomic_store(&x->code, code);
	atomic_store(&x->deadline.doing, "the answer was being written");
	if (line->len)
		written = print_text(line, EXIT_OK);
	return x->caller->metrics && written != EXIT_OK ? written : code;
}

static int answer(struct answer *x, const struct caller_options *o, const struct check_session *s)
{
	const struct caller *c = x->caller;
	int code = caller_code(c, s->verdict, s->o->require.n > 0);
	AUTO_STRBUF struct strbuf b = {0};

	if (!c->metrics)
		report_caller(&b, c, s->diagnosis, &s->requirements, s->verdict,
			      check_threshold(s->o));
	else
		report_metrics(&b, s->diagnosis, (long long)time(NULL));
	if (!o->textfile)
		return answer_with(x, &b, code);
	if (check_textfile(o->textfile) < 0 || write_textfile(o->textfile, &b) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	return code;
}

/* What cannot be read at all is unknown. */
static int answer_unread(struct answer *x, bool required)
{
	const struct caller *c = x->caller;
	AUTO_STRBUF struct strbuf line = {0};

	if (c->metrics)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	add_unknown(c, err_msg(), &line);
	return answer_with(x, &line, caller_code(c, VERDICT_UNKNOWN, required));
}

static int read_and_answer(struct answer *x, const struct caller_options *o,
			   const struct check_choice *choice, const struct machine_choice *from)
{
	struct check_choice whole = *choice;
	struct arena *a = arena_new();
	struct check_session s;
	struct texts hosts;
	int r;

	whole.whole = true;
	r = check_session_read(&s, &whole, from, a, &hosts);
	atomic_store(&x->deadline.doing, "the facts were being judged");
	if (r < 0)
		r = answer_unread(x, choice->require.n > 0);
	else if (check_session_judge(&s) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = answer(x, o, &s);
	check_session_done(&s);
	arena_free(a);
	return r;
}

int check_for_caller(const struct caller_options *o, const struct check_choice *choice,
		     const struct machine_choice *from)
{
	const struct caller *c = &callers[o->caller - 1];
	struct answer *x;
	int r;

	if (o->textfile && !c->metrics)
		return fail(EXIT_REFUSED, "--textfile needs --for prometheus");
	if (o->textfile && !text_ends_with(o->textfile, ".prom"))
		return fail(
			EXIT_REFUSED,
			"--textfile: node_exporter reads only files whose names end in .prom, not '%s'",
			o->textfile);
	x = xcalloc(1, sizeof(*x));
	*x = (struct answer){.caller = c,
			     .deadline = {o->deadline_s, give_up, x, "the machine was being read"},
			     .code = c->metrics ? EXIT_NOT_JUDGED
						: caller_code(c, VERDICT_UNKNOWN,
							      choice->require.n > 0)};
	if (o->deadline_s && deadline_start(&x->deadline) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	r = read_and_answer(x, o, choice, from);
	if (!o->deadline_s) /* else its thread reads it until the process has ended */
		free(x);
	return r;
}
