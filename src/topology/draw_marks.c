/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong at the boxes of a drawing: links of chains, and what findings name. */
#include "topology/draw_impl.h"

#include "base/arena.h"

#include <stdio.h>
#include <string.h>

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
 * A reason is drawn if it has a row; `make` for texts with a value. That NICs never reach GeForce
 * cards has none: it is how the cards are made, and no fault of the NIC.
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
static struct mark *same_mark(const struct box *b, const char *label)
{
	for (size_t i = 0; i < b->mark_n; i++)
		if (strcmp(label, b->marks[i].label) == 0)
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
	const char *label;
	struct mark *m;
	char text[64];

	if (*marked)
		return;
	*marked = true;
	add_state(b, l->state);
	label = mark_text(l, text, sizeof(text));
	m = same_mark(b, label);
	if (m && l->state <= m->state)
		return;
	if (!m)
		m = ARENA_PUSH(d->arena, b->marks, b->mark_n);
	*m = (struct mark){.state = l->state,
			   .path = p,
			   .link = l,
			   .label = arena_strdup(d->arena, label)};
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

static struct box *box_of_note(const struct drawing *d, const struct draw_note *note)
{
	for (size_t i = 0; note->at && i < d->t->endpoint_n; i++)
		if (d->endpoints[i]->pci == note->at)
			return d->endpoints[i];
	return note->at ? d->ports[note->at->index] : NULL;
}

static void add_title(struct drawing *d, struct mark *m, const struct draw_note *note)
{
	if (!m->note)
		m->note = note;
	if (note->state > m->state)
		m->state = note->state;
	if (++m->note_n > TITLES_PER_MARK)
		return;
	m->titles =
		m->titles ? arena_printf(d->arena, "%s\n%s", m->titles, note->title) : note->title;
}

/* A line for each rule; the notes of one finding have one title. */
static void add_listed(struct drawing *d, const struct draw_note *note)
{
	for (size_t i = 0; i < d->listed_n; i++) {
		struct mark *m = &d->listed[i];

		if (strcmp(m->note->rule, note->rule) != 0)
			continue;
		if (m->titles != note->title) {
			m->note_n++;
			m->titles = note->title;
		}
		return;
	}
	add_title(d, ARENA_PUSH(d->arena, d->listed, d->listed_n), note);
}

/* The mark of its rule, or what a chain says of the same fault. */
static struct mark *mark_of_note(struct box *b, const struct draw_note *note)
{
	for (size_t i = 0; i < b->mark_n; i++) {
		const struct mark *m = &b->marks[i];

		if (m->note ? strcmp(m->note->rule, note->rule) == 0
			    : m->link && note->reason != REASON_NONE &&
				      m->link->reason == note->reason)
			return &b->marks[i];
	}
	return NULL;
}

/* The last mark of a box that has more than are drawn there; it has no note. */
static void count_more(struct drawing *d, struct box *b, enum chain_state state)
{
	struct mark *m = &b->marks[b->mark_n - 1];

	if (b->noted_n == MARKS_PER_BOX + 1) {
		m = ARENA_PUSH(d->arena, b->marks, b->mark_n);
		m->state = state;
	}
	m->label = arena_printf(d->arena, "and %zu more", b->noted_n - MARKS_PER_BOX);
}

static void add_note(struct drawing *d, const struct draw_note *note)
{
	struct box *b = box_of_note(d, note);
	struct mark *m;

	if (!b || !d->in_page)
		add_listed(d, note);
	if (!b)
		return;
	add_state(b, note->state);
	m = mark_of_note(b, note);
	if (!m && ++b->noted_n > MARKS_PER_BOX) {
		count_more(d, b, note->state);
		return;
	}
	if (!m) {
		m = ARENA_PUSH(d->arena, b->marks, b->mark_n);
		m->label = note->rule;
	} else if (!m->note) {
		m->label = arena_printf(d->arena, "%s: %s", note->rule, m->label);
	}
	add_title(d, m, note);
}

void drawing_make_marks(struct drawing *d)
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
