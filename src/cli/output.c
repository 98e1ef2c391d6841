/* SPDX-License-Identifier: Apache-2.0 */
/* What commands share: loading a machine, printing, failing. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/ingest.h"
#include "ingest/observe.h"
#include "machine/machine.h"
#include "report/document.h"
#include "report/json_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* A terminal wider than this is not filled: long lines are hard to read. */
#define MAX_AUTO_WIDTH 120
/* In less, tables and indents leave no room for text (also in the help of --width). */
#define MIN_WIDTH 40

int fail(enum exit_code code, const char *fmt, ...)
{
	AUTO_STRBUF struct strbuf b = {0};
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	if (b.text)
		text_clean(b.text);
	fprintf(stderr, "onehop: %s\n", strbuf_str(&b));
	return (int)code;
}

/* Another user's environment is not ours to read, and none of it is not the same as nothing set. */
static int check_pid_readable(int pid)
{
	AUTO_FREE char *path = xprintf("/proc/%d/environ", pid);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd >= 0 && read(fd, &byte, 1) >= 0)
		return 0;
	return err_set(
		errno,
		"--pid: the environment of process %d cannot be read (%s): run as its user or as "
		"root",
		pid, strerror(errno));
}

int check_pid(const struct common_options *c)
{
	if (c->pid && c->from.n)
		return err_set(
			EINVAL,
			"--pid with --from: a recording has no running processes; record them with "
			"`onehop record --pid N`");
	/* Signal 0 asks only whether it exists. */
	if (c->pid && kill(c->pid, 0) < 0 && errno == ESRCH)
		return err_set(ESRCH, "--pid: there is no process %d", c->pid);
	return c->pid ? check_pid_readable(c->pid) : 0;
}

int load_machine(const struct common_options *c, unsigned parts, struct machine **ret)
{
	int r = check_pid(c);

	return r < 0 ? r : ingest_machine(c->from.items, c->from.n, c->host, c->pid, parts, ret);
}

int load_observed_source(const struct common_options *c, const struct observed_options *o,
			 unsigned parts, struct machine **ret, struct source **ret_source)
{
	struct source *s;
	struct machine *m;
	int r = check_pid(c);

	if (r < 0)
		return r;
	r = ingest_machine_source(c->from.items, c->from.n, c->host, c->pid,
				  o->no_store ? parts & ~MACHINE_OBSERVED : parts, &m, &s);
	if (r < 0)
		return r;
	r = observe_files(o->files.items, o->files.n, m);
	if (r < 0) {
		machine_free(m);
		source_free(s);
		return r;
	}
	*ret = m;
	*ret_source = s;
	return 0;
}

int load_observed(const struct common_options *c, const struct observed_options *o, unsigned parts,
		  struct machine **ret)
{
	struct source *s;
	int r = load_observed_source(c, o, parts, ret, &s);

	if (r == 0)
		source_free(s);
	return r;
}

/* ---- printing ---- */

bool terminal_escapes(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

static bool wants_colour(const struct common_options *c)
{
	const char *no_color = getenv("NO_COLOR");

	return !c->no_color && !(no_color && *no_color) && terminal_escapes(STDOUT_FILENO);
}

bool peer_escapes(const struct common_options *c)
{
	return !isatty(STDOUT_FILENO) || wants_colour(c);
}

/* What was asked for; 0: nothing. */
static unsigned wanted_width(const struct common_options *c)
{
	const char *columns = getenv("COLUMNS");
	uint64_t n;

	if (c->width)
		return (unsigned)c->width;
	return columns && text_to_u64(columns, &n) == 0 && n <= INT_MAX ? (unsigned)n : 0;
}

static unsigned output_width(const struct common_options *c)
{
	unsigned wanted = wanted_width(c);
	struct winsize size;

	if (wanted)
		return wanted > MIN_WIDTH ? wanted : MIN_WIDTH;
	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return TEXT_DEFAULT_WIDTH;
	if (size.ws_col < MIN_WIDTH)
		return MIN_WIDTH;
	return size.ws_col < MAX_AUTO_WIDTH ? size.ws_col : MAX_AUTO_WIDTH;
}

/* A script must not take half a report for a whole one. */
int print_text(const struct strbuf *b, enum exit_code code)
{
	if (fwrite(strbuf_str(b), 1, b->len, stdout) != b->len || fflush(stdout) != 0)
		return fail(EXIT_REFUSED, "cannot write the output: %s", strerror(errno));
	return (int)code;
}

int print_document(const struct document *d, const struct common_options *c, enum exit_code code)
{
	struct text_format format = {.width = output_width(c), .colour = wants_colour(c)};
	AUTO_STRBUF struct strbuf b = {0};

	document_write_text(d, &format, &b);
	return print_text(&b, code);
}

/* What jansson leaves as it is and a terminal may obey: U+007F to U+009F, the last 32 as 0xc2 and one. */
static void escape_controls(const struct strbuf *json, struct strbuf *out)
{
	const char *rest = json->text, *end = json->text + json->len;

	for (const char *s = rest; s < end; s++) {
		unsigned char c = (unsigned char)s[0], next = (unsigned char)s[1];
		bool c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;

		if (c != 0x7f && !c1)
			continue;
		strbuf_add(out, rest, (size_t)(s - rest));
		strbuf_printf(out, "\\u%04x", (unsigned)(c1 ? next : c));
		s += c1;
		rest = s + 1;
	}
	strbuf_add(out, rest, (size_t)(end - rest));
}

int print_json(json_t *json, enum exit_code code)
{
	AUTO_STRBUF struct strbuf b = {0}, clean = {0};
	int r = json_lay_out(&b, json);

	json_decref(json);
	if (r < 0)
		return fail(EXIT_NOT_JUDGED, "the report does not fit into JSON");
	escape_controls(&b, &clean);
	strbuf_putc(&clean, '\n');
	return print_text(&clean, code);
}
