/* SPDX-License-Identifier: Apache-2.0 */
/* The topology as one self-contained SVG: the tree from the sockets on the left to GPUs and NICs on
 * the right. */
#include "topology/draw_impl.h"

#include "base/alloc.h"
#include "base/markup.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	HEADER = 104,
	FOOTER = 16,
	LEGEND_Y = 68,
	TITLE_CHARS = 62, /* of a line: an empty drawing is as wide */
	TITLE_LINE = 24,
	LANE_WIDTH = 62,
	LEAST_PERCENT = 75, /* of its size, at which its text is legible */
	MOST_LEAST = 20,    /* the last class of the style sheet */
	BAR_WIDTH = 24,
	JOIN_ABOVE = 10, /* the frames */
	SOCKET_BEND = 20,
	EMPTY_WIDTH = 760
};
enum { LIST_X = 20, LIST_LINE = 15, LIST_GAP = 5 };

/* ---- paint: presentation attributes, which the style sheet of a page can only repaint ---- */

enum paint {
	PAINT_HEAD, /* texts */
	PAINT_BOLD,
	PAINT_TEXT,
	PAINT_SMALL,
	PAINT_LINK,
	PAINT_SLOW_LINK,
	PAINT_MARK,
	PAINT_SOCKET, /* boxes */
	PAINT_NODE,
	PAINT_SWITCH,
	PAINT_HOST,
	PAINT_PORT,
	PAINT_GPU,
	PAINT_NIC,
	PAINT_BAR,
	PAINT_WIRE, /* lines */
	PAINT_SLOW_WIRE,
	PAINT_NVLINK,
	PAINT_EDGE,
	PAINT_N
};

static const char *const paints[PAINT_N] = {
	[PAINT_HEAD] = "class=\"o-t\" fill=\"#1f2328\" font-size=\"18\" font-weight=\"bold\"",
	[PAINT_BOLD] = "class=\"o-t\" fill=\"#1f2328\" font-weight=\"bold\"",
	[PAINT_TEXT] = "class=\"o-t\" fill=\"#1f2328\"",
	[PAINT_SMALL] = "class=\"o-s\" fill=\"#59636e\"",
	[PAINT_LINK] = "class=\"o-s\" fill=\"#59636e\" font-size=\"10\"",
	[PAINT_SLOW_LINK] =
		"class=\"o-slowtext\" fill=\"#7d5800\" font-size=\"10\" font-weight=\"bold\"",
	[PAINT_MARK] = "fill=\"#fff\" font-size=\"10\" font-weight=\"bold\"",
	[PAINT_SOCKET] = "class=\"o-socket\" fill=\"#f6f8fa\" stroke=\"#d1d9e0\"",
	[PAINT_NODE] = "class=\"o-node\" fill=\"#fff\" stroke=\"#d1d9e0\"",
	[PAINT_SWITCH] =
		"class=\"o-switch\" fill=\"#fbf4e6\" stroke=\"#d4a72c\" stroke-dasharray=\"4 3\"",
	[PAINT_HOST] = "class=\"o-host\" fill=\"#eaeef2\" stroke=\"#59636e\"",
	[PAINT_PORT] = "class=\"o-port\" fill=\"#fff\" stroke=\"#59636e\"",
	[PAINT_GPU] = "class=\"o-gpu\" fill=\"#eef7df\" stroke=\"#5a8f00\"",
	[PAINT_NIC] = "class=\"o-nic\" fill=\"#ddf4ff\" stroke=\"#0969da\"",
	[PAINT_BAR] = "class=\"o-bar\" fill=\"#76b900\"",
	[PAINT_WIRE] = "class=\"o-wire\" fill=\"none\" stroke=\"#818b98\" stroke-width=\"1.5\"",
	[PAINT_SLOW_WIRE] =
		"class=\"o-slow\" fill=\"none\" stroke=\"#bf8700\" stroke-width=\"2.5\"",
	[PAINT_NVLINK] = "fill=\"none\" stroke=\"#76b900\" stroke-width=\"4\"",
	[PAINT_EDGE] = "class=\"o-edge\" fill=\"none\" stroke=\"#fff\" stroke-width=\"9\"",
};

/* ---- text ---- */

