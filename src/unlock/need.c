/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/need_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "machine/card.h"
#include "machine/container.h"

#include <inttypes.h>
#include <string.h>

#define GIB ((int64_t)1 << 30)

/* Where BAR1 P2P for GB20x is whole: page tables, unified memory, and the switch. */
#define GB20X_RELEASE 590
/* From here on the CPU's mappings need no room beside the memory in BAR1. */
#define ROOMY_RELEASE 565
/* From here on choosing BAR1 leaves NVLink alone. */
#define NVLINK_RELEASE 575
/* What a console beside the memory takes, padded to 512 MiB, and the mailbox window. */
#define CONSOLE_ROOM GIB

/* A card under judgement. */
struct look {
	struct machine *m;
	const struct nvidia_driver *d;
	const struct gpu *g;
	int branch;            /* 595; -1: not known */
	int64_t cc;            /* compute capability; -1: not known */
	struct fact_int wants; /* 1: P2P over PCIe goes through BAR1 only */
	/* By GPU: it has all that onehop brings. For pair_rows alone. */
	const bool *equipped;
	const char *text; /* for sentences */
};

/* ---- words ---- */

/* "32 GiB", and "24 GiB" for the 24564 MiB that are left of it. */
static const char *size_words(struct machine *m, int64_t bytes)
{
	if (bytes < GIB)
		return arena_printf(m->arena, "%" PRId64 " MiB", bytes >> 20);
	return arena_printf(m->arena, "%" PRId64 " GiB", (bytes + GIB - 1) / GIB);
}

/* ---- facts about a card ---- */

static bool is_gb20x(const struct look *l)
{
	return l->cc == 120;
}

/* Chips of one generation have one compute capability, but for Turing's and Hopper's siblings. */
static bool same_generation(const struct gpu *a, const struct gpu *b)
{
	struct fact_int x = card_compute_capability(a), y = card_compute_capability(b);

	return fact_known(x) && fact_known(y) && x.value == y.value;
}

static bool is_linked(const struct gpu *a, const struct gpu *b)
{
	for (unsigned i = 0; i < a->nvlink_n; i++) {
		const struct nvlink *n = &a->nvlinks[i];
		struct pci_address at;

		if (fact_is(n->active, 1) && fact_known(n->remote) &&
		    pci_address_parse(n->remote.value, &at) == 0 &&
		    pci_address_compare(at, b->pci->address) == 0)
			return true;
	}
	return false;
}

/* Other GPUs that it reaches over NVLink. */
static size_t linked(const struct look *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->m->gpu_n; i++)
		n += &l->m->gpus[i] != l->g && is_linked(l->g, &l->m->gpus[i]);
	return n;
}

static bool through_bar1(const struct gpu *g)
{
	return fact_is(card_needs_bar1(g), 1);
}

static int64_t largest_bar1(const struct gpu *g)
{
	int64_t sizes = fact_or(g->pci->rebar_sizes, 0), largest = 0;

	for (int bit = 0; bit < 40; bit++)
		if (sizes >> bit & 1)
			largest = (int64_t)1 << (bit + 20);
	return largest;
}

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

static bool bar1_is_small(const struct look *l)
{
	return sizes_known(l->g) && fact_or(l->g->bar1_bytes, 0) < l->g->vram_bytes.value;
}

/* Of the module that runs. */
static struct fact_int mechanism(const struct look *l)
{
	struct fact_int loaded = l->d->bar1_p2p.loaded;

	if (is_gb20x(l) && l->branch >= GB20X_RELEASE)
		return fact_int(1, "driver 590 and later");
	return loaded;
}

/* As the driver's resource manager has it; enum rm_connection. */
static struct fact_int connection(const struct look *l, size_t i)
{
	return machine_pair(l->m, l->g->index, i)->rm.connection;
}

/* ---- the rows ---- */

static bool not_geforce(struct look *l)
{
	return fact_is(card_is_geforce(l->g), 0);
}

static bool all_nvlink(struct look *l)
{
	return l->m->gpu_n > 1 && linked(l) == l->m->gpu_n - 1;
}

