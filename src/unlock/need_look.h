/* SPDX-License-Identifier: Apache-2.0 */
/* A card under judgement, and the rows of the tables that judge it. */
#pragma once

#include "support/support.h"
#include "topology/topology.h"
#include "unlock/need_impl.h"

/* A card under judgement. */
struct look {
	struct machine *m;
	const struct nvidia_driver *d;
	const struct gpu *g;
	struct support s;
	struct bar1_state bar1;
	const struct release *release;
	/* By GPU: P2P over PCIe is to go through its BAR1. */
	const bool *bar1_way;
	/* By GPU, as it was judged by itself. For need_pair.c alone. */
	const enum need *by_itself;
	const struct topology *t;
	const char *text; /* for sentences */
};

/*
 * The first row that holds decides. In sentences %s is what the row's test wrote, %V the card's
 * memory, %B its BAR1, %L the largest that it can have, %D the driver's release.
 */
struct need_row {
	const char *id;
	bool (*holds)(struct look *l);
	enum need need;
	const char *why, *change, *reference;
};

struct need_rows {
	const struct need_row *rows;
	size_t n;
};

/*
 * Of a card, in this order; a row of the last one always holds:
 * need_card.c: the card and the driver, and what was seen to work;
 * need_bar1.c: its BAR1;
 * need_module.c: the modules that run and lie on disk, and their options.
 */
extern const struct need_rows need_card_rows, need_bar1_rows, need_module_rows;
/* need_pair.c: of one that these call in force: what the driver makes of it, pair by pair. */
extern const struct need_rows need_pair_rows;

/* need.c: by the first of the rows of a card that holds. `all` is what is known for all cards. */
struct card_need need_judge_card(const struct look *all, const struct gpu *g);

/* ---- need_look.c: what more than one table asks ---- */

bool look_is_linked(const struct gpu *a, const struct gpu *b);
/* Other GPUs that it reaches over NVLink. */
size_t look_linked(const struct look *l);
bool look_through_bar1(const struct look *l, const struct gpu *g);
/* Of the module that runs. */
struct fact_int look_mechanism(const struct look *l);
/* The driver says that it reaches this other card. */
bool look_says_ok(const struct look *l, size_t i);
/* As the driver's resource manager has it; enum rm_connection. */
struct fact_int look_connection(const struct look *l, size_t i);
/* Another card that it is to reach through BAR1, whatever the driver makes of that. */
bool look_wants_peer(const struct look *l, size_t i);
/* By the kernel log, and no copy has shown the contrary. */
bool look_mapping_fails(const struct path *p);
/* Some edits choose BAR1 themselves, without keys. */
bool look_needs_no_keys(struct look *l);
/* The edited modules that run let managed memory write where it must not. */
bool look_lacks_gate(struct look *l);
bool look_edit_is_old(struct look *l);
/* Checked data outweighs what could keep it from arriving, as it does for onehop check; not what writes elsewhere. */
bool look_is_proven(struct look *l);
/* The last row of a table that decides for all. */
bool look_always(struct look *l);

/* ---- need_generation.c: cards of one generation ---- */

/* It has mailboxes, and a card that has none is to reach it. */
bool need_joins_bar1_cards(struct machine *m, const struct gpu *g);
/* All of a generation, or none; n's cards as they were judged one by one. */
void need_judge_together(const struct look *l, struct machine_need *n, bool *bar1_way);

/* ---- where things stand ---- */

#define P2P_CAPS "open-gpu-kernel-modules src/nvidia/src/kernel/platform/p2p/p2p_caps.c"
#define KERN_BUS "open-gpu-kernel-modules src/nvidia/src/kernel/gpu/bus/"
#define STATIC   KERN_BUS "arch/turing/kern_bus_tu102.c kbusIsStaticBar1Supported"
#define NVOC     "open-gpu-kernel-modules src/nvidia/generated/g_kern_bus_nvoc.c (535 to 595)"
#define RM_CAPS                                                                                    \
	"open-gpu-kernel-modules ctrl0000system.h NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2 (PROP, "  \
	"PCI_BAR1)"
#define UVM                                                                                        \
	"open-gpu-kernel-modules kernel-open/nvidia-uvm uvm_turing_mmu.c make_pte_turing; "        \
	"WU-CVGL/cluster-setup docs/05_GPU_P2P_GeForce_and_CMP.md"
#define KERNEL_BIF "open-gpu-kernel-modules kernel_bif.c _kbifInitRegistryOverrides"
