/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes of a drawing: which there are, and where they are drawn. */
#include "topology/draw_impl.h"

#include "base/arena.h"

#include <limits.h>
#include <string.h>

enum {
	PORT_WIDTH = 140,
	ENDPOINT_WIDTH = 250,
	ROW_GAP = 12,
	LINK_GAP = 150, /* room for "16.0 GT/s x4 of x16" */
	PLAIN_GAP = 34, /* lines without a text */
	FRAME_PAD = 14,
	FRAME_GAP = 18,
	SOCKET_GAP = 36, /* with room for the link between them */
	MARGIN = 20,
	HIGH = 2000, /* 8 GPUs of two sockets are less, and fit the width of a page in one stack */
};

/* ---- which boxes there are ---- */

static struct box *new_box(struct drawing *d, enum box_kind kind, const struct pci_function *f)
{
	struct box *b = arena_alloc(d->arena, 1, sizeof(*b));

	b->kind = kind;
	b->pci = f;
	return b;
}

/* Siblings are ordered by address, as the functions of the machine are. */
static void add_child(struct box *parent, struct box *b)
{
	struct box **at = &parent->first;

	while (*at && (*at)->pci->index <= b->pci->index)
		at = &(*at)->next;
	b->next = *at;
	*at = b;
	b->parent = parent;
	b->column = parent->column + 1;
}

static int64_t socket_of(const struct drawing *d, int64_t node)
{
	const struct machine *m = d->t->machine;
	unsigned per_socket = nodes_per_socket(m);

	return node < 0 || !per_socket ? -1 : node / per_socket;
}

static bool stands_before(const struct box *a, const struct box *b)
{
	if (a->socket != b->socket)
		return (uint64_t)a->socket < (uint64_t)b->socket; /* unknown last */
	if (a->node != b->node)
		return (uint64_t)a->node < (uint64_t)b->node;
	return a->first->pci->index < b->first->pci->index;
}

static struct box *find_host(const struct drawing *d, const struct pci_function *f)
{
	for (struct box *b = d->hosts; b; b = b->next)
		if (strcmp(b->root ? b->root : "", f->root ? f->root : "") == 0)
			return b;
	return NULL;
}

/* Hosts are sorted once all have their first function. */
static struct box *host_box(struct drawing *d, const struct pci_function *f)
{
	struct box *b = find_host(d, f);

	if (b)
		return b;
	b = new_box(d, BOX_HOST, NULL);
	b->root = f->root;
	b->node = fact_or(f->numa_node, -1);
	if (b->node < 0 && d->t->machine->node_n == 1)
		b->node = d->t->machine->nodes[0].id;
	b->socket = socket_of(d, b->node);
	b->next = d->hosts;
	d->hosts = b;
	return b;
}

static struct box *parent_box(struct drawing *d, const struct pci_function *f);

static struct box *port_box(struct drawing *d, const struct pci_function *f)
{
	struct box *b = d->ports[f->index];

	if (b)
		return b;
	b = new_box(d, BOX_PORT, f);
	add_child(parent_box(d, f), b);
	d->ports[f->index] = b;
	return b;
}

static struct box *parent_box(struct drawing *d, const struct pci_function *f)
{
	return f->parent ? port_box(d, f->parent) : host_box(d, f);
}

static void sort_hosts(struct drawing *d)
{
	struct box *sorted = NULL;

	while (d->hosts) {
		struct box *b = d->hosts, **at = &sorted;

		d->hosts = b->next;
		while (*at && stands_before(*at, b))
			at = &(*at)->next;
		b->next = *at;
		*at = b;
	}
	d->hosts = sorted;
}

static void make_boxes(struct drawing *d)
{
	const struct topology *t = d->t;

	for (size_t i = 0; i < t->endpoint_n; i++) {
		const struct endpoint *e = &t->endpoints[i];
		struct box *b = new_box(d, e->kind == ENDPOINT_GPU ? BOX_GPU : BOX_NIC, e->pci);

		b->endpoint = e;
		add_child(parent_box(d, e->pci), b);
		d->endpoints[i] = b;
		if (b->column + 1 > d->column_n)
			d->column_n = b->column + 1;
	}
	sort_hosts(d);
}

/* ---- where they are drawn ---- */

bool box_is_switch(const struct box *b)
{
	return b->kind == BOX_PORT && b->first && b->first->kind == BOX_PORT && has_wire(b->pci);
}