static bool before_turing(struct look *l)
{
	return fact_is(card_is_geforce(l->g), 1) && l->cc >= 0 && l->cc < 75;
}

static bool model_unknown(struct look *l)
{
	return fact_unknown(card_is_geforce(l->g)) || l->cc < 0;
}

static bool is_turing(struct look *l)
{
	return l->cc == 75;
}

static bool not_listed(struct look *l)
{
	return !fact_is(l->wants, 1);
}

static bool alone(struct look *l)
{
	for (size_t i = 0; i < l->m->gpu_n; i++)
		if (&l->m->gpus[i] != l->g && through_bar1(&l->m->gpus[i]) &&
		    same_generation(l->g, &l->m->gpus[i]))
			return false;
	return true;
}

static bool other_driver(struct look *l)
{
	const char *name = fact_str_or(l->g->pci->driver, "nvidia");

	l->text = name;
	return strcmp(name, "nvidia") != 0;
}

static bool in_container(struct look *l)
{
	l->text = fact_str_or(l->m->kernel.container, "");
	return fact_known(l->m->kernel.container) && !container_is_guess(l->m);
}

static bool no_driver(struct look *l)
{
	return fact_is(l->d->loaded, 0);
}

static bool driver_unknown(struct look *l)
{
	return l->branch < 0;
}

static bool proprietary(struct look *l)
{
	return fact_is(l->d->flavor, DRIVER_PROPRIETARY);
}

static bool gb20x_too_early(struct look *l)
{
	return is_gb20x(l) && l->branch < GB20X_RELEASE;
}

static bool before_535(struct look *l)
{
	return l->branch < 535;
}

static bool sizes_unknown(struct look *l)
{
	struct fact_int missing =
		fact_known(l->g->vram_bytes) ? l->g->bar1_bytes : l->g->vram_bytes;

	l->text = FACT_WHY(missing);
	return !sizes_known(l->g);
}

static bool bar1_too_large_to_be(struct look *l)
{
	return bar1_is_small(l) && largest_bar1(l->g) &&
	       largest_bar1(l->g) < l->g->vram_bytes.value && l->g->vram_bytes.value > 32 * GIB;
}

static bool bar1_old_vbios(struct look *l)
{
	bool none = fact_absent(l->g->pci->rebar_sizes);

	return bar1_is_small(l) &&
	       (none || (largest_bar1(l->g) && largest_bar1(l->g) < l->g->vram_bytes.value));
}

static bool bar1_small(struct look *l)
{
	return bar1_is_small(l);
}

static bool no_room_for_cpu(struct look *l)
{
	return l->branch < ROOMY_RELEASE && room(l->g) < GIB;
}

static bool no_room_for_console(struct look *l)
{
	return fact_is(card_has_console(l->g), 1) && room(l->g) < CONSOLE_ROOM;
}

static bool nvlink_would_go(struct look *l)
{
	return l->branch < NVLINK_RELEASE && linked(l) > 0;
}

static bool forced_without(struct look *l)
{
	return driver_forced_p2p(l->d, l->g) && fact_is(mechanism(l), 0);
}

static bool seen_in_force(struct look *l)
{
	return fact_is(mechanism(l), 1) && fact_is(need_dwords_set(l->m, l->g), 1);
}

static bool only_options(struct look *l)
{
	return fact_is(mechanism(l), 1);
}

static bool waits_for_reload(struct look *l)
{
	return fact_is(l->d->bar1_p2p.installed, 1) && fact_is(mechanism(l), 0);
}

static bool only_file_seen(struct look *l)
{
	return fact_is(l->d->bar1_p2p.installed, 1) && !fact_known(mechanism(l));
}

static bool options_unknown(struct look *l)
{
	return fact_is(mechanism(l), 1) && !fact_known(need_dwords_set(l->m, l->g));
}

