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
static const char *endpoint_model(const struct drawing *d, const struct box *b, char *buf,
				  size_t size)
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
	if (!d->in_page || !note || !note->anchor)
		return false;
	strbuf_puts(out, "<a href=\"#");
	markup_put_id(out, note->anchor);
	strbuf_puts(out, "\">");
	return true;
}

/* A sign in front of the first, so that the colour is not all that tells them apart. */
static void put_mark_line(struct strbuf *out, const struct mark *mark, int i, int x, int y)
{
	strbuf_printf(out, "<text %s x=\"%d\" y=\"%d\">", paints[PAINT_MARK], x, y);
	if (!i)
		strbuf_printf(out, "%s ", state_sign(mark->state));
	put_text(out, mark->lines[i], MARK_CHARS);
	strbuf_puts(out, "</text>\n");
}

static void draw_mark(const struct drawing *d, const struct mark *mark, const struct box *b, int y,
		      struct strbuf *out)
{
	char sentence[512];
	const char *title =
		mark->note   ? mark->note->title
		: mark->link ? chain_explain(mark->path, mark->link, sentence, sizeof(sentence))
			     : "onehop check lists them";

	bool linked = open_link(d, mark->note, out);

	strbuf_puts(out, "<g><title>");
	put_text(out, title, SIZE_MAX);
	strbuf_printf(out,
		      "</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" "
		      "fill=\"%s\"/>\n",
		      b->x + 5, y, b->width - 10, mark_height(mark) - 2, state_colour(mark->state));
	for (int i = 0; i < mark->line_n; i++)
		put_mark_line(out, mark, i, b->x + 10, y + MARK_LINE * (i + 1) - 1);
	strbuf_puts(out, linked ? "</g></a>\n" : "</g>\n");
}

static void draw_outline(const struct box *b, struct strbuf *out)
{
	static const enum paint box_paints[] = {PAINT_HOST, PAINT_PORT, PAINT_GPU, PAINT_NIC};

	put_rect(out, box_paints[b->kind], b->x, b->y, b->width, b->height);
	if (b->worst > CHAIN_NA)
		strbuf_printf(
			out,
			"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"none\" "
			"stroke=\"%s\" stroke-width=\"2\"/>\n",
			b->x, b->y, b->width, b->height, state_colour(b->worst));
}

static void draw_lines(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	int x = b->x + 10, y = b->y + BOX_PAD + BOX_LINE - 4;
	char name[128];

	switch (b->kind) {
	case BOX_HOST:
		put_line(out, PAINT_BOLD, x, y, "host bridge", PORT_CHARS);
		put_line(out, PAINT_SMALL, x, y + BOX_LINE, b->root ? b->root : "unknown",
			 PORT_CHARS);
		break;
	case BOX_PORT:
		put_line(out, PAINT_BOLD, x, y, port_title(b), PORT_CHARS);
		put_line(out, PAINT_SMALL, x, y + BOX_LINE, b->pci->name, PORT_CHARS);
		break;
	case BOX_GPU:
	case BOX_NIC:
		put_line(out, PAINT_BOLD, x, y, b->endpoint->name, ENDPOINT_CHARS);
		put_line(out, PAINT_TEXT, x, y + BOX_LINE, endpoint_model(d, b, name, sizeof(name)),
			 ENDPOINT_CHARS);
		put_line(out, PAINT_SMALL, x, y + 2 * BOX_LINE, b->pci->name, ENDPOINT_CHARS);
		break;
	}
}

static void draw_box(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	int y = b->y + b->height - BOX_PAD - marks_height(b) + 2;

	strbuf_puts(out, "<g");
	if (d->in_page && b->kind != BOX_HOST) {
		strbuf_puts(out, " id=\"box-");
		markup_put_id(out, b->pci->name);
		strbuf_puts(out, "\"");
	}
	strbuf_puts(out, ">\n");
	draw_outline(b, out);
	draw_lines(d, b, out);
	for (size_t i = 0; i < b->mark_n; i++) {
		draw_mark(d, &b->marks[i], b, y, out);
		y += mark_height(&b->marks[i]);
	}
	strbuf_puts(out, "</g>\n");
	for (const struct box *c = b->first; c; c = c->next)
		draw_box(d, c, out);
}