bool box_is_endpoint(const struct box *b)
{
	return b->kind == BOX_GPU || b->kind == BOX_NIC;
}

int box_middle(const struct box *b)
{
	return b->y + b->height / 2;
}

static unsigned column_of(const struct drawing *d, const struct box *b)
{
	return box_is_endpoint(b) ? d->column_n - 1 : b->column;
}

static void move_down(struct box *b, int by)
{
	b->y += by;
	b->top += by;
	b->bottom += by;
	for (struct box *c = b->first; c; c = c->next)
		move_down(c, by);
}

static int place(struct drawing *d, struct box *b, int y);

static int place_children(struct drawing *d, struct box *b, int y)
{
	const struct box *last = b->first;

	for (struct box *c = b->first; c; c = c->next) {
		if (c != b->first)
			y += ROW_GAP;
		y = place(d, c, y);
		last = c;
	}
	b->y = (b->first->y + b->first->height / 2 + last->y + last->height / 2 - b->height) / 2;
	return y;
}

/* As wide as all that would be drawn in its place. */
static void place_fold(const struct drawing *d, struct box *b)
{
	unsigned last = d->column_n - 1;

	if (b->kind != BOX_HOST)
		b->x -= SWITCH_PAD;
	fold_place(b, d->column_x[last] + d->column_width[last] + SWITCH_PAD - b->x);
}

/* Places b and all below it from y downwards, b in the middle; returns where it ends. */
static int place(struct drawing *d, struct box *b, int y)
{
	bool is_switch = box_is_switch(b) && !b->like;
	int end, start = is_switch ? y + SWITCH_HEAD + SWITCH_PAD / 2 : y;

	b->x = d->column_x[column_of(d, b)];
	b->width = d->column_width[column_of(d, b)];
	b->y = start;
	if (b->like)
		place_fold(d, b);
	end = start + b->height;
	if (b->first && !b->like) {
		end = place_children(d, b, start);
		for (struct box *c = b->first; b->y < start && c; c = c->next)
			move_down(c, start - b->y);
		if (b->y < start) {
			end += start - b->y;
			b->y = start;
		}
		if (end < b->y + b->height)
			end = b->y + b->height;
	}
	b->top = y;
	b->bottom = is_switch ? end + SWITCH_PAD : end;
	return b->bottom;
}

int marks_height(const struct box *b)
{
	return (int)b->mark_n * MARK_HEIGHT;
}

static bool has_long_mark(const struct box *b)
{
	for (size_t i = 0; i < b->mark_n; i++)
		if (strlen(b->marks[i].label) + strlen(b->marks[i].note_n > 1 ? "x  (9)" : "x ") >
		    PORT_CHARS)
			return true;
	return false;
}

/* Heights, column widths, and which gaps need room for a link's text. */
static void measure(struct drawing *d, struct box *b, bool *wide_gap)
{
	unsigned column = column_of(d, b);
	bool in_full = !b->like;
	int lines = box_is_endpoint(b) ? 3 : 2;

	int width = box_is_endpoint(b) || has_long_mark(b) ? ENDPOINT_WIDTH : PORT_WIDTH;

	b->height = 2 * BOX_PAD + lines * BOX_LINE + marks_height(b);
	if (d->column_width[column] < width && in_full)
		d->column_width[column] = width;
	if (b->pci && has_wire(b->pci))
		wide_gap[column] = true;
	for (struct box *c = b->first; c && in_full; c = c->next)
		measure(d, c, wide_gap);
}

static void place_columns(struct drawing *d)
{
	bool *wide_gap = arena_alloc(d->arena, d->column_n + 1, sizeof(*wide_gap));
	int x = MARGIN + 2 * FRAME_PAD;

	d->column_x = arena_alloc(d->arena, d->column_n + 1, sizeof(*d->column_x));
	d->column_width = arena_alloc(d->arena, d->column_n + 1, sizeof(*d->column_width));
	for (struct box *b = d->hosts; b; b = b->next)
		measure(d, b, wide_gap);
	for (unsigned i = 0; i < d->column_n; i++) {
		if (i)
			x += wide_gap[i] ? LINK_GAP : PLAIN_GAP;
		d->column_x[i] = x;
		x += d->column_width[i];
	}
	d->width = x + 2 * FRAME_PAD + MARGIN;
}

