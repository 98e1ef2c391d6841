/* SPDX-License-Identifier: Apache-2.0 */
/* What draw.c draws: boxes with places and marks; for draw*.c only. */
#pragma once

#include "topology/topology_impl.h"

/* How many characters of the fonts below fit a box; DejaVu, the widest usual one, is meant. */
enum { ENDPOINT_CHARS = 34, PORT_CHARS = 20, MARK_CHARS = 36 };

enum { MARK_LINES = 3, NOTES_PER_BOX = 3 };

/* Something wrong (bad), possible or unknown at a box: a link of a chain, else a note, else how many more. */
struct mark {
	enum chain_state state;
	const struct path *path;
	const struct chain_link *link;
	const struct draw_note *note;
	char lines[MARK_LINES][MARK_CHARS + 1];
	int line_n;
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
	struct mark *marks;
	size_t mark_n;
	size_t note_n;
	bool marked[CHAIN_BAD + 1][REASON_N]; /* per state and reason */
	enum chain_state worst;
};

/* Boxes of one NUMA node or one socket. */
struct frame {
	bool is_socket;
	int64_t id; /* -1: unknown */
	int x, y, width, height;
};

struct drawing {
	const struct topology *t;
	const struct draw_note *notes;
	size_t note_n;
	bool in_page;
	const struct draw_note **elsewhere; /* those that no box is for */
	size_t elsewhere_n;
	struct arena *arena;
	struct box *hosts;
	struct box **ports;     /* by index of the PCI function */
	struct box **endpoints; /* by endpoint */
	struct frame *frames;   /* outer before inner */
	size_t frame_n;
	unsigned column_n; /* the last one holds the endpoints */
	int *column_x, *column_width;
	int width, height;
};

enum {
	BOX_LINE = 15,  /* a line of text */
	BOX_PAD = 6,    /* above the first and below the last */
	MARK_LINE = 12, /* of a mark's text */
	MARK_PAD = 4,
	FRAME_HEAD = 24, /* a frame's title */
	SWITCH_PAD = 10,
	SWITCH_HEAD = 16,
};

/* Places all from `top` downwards; topology, notes and arena, which the caller sets, stay the caller's. */
void drawing_make(struct drawing *d, int top);
/* How much of s goes into a line of `max` characters: up to a blank, or all that fits. */
size_t draw_line_length(const char *s, size_t max);
bool box_is_switch(const struct box *b); /* an upstream port with downstream ports */
int mark_height(const struct mark *mark);
int marks_height(const struct box *b);
