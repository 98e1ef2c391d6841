/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures of figures as SVG inside a page: heat maps and bars. Colours are presentation
 * attributes, which a style sheet that is removed or forbidden does not take away; every picture
 * has its figures as text.
 */
#include "report/page_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Pixels. */
enum {
	CELL_WIDTH = 62,
	CELL_HEIGHT = 26,
	LABEL_MIN = 60,
	CHAR_WIDTH = 7,
	HEAT_HEAD = 24,
	SCALE_HEIGHT = 34,
	BAR_AREA = 420,
	BAR_HEIGHT = 12,
	ROW_HEIGHT = 22,
	VALUE_ROOM = 230,
	LABEL_MAX = 46, /* characters */
};

static void open_picture(struct page *p, const char *title, int width, int height)
{
	strbuf_printf(
		p->out,
		"<div class=\"scroll\" tabindex=\"0\"><svg "
		"xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"'DejaVu Sans',Verdana,Arial,sans-serif\" "
		"font-size=\"11\"><title>",
		width, height, width, height);
	page_text(p, title, strlen(title));
	strbuf_puts(p->out, "</title>\n");
}

static void close_picture(struct page *p)
{
	strbuf_puts(p->out, "</svg></div>\n");
}

/* In the page's own colour of text. */
static void put_label(struct page *p, int x, int y, const char *anchor, const char *text, size_t n)
{
	strbuf_printf(p->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" fill=\"currentColor\">",
		      x, y, anchor);
	page_text(p, text, n);
	strbuf_puts(p->out, "</text>\n");
}

/* Characters of clean UTF-8. */
static size_t length_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* Bytes of the first `max` characters. */
static size_t bytes_of(const char *s, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; s[i]; i++) {
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
		if (n > max)
			return i;
	}
	return strlen(s);
}

/* ---- heat map ---- */

/* From light to dark in one hue, which all eyes order alike. */
static void shade(double share, unsigned rgb[3])
{
	static const unsigned light[3] = {0xe8, 0xf1, 0xfa}, dark[3] = {0x08, 0x30, 0x6b};

	for (int i = 0; i < 3; i++)
		rgb[i] = (unsigned)lround(light[i] + share * ((double)dark[i] - light[i]));
}

static double most_of(const struct block *b)
{
	double most = 0;

	for (size_t i = 0; i < b->cell_n; i++)
		if (b->cells[i].measured && b->cells[i].value > most)
			most = b->cells[i].value;
	return most;
}

static void put_heat_cell(struct page *p, const struct cell *c, int x, int y, double most)
{
	double share = c->measured && most > 0 && c->value > 0 ? c->value / most : 0;
	const char *sign = cell_sign(c), *text = c->text + strspn(c->text, " ");
	unsigned rgb[3];

	if (!c->measured) {
		put_label(p, x + CELL_WIDTH / 2, y + 17, "middle", text, bytes_of(text, 8));
		return;
	}
	shade(share, rgb);
	strbuf_printf(
		p->out,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%02x%02x%02x\"%s/>"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"%s\"%s>",
		x + 1, y + 1, CELL_WIDTH - 2, CELL_HEIGHT - 2, rgb[0], rgb[1], rgb[2],
		*sign ? " stroke=\"#d55e00\" stroke-width=\"2\"" : "", x + CELL_WIDTH / 2, y + 17,
		share > 0.5 ? "#fff" : "#1f2328", *sign ? " font-weight=\"bold\"" : "");
	page_text(p, text, bytes_of(text, 8));
	strbuf_printf(p->out, "%s</text>\n", sign);
}

static int label_width(const struct block *b)
{
	size_t most = 0;

	for (size_t i = b->columns; i < b->cell_n; i += b->columns) {
		size_t n = length_of(b->cells[i].text);

		most = n > most ? n : most;
	}
	most = most > LABEL_MAX ? LABEL_MAX : most;
	return (int)most * CHAR_WIDTH + 12 > LABEL_MIN ? (int)most * CHAR_WIDTH + 12 : LABEL_MIN;
}

