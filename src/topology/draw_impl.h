/* SPDX-License-Identifier: Apache-2.0 */
/* What draw.c draws: boxes with places and marks; for draw*.c only. */
#pragma once

#include "topology/topology_impl.h"

/* Something wrong (bad), possible or unknown at a box. */
struct mark {
	const struct path *path;
	const struct chain_link *link;
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
	uint64_t marked[CHAIN_BAD + 1]; /* per state: bits of enum chain_reason */
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
	BOX_LINE = 15, /* a line of text */
	BOX_PAD = 6,   /* above the first and below the last */
	MARK_HEIGHT = 16,
	FRAME_HEAD = 24, /* a frame's title */
	SWITCH_PAD = 10,
	SWITCH_HEAD = 16,
};

/* Arena and all belong to the caller. */
void drawing_make(struct drawing *d, const struct topology *t, struct arena *arena, int top);
bool box_is_switch(const struct box *b); /* an upstream port with downstream ports */
const char *mark_text(const struct chain_link *l, char *buf, size_t size);
