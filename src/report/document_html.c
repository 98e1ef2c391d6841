/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a document as one HTML file that needs nothing else: no script, nothing to load, and
 * headings, tables and pictures that keep their meaning where the style sheet is removed.
 */
#include "report/page_impl.h"

#include "base/alloc.h"
#include "base/markup.h"

#include <string.h>

/* ---- the frame ---- */

/* Nothing runs and nothing is fetched, whatever a text may hold that was not escaped. */
static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
	"'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta name=\"referrer\" content=\"no-referrer\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n";

static const char style_sheet[] =
	"<style>\n"
	":root{--fg:#1f2328;--dim:#59636e;--bg:#fff;--card:#f6f8fa;--line:#d1d9e0;--good:#0a6b3d;"
	"--warn:#7d4e00;--bad:#b3261e;--link:#0a58ca}\n"
	"@media (prefers-color-scheme:dark){:root{--fg:#e6edf3;--dim:#9da7b3;--bg:#0d1117;"
	"--card:#161b22;--line:#30363d;--good:#5fd08f;--warn:#e3b341;--bad:#ff8b80;"
	"--link:#79b8ff}}\n"
	"body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,'Segoe "
	"UI','DejaVu Sans',Arial,sans-serif}\n"
	"main{max-width:1240px;margin:0 auto;padding:16px 20px 40px}\n"
	"h1{font-size:22px;line-height:1.3;margin:8px 0 12px}h2{font-size:18px;margin:32px 0 8px;"
	"padding-top:8px;border-top:1px solid var(--line)}h3{font-size:15px;margin:20px 0 6px}\n"
	"p{margin:6px 0;overflow-wrap:anywhere}.in{margin-left:20px}.l{display:inline-block;"
	"min-width:5em;font-weight:600;margin-right:.6em}\n"
	".in .l{min-width:3em}.strong{font-weight:600}.good{color:var(--good)}.warn{color:var(--warn)}"
	".bad{color:var(--bad)}.dim{color:var(--dim)}\n"
	".lead{font-size:17px;font-weight:600;padding:10px 14px;border-left:5px solid;"
	"background:var(--card);border-radius:4px}\n"
	".card{border:1px solid var(--line);border-left-width:5px;border-radius:6px;padding:6px "
	"14px;margin:12px 0;background:var(--card)}.card.bad{border-left-color:var(--bad)}"
	".card.warn{border-left-color:var(--warn)}.card.good{border-left-color:var(--good)}"
	".card,.card p{color:var(--fg)}.card .l.bad{color:var(--bad)}"
	".card .l.warn{color:var(--warn)}.card p.dim{color:var(--dim)}\n"
	".to{display:inline-block;margin:2px 0 2px 20px}a{color:var(--link)}code,pre{font-family:ui-monospace,'DejaVu Sans "
	"Mono',Consolas,monospace;font-size:13px}code{background:var(--card);padding:1px 4px;"
	"border-radius:3px}.card code{background:var(--bg)}\n"
	"pre{overflow-x:auto;background:var(--card);padding:8px 12px;border-radius:4px}\n"
	".scroll{overflow-x:auto;max-width:100%;margin:8px 0}.scroll:focus{outline:2px solid "
	"var(--link)}\n"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{border:1px solid "
	"var(--line);padding:3px 8px;text-align:left;vertical-align:top}th{background:var(--card);"
	"font-weight:600;white-space:nowrap}.matrix td,.matrix th{white-space:nowrap}"
	".matrix td{text-align:center}.matrix td:target,.card:target,h2:target{outline:3px solid "
	"var(--link)}\n"
	"details{margin:10px 0}summary{cursor:pointer;color:var(--link)}nav{margin:8px 0 "
	"16px}nav a{margin-right:1em;white-space:nowrap}\n"
	"figure{margin:12px 0}figcaption{font-weight:600;margin-bottom:4px}svg{display:block}"
	/* A drawing shrinks to three quarters of its size, and then scrolls. */
	".fit{max-width:100%;height:auto}"
	".fit5{min-width:500px}.fit6{min-width:600px}.fit7{min-width:700px}"
	".fit8{min-width:800px}.fit9{min-width:900px}.fit10{min-width:1000px}"
	".fit11{min-width:1100px}.fit12{min-width:1200px}.fit13{min-width:1300px}"
	".fit14{min-width:1400px}.fit15{min-width:1500px}.fit16{min-width:1600px}"
	".fit17{min-width:1700px}.fit18{min-width:1800px}.fit19{min-width:1900px}"
	".fit20{min-width:2000px}"
	"footer{margin-top:36px;color:var(--dim);font-size:13px}\n"
	/*
	 * Presentation attributes are weaker than any rule, so that the dark page repaints the
	 * drawings.
	 */
	"@media (prefers-color-scheme:dark){.o-t{fill:#e6edf3}.o-s{fill:#9da7b3}.o-bg{fill:#0d1117}"
	".o-socket{fill:#161b22;stroke:#3d444d}.o-node{fill:#0d1117;stroke:#3d444d}"
	".o-switch{fill:#241d0b;stroke:#9e7a1f}.o-host{fill:#21262d;stroke:#9da7b3}"
	".o-port{fill:#161b22;stroke:#9da7b3}.o-gpu{fill:#16240a;stroke:#76b900}"
	".o-nic{fill:#0c2136;stroke:#58a6ff}.o-edge{stroke:#0d1117}.o-wire{stroke:#9da7b3}"
	".o-slow{stroke:#e3b341}.o-slowtext{fill:#e3b341}.o-grid{stroke:#30363d}}\n"
	"@media print{:root{--fg:#000;--dim:#444;--bg:#fff;--card:#fff;--line:#999;--good:#0a6b3d;"
	"--warn:#7d4e00;--bad:#b3261e;--link:#000}main{max-width:none;padding:0}nav{display:none}"
	/*
	 * Evidence and notes are open, lists of what holds stay closed. A drawing is one sheet, and
	 * scales.
	 */
	"body{font:9pt/1.3 system-ui,'DejaVu Sans',Arial,sans-serif}p{margin:2pt 0}"
	"h1{font-size:13pt}h2{font-size:11pt;margin:10pt 0 4pt}.lead{font-size:10pt;padding:4pt 8pt}"
	".card{padding:2pt 8pt;margin:5pt 0}.to{display:none}code,pre{font-size:8pt}"
	".card details::details-content,details:has(.card)::details-content{"
	"content-visibility:visible;display:block;block-size:auto}"
	"p,figure,tr{break-inside:avoid}h2,h3,summary{break-after:avoid}"
	".scroll{overflow:visible}.scroll svg{min-width:0!important;max-width:100%;max-height:235mm;height:auto}"
	"table{font-size:8pt}th,td{padding:1pt 4pt}@page{size:A4;margin:12mm}}\n"
	"</style>\n";

static const char *const classes[STYLE_N] = {
	[STYLE_PLAIN] = "",    [STYLE_STRONG] = "strong", [STYLE_GOOD] = "good",
	[STYLE_WARN] = "warn", [STYLE_BAD] = "bad",       [STYLE_DIM] = "dim",
	[STYLE_CODE] = "",
};

/* ---- text ---- */

/* What runs of text share: the only way of a text into the page. */
void page_text(struct page *p, const char *s, size_t n)
{
	AUTO_FREE char *text = xstrndup(s, n);
	AUTO_STRBUF struct strbuf filtered = {0};

	if (!p->format->filter) {
		markup_puts(p->out, text);
		return;
	}
	p->format->filter(p->format->filter_arg, text, &filtered);
	markup_puts(p->out, strbuf_str(&filtered));
}

/* Commands in backquotes become code, a newline a line break. */
static void put_rich(struct page *p, const char *s)
{
	while (*s) {
		size_t code = command_length(s), n = code ? code : strcspn(s, "`\n");

		if (code) {
			strbuf_puts(p->out, "<code>");
			page_text(p, s + 1, n - 2);
			strbuf_puts(p->out, "</code>");
		} else if (n) {
			page_text(p, s, n);
		} else {
			strbuf_puts(p->out, *s == '\n' ? (s[1] ? "<br>" : "") : "`");
			n = 1;
		}
		s += n;
	}
}

static void put_class(struct page *p, const char *first, enum style style)
{
	const char *second = classes[style];

	if (*first || *second)
		strbuf_printf(p->out, " class=\"%s%s%s\"", first, *first && *second ? " " : "",
			      second);
}

/* ---- ids: each once, and links only to those that there are ---- */

static size_t page_hash(const char *s)
{
	size_t h = 5381;

	for (; *s; s++)
		h = h * 33 + (unsigned char)*s;
	return h;
}

static bool has_id(const struct page *p, const char *id)
{
	for (size_t i = page_hash(id) % p->id_room; p->ids[i].id; i = (i + 1) % p->id_room)
		if (strcmp(p->ids[i].id, id) == 0)
			return true;
	return false;
}

static void put_id(struct page *p, const char *id)
{
	size_t i = id ? page_hash(id) % p->id_room : 0;

	for (; id && p->ids[i].id; i = (i + 1) % p->id_room) {
		if (strcmp(p->ids[i].id, id) != 0)
			continue;
		if (!p->ids[i].used) {
			strbuf_puts(p->out, " id=\"");
			markup_put_id(p->out, id);
			strbuf_puts(p->out, "\"");
		}
		p->ids[i].used = true;
		return;
	}
}

/* ---- blocks ---- */

static void put_heading(struct page *p, const struct block *b)
{
	strbuf_puts(p->out, "<h3>");
	put_rich(p, b->text);
	strbuf_puts(p->out, "</h3>\n");
}

static void put_section(struct page *p, const struct block *b)
{
	strbuf_puts(p->out, "<h2");
	put_id(p, b->anchor);
	strbuf_puts(p->out, ">");
	put_rich(p, b->text);
	strbuf_puts(p->out, "</h2>\n");
}

static void put_paragraph(struct page *p, const struct block *b)
{
	strbuf_puts(p->out, "<p");
	put_class(p, b->indent ? "in" : "", b->style);
	strbuf_puts(p->out, ">");
	put_rich(p, b->text);
	strbuf_puts(p->out, "</p>\n");
}

/* Blanks behind a label align text in columns; a page has its own way. */
static size_t label_length(const char *label)
{
	size_t n = strlen(label);

	while (n && label[n - 1] == ' ')
		n--;
	return n;
}

static void put_item(struct page *p, const struct block *b)
{
	strbuf_puts(p->out, "<p");
	put_class(p, b->indent ? "in" : "", b->style);
	strbuf_puts(p->out, "><span");
	put_class(p, "l", b->label_style);
	strbuf_puts(p->out, ">");
	page_text(p, b->label, label_length(b->label));
	strbuf_puts(p->out, "</span> ");
	put_rich(p, b->text);
	strbuf_puts(p->out, "</p>\n");
}

static void put_verbatim(struct page *p, const struct block *b)
{
	strbuf_puts(p->out, "<pre>");
	page_text(p, b->text, strlen(b->text));
	strbuf_puts(p->out, "</pre>\n");
}

static void put_lead(struct page *p, const struct block *b)
{
	strbuf_puts(p->out, "<p");
	put_class(p, "lead", b->style);
	strbuf_puts(p->out, ">");
	put_rich(p, b->text);
	strbuf_puts(p->out, "</p>\n");
}

static void put_link(struct page *p, const struct block *b)
{
	if (!has_id(p, b->anchor))
		return;
	strbuf_puts(p->out, "<p class=\"in to\"><a href=\"#");
	markup_put_id(p->out, b->anchor);
	strbuf_puts(p->out, "\">");
	put_rich(p, b->text);
	strbuf_puts(p->out, "</a></p>\n");
}

/* ---- groups ---- */

static void put_begin(struct page *p, const struct block *b)
{
	if (b->group == GROUP_FOLD) {
		strbuf_puts(p->out, "<details");
		put_id(p, b->anchor);
		strbuf_puts(p->out, "><summary>");
		put_rich(p, b->text);
		strbuf_puts(p->out, "</summary>\n");
		return;
	}
	strbuf_puts(p->out, "<div");
	put_class(p, b->group == GROUP_CARD ? "card" : "", b->style);
	put_id(p, b->anchor);
	strbuf_puts(p->out, ">\n");
}

/* ---- tables ---- */

/* column, row: it names one. */
static void put_cell(struct page *p, const struct block *b, size_t i, bool column, bool row)
{
	const struct cell *c = &b->cells[i];
	const char *tag = column || row ? "th" : "td", *text = c->text + strspn(c->text, " ");

	strbuf_printf(p->out, "<%s%s", tag,
		      column ? " scope=\"col\""
		      : row  ? " scope=\"row\""
			     : "");
	put_id(p, c->anchor);
	if (!column)
		put_class(p, "", c->style);
	strbuf_puts(p->out, ">");
	put_rich(p, text);
	strbuf_printf(p->out, "%s</%s>", cell_sign(c), tag);
}

static void put_table_row(struct page *p, const struct block *b, size_t first, bool is_head)
{
	size_t end = first + b->columns < b->cell_n ? first + b->columns : b->cell_n;

	strbuf_puts(p->out, "<tr>");
	for (size_t i = first; i < end; i++)
		put_cell(p, b, i, is_head, !is_head && i == first);
	for (size_t i = end; i < first + b->columns; i++)
		strbuf_puts(p->out, "<td></td>");
	strbuf_puts(p->out, "</tr>\n");
}

static void put_signs(struct page *p, const struct block *b)
{
	bool shorter = false, wrong = false;

	for (size_t i = 0; i < b->cell_n; i++) {
		shorter = shorter || strcmp(cell_sign(&b->cells[i]), " !") == 0;
		wrong = wrong || strcmp(cell_sign(&b->cells[i]), " x") == 0;
	}
	if (shorter || wrong)
		strbuf_printf(p->out, "<p class=\"dim\">%s%s%s</p>\n",
			      shorter ? "! falls short of what is expected" : "",
			      shorter && wrong ? "; " : "", wrong ? "x failed" : "");
}

static void put_table(struct page *p, const struct block *b)
{
	bool has_head = table_has_head(b);
	size_t first = has_head ? b->columns : 0;

	/* Focusable, so that the keyboard can scroll it. */
	strbuf_printf(p->out, "<div class=\"scroll\" tabindex=\"0\"><table%s>\n",
		      b->is_matrix ? " class=\"matrix\"" : "");
	if (has_head) {
		strbuf_puts(p->out, "<thead>\n");
		put_table_row(p, b, 0, true);
		strbuf_puts(p->out, "</thead>\n");
	}
	strbuf_puts(p->out, "<tbody>\n");
	for (size_t i = first; i < b->cell_n; i += b->columns)
		put_table_row(p, b, i, false);
	strbuf_puts(p->out, "</tbody></table></div>\n");
	put_signs(p, b);
	if (b->is_matrix && table_has_figures(b))
		picture_heat(p, b);
}

/* ---- pictures ---- */

/* Its texts are escaped already; they pass the filter too, and nothing between '<' and '>' does. */
static void put_svg(struct page *p, const char *svg)
{
	while (*svg) {
		size_t n = strcspn(svg, "<"), tag = strcspn(svg + n, ">");
		AUTO_FREE char *text = xstrndup(svg, n);
		AUTO_STRBUF struct strbuf filtered = {0};

		if (p->format->filter) {
			p->format->filter(p->format->filter_arg, text, &filtered);
			strbuf_puts(p->out, strbuf_str(&filtered));
		} else {
			strbuf_puts(p->out, text);
		}
		tag += svg[n + tag] == '>';
		strbuf_add(p->out, svg + n, tag);
		svg += n + tag;
	}
}

static void put_drawing(struct page *p, const struct block *b)
{
	strbuf_puts(p->out, "<div class=\"scroll\" tabindex=\"0\">\n");
	put_svg(p, b->text);
	strbuf_puts(p->out, "</div>\n");
}

static void (*const put_block[BLOCK_KIND_N])(struct page *p, const struct block *b) = {
	[BLOCK_HEADING] = put_heading, [BLOCK_PARAGRAPH] = put_paragraph,
	[BLOCK_ITEM] = put_item,       [BLOCK_VERBATIM] = put_verbatim,
	[BLOCK_TABLE] = put_table,     [BLOCK_LEAD] = put_lead,
	[BLOCK_SECTION] = put_section, [BLOCK_LINK] = put_link,
	[BLOCK_BEGIN] = put_begin,     [BLOCK_CHART] = picture_chart,
	[BLOCK_DRAWING] = put_drawing,
};

/* ---- the whole ---- */

static void add_id(struct page *p, const char *id)
{
	size_t i;

	if (!id || has_id(p, id))
		return;
	for (i = page_hash(id) % p->id_room; p->ids[i].id; i = (i + 1) % p->id_room)
		;
	p->ids[i].id = id;
}

static size_t count_ids(const struct document *d)
{
	size_t n = 1;

	for (size_t i = 0; i < d->block_n; i++)
		n += 1 + d->blocks[i].cell_n;
	return n;
}

/*
 * Boxes have their ids in the drawing already: links may name them, and nothing else may be called
 * so.
 */
static void add_drawing_ids(struct page *p, struct arena *a, const char *svg)
{
	static const char mark[] = " id=\"" DRAWING_ID;
	size_t prefix = strlen(" id=\"");

	for (const char *s = svg; (s = strstr(s, mark));) {
		s += prefix;
		add_id(p, arena_strndup(a, s, strcspn(s, "\"")));
	}
}

static size_t count_drawn(const struct document *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->block_n; i++)
		if (d->blocks[i].kind == BLOCK_DRAWING)
			for (const char *s = d->blocks[i].text; (s = strstr(s, DRAWING_ID)); s++)
				n++;
	return n;
}