/* The driver says that it reaches this other card; how, is another question. */
static bool is_allowed(const struct look *l, size_t i)
{
	const struct gpu_pair *p = machine_pair(l->m, l->g->index, i);

	return &l->m->gpus[i] != l->g && through_bar1(&l->m->gpus[i]) &&
	       fact_is(p->p2p[P2P_WRITE], P2P_OK) && fact_is(p->p2p[P2P_READ], P2P_OK);
}

static bool driver_says_mailbox(struct look *l)
{
	for (size_t i = 0; i < l->m->gpu_n && !fact_known(mechanism(l)); i++)
		if (is_allowed(l, i) && fact_is(connection(l, i), RM_CONNECTION_MAILBOX))
			return true;
	return false;
}

static bool driver_says_yes(struct look *l)
{
	for (size_t i = 0; i < l->m->gpu_n && !fact_known(mechanism(l)); i++)
		if (is_allowed(l, i))
			return true;
	return false;
}

/* ---- the rows of pairs ---- */

/* Another card that it is to reach through BAR1. */
static bool is_peer(const struct look *l, size_t i)
{
	const struct gpu *g = &l->m->gpus[i];
	struct fact_int c = connection(l, i);

	return g != l->g && l->equipped[i] && same_generation(l->g, g) && !is_linked(l->g, g) &&
	       !fact_is(c, RM_CONNECTION_NVLINK) && !fact_is(c, RM_CONNECTION_NVLINK_INDIRECT) &&
	       !fact_is(c, RM_CONNECTION_C2C);
}

static bool is_mailbox(struct fact_int c)
{
	return fact_is(c, RM_CONNECTION_MAILBOX);
}

static bool is_none(struct fact_int c)
{
	return fact_is(c, RM_CONNECTION_NONE);
}

static bool is_not_known(struct fact_int c)
{
	return !fact_known(c);
}

static bool is_bar1(struct fact_int c)
{
	return fact_is(c, RM_CONNECTION_BAR1);
}

/* Names the peers that it is connected with so: "its peers", or "GPU1, GPU3" of more. */
static bool some_peers(struct look *l, bool (*is_so)(struct fact_int c))
{
	AUTO_STRBUF struct strbuf names = {0};
	size_t n = 0, peers = 0;
	const char *why = NULL;

	for (size_t i = 0; i < l->m->gpu_n; i++) {
		struct fact_int c = connection(l, i);

		peers += is_peer(l, i);
		if (!is_peer(l, i) || !is_so(c))
			continue;
		strbuf_printf(&names, "%sGPU%zu", n++ ? ", " : "", i);
		why = fact_known(c) ? NULL : FACT_WHY(c);
	}
	l->text = arena_printf(l->m->arena, "%s%s%s%s",
			       n < peers ? strbuf_str(&names)
			       : n == 1  ? "its peer"
					 : "its peers",
			       why ? " (" : "", why ? why : "", why ? ")" : "");
	return n > 0;
}

static bool peers_through_mailbox(struct look *l)
{
	return some_peers(l, is_mailbox);
}

static bool peers_not_connected(struct look *l)
{
	return some_peers(l, is_none);
}

static bool peers_not_known(struct look *l)
{
	return some_peers(l, is_not_known);
}

static bool peers_through_bar1(struct look *l)
{
	return some_peers(l, is_bar1);
}

static bool always(struct look *l)
{
	(void)l;
	return true;
}

#define P2P_CAPS "open-gpu-kernel-modules src/nvidia/src/kernel/platform/p2p/p2p_caps.c"
#define KERN_BUS "open-gpu-kernel-modules src/nvidia/src/kernel/gpu/bus/"
#define STATIC   KERN_BUS "arch/turing/kern_bus_tu102.c kbusIsStaticBar1Supported"
#define NVOC     "open-gpu-kernel-modules src/nvidia/generated/g_kern_bus_nvoc.c (535 to 595)"
#define RM_CAPS                                                                                    \
	"open-gpu-kernel-modules ctrl0000system.h NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2 (PROP, "  \
	"PCI_BAR1)"
#define KERNEL_BIF "open-gpu-kernel-modules kernel_bif.c _kbifInitRegistryOverrides"

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

