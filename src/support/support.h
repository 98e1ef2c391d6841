/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a card can do between peers with a driver: the one owner of this knowledge. A look-up by chip,
 * class, release and kind of modules; releases and chips that are not in the table are unknown, and
 * judged by what the driver and its modules contain.
 */
#pragma once

#include "support/card.h"
#include "support/release.h"

/* The kernel modules that run. */
enum module_kind {
	MODULE_PROPRIETARY,
	MODULE_OPEN,   /* as released: stubs in place of P2P through BAR1 on chips before Hopper */
	MODULE_EDITED, /* open, with P2P through BAR1 on every chip */
	MODULE_KIND_N,
};

/* How the memory of a card can be reached over PCIe. */
enum mechanism {
	MECHANISM_UNKNOWN,
	MECHANISM_NONE,
	MECHANISM_MAILBOX, /* a window of the card; any BAR1 will do */
	MECHANISM_BAR1, /* through BAR1, which must cover the memory; registry keys switch it on */
	MECHANISM_BAR1_EDIT, /* the same, after an edit of the modules' sources */
	MECHANISM_BAR1_PART, /* the driver maps it, but not all of the driver knows about it */
	MECHANISM_N,
};

struct support {
	enum mechanism mechanism;
	/* The card's way over PCIe, whatever the driver: MAILBOX, BAR1, NONE or UNKNOWN. */
	enum mechanism way;
	bool chip_tried, release_tried;
	const char *why; /* what the driver has or lacks, as a clause */
	const char *reference;
};

/* -1: unknown, for each but `kinds`, which has a bit for each kind that it may be. */
struct support support_find(int64_t compute_capability, int class, int release, unsigned kinds);
struct support support_of(const struct machine *m, const struct gpu *g);
/* What the driver has through BAR1 for the card's chip, also where the card has mailboxes: functions go
 * by chip, not by class. `way` is BAR1, or UNKNOWN where no card of the chip goes through BAR1. */
struct support support_through_bar1(const struct machine *m, const struct gpu *g);
/* The kinds of modules that those which run may be, as bits. */
unsigned support_module_kinds(const struct nvidia_driver *d);

/* The modules that run are of a kind that does not drive the card's chip, and NVML does not prove the
 * contrary. */
bool support_undriven(const struct machine *m, const struct gpu *g);

/* 1: over PCIe the card can do P2P through BAR1 only; 0: it has mailboxes, or no P2P over PCIe at
 * all. */
struct fact_int card_needs_bar1(const struct gpu *g);
/*
 * 1: the driver denies P2P between these two with this status because they are GeForce cards, which says nothing of the
 * machine. Unknown: a model is.
 */
struct fact_int support_geforce_denial(const struct gpu *a, const struct gpu *b, enum p2p_status s);
/* The first release whose open modules need registry keys alone for this card; 0: none. */
int support_native_from(const struct gpu *g);

/*
 * Drivers before this version allow P2P on GeForce cards of the Ada generation, which copies report and do not do;
 * this one refuses it (pytorch/pytorch#96600). The driver of the card may be one of them, or its version is unknown.
 */
#define MISREPORT_FIXED "525.105"
bool support_may_misreport(const struct nvidia_driver *d, const struct gpu *g);

/* ---- managed memory ---- */

/*
 * Peers of this card that go through BAR1 need a gate for managed memory in nvidia_uvm: before Hopper
 * it cannot make page table entries for them, and makes wrong ones.
 */
bool card_needs_uvm_gate(const struct gpu *g);
/* The nvidia_uvm that runs, or would be loaded, has it: 1 or 0. Absent: there is no such module. */
struct fact_int driver_uvm_gate(const struct nvidia_driver *d);

/* ---- BAR1 ---- */

enum bar1_cover { BAR1_COVER_UNKNOWN, BAR1_COVERS, BAR1_TOO_SMALL };

struct bar1_state {
	enum bar1_cover cover;
	int64_t size;    /* bytes, 0: not mapped or not known */
	int64_t wanted;  /* the size that covers the memory, 0: not known */
	int64_t largest; /* that the card offers, 0: not known, or no Resizable BAR */
	int64_t best;    /* the smallest offer that is at least `wanted`, else the largest */
	const char *why; /* with BAR1_COVER_UNKNOWN: what is unknown */
};

/* Whether BAR1 covers the memory of this card. It matters only where the way is BAR1. */
struct bar1_state support_bar1(const struct gpu *g);

/*
 * 1: a console holds the start of its BAR1, and the edited modules that run take that for the start of
 * its memory, so that peers miss by that much. Onehop's own edits, which are recognized by their mark, do not.
 */
struct fact_int support_console_shifts(const struct nvidia_driver *d, const struct gpu *g);

/* What ForceP2P does: it makes the driver say yes, whether or not there is a mechanism. */
enum forcing { FORCING_FINE, FORCING_DOUBTFUL, FORCING_LOSES_DATA };

/* Where the driver leads peers through a mailbox, and its module could not be looked into. */
#define MAILBOX_UNSEEN                                                                             \
	"run onehop unlock on the machine itself, as root: it looks into the module "              \
	"(/proc/kallsyms) and says what is missing"

enum forcing support_forcing(const struct support *s, const struct bar1_state *b);