static void collect_ids(struct page *p, const struct document *d, struct arena *a)
{
	p->id_room = 2 * (count_ids(d) + count_drawn(d));
	p->ids = arena_alloc(a, p->id_room, sizeof(*p->ids));
	for (size_t i = 0; i < d->block_n; i++) {
		const struct block *b = &d->blocks[i];

		if (b->kind == BLOCK_SECTION || b->kind == BLOCK_BEGIN)
			add_id(p, b->anchor);
		if (b->kind == BLOCK_DRAWING)
			add_drawing_ids(p, a, b->text);
		for (size_t k = 0; k < b->cell_n; k++)
			add_id(p, b->cells[k].anchor);
	}
}

/* Links to the sections, of a page that has several. */
static void put_contents(struct page *p, const struct document *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->block_n; i++)
		n += d->blocks[i].kind == BLOCK_SECTION;
	if (n < 3)
		return;
	strbuf_puts(p->out, "<nav aria-label=\"Contents\">");
	for (size_t i = 0; i < d->block_n; i++) {
		const struct block *b = &d->blocks[i];

		if (b->kind != BLOCK_SECTION)
			continue;
		strbuf_puts(p->out, "<a href=\"#");
		markup_put_id(p->out, b->anchor);
		strbuf_puts(p->out, "\">");
		page_text(p, b->text, strlen(b->text));
		strbuf_puts(p->out, "</a> ");
	}
	strbuf_puts(p->out, "</nav>\n");
}

