/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a card's BAR1 serves: it covers the memory, with room to spare. */
#include "unlock/candidate.h"

#define GIB ((int64_t)1 << 30)

/* What a console takes in addition to the memory, padded to 512 MiB, and the mailbox window. */
#define CONSOLE_ROOM GIB

/* What BAR1 has beyond the card's memory, counted in whole GiB as it is sold. */
static int64_t room(const struct gpu *g)
{
	return g->bar1_bytes.value - (g->vram_bytes.value + GIB - 1) / GIB * GIB;
}

static bool sizes_known(const struct gpu *g)
{
	return fact_known(g->vram_bytes) &&
	       (fact_known(g->bar1_bytes) || fact_absent(g->bar1_bytes));
}

static bool bar1_is_small(const struct candidate *l)
{
	return sizes_known(l->g) && l->bar1.cover == BAR1_TOO_SMALL;
}

static bool sizes_unknown(struct candidate *l)
{
	struct fact_int missing =
		fact_known(l->g->vram_bytes) ? l->g->bar1_bytes : l->g->vram_bytes;

	l->text = FACT_WHY(missing);
	return !sizes_known(l->g);
}

static bool sizes_not_in_text(struct candidate *l)
{
	return l->m->text_part_n && sizes_unknown(l);
}

static bool bar1_in_guest(struct candidate *l)
{
	l->text = fact_str_or(l->m->kernel.hypervisor, "");
	return bar1_is_small(l) && fact_known(l->m->kernel.hypervisor);
}

static bool bar1_too_large_to_be(struct candidate *l)
{
	return bar1_is_small(l) && l->bar1.largest && l->bar1.largest < l->g->vram_bytes.value &&
	       l->g->vram_bytes.value > 32 * GIB;
}

/*
 * What the card offers was not seen, and it has as much BAR1 as any GeForce card offers: Resizable BAR
 * is on.
 */
static bool bar1_at_its_largest(struct candidate *l)
{
	return bar1_is_small(l) && !l->bar1.largest && l->bar1.size >= 32 * GIB;
}

/* Whatever maps more memory than BAR1 has, checked data has shown that it works. */
static bool works_with_some(struct candidate *l)
{
	return bar1_is_small(l) && candidate_works_with_some(l);
}

static bool bar1_old_vbios(struct candidate *l)
{
	bool none = fact_absent(l->g->pci->rebar_sizes);

	return bar1_is_small(l) &&
	       (none || (l->bar1.largest && l->bar1.largest < l->g->vram_bytes.value));
}

static bool bar1_not_grown(struct candidate *l)
{
	return bar1_is_small(l) && fact_is(l->d->resizable_bar, 1);
}

static bool bar1_small(struct candidate *l)
{
	return bar1_is_small(l);
}

static bool no_room_for_cpu(struct candidate *l)
{
	return l->release->cpu_needs_room && room(l->g) < GIB;
}

static bool no_room_for_console(struct candidate *l)
{
	return fact_is(card_has_console(l->g), 1) && room(l->g) < CONSOLE_ROOM;
}

static bool nvlink_would_go(struct candidate *l)
{
	return l->release->old_type && candidate_linked(l) > 0;
}

#define NO_LARGER_BAR1                                                                                                                                                                                                                                                                                            \
	"nothing on the host: this card needs BAR1 mapped in windows, one per allocation. onehop does not make that edit, because it is unproven on such a card, and a wrong window lets peers write into host memory (a good onehop test with another edit would prove it). Or give up the memory beyond BAR1: " \
	"OverrideFbSize and RMForceStaticBar1=1 in NVreg_RegistryDwordsPerDevice, for this card "                                                                                                                                                                                                                 \
	"alone, because a card with that key and a smaller BAR1 does not start"

static const struct requirement_row rows[] = {
	{"sizes-unknown", sizes_not_in_text, ACTION_UNKNOWN,
	 "the text does not contain the sizes of memory and BAR1",
	 "add the output of nvidia-smi -q, which shows both, or run onehop unlock on the machine itself",
	 NULL},
	{"sizes-unknown", sizes_unknown, ACTION_UNKNOWN,
	 "the sizes of memory and BAR1 could not be read: %s", "load the driver and run this again",
	 NULL},
	{"proven", works_with_some, ACTION_IN_FORCE, NULL, NULL,
	 NULL}, /* requirements_pair.c says more */
	{"bar1-host", bar1_in_guest, ACTION_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), and this is a virtual machine (%s), whose host sets the size of BAR1",
	 "make BAR1 as large as the memory on the host first (see onehop check)",
	 "PCIe 6.0, 7.8.6"},
	{"bar1-never", bar1_too_large_to_be, ACTION_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), and the card's largest is %L, as on cards with added memory",
	 NO_LARGER_BAR1,
	 "tinygrad/open-gpu-kernel-modules#36; aikitoria/open-gpu-kernel-modules#2, #38"},
	{"bar1-never", bar1_at_its_largest, ACTION_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), although Resizable BAR is on: no GeForce card has a larger one",
	 NO_LARGER_BAR1,
	 "tinygrad/open-gpu-kernel-modules#36; aikitoria/open-gpu-kernel-modules#2, #38"},
	{"bar1-vbios", bar1_old_vbios, ACTION_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), and the card offers no larger one",
	 "update the card's VBIOS (its maker's Resizable BAR update)", "PCIe 6.0, 7.8.6"},
	{"bar1-not-grown", bar1_not_grown, ACTION_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), although NVreg_EnableResizableBar=1 is set "
	 "already",
	 "onehop check says what keeps it small (bar1-firmware, bar1-window, bar1-small)",
	 "kernel-open/nvidia/nv-pci.c nv_resize_pcie_bars"},
	{"bar1-small", bar1_small, ACTION_REFUSED, "BAR1 (%B) does not cover the memory (%V)",
	 "switch on Above 4G Decoding and Resizable BAR in the firmware's setup; or set "
	 "NVreg_EnableResizableBar=1 for module nvidia, and reboot (see onehop fix)",
	 STATIC "; kernel-open/nvidia/nv-pci.c nv_resize_pcie_bars"},
	{"bar1-no-room", no_room_for_cpu, ACTION_REFUSED,
	 "BAR1 (%B) is barely larger than the memory (%V): before 565 the CPU's mappings need room "
	 "in addition",
	 "install driver 565 or later",
	 KERN_BUS "arch/maxwell/kern_bus_gm107.c kbusInitBar1_GM107"},
	{"console", no_room_for_console, ACTION_REFUSED,
	 "it drives a display, and BAR1 (%B) has no room for that beyond the memory (%V)",
	 "use another GPU (in the CPU or on the board) for the display and the firmware's console",
	 STATIC "; aikitoria/open-gpu-kernel-modules#9"},
	{"nvlink-lost", nvlink_would_go, ACTION_REFUSED,
	 "NVLink connects it to some GPUs, and before 575 the option that selects BAR1 switches "
	 "NVLink off",
	 "install driver 575 or later", KERNEL_BIF "; tinygrad/open-gpu-kernel-modules#3"},
};

const struct requirement_rows requirement_bar1_rows = {rows, sizeof(rows) / sizeof(rows[0])};
