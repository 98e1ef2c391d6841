/* SPDX-License-Identifier: Apache-2.0 */
#include "report/csv.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/markup.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* What makes a cell a formula: in ASCII, and the wide forms that some locales accept. */
static const char *const formula_starts[] = {"=",  "+",  "-",  "@",  "\t", "\r",
					     "\n", "＝", "＋", "－", "＠"};

static bool is_formula(const char *text)
{
	for (size_t i = 0; i < sizeof(formula_starts) / sizeof(formula_starts[0]); i++)
		if (text_starts_with(text, formula_starts[i]))
			return true;
	return false;
}

static void begin_cell(struct csv *c)
{
	if (c->in_row)
		strbuf_putc(c->out, ',');
	c->in_row = true;
}

void csv_text(struct csv *c, const char *text)
{
	AUTO_FREE char *clean =
		xprintf("%s%s", text && is_formula(text) ? "'" : "", text ? text : "");

	text_clean(clean);
	begin_cell(c);
	if (!strpbrk(clean, ",\"\n")) {
		strbuf_puts(c->out, clean);
		return;
	}
	strbuf_putc(c->out, '"');
	for (const char *s = clean; *s; s++) {
		if (*s == '"')
			strbuf_putc(c->out, '"');
		strbuf_putc(c->out, *s);
	}
	strbuf_putc(c->out, '"');
}

void csv_count(struct csv *c, size_t n)
{
	begin_cell(c);
	strbuf_printf(c->out, "%zu", n);
}

void csv_number(struct csv *c, double value)
{
	begin_cell(c);
	if (isfinite(value))
		strbuf_printf(c->out, "%.9g", value);
}

void csv_known(struct csv *c, double value)
{
	csv_number(c, value != 0 ? value : NAN);
}

void csv_end(struct csv *c)
{
	strbuf_putc(c->out, '\n');
	c->in_row = false;
}

void csv_head(struct csv *c, const char *const *names)
{
	for (; *names; names++)
		csv_text(c, *names);
	csv_end(c);
}
