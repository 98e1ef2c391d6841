/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of many devices, a switch or host bridge that is the same as one drawn before it, with all below
 * it, is folded: a frame with a line for each device and port, which keeps its marks. What differs
 * stays drawn in full, and so is found.
 */
#include "topology/draw_impl.h"

#include "base/arena.h"

#include <string.h>

enum {
	ALL_IN_FULL = 16,  /* devices */
	LEAST_DEVICES = 2, /* below what is folded: with one, little would be saved */
	CHIP_TEXT = 158,   /* "GPU12 0000:0a:00.0" */
};

struct folding {
	struct drawing *d;
	struct box **in_full;
	size_t in_full_n;
};

static size_t devices_below(const struct box *b)
{
	size_t n = box_is_endpoint(b);

	for (const struct box *c = b->first; c; c = c->next)
		n += devices_below(c);
	return n;
}

static bool has_nvlinks(const struct drawing *d, const struct box *b)
{
	for (size_t i = 0; b->kind == BOX_GPU && i < d->t->gpu_n; i++)
		if (fact_or(topology_path(d->t, b->endpoint->index, i)->nvlinks, 0) > 0)
			return true;
	return false;
}

static bool marks_are_alike(const struct box *a, const struct box *b)
{
	if (a->mark_n != b->mark_n)
		return false;
	for (size_t i = 0; i < a->mark_n; i++)
		if (a->marks[i].state != b->marks[i].state ||
		    a->marks[i].note_n != b->marks[i].note_n ||
		    strcmp(a->marks[i].label, b->marks[i].label) != 0)
			return false;
	return true;
}

static bool links_are_alike(const struct drawing *d, const struct box *a, const struct box *b)
{
	char link_a[96], link_b[96];

	return box_link_text(d, a, link_a, sizeof(link_a)) ==
		       box_link_text(d, b, link_b, sizeof(link_b)) &&
	       strcmp(link_a, link_b) == 0;
}

/* NICs are named by their numbers, so what they are is asked of PCI. */
static bool devices_are_alike(const struct drawing *d, const struct box *a, const struct box *b)
{
	char model_a[128], model_b[128];

	if (!fact_is(a->pci->vendor, fact_or(b->pci->vendor, -1)) ||
	    !fact_is(a->pci->device, fact_or(b->pci->device, -1)))
		return false;
	return a->kind == BOX_NIC || strcmp(box_model(d, a, model_a, sizeof(model_a)),
					    box_model(d, b, model_b, sizeof(model_b))) == 0;
}

static bool boxes_are_alike(const struct drawing *d, const struct box *a, const struct box *b)
{
	if (a->kind != b->kind || a->worst != b->worst || !marks_are_alike(a, b))
		return false;
	if (a->kind == BOX_HOST)
		return true;
	if (fact_or(a->pci->port_type, -1) != fact_or(b->pci->port_type, -1) ||
	    !links_are_alike(d, a, b))
		return false;
	/* Their bars would have no place. */
	return !box_is_endpoint(a) ||
	       (devices_are_alike(d, a, b) && !has_nvlinks(d, a) && !has_nvlinks(d, b));
}

static bool trees_are_alike(const struct drawing *d, const struct box *a, const struct box *b)
{
	const struct box *of_a = a->first, *of_b = b->first;

	if (!boxes_are_alike(d, a, b))
		return false;
	for (; of_a && of_b; of_a = of_a->next, of_b = of_b->next)
		if (!trees_are_alike(d, of_a, of_b))
			return false;
	return !of_a && !of_b;
}

static void fold(struct folding *f, struct box *b)
{
	if ((b->kind == BOX_HOST || box_is_switch(b)) && devices_below(b) >= LEAST_DEVICES) {
		for (size_t i = 0; i < f->in_full_n && !b->like; i++)
			if (trees_are_alike(f->d, f->in_full[i], b))
				b->like = f->in_full[i];
		if (b->like)
			return;
		*ARENA_PUSH(f->d->arena, f->in_full, f->in_full_n) = b;
	}
	for (struct box *c = b->first; c; c = c->next)
		fold(f, c);
}

void drawing_fold(struct drawing *d)
{
	struct folding f = {.d = d};

	for (struct box *b = d->hosts; b && d->t->endpoint_n > ALL_IN_FULL; b = b->next)
		fold(&f, b);
}

/* ---- where its chips are drawn ---- */

static size_t most_marks(const struct box *b)
{
	size_t most = b->mark_n;

	for (const struct box *c = b->first; c; c = c->next) {
		size_t n = most_marks(c);

		most = n > most ? n : most;
	}
	return most;
}

struct rows {
	int x, y, columns, chip_width;
	int n; /* chips, and places that are left empty */
};

/* Either the devices or the rest, in the order of the tree. */
static void place_chips(struct box *b, bool devices, struct rows *rows)
{
	if (box_is_endpoint(b) == devices) {
		b->chip_x = rows->x + rows->n % rows->columns * (rows->chip_width + CHIP_GAP);
		b->chip_y = rows->y + rows->n / rows->columns * (CHIP_HEIGHT + CHIP_GAP);
		b->chip_width = rows->chip_width;
		rows->n++;
	}
	for (struct box *c = b->first; c; c = c->next)
		place_chips(c, devices, rows);
}

static void start_row(struct rows *rows)
{
	rows->n = (rows->n + rows->columns - 1) / rows->columns * rows->columns;
}

void fold_place(struct box *b, int width)
{
	int chip_width = CHIP_TEXT + (int)most_marks(b) * SIGN_WIDTH;
	int columns = (width - 2 * CHIP_PAD + CHIP_GAP) / (chip_width + CHIP_GAP);
	struct rows rows = {.x = b->x + CHIP_PAD,
			    .y = b->y + SWITCH_HEAD + CHIP_PAD,
			    .columns = columns > 1 ? columns : 1,
			    .chip_width = chip_width};

	place_chips(b, true, &rows);
	start_row(&rows);
	place_chips(b, false, &rows);
	start_row(&rows);
	b->width = width;
	b->height = SWITCH_HEAD + 2 * CHIP_PAD - CHIP_GAP +
		    rows.n / rows.columns * (CHIP_HEIGHT + CHIP_GAP);
}