/* At most max characters of a text of the machine. */
static void put_text(struct strbuf *out, const char *s, size_t max)
{
	size_t n = strlen(s), keep = max > 2 ? max - 2 : max;

	if (n <= max) {
		markup_add(out, s, n);
		return;
	}
	/* Not in the middle of a character. */
	while (keep && ((unsigned char)s[keep] & 0xc0) == 0x80)
		keep--;
	markup_add(out, s, keep);
	strbuf_puts(out, "..");
}

static void put_line(struct strbuf *out, enum paint paint, int x, int y, const char *s, size_t max)
{
	strbuf_printf(out, "<text %s x=\"%d\" y=\"%d\">", paints[paint], x, y);
	put_text(out, s, max);
	strbuf_puts(out, "</text>\n");
}

static void put_rect(struct strbuf *out, enum paint paint, int x, int y, int width, int height)
{
	strbuf_printf(out, "<rect %s x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>\n",
		      paints[paint], x, y, width, height);
}

/* ---- boxes ---- */

static const char *state_colour(enum chain_state s)
{
	return s == CHAIN_BAD ? "#b3261e" : s == CHAIN_POSSIBLE ? "#8a5a00" : "#59636e";
}

/* As in the matrix of text. */
static const char *state_sign(enum chain_state s)
{
	return s == CHAIN_BAD ? "x" : s == CHAIN_POSSIBLE ? "~" : "?";
}

static const char *port_title(const struct box *b)
{
	static const struct {
		int64_t type;
		const char *title;
	} titles[] = {
		{PCI_PORT_ROOT, "root port"},
		{PCI_PORT_UPSTREAM, "upstream port"},
		{PCI_PORT_DOWNSTREAM, "downstream port"},
	};

	for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++)
		if (fact_is(b->pci->port_type, titles[i].type))
			return titles[i].title;
	return "bridge";
}

/* The driver's name of it without its maker, else the one that pci.ids has. */
const char *box_model(const struct drawing *d, const struct box *b, char *buf, size_t size)
{
	static const char *const makers[] = {"NVIDIA Corporation ", "NVIDIA "};
	const struct machine *m = d->t->machine;
	const struct gpu *g;
	const char *model;

	if (b->kind == BOX_NIC)
		return m->rdma[b->endpoint->index].name;
	g = &m->gpus[b->endpoint->index];
	model = fact_str_or(g->model, NULL);
	model = model ? model : pci_device_name(g->pci, buf, size);
	for (size_t i = 0; i < sizeof(makers) / sizeof(*makers); i++)
		if (text_starts_with(model, makers[i]))
			return model + strlen(makers[i]);
	return model;
}

/* To the finding, in a page that has it. */
static bool open_link(const struct drawing *d, const struct draw_note *note, struct strbuf *out)
{
	if (!d->in_page || !note)
		return false;
	strbuf_puts(out, "<a href=\"#");
	markup_put_id(out, note->rule);
	strbuf_puts(out, "\">");
	return true;
}

static void put_mark_title(const struct mark *mark, struct strbuf *out)
{
	char sentence[512];

	if (mark->note_n)
		put_text(out, mark->titles, SIZE_MAX);
	else if (mark->link)
		put_text(out, chain_explain(mark->path, mark->link, sentence, sizeof(sentence)),
			 SIZE_MAX);
	else
		strbuf_puts(out, "onehop check lists them");
	if (mark->note_n > TITLES_PER_MARK)
		strbuf_printf(out, "\nand %zu more: onehop check lists them",
			      mark->note_n - TITLES_PER_MARK);
}

/* The sign is there so that the colour is not all that tells them apart. */
static void put_mark_text(const struct mark *mark, bool in_chip, struct strbuf *out)
{
	char label[96];

	strbuf_puts(out, state_sign(mark->state));
	if (in_chip)
		return;
	snprintf(label, sizeof(label), mark->note_n > 1 ? " %s (%zu)" : " %s", mark->label,
		 mark->note_n);
	put_text(out, label, MARK_CHARS);
}

static void draw_mark(const struct drawing *d, const struct mark *mark, int x, int y, int width,
		      bool in_chip, struct strbuf *out)
{
	bool linked = open_link(d, mark->note, out);

	strbuf_puts(out, "<g><title>");
	put_mark_title(mark, out);
	strbuf_printf(out,
		      "</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" "
		      "fill=\"%s\"/>\n<text %s x=\"%d\" y=\"%d\">",
		      x, y, width, MARK_HEIGHT - 2, state_colour(mark->state), paints[PAINT_MARK],
		      x + (in_chip ? 4 : 5), y + 11);
	put_mark_text(mark, in_chip, out);
	strbuf_puts(out, linked ? "</text>\n</g></a>\n" : "</text>\n</g>\n");
}