/* The scale is above, so that it is seen first. */
static void put_scale(struct page *p, const struct block *b, int x, double most)
{
	const char *unit = b->unit ? b->unit : "";
	char end[48];

	for (int i = 0; i < 20; i++) {
		unsigned rgb[3];

		shade((i + 0.5) / 20, rgb);
		strbuf_printf(p->out,
			      "<rect x=\"%d\" y=\"6\" width=\"8\" height=\"12\" "
			      "fill=\"#%02x%02x%02x\"/>",
			      x + 16 + 8 * i, rgb[0], rgb[1], rgb[2]);
	}
	put_label(p, x + 10, 16, "end", "0", 1);
	snprintf(end, sizeof(end), "%.4g %s", most, unit);
	put_label(p, x + 184, 16, "start", end, strlen(end));
}

void picture_heat(struct page *p, const struct block *b)
{
	int left = label_width(b), rows, columns = (int)b->columns - 1;
	int top = SCALE_HEIGHT + HEAT_HEAD, width = left + columns * CELL_WIDTH + 8;
	double most = most_of(b);

	if (columns < 1)
		return;
	rows = (int)((b->cell_n + b->columns - 1) / b->columns) - 1;
	open_picture(p, "Heat map of the matrix above", width < 300 ? 300 : width,
		     top + rows * CELL_HEIGHT + 8);
	put_scale(p, b, 8, most);
	for (int j = 0; j < columns; j++) {
		const char *text = b->cells[j + 1].text + strspn(b->cells[j + 1].text, " ");

		put_label(p, left + j * CELL_WIDTH + CELL_WIDTH / 2, top - 7, "middle", text,
			  bytes_of(text, 8));
	}
	for (size_t i = b->columns; i < b->cell_n; i++) {
		int row = (int)(i / b->columns) - 1, column = (int)(i % b->columns);
		int y = top + row * CELL_HEIGHT;

		if (column)
			put_heat_cell(p, &b->cells[i], left + (column - 1) * CELL_WIDTH, y, most);
		else
			put_label(p, left - 6, y + 17, "end", b->cells[i].text,
				  bytes_of(b->cells[i].text, LABEL_MAX));
	}
	close_picture(p);
}

/* ---- bars ---- */

/* A chart's scale, and where its bars begin. */
struct bars {
	struct page *p;
	const struct block *b;
	int left;
	double most;
};

static int at_value(const struct bars *s, double value)
{
	double share = s->most > 0 && value > 0 ? value / s->most : 0;

	return s->left + (int)lround((share > 1 ? 1 : share) * BAR_AREA);
}

static void put_bar(const struct bars *s, double from, double to, int y, int height,
		    const char *colour)
{
	int x = at_value(s, from), end = at_value(s, to);

	strbuf_printf(s->p->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>",
		      x, y, end > x ? end - x : 1, height, colour);
}

static void put_mark(const struct bars *s, double value, int y, int height)
{
	int x = at_value(s, value);

	strbuf_printf(s->p->out,
		      "<path d=\"M%d %dV%d\" stroke=\"currentColor\" stroke-width=\"2\"/>", x, y,
		      y + height);
}

static const char *sign_of(enum style style)
{
	return style == STYLE_BAD ? " x" : style == STYLE_WARN ? " !" : "";
}

static void put_expected(const struct bars *s, const struct point *q, int y, char *text,
			 size_t size)
{
	put_bar(s, 0, q->at.value, y, BAR_HEIGHT, "#0072b2");
	if (q->at.other > 0) {
		put_mark(s, q->at.other, y - 3, BAR_HEIGHT + 6);
		snprintf(text, size, "%.4g of %.4g %s, %.0f %%%s", q->at.value, q->at.other,
			 s->b->unit, 100 * q->at.value / q->at.other, sign_of(q->at.style));
	} else {
		snprintf(text, size, "%.4g %s%s", q->at.value, s->b->unit, sign_of(q->at.style));
	}
}

static void put_change(const struct bars *s, const struct point *q, int y, char *text, size_t size)
{
	put_bar(s, 0, q->at.other, y - 1, BAR_HEIGHT / 2, "#8b949e");
	put_bar(s, 0, q->at.value, y + BAR_HEIGHT / 2, BAR_HEIGHT / 2, "#0072b2");
	snprintf(text, size, "%.4g -> %.4g %s%s", q->at.other, q->at.value, s->b->unit,
		 sign_of(q->at.style));
}

