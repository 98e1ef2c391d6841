/* SPDX-License-Identifier: Apache-2.0 */
/* What draw.c draws: boxes with places and marks; for draw*.c only. */
#pragma once

#include "topology/topology_impl.h"

/* How many characters of the fonts below fit a box; DejaVu, the widest usual one, is meant. */
enum { ENDPOINT_CHARS = 34, PORT_CHARS = 20, MARK_CHARS = 36 };

enum { MARKS_PER_BOX = 5, TITLES_PER_MARK = 8 }; /* by notes; the others are counted */

/*
 * Something wrong (bad), possible or unknown at a box: a link of a chain, notes of one rule, or
 * both where they say the same; neither: more than there is room for.
 */
struct mark {
	enum chain_state state;
	const struct path *path;
	const struct chain_link *link;
	const struct draw_note *note; /* the first of them */
	size_t note_n;
	const char *titles; /* of the notes, a line each */
	const char *label;
};

enum box_kind { BOX_HOST, BOX_PORT, BOX_GPU, BOX_NIC };

/* A host bridge, a port, or an endpoint. Lengths are pixels. */
struct box {
	enum box_kind kind;
	const struct pci_function *pci;    /* NULL for a host bridge */
	const struct endpoint *endpoint;   /* GPUs and NICs */
	const char *root;                  /* host bridges; NULL: unknown */
	int64_t node, socket;              /* host bridges; -1: unknown */
	struct box *parent, *first, *next; /* siblings by address; host bridges by node */
	unsigned column;
	int x, y, width, height;
	int top, bottom; /* with all that hangs below it */
	unsigned stack;
	const struct box *
		like; /* it and all below it are folded, because that one is drawn and is the same; else NULL */
	int chip_x, chip_y, chip_width; /* in a fold: where it is drawn, on one line */
	struct mark *marks;
	size_t mark_n;
	size_t noted_n;                       /* notes and rules of notes that it has no mark for */
	bool marked[CHAIN_BAD + 1][REASON_N]; /* per state and reason */
	enum chain_state worst;
};

/* Boxes of one NUMA node or one socket. */
struct frame {
	bool is_socket;
	int64_t id; /* -1: unknown */
	unsigned stack;
	bool continued; /* from the stack before */
	int x, y, width, height;
};

struct drawing {
	const struct topology *t;
	const struct draw_note *notes;
	size_t note_n;
	bool in_page;
	struct mark *
		listed; /* below the boxes: what no box is for; outside of a page, which has the findings, all */
	size_t listed_n;
	struct arena *arena;
	struct box *hosts;
	struct box **ports;     /* by index of the PCI function */
	struct box **endpoints; /* by endpoint */
	struct frame *frames;   /* outer before inner */
	size_t frame_n;
	unsigned column_n; /* of the tree; the last one holds the endpoints */
	int *column_x, *column_width;
	int width;        /* of the tree */
	int top, height;  /* where the boxes begin and end */
	unsigned stack_n; /* host bridges are drawn in stacks next to each other */
};

enum {
	BOX_LINE = 15, /* a line of text */
	BOX_PAD = 6,   /* above the first and below the last */
	MARK_HEIGHT = 16,
	FRAME_HEAD = 24, /* a frame's title */
	SWITCH_PAD = 10,
	SWITCH_HEAD = 16,
	CHIP_PAD = 6, /* within the frame of a fold */
	CHIP_GAP = 4,
	CHIP_HEIGHT = 20,
	SIGN_WIDTH = 16, /* of a mark in a chip */
	MOST_STACKS = 4,
};

/*
 * Places all from `top` downwards; topology, notes and arena, which the caller sets, stay the
 * caller's.
 */
void drawing_make(struct drawing *d, int top);
void drawing_make_marks(struct drawing *d);
/* Folds what is the same as something drawn before it. */
void drawing_fold(struct drawing *d);
/* Places the chips of a fold from b->x, b->y on, in `width`; sets its size. */
void fold_place(struct box *b, int width);
/* How much of s goes into a line of `max` characters: up to a blank, or all that fits. */
size_t draw_line_length(const char *s, size_t max);
bool box_is_switch(const struct box *b); /* an upstream port with downstream ports */
bool box_is_endpoint(const struct box *b);
int marks_height(const struct box *b);
const char *box_model(const struct drawing *d, const struct box *b, char *buf, size_t size);
/*
 * Of the link above b: "16.0 GT/s x4 of x16", "8.0 of 16.0 GT/s x16", "16.0 GT/s x16, idle", "" if
 * there is none; true when it is less than both ends can.
 */
bool box_link_text(const struct drawing *d, const struct box *b, char *buf, size_t size);
int box_middle(const struct box *b);

/*
 * GPUs connected by NVLink, directly or through others, share a bar next to each stack that has
 * some of them.
 */
struct bar {
	size_t group; /* its first GPU */
	unsigned stack, lane;
	int top, bottom; /* bottom 0: there is no such bar */
};

struct nvlinks {
	size_t *group;    /* per GPU: the first GPU of its group */
	int *links;       /* per GPU: the most that it has to another */
	struct bar *bars; /* by group, then by stack */
	size_t bar_n;
	unsigned *lane_n; /* per stack */
	unsigned stack_n;
};

/* Once all boxes are placed. */
void nvlinks_make(const struct drawing *d, struct nvlinks *nv);
struct bar *nvlink_bar(const struct drawing *d, struct nvlinks *nv, size_t gpu);
bool nvlink_group_is_whole(const struct drawing *d, struct nvlinks *nv,
			   size_t group); /* every pair has links */