static const struct need_row rows[] = {
	{"model-unknown", model_unknown, NEED_UNKNOWN, "what card it is could not be read",
	 "load the driver, or add the device id to pci.ids and report it", NULL},
	{"other-card", not_geforce, NEED_NOTHING,
	 "workstation and data centre cards have P2P in the driver as it is", NULL, P2P_CAPS},
	{"nvlink", all_nvlink, NEED_NOTHING, "NVLink joins it with every other GPU", NULL,
	 P2P_CAPS},
	{"before-turing", before_turing, NEED_NOTHING,
	 "GeForce cards before the 20 series have P2P in the driver as it is", NULL, P2P_CAPS},
	{"turing", is_turing, NEED_REFUSED,
	 "GeForce cards of the 20 series have no Resizable BAR: BAR1 (%B) cannot cover the memory "
	 "(%V)",
	 "nothing on the host; an NVLink bridge joins two of them", STATIC},
	{"not-listed", not_listed, NEED_UNKNOWN, "no rule is known for this chip", "a newer onehop",
	 NULL},
	{"container", in_container, NEED_REFUSED,
	 "this is a container (%s): modules and their options belong to the host",
	 "run onehop unlock on the host", "container runtimes share the host's kernel"},
	{"other-driver", other_driver, NEED_REFUSED, "it is bound to %s, not to NVIDIA's driver",
	 "give it to NVIDIA's driver (see onehop check)", NULL},
	{"no-driver", no_driver, NEED_REFUSED, "NVIDIA's kernel module is not loaded",
	 "install NVIDIA's driver with its open kernel modules, and load it", NULL},
	{"driver-unknown", driver_unknown, NEED_UNKNOWN, "the driver's version could not be read",
	 "run it on the machine itself: /proc/driver/nvidia/version", NULL},
	{"alone", alone, NEED_REFUSED,
	 "no other card here is of its generation and goes through BAR1: CUDA's library refuses "
	 "pairs of different generations, whatever the kernel module says",
	 "pair it with a card of its generation", "aikitoria/open-gpu-kernel-modules#12, #28, #40"},
	{"proprietary", proprietary, NEED_REFUSED,
	 "the proprietary modules are loaded: their core comes without sources",
	 "install the open kernel modules of %D (Debian: nvidia-open-kernel-dkms; Ubuntu: "
	 "nvidia-driver-NNN-open; run file: --kernel-module-type=open)",
	 "NVIDIA driver README, \"Open Linux Kernel Modules\""},
	{"gb20x-driver", gb20x_too_early, NEED_REFUSED,
	 "driver %D has no whole BAR1 P2P for this chip: unified memory does not know BAR1 peers "
	 "before 590",
	 "install driver 590 or later: it needs module options alone", NVOC},
	{"release", before_535, NEED_REFUSED, "driver %D is older than any that could be edited",
	 "install driver 535 or later, best 580 or later", NVOC},
	{"forced", forced_without, NEED_REFUSED,
	 "ForceP2P is set, but the module that runs has no P2P for this card: the driver says yes "
	 "over "
	 "hardware that is not there, and data is lost",
	 "take ForceP2P out of NVreg_RegistryDwords now; it comes back with the edited module",
	 KERNEL_BIF "; tinygrad/open-gpu-kernel-modules#16"},
	{"sizes-unknown", sizes_unknown, NEED_UNKNOWN,
	 "the sizes of memory and BAR1 could not be read: %s", "load the driver and ask again",
	 NULL},
	{"bar1-never", bar1_too_large_to_be, NEED_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), and the card's largest is %L, as on cards that "
	 "were given more memory",
	 "nothing on the host, but for giving up memory: OverrideFbSize for this card, with "
	 "RMForceStaticBar1=1",
	 "tinygrad/open-gpu-kernel-modules#36; aikitoria/open-gpu-kernel-modules#2, #38"},
	{"bar1-vbios", bar1_old_vbios, NEED_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), and the card offers no larger one",
	 "update the card's VBIOS (its maker's Resizable BAR update)", "PCIe 6.0, 7.8.6"},
	{"bar1-small", bar1_small, NEED_REFUSED, "BAR1 (%B) does not cover the memory (%V)",
	 "switch on Above 4G Decoding and Resizable BAR in the firmware's setup; or set "
	 "NVreg_EnableResizableBar=1 for module nvidia, and reboot (see onehop fix)",
	 STATIC "; kernel-open/nvidia/nv-pci.c nv_resize_pcie_bars"},
	{"bar1-no-room", no_room_for_cpu, NEED_REFUSED,
	 "BAR1 (%B) is hardly larger than the memory (%V): before 565 the CPU's mappings need room "
	 "beside it",
	 "install driver 565 or later",
	 KERN_BUS "arch/maxwell/kern_bus_gm107.c kbusInitBar1_GM107"},
	{"console", no_room_for_console, NEED_REFUSED,
	 "it drives a screen, and BAR1 (%B) has no room for that beside the memory (%V)",
	 "let another GPU (the CPU's, the board's) drive the screen and the firmware's console",
	 STATIC "; aikitoria/open-gpu-kernel-modules#9"},
	{"nvlink-lost", nvlink_would_go, NEED_REFUSED,
	 "NVLink joins it with some GPUs, and before 575 the option that chooses BAR1 switches "
	 "NVLink "
	 "off",
	 "install driver 575 or later", KERNEL_BIF "; tinygrad/open-gpu-kernel-modules#3"},
	{"in-force", seen_in_force, NEED_IN_FORCE, NULL, NULL, NULL}, /* pair_rows says more */
	{"options-unknown", options_unknown, NEED_UNKNOWN,
	 "the module that runs has BAR1 P2P for it; its options could not be read",
	 "run it on the machine itself: /proc/driver/nvidia/params", NVOC},
	{"options", only_options, NEED_OPTIONS,
	 "the module that runs has BAR1 P2P for it; options switch it on", NULL, NVOC},
	{"reload", waits_for_reload, NEED_RELOAD,
	 "the module on disk is edited, the one that runs is not", NULL, NVOC},
	{"file-only", only_file_seen, NEED_UNKNOWN,
	 "the module on disk has BAR1 P2P for it; the one that runs could not be looked into",
	 "run it on the machine itself: /proc/kallsyms", NVOC},
	{"mailbox", driver_says_mailbox, NEED_REFUSED,
	 "the driver allows P2P for it and leads it through a mailbox, which it does not have: "
	 "data is lost; whether its module is edited could not be seen",
	 "take ForceP2P out of NVreg_RegistryDwords until the driver uses BAR1", RM_CAPS},
	{"says-yes", driver_says_yes, NEED_UNKNOWN,
	 "the driver says that P2P is possible; whether its module is edited could not be seen",
	 "let onehop test decide", P2P_CAPS},
	{"patch", always, NEED_PATCH,
	 "the driver has BAR1 P2P, but stubs stand for it on this chip", NULL, NVOC},
};

