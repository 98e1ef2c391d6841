/* SPDX-License-Identifier: Apache-2.0 */
/* The boxes of a drawing: which there are, what is wrong at them, and where they are drawn. */
#include "topology/draw_impl.h"

#include "base/alloc.h"

#include <stdio.h>
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

/* ---- what is wrong at them ---- */

static const char *acs_text(const struct chain_link *l, char *buf, size_t size)
{
	int n = snprintf(buf, size, "ACS %04x:", (unsigned)l->value & 0xffff);

	for (size_t i = 0; i < PCI_ACS_BIT_N; i++)
		if (l->value & PCI_ACS_REDIRECTS & pci_acs_bits[i].bit)
			n += snprintf(buf + n, size - (size_t)n, " %s", pci_acs_bits[i].code);
	return buf;
}

static const char *bar1_text(const struct chain_link *l, char *buf, size_t size)
{
	snprintf(buf, size, "BAR1 %lld MiB", (long long)(l->value >> 20));
	return buf;
}

static const char *status_text(const struct chain_link *l, char *buf, size_t size)
{
	snprintf(buf, size, "driver: %s", p2p_status_code(l->value));
	return buf;
}

/*
 * A reason is drawn if it has a row; `make` for texts with a value. That NICs never reach GeForce cards has
 * none: it is how the cards are made, and no fault of the NIC.
 */
static const struct {
	const char *text;
	const char *(*make)(const struct chain_link *l, char *buf, size_t size);
} mark_texts[REASON_N] = {
	[REASON_DEVICE_UNKNOWN] = {"driver unknown", NULL},
	[REASON_DEVICE_OFF_BUS] = {"off the bus", NULL},
	[REASON_DEVICE_ASLEEP] = {"D3cold", NULL},
	[REASON_DEVICE_SET_ASIDE] = {"assigned to a VM", NULL},
	[REASON_DEVICE_OTHER_DRIVER] = {"another driver", NULL},
	[REASON_DEVICE_NO_DRIVER] = {"no driver", NULL},
	[REASON_DEVICE_EXCLUDED] = {"excluded", NULL},
	[REASON_DEVICE_PROHIBITED] = {"compute mode prohibited", NULL},
	[REASON_DEVICE_FABRIC_NOT_READY] = {"not in the NVSwitch fabric", NULL},
	[REASON_DEVICE_MIG] = {"MIG", NULL},
	[REASON_NVLINK_DOWN] = {"NVLink down", NULL},
	[REASON_ACS_REQUEST_REDIRECT] = {NULL, acs_text},
	[REASON_ACS_COMPLETION_REDIRECT] = {NULL, acs_text},
	[REASON_ACS_ROOT_PORT] = {NULL, acs_text},
	[REASON_ACS_UNREADABLE] = {"ACS unreadable", NULL},
	[REASON_HOST_BRIDGE_WRITES_ONLY] = {"peer writes only", NULL},
	[REASON_CROSS_SOCKET] = {"crosses sockets", NULL},
	[REASON_IOMMU_TRANSLATING] = {"IOMMU translates", NULL},
	[REASON_IOMMU_UNKNOWN] = {"IOMMU type unknown", NULL},
	[REASON_BAR1_SMALL] = {NULL, bar1_text},
	[REASON_BAR1_SHIFTED] = {"console shifts BAR1", NULL},
	[REASON_BAR1_SHIFT_UNKNOWN] = {"console in BAR1 unknown", NULL},
	[REASON_EXPOSURE_UNKNOWN] = {"BAR1 or memory unknown", NULL},
	[REASON_DRIVER_STATUS] = {NULL, status_text},
	[REASON_DRIVER_GEFORCE] = {"driver: no P2P on GeForce", NULL},
	[REASON_DRIVER_FORCED] = {"P2P forced on", NULL},
	[REASON_DRIVER_MAILBOX] = {"no mailbox", NULL},
	[REASON_DRIVER_KEYS] = {"keys of one card", NULL},
	[REASON_DRIVER_ABSENT] = {"driver not loaded", NULL},
	[REASON_DRIVER_LIBRARY] = {"library mismatch", NULL},
	[REASON_RDMA_NIC_DRIVER] = {"driver cannot register dma-buf", NULL},
	[REASON_RDMA_NIC_DRIVER_UNKNOWN] = {"dma-buf support unknown", NULL},
	[REASON_RDMA_GATE] = {"no export across host bridge", NULL},
	[REASON_HOST_BRIDGE_NO_P2P] = {"no P2P between root ports", NULL},
	[REASON_RDMA_NO_PEERMEM] = {"no access to GPU memory", NULL},
	[REASON_OBSERVED_SLOW] = {"slow", NULL},
	[REASON_OBSERVED_DOUBTS] = {"test failed", NULL},
	[REASON_OBSERVED_FAILS] = {"peer copy failed", NULL},
};