static void draw_outline(const struct box *b, int x, int y, int width, int height,
			 struct strbuf *out)
{
	static const enum paint box_paints[] = {PAINT_HOST, PAINT_PORT, PAINT_GPU, PAINT_NIC};

	put_rect(out, box_paints[b->kind], x, y, width, height);
	if (b->worst > CHAIN_NA)
		strbuf_printf(
			out,
			"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"none\" "
			"stroke=\"%s\" stroke-width=\"2\"/>\n",
			x, y, width, height, state_colour(b->worst));
}

static const char *host_name(const struct box *b)
{
	return b->root ? b->root : "unknown";
}

static void draw_lines(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	int x = b->x + 10, y = b->y + BOX_PAD + BOX_LINE - 4;
	char name[128];

	switch (b->kind) {
	case BOX_HOST:
		put_line(out, PAINT_BOLD, x, y, "host bridge", PORT_CHARS);
		put_line(out, PAINT_SMALL, x, y + BOX_LINE, host_name(b), PORT_CHARS);
		break;
	case BOX_PORT:
		put_line(out, PAINT_BOLD, x, y, port_title(b), PORT_CHARS);
		put_line(out, PAINT_SMALL, x, y + BOX_LINE, b->pci->name, PORT_CHARS);
		break;
	case BOX_GPU:
	case BOX_NIC:
		put_line(out, PAINT_BOLD, x, y, b->endpoint->name, ENDPOINT_CHARS);
		put_line(out, PAINT_TEXT, x, y + BOX_LINE, box_model(d, b, name, sizeof(name)),
			 ENDPOINT_CHARS);
		put_line(out, PAINT_SMALL, x, y + 2 * BOX_LINE, b->pci->name, ENDPOINT_CHARS);
		break;
	}
}

static void open_box(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	strbuf_puts(out, "<g");
	if (d->in_page && b->kind != BOX_HOST) {
		strbuf_puts(out, " id=\"box-");
		markup_put_id(out, b->pci->name);
		strbuf_puts(out, "\"");
	}
	strbuf_puts(out, ">\n");
}

static void draw_chip(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	int x = b->chip_x + b->chip_width - (int)b->mark_n * SIGN_WIDTH - 2, y = b->chip_y;
	bool is_endpoint = box_is_endpoint(b);

	open_box(d, b, out);
	draw_outline(b, b->chip_x, y, b->chip_width, CHIP_HEIGHT, out);
	if (is_endpoint)
		put_line(out, PAINT_BOLD, b->chip_x + 6, y + 14, b->endpoint->name, 8);
	put_line(out, PAINT_SMALL, b->chip_x + (is_endpoint ? 58 : 6), y + 14,
		 b->pci ? b->pci->name : host_name(b), PORT_CHARS);
	for (size_t i = 0; i < b->mark_n; i++)
		draw_mark(d, &b->marks[i], x + (int)i * SIGN_WIDTH, y + 3, SIGN_WIDTH - 2, true,
			  out);
	strbuf_puts(out, "</g>\n");
	for (const struct box *c = b->first; c; c = c->next)
		draw_chip(d, c, out);
}

static void draw_fold(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf title = {0};

	strbuf_printf(&title, "%s, with all below it the same as %s:",
		      b->kind == BOX_HOST ? "host bridge" : "PCIe switch",
		      b->pci ? b->like->pci->name : host_name(b->like));
	put_rect(out, PAINT_SWITCH, b->x, b->y, b->width, b->height);
	put_line(out, PAINT_BOLD, b->x + CHIP_PAD, b->y + SWITCH_HEAD - 2, strbuf_str(&title),
		 title.len);
	draw_chip(d, b, out);
}

static void draw_box(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	int y = b->y + b->height - BOX_PAD - marks_height(b) + 2;

	if (b->like) {
		draw_fold(d, b, out);
		return;
	}
	open_box(d, b, out);
	draw_outline(b, b->x, b->y, b->width, b->height, out);
	draw_lines(d, b, out);
	for (size_t i = 0; i < b->mark_n; i++, y += MARK_HEIGHT)
		draw_mark(d, &b->marks[i], b->x + 5, y, b->width - 10, false, out);
	strbuf_puts(out, "</g>\n");
	for (const struct box *c = b->first; c; c = c->next)
		draw_box(d, c, out);
}