#define EQUIPPED "the module that runs has BAR1 P2P for it and the options are set"

/*
 * Of cards that the rows above call in force: what the driver makes of it, pair by pair. That it says
 * BAR1 counts behind a look into its module only, since stock 545 to 570 say so with nothing mapped.
 */
static const struct need_row pair_rows[] = {
	{"peers-mailbox", peers_through_mailbox, NEED_REFUSED,
	 EQUIPPED ", but the driver leads it to %s through a mailbox, which it does not have: data "
		  "is lost",
	 "onehop check says what keeps the driver from BAR1 (p2p-mailbox); until that is mended, "
	 "take ForceP2P out of NVreg_RegistryDwords",
	 RM_CAPS},
	{"peers-none", peers_not_connected, NEED_REFUSED,
	 EQUIPPED ", but the driver connects it with %s by nothing",
	 "onehop check and the kernel log (NVRM) say what keeps the driver from BAR1", RM_CAPS},
	{"peers-unknown", peers_not_known, NEED_UNKNOWN,
	 EQUIPPED "; how the driver connects it with %s is not known",
	 "run it on the machine itself, or let onehop test decide", RM_CAPS},
	{"in-force", peers_through_bar1, NEED_IN_FORCE,
	 EQUIPPED ", and the driver connects it with its peers through BAR1", NULL, RM_CAPS},
	{"in-force", always, NEED_IN_FORCE, EQUIPPED, NULL, NVOC},
};