static void put_title(struct page *p, const char *open, const char *title, const char *close)
{
	strbuf_puts(p->out, open);
	page_text(p, title, strlen(title));
	strbuf_puts(p->out, close);
}

/* A group's end is the end tag of what it began with. */
static void put_blocks(struct page *p, const struct document *d)
{
	const struct block *open[PAGE_MAX_DEPTH];
	size_t depth = 0;

	for (size_t i = 0; i < d->block_n; i++) {
		const struct block *b = &d->blocks[i];

		if (b->kind == BLOCK_BEGIN && b->group == GROUP_TEXT) {
			i = end_of_group(d, i);
			continue;
		}
		if (b->kind == BLOCK_BEGIN && depth < PAGE_MAX_DEPTH)
			open[depth++] = b;
		if (b->kind == BLOCK_END && depth)
			strbuf_puts(p->out, open[--depth]->group == GROUP_FOLD ? "</details>\n"
									       : "</div>\n");
		else if (put_block[b->kind])
			put_block[b->kind](p, b);
	}
}

void document_write_html(const struct document *d, const struct page_format *format,
			 struct strbuf *out)
{
	struct page p = {.out = out, .format = format};
	struct arena *a = arena_new();
	const char *title = document_title_of(d);

	collect_ids(&p, d, a);
	strbuf_puts(out, head);
	put_title(&p, "<title>", title, "</title>\n");
	strbuf_puts(out, style_sheet);
	strbuf_puts(out, "</head>\n<body>\n<main>\n");
	put_title(&p, "<h1>", title, "</h1>\n");
	put_contents(&p, d);
	put_blocks(&p, d);
	if (format->made)
		put_title(&p, "<footer><p>", format->made, "</p></footer>\n");
	strbuf_puts(out, "</main>\n</body>\n</html>\n");
	arena_free(a);
}