/* ---- links ---- */

static bool below(struct fact_int f, struct fact_int limit)
{
	return fact_known(f) && fact_known(limit) && f.value < limit.value;
}

/* "16.0 GT/s x4 of x16", "8.0 of 16.0 GT/s x16", "16.0 GT/s x16, idle"; true when it is less than
 * both ends can. */
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

static int middle(const struct box *b)
{
	return b->y + b->height / 2;
}

/* From the parent to a bus line close to it, along that, and on to the child. */
static void draw_wire(const struct drawing *d, const struct box *from, const struct box *to,
		      struct strbuf *out)
{
	int x = from->x + from->width, bend = x + 16;
	bool slow = false;
	char text[96] = "";

	if (has_wire(to->pci)) {
		const struct gpu *g =
			to->endpoint ? endpoint_gpu(d->t->machine, to->endpoint) : NULL;
		struct wire w = wire_above(to->pci, g);

		slow = wire_text(&w, text, sizeof(text));
	}
	strbuf_printf(out, "<path %s d=\"M%d %dH%dV%dH%d\"/>\n",
		      paints[slow ? PAINT_SLOW_WIRE : PAINT_WIRE], x, middle(from), bend,
		      middle(to), to->x);
	if (!*text)
		return;
	strbuf_printf(out, "<text %s text-anchor=\"end\" x=\"%d\" y=\"%d\">",
		      paints[slow ? PAINT_SLOW_LINK : PAINT_LINK],
		      to->x - (box_is_switch(to) ? SWITCH_PAD + 4 : 5), middle(to) - 5);
	put_text(out, text, sizeof(text));
	strbuf_puts(out, "</text>\n");
}

static void draw_wires(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	for (const struct box *c = b->first; c; c = c->next) {
		draw_wire(d, b, c, out);
		draw_wires(d, c, out);
	}
}

/* ---- frames ---- */

static void draw_frame(const struct drawing *d, const struct frame *f, struct strbuf *out)
{
	const char *what = f->is_socket ? "socket" : "NUMA node";
	const struct machine *m = d->t->machine;
	char title[96];

	put_rect(out, f->is_socket ? PAINT_SOCKET : PAINT_NODE, f->x, f->y, f->width, f->height);
	if (f->id < 0)
		snprintf(title, sizeof(title), "%s unknown", what);
	else
		snprintf(title, sizeof(title), "%s %" PRId64, what, f->id);
	put_line(out, PAINT_BOLD, f->x + 12, f->y + 17, title, sizeof(title));
	for (size_t i = 0; !f->is_socket && i < m->node_n; i++) {
		if (m->nodes[i].id != f->id || !fact_known(m->nodes[i].cpus))
			continue;
		snprintf(title, sizeof(title), "CPUs %s", m->nodes[i].cpus.value);
		put_line(out, PAINT_SMALL, f->x + 120, f->y + 17, title, sizeof(title));
	}
}

static void draw_switches(const struct drawing *d, const struct box *b, struct strbuf *out)
{
	for (const struct box *c = b->first; c; c = c->next)
		draw_switches(d, c, out);
	if (!box_is_switch(b))
		return;
	put_rect(out, PAINT_SWITCH, b->x - SWITCH_PAD, b->top,
		 d->column_x[b->column + 1] + d->column_width[b->column + 1] - b->x +
			 2 * SWITCH_PAD,
		 b->bottom - b->top);
	put_line(out, PAINT_BOLD, b->x, b->top + SWITCH_HEAD - 2, "PCIe switch", PORT_CHARS);
}

/* ---- NVLink ---- */