static const char *fill_in(struct look *l, const char *text)
{
	char *out = NULL;
	size_t n = 0;

	if (!text)
		return NULL;
	for (const char *s = text; *s; s++) {
		const char *add = NULL, letter[2] = {*s, '\0'};

		if (*s == '%' && s[1] == 's')
			add = l->text;
		else if (*s == '%' && s[1] == 'V')
			add = fact_known(l->g->vram_bytes)
				      ? size_words(l->m, l->g->vram_bytes.value)
				      : "size not known";
		else if (*s == '%' && s[1] == 'B')
			add = fact_known(l->g->bar1_bytes)
				      ? size_words(l->m, l->g->bar1_bytes.value)
				      : "not mapped";
		else if (*s == '%' && s[1] == 'L')
			add = size_words(l->m, largest_bar1(l->g));
		else if (*s == '%' && s[1] == 'D')
			add = fact_str_or(l->d->module_version, "of this version");
		s += add != NULL;
		for (const char *c = add ? add : letter; *c; c++)
			*ARENA_PUSH(l->m->arena, out, n) = *c;
	}
	*ARENA_PUSH(l->m->arena, out, n) = '\0';
	return out;
}

/* By the first of the rows that holds; one always does. */
static struct card_need judge(struct machine *m, const struct gpu *g, const struct need_row *row,
			      const bool *equipped)
{
	struct look l = {.m = m,
			 .d = &m->driver,
			 .g = g,
			 .branch = driver_branch(m->driver.module_version),
			 .cc = fact_or(card_compute_capability(g), -1),
			 .wants = card_needs_bar1(g),
			 .equipped = equipped,
			 .text = ""};

	while (!row->holds(&l))
		row++;
	return (struct card_need){.gpu = g,
				  .need = row->need,
				  .wants_options = equipped || row->need <= NEED_OPTIONS,
				  .id = row->id,
				  .why = fill_in(&l, row->why),
				  .change = fill_in(&l, row->change),
				  .reference = row->reference};
}

static void judge_cards(struct machine *m, struct machine_need *n)
{
	AUTO_FREE bool *equipped = xcalloc(m->gpu_n, sizeof(*equipped));

	for (size_t i = 0; i < m->gpu_n; i++) {
		*ARENA_PUSH(m->arena, n->cards, n->n) = judge(m, &m->gpus[i], rows, NULL);
		equipped[i] = n->cards[i].need == NEED_IN_FORCE;
	}
	for (size_t i = 0; i < n->n; i++)
		if (equipped[i])
			n->cards[i] = judge(m, &m->gpus[i], pair_rows, equipped);
}

const struct machine_need *machine_need(struct machine *m)
{
	struct machine_need *n = arena_alloc(m->arena, 1, sizeof(*n));

	n->need = m->gpu_n ? NEED_NOTHING : NEED_UNKNOWN;
	n->release = fact_str_or(m->driver.module_version, NULL);
	judge_cards(m, n);
	for (size_t i = 0; i < n->n; i++)
		if (n->cards[i].need < n->need)
			n->need = n->cards[i].need;
	n->judged = m->gpu_n > 1 && n->need != NEED_UNKNOWN;
	if (m->gpu_n > 1) {
		need_options(m, n);
		need_steps(m, n);
	}
	return n;
}

const char *need_word(enum need n)
{
	static const char *const words[NEED_N] = {
		[NEED_PATCH] = "patch",     [NEED_RELOAD] = "reload",
		[NEED_OPTIONS] = "options", [NEED_REFUSED] = "refused",
		[NEED_UNKNOWN] = "unknown", [NEED_IN_FORCE] = "in-force",
		[NEED_NOTHING] = "nothing",
	};

	return words[n];
}