/* ---- links ---- */

static bool below(struct fact_int f, struct fact_int limit)
{
	return fact_known(f) && fact_known(limit) && f.value < limit.value;
}

static bool wire_text(const struct wire *w, char *buf, size_t size)
{
	struct fact_int speed = wire_speed_limit(w->lower), width = wire_width_limit(w->lower);
	char link[48];

	if (!fact_known(w->speed) && !fact_known(w->width)) {
		snprintf(buf, size, "link unknown");
		return false;
	}
	pci_link_format(w->speed, w->width, link, sizeof(link));
	if (below(w->speed, speed)) {
		snprintf(buf, size, "%.1f of %.1f GT/s x%" PRId64, (double)w->speed.value / 1000,
			 (double)speed.value / 1000, fact_or(w->width, 0));
		return true;
	}
	if (below(w->width, width)) {
		snprintf(buf, size, "%s of x%" PRId64, link, width.value);
		return true;
	}
	snprintf(buf, size, "%s%s", link, w->idle ? ", idle" : "");
	return false;
}

bool box_link_text(const struct drawing *d, const struct box *b, char *buf, size_t size)
{
	struct wire w;

	*buf = '\0';
	if (!b->pci || !has_wire(b->pci))
		return false;
	w = wire_above(b->pci, b->endpoint ? endpoint_gpu(d->t->machine, b->endpoint) : NULL);
	return wire_text(&w, buf, size);
}

/* From the parent to a bus line close to it, along that, and on to the child. */
static void draw_wire(const struct drawing *d, const struct box *from, const struct box *to,
		      struct strbuf *out)
{
	int x = from->x + from->width, bend = x + 16;
	char text[96];
	bool slow = box_link_text(d, to, text, sizeof(text));

	strbuf_printf(out, "<path %s d=\"M%d %dH%dV%dH%d\"/>\n",
		      paints[slow ? PAINT_SLOW_WIRE : PAINT_WIRE], x, box_middle(from), bend,
		      box_middle(to), to->x);
	if (!*text)
		return;
	strbuf_printf(out, "<text %s text-anchor=\"end\" x=\"%d\" y=\"%d\">",
		      paints[slow ? PAINT_SLOW_LINK : PAINT_LINK],
		      to->x - (box_is_switch(to) && !to->like ? SWITCH_PAD + 4 : 5),
		      box_middle(to) - 5);
	put_text(out, text, sizeof(text));
	strbuf_puts(out, "</text>\n");
}

static void draw_wires(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	for (const struct box *c = b->first; c && !b->like; c = c->next) {
		draw_wire(d, b, c, out);
		draw_wires(d, c, out);
	}
}

/* ---- frames ---- */

static void draw_frame(const struct drawing *d, const struct frame *f, struct strbuf *out)
{
	const char *what = f->is_socket ? "socket" : "NUMA node";
	const char *continued = f->continued ? " (continued)" : "";
	const struct machine *m = d->t->machine;
	char title[96];

	put_rect(out, f->is_socket ? PAINT_SOCKET : PAINT_NODE, f->x, f->y, f->width, f->height);
	if (f->id < 0)
		snprintf(title, sizeof(title), "%s unknown%s", what, continued);
	else
		snprintf(title, sizeof(title), "%s %" PRId64 "%s", what, f->id, continued);
	put_line(out, PAINT_BOLD, f->x + 12, f->y + 17, title, sizeof(title));
	for (size_t i = 0; !f->is_socket && i < m->node_n; i++) {
		if (m->nodes[i].id != f->id || !fact_known(m->nodes[i].cpus))
			continue;
		snprintf(title, sizeof(title), "CPUs %s", m->nodes[i].cpus.value);
		put_line(out, PAINT_SMALL, f->x + (f->continued ? 200 : 120), f->y + 17, title,
			 sizeof(title));
	}
}

