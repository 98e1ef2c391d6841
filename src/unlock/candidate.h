/* SPDX-License-Identifier: Apache-2.0 */
/* A card under judgement, and the rows of the tables that judge it. */
#pragma once

#include "support/support.h"
#include "topology/topology.h"
#include "unlock/requirements_impl.h"

/* A card under judgement. */
struct candidate {
	struct machine *m;
	const struct nvidia_driver *d;
	const struct gpu *g;
	struct support s;
	struct bar1_state bar1;
	const struct release *release;
	/* By GPU: P2P over PCIe is to go through its BAR1. */
	const bool *bar1_way;
	/* By GPU, as it was judged by itself. For requirements_pair.c alone. */
	const enum unlock_action *by_itself;
	const struct topology *t;
	const char *text; /* for sentences */
};

/*
 * The first row that holds decides. In sentences %s is what the row's test wrote, %V the card's
 * memory, %B its BAR1, %L the largest that it can have, %D the driver's release.
 */
struct requirement_row {
	const char *id;
	bool (*holds)(struct candidate *l);
	enum unlock_action action;
	const char *why, *change, *reference;
};

struct requirement_rows {
	const struct requirement_row *rows;
	size_t n;
};

/*
 * Of a card, in this order; a row of the last one always holds:
 * requirements_card.c: the card and the driver, and what was seen to work;
 * requirements_bar1.c: its BAR1;
 * requirements_module.c: the modules that run and lie on disk, and their options.
 */
extern const struct requirement_rows requirement_card_rows, requirement_bar1_rows,
	requirement_module_rows;
/* requirements_pair.c: of one that these call in force: what the driver makes of it, pair by pair. */
extern const struct requirement_rows requirement_pair_rows;
/* requirements_module.c: of one that is in force by all of them, and is lost at the next boot. */
extern const struct requirement_rows requirement_boot_rows;

/* requirements.c: by the first of the rows of a card that holds. `all` is what is known for all cards. */
struct card_requirement requirement_judge_card(const struct candidate *all, const struct gpu *g);

/* ---- candidate.c: what more than one table asks ---- */

bool candidate_is_linked(const struct gpu *a, const struct gpu *b);
/* Other GPUs that it reaches over NVLink. */
size_t candidate_linked(const struct candidate *l);
bool candidate_through_bar1(const struct candidate *l, const struct gpu *g);
/* Of the module that runs. */
struct fact_int candidate_mechanism(const struct candidate *l);
/* The driver says that it reaches this other card. */
bool candidate_says_ok(const struct candidate *l, size_t i);
/* As the driver's resource manager has it; enum rm_connection. */
struct fact_int candidate_connection(const struct candidate *l, size_t i);
/* Another card that it is to reach through BAR1, whatever the driver makes of that. */
bool candidate_wants_peer(const struct candidate *l, size_t i);
/* By the kernel log, and no copy has shown the contrary. */
bool candidate_mapping_fails(const struct path *p);
/* Some edits choose BAR1 themselves, without keys. */
bool candidate_needs_no_keys(struct candidate *l);
/* The edited modules that run or lie on disk let managed memory write where it must not. */
bool candidate_lacks_gate(struct candidate *l);
bool candidate_edit_is_old(struct candidate *l);
/* The edited module runs, the one on disk has stubs for this card. */
bool candidate_lost_at_boot(struct candidate *l);
/* Checked data outweighs what could keep it from arriving, as it does for onehop check; not what writes elsewhere. */
bool candidate_is_proven(struct candidate *l);
/* Checked data arrives between it and one peer or more, through the module that runs. */
bool candidate_works_with_some(struct candidate *l);
/* The last row of a table that decides for all. */
bool candidate_always(struct candidate *l);

/* ---- requirements_generation.c: cards of one generation ---- */

/* It has mailboxes, and a card that has none is to reach it. */
bool requirement_joins_bar1_cards(struct machine *m, const struct gpu *g);
/* All of a generation, or none; n's cards as they were judged one by one. */
void requirement_judge_together(const struct candidate *l, struct unlock_requirements *n,
				bool *bar1_way);

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