static const char *mark_text(const struct chain_link *l, char *buf, size_t size)
{
	if (mark_texts[l->reason].make)
		return mark_texts[l->reason].make(l, buf, size);
	return mark_texts[l->reason].text;
}

static struct box *host_of(struct box *b)
{
	while (b->parent)
		b = b->parent;
	return b;
}

static struct box *box_of_function(const struct drawing *d, const struct pci_function *f,
				   struct box *initiator, struct box *target)
{
	if (f == initiator->pci)
		return initiator;
	return f == target->pci ? target : d->ports[f->index];
}

/* Where a link of the chain is drawn: the port or device that it is about, else where it begins. */
static struct box *place_of(const struct drawing *d, enum chain_step step,
			    const struct chain_link *l, struct box *initiator, struct box *target)
{
	/* Said of the NIC, so that a GPU which other GPUs reach does not look faulty. */
	if (l->reason == REASON_RDMA_NO_PEERMEM)
		return initiator->kind == BOX_NIC ? initiator : target;
	if (l->at)
		return box_of_function(d, l->at, initiator, target);
	if (l->state == CHAIN_UNKNOWN)
		return NULL;
	if (step == CHAIN_HOST_BRIDGE)
		return host_of(initiator);
	return initiator->kind == BOX_GPU ? initiator : target;
}

/* Links in the order of their reasons, then notes in theirs, then how many more. */
static size_t order_of(const struct mark *m)
{
	return m->link ? m->link->reason : m->note ? REASON_N : REASON_N + 1;
}

static bool comes_before(const struct mark *a, const struct mark *b)
{
	return a->state != b->state ? a->state > b->state : order_of(a) < order_of(b);
}

/* The worst first. */
static void sort_marks(struct box *b)
{
	for (size_t i = 1; i < b->mark_n; i++) {
		const struct mark m = b->marks[i];
		size_t k = i;

		for (; k && comes_before(&m, &b->marks[k - 1]); k--)
			b->marks[k] = b->marks[k - 1];
		b->marks[k] = m;
	}
}

/* The mark that reads the same, as request and completion redirect of one port do. */
static struct mark *same_mark(const struct box *b, const struct chain_link *l)
{
	char text[64];

	for (size_t i = 0; i < b->mark_n; i++)
		if (strcmp(mark_text(l, text, sizeof(text)), b->marks[i].lines[0]) == 0)
			return &b->marks[i];
	return NULL;
}

static void add_state(struct box *b, enum chain_state state)
{
	if (state > b->worst)
		b->worst = state;
}

static void add_mark(struct drawing *d, struct box *b, const struct path *p,
		     const struct chain_link *l)
{
	bool *marked = &b->marked[l->state][l->reason];
	struct mark *m;
	char text[64];

	if (*marked)
		return;
	*marked = true;
	add_state(b, l->state);
	m = same_mark(b, l);
	if (m && l->state <= m->state)
		return;
	if (!m)
		m = ARENA_PUSH(d->arena, b->marks, b->mark_n);
	*m = (struct mark){.state = l->state, .path = p, .link = l, .line_n = 1};
	snprintf(m->lines[0], sizeof(m->lines[0]), "%s", mark_text(l, text, sizeof(text)));
}