static void draw_switches(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	for (const struct box *c = b->first; c && !b->like; c = c->next)
		draw_switches(d, c, out);
	if (!box_is_switch(b) || b->like)
		return;
	put_rect(out, PAINT_SWITCH, b->x - SWITCH_PAD, b->top,
		 b->first->x + b->first->width - b->x + 2 * SWITCH_PAD, b->bottom - b->top);
	put_line(out, PAINT_BOLD, b->x, b->top + SWITCH_HEAD - 2, "PCIe switch", PORT_CHARS);
}

/* ---- NVLink ---- */

static int stack_x(const struct drawing *d, const struct nvlinks *nv, unsigned stack)
{
	int x = 0;

	for (unsigned i = 0; i < stack; i++)
		x += d->width + (int)nv->lane_n[i] * LANE_WIDTH;
	return x;
}

static int bar_x(const struct drawing *d, const struct nvlinks *nv, const struct bar *bar)
{
	return stack_x(d, nv, bar->stack) + d->width + (int)bar->lane * LANE_WIDTH + LANE_WIDTH -
	       BAR_WIDTH - 16;
}

static void draw_stub(const struct drawing *d, struct nvlinks *nv, size_t gpu, struct strbuf *out)
{
	const struct box *b = d->endpoints[gpu];
	int x = bar_x(d, nv, nvlink_bar(d, nv, gpu)), y = box_middle(b);

	/* A white edge shows where it passes over the bar of another group. */
	strbuf_printf(out, "<path %s d=\"M%d %dH%d\"/>\n", paints[PAINT_EDGE],
		      stack_x(d, nv, b->stack) + d->width, y, x);
	strbuf_printf(out, "<path %s d=\"M%d %dH%d\"/>\n", paints[PAINT_NVLINK], b->x + b->width, y,
		      x);
	strbuf_printf(out, "<text %s text-anchor=\"end\" x=\"%d\" y=\"%d\">NV%d</text>\n",
		      paints[PAINT_BOLD], b->x + b->width + 46, y - 6, nv->links[gpu]);
}

/* The bars of a group in two stacks are one: a line above all boxes joins them. */
static void join_bars(const struct drawing *d, const struct nvlinks *nv, const struct bar *bar,
		      struct strbuf *out)
{
	const struct bar *left = NULL;

	/* Those of a group lie one behind the other. */
	for (unsigned i = 1; i <= bar->stack && !left; i++)
		left = bar[-(int)i].bottom ? &bar[-(int)i] : NULL;
	if (left)
		strbuf_printf(out, "<path %s d=\"M%d %dV%dH%dV%d\"/>\n", paints[PAINT_NVLINK],
			      bar_x(d, nv, left) + BAR_WIDTH / 2, left->top, d->top - JOIN_ABOVE,
			      bar_x(d, nv, bar) + BAR_WIDTH / 2, bar->top);
}

static void draw_bar(const struct drawing *d, struct nvlinks *nv, const struct bar *bar,
		     struct strbuf *out)
{
	/* Between the first two rows, where no stub passes. */
	int x = bar_x(d, nv, bar), y = bar->top + 50;

	join_bars(d, nv, bar, out);
	put_rect(out, PAINT_BAR, x, bar->top, BAR_WIDTH, bar->bottom - bar->top);
	strbuf_printf(out,
		      "<text %s text-anchor=\"middle\" transform=\"translate(%d %d) "
		      "rotate(-90)\">%s</text>\n",
		      paints[PAINT_MARK], x + BAR_WIDTH / 2 + 4, y,
		      nvlink_group_is_whole(d, nv, bar->group) ? "NVLink" : "partly");
}

static void draw_nvlinks(const struct drawing *d, struct nvlinks *nv, struct strbuf *out)
{
	for (size_t i = 0; i < nv->bar_n; i++)
		if (nv->bars[i].bottom)
			draw_bar(d, nv, &nv->bars[i], out);
	for (size_t i = 0; i < d->t->gpu_n; i++)
		if (nv->links[i])
			draw_stub(d, nv, i, out);
}

static void move_right(struct box *b, int by)
{
	b->x += by;
	b->chip_x += by;
	for (struct box *c = b->first; c; c = c->next)
		move_right(c, by);
}

/* Returns how wide all are; only now it is known how many bars each stack has. */
static int set_stacks_apart(struct drawing *d, const struct nvlinks *nv)
{
	for (struct box *b = d->hosts; b; b = b->next)
		move_right(b, stack_x(d, nv, b->stack));
	for (size_t i = 0; i < d->frame_n; i++)
		d->frames[i].x += stack_x(d, nv, d->frames[i].stack);
	return stack_x(d, nv, d->stack_n);
}