/* GPUs connected by NVLink, directly or through others, share a bar next to the tree. */
struct bar {
	int top, bottom;
	unsigned lane;
	bool whole; /* every pair of them has links */
};

struct nvlinks {
	size_t *group; /* per GPU: the first GPU of its group */
	int *links;    /* per GPU: the most that it has to another */
	struct bar *bars;
	unsigned lane_n;
};

static size_t group_of(struct nvlinks *nv, size_t i)
{
	while (nv->group[i] != i)
		i = nv->group[i] = nv->group[nv->group[i]];
	return i;
}

static void join_groups(const struct topology *t, struct nvlinks *nv)
{
	for (size_t i = 0; i < t->gpu_n; i++)
		nv->group[i] = i;
	for (size_t i = 0; i < t->gpu_n; i++) {
		for (size_t j = 0; j < t->gpu_n; j++) {
			int n = (int)fact_or(topology_path(t, i, j)->nvlinks, 0);
			size_t a = group_of(nv, i), b = group_of(nv, j);

			if (!n)
				continue;
			nv->group[a > b ? a : b] = a < b ? a : b;
			if (n > nv->links[i])
				nv->links[i] = n;
		}
	}
}

static void stretch_bars(const struct drawing *d, struct nvlinks *nv)
{
	for (size_t i = 0; i < d->t->gpu_n; i++) {
		struct bar *bar = &nv->bars[group_of(nv, i)];
		int y = middle(d->endpoints[i]);

		if (bar->bottom == 0)
			*bar = (struct bar){y - 16, y + 16, 0, true};
		if (y - 16 < bar->top)
			bar->top = y - 16;
		if (y + 16 > bar->bottom)
			bar->bottom = y + 16;
		for (size_t j = 0; j < i; j++)
			if (group_of(nv, j) == group_of(nv, i) &&
			    !path_is_nvlink(topology_path(d->t, i, j)))
				bar->whole = false;
	}
}

static bool lane_is_free(const struct drawing *d, const struct nvlinks *nv, size_t bar,
			 unsigned lane)
{
	for (size_t i = 0; i < bar; i++)
		if (nv->links[i] && nv->group[i] == i && nv->bars[i].lane == lane &&
		    nv->bars[i].top <= nv->bars[bar].bottom &&
		    nv->bars[bar].top <= nv->bars[i].bottom)
			return false;
	return lane <= d->t->gpu_n;
}

static void choose_lanes(const struct drawing *d, struct nvlinks *nv)
{
	for (size_t i = 0; i < d->t->gpu_n; i++) {
		unsigned lane = 0;

		if (!nv->links[i] || nv->group[i] != i)
			continue;
		while (!lane_is_free(d, nv, i, lane))
			lane++;
		nv->bars[i].lane = lane;
		if (lane + 1 > nv->lane_n)
			nv->lane_n = lane + 1;
	}
}

static void nvlinks_make(const struct drawing *d, struct nvlinks *nv)
{
	size_t n = d->t->gpu_n + 1;

	*nv = (struct nvlinks){0};
	nv->group = arena_alloc(d->arena, n, sizeof(*nv->group));
	nv->links = arena_alloc(d->arena, n, sizeof(*nv->links));
	nv->bars = arena_alloc(d->arena, n, sizeof(*nv->bars));
	join_groups(d->t, nv);
	stretch_bars(d, nv);
	choose_lanes(d, nv);
}

static int lane_x(const struct drawing *d, unsigned lane)
{
	return d->width + (int)lane * LANE_WIDTH + LANE_WIDTH - BAR_WIDTH - 16;
}

static void draw_stub(const struct drawing *d, struct nvlinks *nv, size_t gpu, struct strbuf *out)
{
	const struct box *b = d->endpoints[gpu];
	int x = lane_x(d, nv->bars[group_of(nv, gpu)].lane);

	/* A white edge shows where it passes over the bar of another group. */
	strbuf_printf(out, "<path %s d=\"M%d %dH%d\"/>\n", paints[PAINT_EDGE], d->width, middle(b),
		      x);
	strbuf_printf(out, "<path %s d=\"M%d %dH%d\"/>\n", paints[PAINT_NVLINK], b->x + b->width,
		      middle(b), x);
	strbuf_printf(out, "<text %s text-anchor=\"end\" x=\"%d\" y=\"%d\">NV%d</text>\n",
		      paints[PAINT_BOLD], b->x + b->width + 46, middle(b) - 6, nv->links[gpu]);
}