static void mark_pair(struct drawing *d, const struct path *p, struct box *initiator,
		      struct box *target)
{
	/* A checked copy was correct, so nothing blocked it. */
	if (p->verdict == PAIR_DIRECT)
		return;
	for (int s = 0; s < CHAIN_STEP_N; s++) {
		const struct chain_link *l = &p->chain[s];
		struct box *b;

		if (s == CHAIN_NCCL || l->state < CHAIN_POSSIBLE ||
		    (!mark_texts[l->reason].text && !mark_texts[l->reason].make))
			continue;
		b = place_of(d, (enum chain_step)s, l, initiator, target);
		if (b)
			add_mark(d, b, p, l);
	}
}

/* ---- notes ---- */

size_t draw_line_length(const char *s, size_t max)
{
	size_t n = strlen(s), at;

	if (n <= max)
		return n;
	for (at = max; at && s[at] != ' ';)
		at--;
	return at ? at : max;
}

static void wrap(struct mark *m, const char *s)
{
	for (m->line_n = 0; *s && m->line_n < MARK_LINES; m->line_n++) {
		size_t n = draw_line_length(s, MARK_CHARS);
		bool cut = m->line_n == MARK_LINES - 1 && s[n];

		snprintf(m->lines[m->line_n], sizeof(m->lines[0]), "%.*s%s",
			 (int)(cut && n > MARK_CHARS - 2 ? MARK_CHARS - 2 : n), s, cut ? ".." : "");
		s += n + (s[n] == ' ');
	}
}

static struct box *box_of_note(const struct drawing *d, const struct draw_note *note)
{
	for (size_t i = 0; note->at && i < d->t->endpoint_n; i++)
		if (d->endpoints[i]->pci == note->at)
			return d->endpoints[i];
	return note->at ? d->ports[note->at->index] : NULL;
}

/* The last mark of a box that has more notes than are drawn there. */
static void count_more(struct drawing *d, struct box *b, enum chain_state state)
{
	struct mark *m = &b->marks[b->mark_n - 1];

	if (b->note_n == NOTES_PER_BOX + 1) {
		m = ARENA_PUSH(d->arena, b->marks, b->mark_n);
		*m = (struct mark){.state = state, .line_n = 1};
	}
	snprintf(m->lines[0], sizeof(m->lines[0]), "and %zu more", b->note_n - NOTES_PER_BOX);
}

/* Once, however many devices without a box it names. */
static void add_elsewhere(struct drawing *d, const struct draw_note *note)
{
	for (size_t i = 0; i < d->elsewhere_n; i++)
		if (strcmp(d->elsewhere[i]->title, note->title) == 0)
			return;
	*ARENA_PUSH(d->arena, d->elsewhere, d->elsewhere_n) = note;
}

/* What the chain says of the same fault: the note says it in full. */
static void drop_mark(struct box *b, enum chain_reason reason)
{
	for (size_t i = 0; i < b->mark_n; i++) {
		if (!b->marks[i].link || b->marks[i].link->reason != reason)
			continue;
		memmove(&b->marks[i], &b->marks[i + 1], (b->mark_n - i - 1) * sizeof(*b->marks));
		b->mark_n--;
		return;
	}
}

static void add_note(struct drawing *d, const struct draw_note *note)
{
	struct box *b = box_of_note(d, note);
	struct mark *m;

	if (!b) {
		add_elsewhere(d, note);
		return;
	}
	add_state(b, note->state);
	if (note->reason != REASON_NONE)
		drop_mark(b, note->reason);
	if (++b->note_n > NOTES_PER_BOX) {
		count_more(d, b, note->state);
		return;
	}
	m = ARENA_PUSH(d->arena, b->marks, b->mark_n);
	*m = (struct mark){.state = note->state, .note = note};
	wrap(m, note->text);
}

static void make_marks(struct drawing *d)
{
	size_t n = d->t->endpoint_n;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			struct box *initiator = d->endpoints[i], *target = d->endpoints[j];

			if (i != j && initiator && target)
				mark_pair(d, topology_path(d->t, i, j), initiator, target);
		}
	for (size_t i = 0; i < d->note_n; i++)
		add_note(d, &d->notes[i]);
	for (size_t i = 0; i < n; i++)
		for (struct box *b = d->endpoints[i]; b; b = b->parent)
			sort_marks(b);
}

/* ---- where they are drawn ---- */

bool box_is_switch(const struct box *b)
{
	return b->kind == BOX_PORT && b->first && b->first->kind == BOX_PORT && has_wire(b->pci);
}