/* ---- head and foot ---- */

static const char *title_of(const struct drawing_request *request)
{
	return request->title ? request->title : "GPU and NIC topology";
}

/* How much lower everything is because the title has more than one line. */
static int title_shift(const char *title)
{
	int shift = -TITLE_LINE;

	for (; *title; shift += TITLE_LINE) {
		title += draw_line_length(title, TITLE_CHARS);
		title += *title == ' ';
	}
	return shift > 0 ? shift : 0;
}

static void draw_title(const char *title, struct strbuf *out)
{
	AUTO_FREE char *line = NULL;

	for (int y = 32; *title; y += TITLE_LINE) {
		size_t n = draw_line_length(title, TITLE_CHARS);

		free(line);
		line = xstrndup(title, n);
		put_line(out, PAINT_HEAD, 20, y, line, n);
		title += n + (title[n] == ' ');
	}
}

static void draw_header(const struct topology *t, const char *title, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf text = {0};
	const char *before = ":";
	struct pair_counts c;

	topology_count(t, &c);
	draw_title(title, out);
	strbuf_printf(&text, "%zu ordered GPU pairs", c.pairs);
	for (size_t v = 0; v < PAIR_VERDICT_N; v++) {
		if (!c.by_verdict[v])
			continue;
		strbuf_printf(&text, "%s %zu %s", before, c.by_verdict[v],
			      pair_verdict_text((enum pair_verdict)v));
		before = ",";
	}
	put_line(out, PAINT_SMALL, 20, 52 + title_shift(title), strbuf_str(&text), text.len + 1);
}

/* Only colours that the drawing has: what was drawn so far is `out`. */
static void draw_legend(const char *drawn, int y, struct strbuf *out)
{
	static const struct {
		const char *colour, *used[2], *text;
		int width;
	} entries[] = {
		{"#b3261e", {"\"#b3261e\"", "\"#b3261e\""}, "x error, blocked", 130},
		{"#8a5a00",
		 {"\"#8a5a00\"", "class=\"o-slow\""},
		 "~ warning, doubtful, slow link",
		 215},
		{"#59636e", {"\">? ", "link unknown"}, "? unknown", 90},
		{"#76b900", {"stroke=\"#76b900\"", "stroke=\"#76b900\""}, "NVLink", 80},
		{"#818b98", {"class=\"o-wire\"", "class=\"o-wire\""}, "PCIe", 60},
		{"#6f42c1",
		 {"stroke=\"#6f42c1\"", "stroke=\"#6f42c1\""},
		 "link between sockets",
		 160},
	};
	int x = 20;

	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		if (!strstr(drawn, entries[i].used[0]) && !strstr(drawn, entries[i].used[1]))
			continue;
		strbuf_printf(out,
			      "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" rx=\"3\" "
			      "fill=\"%s\"/>\n",
			      x, y, entries[i].colour);
		put_line(out, PAINT_SMALL, x + 18, y + 10, entries[i].text, 64);
		x += entries[i].width;
	}
}

/* ---- the notes below the boxes ---- */

static size_t list_chars(int width)
{
	return (size_t)(width - 2 * LIST_X - 18) / 7;
}

static const char *listed_text(const struct drawing *d, const struct mark *m)
{
	return m->note_n > 1
		       ? arena_printf(d->arena, "%s (and %zu more)", m->note->title, m->note_n - 1)
		       : m->note->title;
}

static int list_height(const struct drawing *d, int width)
{
	int height = 0;

	for (size_t i = 0; i < d->listed_n; i++) {
		const char *s = listed_text(d, &d->listed[i]);

		for (height += LIST_GAP; *s; height += LIST_LINE) {
			s += draw_line_length(s, list_chars(width));
			s += *s == ' ';
		}
	}
	return height;
}