static void draw_bar(const struct drawing *d, const struct bar *bar, struct strbuf *out)
{
	/* Between the first two rows, where no stub passes. */
	int x = lane_x(d, bar->lane), y = bar->top + 50;

	put_rect(out, PAINT_BAR, x, bar->top, BAR_WIDTH, bar->bottom - bar->top);
	strbuf_printf(out,
		      "<text %s text-anchor=\"middle\" transform=\"translate(%d %d) "
		      "rotate(-90)\">%s</text>\n",
		      paints[PAINT_MARK], x + BAR_WIDTH / 2 + 4, y,
		      bar->whole ? "NVLink" : "partly");
}

static void draw_nvlinks(const struct drawing *d, struct nvlinks *nv, struct strbuf *out)
{
	for (size_t i = 0; i < d->t->gpu_n; i++)
		if (nv->links[i] && nv->group[i] == i)
			draw_bar(d, &nv->bars[i], out);
	for (size_t i = 0; i < d->t->gpu_n; i++)
		if (nv->links[i])
			draw_stub(d, nv, i, out);
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

/* ---- the notes that no box is for, below the boxes ---- */

static size_t list_chars(int width)
{
	return (size_t)(width - 2 * LIST_X - 18) / 7;
}

static int list_height(const struct drawing *d, int width)
{
	int height = 0;

	for (size_t i = 0; i < d->elsewhere_n; i++) {
		const char *s = d->elsewhere[i]->title;

		for (height += LIST_GAP; *s; height += LIST_LINE) {
			s += draw_line_length(s, list_chars(width));
			s += *s == ' ';
		}
	}
	return height;
}

static void draw_elsewhere(const struct drawing *d, int width, int y, struct strbuf *out)
{
	for (size_t i = 0; i < d->elsewhere_n; i++, y += LIST_GAP) {
		const struct draw_note *n = d->elsewhere[i];

		strbuf_puts(out, "<g><title>");
		put_text(out, n->title, SIZE_MAX);
		strbuf_printf(out,
			      "</title><rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" rx=\"3\" "
			      "fill=\"%s\"/>\n",
			      LIST_X, y, state_colour(n->state));
		for (const char *s = n->title; *s; y += LIST_LINE) {
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
		if (last)
			strbuf_printf(out,
				      "<path d=\"M%d %dV%d\" fill=\"none\" stroke=\"#6f42c1\" "
				      "stroke-width=\"5\"><title>link between the CPU "
				      "sockets</title></path>\n",
				      f->x + 40, last->y + last->height, f->y);
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
 * The size is in pixels, so that text keeps its size however wide the drawing is; what shows it scrolls. In a page that
 * is not much narrower it shrinks instead, as far as it stays legible.
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
	if (in_page)
		strbuf_printf(out, " class=\"fit fit%d\"", least < MOST_LEAST ? least : MOST_LEAST);
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
	width = d.width + (int)nv.lane_n * LANE_WIDTH;
	width = width < EMPTY_WIDTH ? EMPTY_WIDTH : width;
	height = d.height + list_height(&d, width) + FOOTER;
	draw_body(&d, &nv, &body);
	draw_elsewhere(&d, width, d.height + LIST_GAP, &body);
	open_svg(width, height, request->in_page, title, out);
	draw_header(t, title, out);
	draw_legend(strbuf_str(&body), LEGEND_Y + title_shift(title), out);
	strbuf_puts(out, strbuf_str(&body));
	strbuf_puts(out, "</svg>\n");
	arena_free(arena);
}