static bool is_endpoint(const struct box *b)
{
	return b->kind == BOX_GPU || b->kind == BOX_NIC;
}

static unsigned column_of(const struct drawing *d, const struct box *b)
{
	return is_endpoint(b) ? d->column_n - 1 : b->column;
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

/* Places b and all below it from y downwards, b in the middle; returns where it ends. */
static int place(struct drawing *d, struct box *b, int y)
{
	bool is_switch = box_is_switch(b);
	int end, start = is_switch ? y + SWITCH_HEAD + SWITCH_PAD / 2 : y;

	b->x = d->column_x[column_of(d, b)];
	b->width = d->column_width[column_of(d, b)];
	b->y = start;
	end = start + b->height;
	if (b->first) {
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

int mark_height(const struct mark *mark)
{
	return mark->line_n * MARK_LINE + MARK_PAD;
}

int marks_height(const struct box *b)
{
	int height = 0;

	for (size_t i = 0; i < b->mark_n; i++)
		height += mark_height(&b->marks[i]);
	return height;
}

static bool has_long_mark(const struct box *b)
{
	for (size_t i = 0; i < b->mark_n; i++)
		if (strlen(b->marks[i].lines[0]) > PORT_CHARS)
			return true;
	return false;
}

/* Heights, column widths, and which gaps need room for a link's text. */
static void measure(struct drawing *d, struct box *b, bool *wide_gap)
{
	unsigned column = column_of(d, b);
	int lines = is_endpoint(b) ? 3 : 2;

	int width = is_endpoint(b) || b->note_n || has_long_mark(b) ? ENDPOINT_WIDTH : PORT_WIDTH;

	b->height = 2 * BOX_PAD + lines * BOX_LINE + marks_height(b);
	if (d->column_width[column] < width)
		d->column_width[column] = width;
	if (b->pci && has_wire(b->pci))
		wide_gap[column] = true;
	for (struct box *c = b->first; c; c = c->next)
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

static void open_frame(struct drawing *d, bool is_socket, int64_t id, int y)
{
	int inset = is_socket ? 0 : FRAME_PAD;
	struct frame *f = ARENA_PUSH(d->arena, d->frames, d->frame_n);

	*f = (struct frame){is_socket, id, MARGIN + inset, y, d->width - 2 * (MARGIN + inset), 0};
}

/* The hosts from `first` on that share its node; returns the one after them. */
static struct box *place_node(struct drawing *d, struct box *first, int *y)
{
	size_t frame = d->frame_n;
	struct box *b;

	open_frame(d, false, first->node, *y);
	*y += FRAME_HEAD;
	for (b = first; b && b->node == first->node && b->socket == first->socket; b = b->next) {
		*y += b == first ? FRAME_PAD / 2 : ROW_GAP;
		*y = place(d, b, *y);
	}
	*y += FRAME_PAD;
	d->frames[frame].height = *y - d->frames[frame].y;
	return b;
}

static struct box *place_socket(struct drawing *d, struct box *first, int *y)
{
	bool known = first->socket >= 0;
	size_t frame = d->frame_n;
	struct box *b = first;

	if (known) {
		open_frame(d, true, first->socket, *y);
		*y += FRAME_HEAD;
	}
	while (b && b->socket == first->socket) {
		if (b != first)
			*y += FRAME_GAP / 2;
		b = place_node(d, b, y);
	}
	if (known) {
		*y += FRAME_PAD;
		d->frames[frame].height = *y - d->frames[frame].y;
	}
	return b;
}

void drawing_make(struct drawing *d, int top)
{
	int y = top;

	d->ports = arena_alloc(d->arena, d->t->machine->pci_n + 1, sizeof(*d->ports));
	d->endpoints = arena_alloc(d->arena, d->t->endpoint_n + 1, sizeof(*d->endpoints));
	make_boxes(d);
	make_marks(d);
	place_columns(d);
	for (struct box *b = d->hosts; b;) {
		bool is_socket = b->socket >= 0;

		b = place_socket(d, b, &y);
		y += is_socket && b ? SOCKET_GAP : FRAME_GAP;
	}
	d->height = y;
}