static void draw_listed(const struct drawing *d, int width, int y, struct strbuf *out)
{
	for (size_t i = 0; i < d->listed_n; i++, y += LIST_GAP) {
		const struct mark *m = &d->listed[i];

		strbuf_puts(out, "<g><title>");
		put_text(out, m->note->title, SIZE_MAX);
		strbuf_printf(out,
			      "</title><rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" rx=\"3\" "
			      "fill=\"%s\"/>\n",
			      LIST_X, y, state_colour(m->state));
		for (const char *s = listed_text(d, m); *s; y += LIST_LINE) {
			size_t k = draw_line_length(s, list_chars(width));

			put_line(out, PAINT_TEXT, LIST_X + 18, y + 10,
				 arena_printf(d->arena, "%.*s", (int)k, s), k);
			s += k + (s[k] == ' ');
		}
		strbuf_puts(out, "</g>\n");
	}
}

/* Packets between sockets take it, whatever the pair: the frames are apart as the packages are. */
static void draw_socket_links(const struct drawing *d, struct strbuf *out)
{
	const struct frame *last = NULL;

	for (size_t i = 0; i < d->frame_n; i++) {
		const struct frame *f = &d->frames[i];

		if (!f->is_socket)
			continue;
		if (last && last->id != f->id) {
			strbuf_puts(out, "<path d=\"");
			if (last->stack == f->stack)
				strbuf_printf(out, "M%d %dV%d", f->x + 40, last->y + last->height,
					      f->y);
			else
				strbuf_printf(out, "M%d %dH%dV%dH%d", last->x + last->width,
					      last->y + 40, f->x - SOCKET_BEND, f->y + 40, f->x);
			strbuf_puts(out,
				    "\" fill=\"none\" stroke=\"#6f42c1\" stroke-width=\"5\"><title>"
				    "link between the CPU sockets</title></path>\n");
		}
		last = f;
	}
}

static void draw_body(const struct drawing *d, struct nvlinks *nv, struct strbuf *out)
{
	draw_socket_links(d, out);
	for (size_t i = 0; i < d->frame_n; i++)
		draw_frame(d, &d->frames[i], out);
	for (const struct box *b = d->hosts; b; b = b->next)
		draw_switches(d, b, out);
	for (const struct box *b = d->hosts; b; b = b->next)
		draw_wires(d, b, out);
	draw_nvlinks(d, nv, out);
	for (const struct box *b = d->hosts; b; b = b->next)
		draw_box(d, b, out);
	if (!d->hosts)
		put_line(out, PAINT_SMALL, 20, d->height, "No GPUs or RDMA devices found.", 64);
}

/*
 * The size is in pixels, so that text keeps its size however wide the drawing is; what shows it
 * scrolls. In a page that is not much narrower it shrinks instead, as far as it stays legible.
 */
static void open_svg(int width, int height, bool in_page, const char *title, struct strbuf *out)
{
	const int least =
		width * LEAST_PERCENT / 100 / 100; /* in 100 pixels, as the style sheet has it */

	strbuf_printf(out,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
		      "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"'DejaVu "
		      "Sans',Verdana,Arial,sans-serif\" font-size=\"11\"",
		      width, height, width, height);
	if (in_page && least <= MOST_LEAST)
		strbuf_printf(out, " class=\"fit fit%d\"", least);
	strbuf_puts(out, ">\n<title>");
	put_text(out, title, SIZE_MAX);
	strbuf_printf(out,
		      "</title>\n<rect class=\"o-bg\" width=\"%d\" height=\"%d\" "
		      "fill=\"#fff\"/>\n",
		      width, height);
}

void topology_draw_svg(const struct topology *t, const struct drawing_request *request,
		       struct strbuf *out)
{
	struct arena *arena = arena_new();
	struct drawing d = {.t = t,
			    .notes = request->notes,
			    .note_n = request->note_n,
			    .in_page = request->in_page,
			    .arena = arena};
	AUTO_STRBUF struct strbuf body = {0};
	const char *title = title_of(request);
	struct nvlinks nv;
	int width, height;

	drawing_make(&d, HEADER + title_shift(title));
	nvlinks_make(&d, &nv);
	width = set_stacks_apart(&d, &nv);
	width = width < EMPTY_WIDTH ? EMPTY_WIDTH : width;
	height = d.height + list_height(&d, width) + FOOTER;
	draw_body(&d, &nv, &body);
	draw_listed(&d, width, d.height + LIST_GAP, &body);
	open_svg(width, height, request->in_page, title, out);
	draw_header(t, title, out);
	draw_legend(strbuf_str(&body), LEGEND_Y + title_shift(title), out);
	strbuf_puts(out, strbuf_str(&body));
	strbuf_puts(out, "</svg>\n");
	arena_free(arena);
}
