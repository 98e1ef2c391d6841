/* SPDX-License-Identifier: Apache-2.0 */
/* What commands share: loading a machine, printing, failing. */
#include "cli/command.h"

#include "base/markup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "report/document.h"
#include "report/json_layout.h"
#include "result/figures_json.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
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

enum exit_code verdict_code(enum verdict v)
{
	static const enum exit_code codes[VERDICT_N] = {
		[VERDICT_OK] = EXIT_OK,
		[VERDICT_BAD] = EXIT_FINDING,
		[VERDICT_NA] = EXIT_NOT_JUDGED,
		[VERDICT_UNKNOWN] = EXIT_NOT_JUDGED,
	};

	return codes[v];
}

enum exit_code ending_code(enum ending e)
{
	static const enum exit_code codes[] = {
		[ENDED_WELL] = EXIT_OK,
		[ENDED_REFUSED] = EXIT_REFUSED,
		[ENDED_UNDECIDED] = EXIT_NOT_JUDGED,
		[ENDED_FAILED] = EXIT_NOT_CHANGED,
	};

	return codes[e];
}

int worse_code(int a, int b)
{
	static const int order[] = {[EXIT_OK] = 0,
				    [EXIT_NOT_JUDGED] = 1,
				    [EXIT_FINDING] = 2,
				    [EXIT_REFUSED] = 3,
				    [EXIT_NOT_CHANGED] = 4};

	return order[a] >= order[b] ? a : b;
}

/* ---- printing ---- */

bool terminal_escapes(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

const char *const color_words[] = {"auto", "always", "never", NULL};

static bool auto_colour(void)
{
	const char *no_color = getenv("NO_COLOR");

	return !(no_color && *no_color) && terminal_escapes(STDOUT_FILENO);
}

static bool wants_colour(const struct common_options *c)
{
	enum color when = c->color ? (enum color)(c->color - 1) : COLOR_AUTO;

	return when == COLOR_AUTO ? auto_colour() : when == COLOR_ALWAYS;
}

bool peer_escapes(const struct common_options *c)
{
	bool script = !isatty(STDOUT_FILENO) && c->color != 1 + COLOR_NEVER;

	return script || wants_colour(c);
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

int save_text(const struct strbuf *b, const char *path)
{
	FILE *f;
	bool well;

	if (strcmp(path, "-") == 0)
		return print_text(b, EXIT_OK);
	f = fopen(path, "we");
	if (!f)
		return fail(EXIT_REFUSED, "%s: %s", path, strerror(errno));
	well = fwrite(strbuf_str(b), 1, b->len, f) == b->len;
	well = fclose(f) == 0 && well;
	return well ? fail(EXIT_OK, "%s: written", path)
		    : fail(EXIT_REFUSED, "%s: %s", path, strerror(errno));
}

int show_document(struct document *d, const struct common_options *c, enum exit_code code)
{
	struct text_format format = {.width = output_width(c), .colour = wants_colour(c)};
	AUTO_STRBUF struct strbuf b = {0};

	if (document_is_page(d)) {
		int r = print_pages(d, c);

		if (r != EXIT_OK || page_replaces_text(c)) {
			document_free(d);
			return r == EXIT_OK ? (int)code : r;
		}
	}
	document_write_text(d, &format, &b);
	document_free(d);
	return print_text(&b, code);
}

/* ---- data for programs ---- */

const char *const csv_only[] = {FORMAT_CSV, NULL};

bool format_is(const struct common_options *c, const char *name)
{
	const struct option *o = c->command->options;

	while (o->name && strcmp(o->name, "format") != 0)
		o++;
	return c->format && o->name && strcmp(o->choices[c->format - 1], name) == 0;
}

bool prints_data(const struct common_options *c)
{
	return c->json || format_is(c, FORMAT_CSV);
}

int print_figures(const struct figures *f, const struct common_options *c, enum exit_code code)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (c->json)
		return print_json(figures_to_json(f), code);
	report_figures_csv(&b, f);
	return print_text(&b, code);
}

int print_json(json_t *json, enum exit_code code)
{
	AUTO_STRBUF struct strbuf b = {0};
	int r = json_lay_out(&b, json);

	json_decref(json);
	if (r < 0)
		return fail(EXIT_NOT_JUDGED, "the report does not fit into JSON");
	strbuf_putc(&b, '\n');
	return print_text(&b, code);
}