/* ---- stacks ---- */

/* Where the next host bridge is placed; frames are indices, -1: none is open. */
struct pen {
	struct drawing *d;
	int y;
	unsigned stack;
	long socket, node;
	const struct box *last; /* placed, in this stack or the one before */
};

static long open_frame(struct pen *pen, bool is_socket, int64_t id)
{
	struct drawing *d = pen->d;
	int inset = is_socket ? 0 : FRAME_PAD;
	struct frame *f = ARENA_PUSH(d->arena, d->frames, d->frame_n);

	*f = (struct frame){.is_socket = is_socket,
			    .id = id,
			    .stack = pen->stack,
			    .continued = pen->last &&
					 (is_socket ? pen->last->socket : pen->last->node) == id,
			    .x = MARGIN + inset,
			    .y = pen->y,
			    .width = d->width - 2 * (MARGIN + inset)};
	pen->y += FRAME_HEAD;
	return (long)d->frame_n - 1;
}

static void close_frame(struct pen *pen, long *frame)
{
	if (*frame < 0)
		return;
	pen->y += FRAME_PAD;
	pen->d->frames[*frame].height = pen->y - pen->d->frames[*frame].y;
	*frame = -1;
}

/* The frames that b is in, as far as those of the one before it are others. */
static void enter_frames(struct pen *pen, const struct box *before, const struct box *b)
{
	if (before && before->socket == b->socket && before->node == b->node) {
		pen->y += ROW_GAP;
		return;
	}
	close_frame(pen, &pen->node);
	if (before && before->socket == b->socket) {
		pen->y += FRAME_GAP / 2;
	} else if (before) {
		close_frame(pen, &pen->socket);
		pen->y += before->socket >= 0 ? SOCKET_GAP : FRAME_GAP;
	}
	if (b->socket >= 0 && pen->socket < 0)
		pen->socket = open_frame(pen, true, b->socket);
	pen->node = open_frame(pen, false, b->node);
	pen->y += FRAME_PAD / 2;
}

static void end_stack(struct pen *pen)
{
	close_frame(pen, &pen->node);
	close_frame(pen, &pen->socket);
	if (pen->y > pen->d->height)
		pen->d->height = pen->y;
}

static void set_stack(struct box *b, unsigned stack)
{
	b->stack = stack;
	for (struct box *c = b->first; c; c = c->next)
		set_stack(c, stack);
}

/* Rather a little early than within a socket. */
static bool is_full(const struct box *before, const struct box *b, int height, int full)
{
	return height >= full || (before->socket != b->socket && height >= full / 4 * 3);
}

/* A stack is full once it is `full` high; what is left is in the last of n. */
static void place_hosts(struct drawing *d, int top, int full, unsigned n)
{
	struct pen pen = {.d = d, .y = top, .socket = -1, .node = -1};
	const struct box *before = NULL;

	d->frame_n = 0;
	d->height = top;
	for (struct box *b = d->hosts; b; b = b->next) {
		if (before && pen.stack + 1 < n && is_full(before, b, pen.y - top, full)) {
			end_stack(&pen);
			pen.stack++;
			pen.y = top;
			before = NULL;
		}
		enter_frames(&pen, before, b);
		set_stack(b, pen.stack);
		pen.y = place(d, b, pen.y);
		pen.last = before = b;
	}
	end_stack(&pen);
	d->stack_n = pen.stack + 1;
}

/* One that is high gets more stacks, until they would make it twice as wide as high. */
static void choose_stacks(struct drawing *d, int top)
{
	int all;

	place_hosts(d, top, INT_MAX, 1);
	all = d->height - top;
	for (int n = 2; n <= MOST_STACKS && d->height - top > HIGH && n * d->width <= 2 * all / n;
	     n++)
		place_hosts(d, top, all / n, (unsigned)n);
	d->height += FRAME_GAP;
}

void drawing_make(struct drawing *d, int top)
{
	d->ports = arena_alloc(d->arena, d->t->machine->pci_n + 1, sizeof(*d->ports));
	d->endpoints = arena_alloc(d->arena, d->t->endpoint_n + 1, sizeof(*d->endpoints));
	d->top = top;
	make_boxes(d);
	drawing_make_marks(d);
	drawing_fold(d);
	place_columns(d);
	choose_stacks(d, top);
}