static bool has_interval(const struct point *q)
{
	return isfinite(q->at.low) && isfinite(q->at.high);
}

static bool has_samples(const struct point *q)
{
	return isfinite(q->at.least) && isfinite(q->at.most);
}

static void put_spread(const struct bars *s, const struct point *q, int y, char *text, size_t size)
{
	bool interval = has_interval(q), samples = has_samples(q);
	double from = samples ? q->at.least : q->at.low, to = samples ? q->at.most : q->at.high;

	if (samples)
		put_bar(s, from, to, y + BAR_HEIGHT / 2 - 1, 3, "#8b949e");
	if (interval)
		put_bar(s, q->at.low, q->at.high, y, BAR_HEIGHT, "#56b4e9");
	put_mark(s, q->at.value, y - 2, BAR_HEIGHT + 4);
	if (samples || interval)
		snprintf(text, size, "%.4g %s, %.4g to %.4g%s", q->at.value, s->b->unit, from, to,
			 sign_of(q->at.style));
	else
		snprintf(text, size, "%.4g %s%s", q->at.value, s->b->unit, sign_of(q->at.style));
}

static const struct {
	void (*put)(const struct bars *s, const struct point *q, int y, char *text, size_t size);
	const char *legend;
} charts[CHART_N] = {
	[CHART_EXPECTED] = {put_expected, "bar: measured; line: expected; ! falls short, x failed"},
	[CHART_CHANGE] = {put_change,
			  "grey: before; blue: after; ! or x: some of its figures are worse"},
	[CHART_SPREAD] = {put_spread, "line: median"},
};

/* Of spreads, what any point has. */
static void put_legend(struct page *p, const struct block *b)
{
	bool interval = false, samples = false;
	char text[128];

	for (size_t i = 0; i < b->point_n && b->chart == CHART_SPREAD; i++) {
		interval = interval || has_interval(&b->points[i]);
		samples = samples || has_samples(&b->points[i]);
	}
	snprintf(text, sizeof(text), "%s%s%s", charts[b->chart].legend,
		 interval ? "; box: its 95 % interval" : "",
		 samples ? "; grey: least to greatest measured" : "");
	put_label(p, 4, 16, "start", text, strlen(text));
}

static double most_of_points(const struct block *b)
{
	double most = 0;

	for (size_t i = 0; i < b->point_n; i++) {
		const struct chart_point *q = &b->points[i].at;

		/* fmax ignores NAN: unknown. */
		most = fmax(fmax(most, q->value), fmax(q->other, fmax(q->high, q->most)));
	}
	return most;
}

static size_t longest_label(const struct block *b)
{
	size_t most = 0;

	for (size_t i = 0; i < b->point_n; i++)
		most = length_of(b->points[i].label) > most ? length_of(b->points[i].label) : most;
	return most > LABEL_MAX ? LABEL_MAX : most;
}

void picture_chart(struct page *p, const struct block *b)
{
	struct bars s = {p, b, (int)longest_label(b) * CHAR_WIDTH + 16, most_of_points(b)};
	int y = SCALE_HEIGHT;

	if (!b->point_n)
		return;
	strbuf_puts(p->out, "<figure><figcaption>");
	page_text(p, b->text, strlen(b->text));
	strbuf_puts(p->out, "</figcaption>\n");
	open_picture(p, b->text, s.left + BAR_AREA + VALUE_ROOM,
		     SCALE_HEIGHT + (int)b->point_n * ROW_HEIGHT + 4);
	put_legend(p, b);
	for (size_t i = 0; i < b->point_n; i++, y += ROW_HEIGHT) {
		const struct point *q = &b->points[i];
		char text[128];

		put_label(p, s.left - 8, y + 10, "end", q->label, bytes_of(q->label, LABEL_MAX));
		charts[b->chart].put(&s, q, y, text, sizeof(text));
		put_label(p, s.left + BAR_AREA + 10, y + 10, "start", text, strlen(text));
	}
	close_picture(p);
	strbuf_puts(p->out, "</figure>\n");
}
