/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/need_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "machine/container.h"
#include "support/support.h"
#include "topology/topology.h"

#include <inttypes.h>
#include <string.h>

#define GIB ((int64_t)1 << 30)

/* What a console beside the memory takes, padded to 512 MiB, and the mailbox window. */
#define CONSOLE_ROOM GIB

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
	/* By GPU: it has all that onehop brings. For pair_rows alone. */
	const bool *equipped;
	const struct topology *t;
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

static bool through_bar1(const struct look *l, const struct gpu *g)
{
	return l->bar1_way[g->index];
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
	return sizes_known(l->g) && l->bar1.cover == BAR1_TOO_SMALL;
}

/* Of the module that runs. */
static struct fact_int mechanism(const struct look *l)
{
	static const char from[] = "the functions of the module that runs, and its release";

	if (l->s.mechanism == MECHANISM_BAR1)
		return fact_int(1, from);
	if (l->s.mechanism == MECHANISM_UNKNOWN)
		return fact_int_unknown(l->s.why);
	return fact_int(0, from);
}

/* The driver says that it reaches this other card. */
static bool says_ok(const struct look *l, size_t i)
{
	const struct gpu_pair *p = machine_pair(l->m, l->g->index, i);

	return fact_is(p->p2p[P2P_WRITE], P2P_OK) && fact_is(p->p2p[P2P_READ], P2P_OK);
}

/* As the driver's resource manager has it; enum rm_connection. */
static struct fact_int connection(const struct look *l, size_t i)
{
	return machine_pair(l->m, l->g->index, i)->rm.connection;
}

/* ---- the rows ---- */

static bool has_mailbox(struct look *l)
{
	return fact_is(card_is_geforce(l->g), 0) && l->s.mechanism == MECHANISM_MAILBOX;
}

static bool not_driven(struct look *l)
{
	l->text = l->s.why;
	return l->s.way == MECHANISM_MAILBOX && l->s.mechanism == MECHANISM_NONE;
}

static bool all_nvlink(struct look *l)
{
	return l->m->gpu_n > 1 && linked(l) == l->m->gpu_n - 1;
}

static bool before_turing(struct look *l)
{
	return fact_is(card_is_geforce(l->g), 1) && l->s.mechanism == MECHANISM_MAILBOX;
}

static bool model_unknown(struct look *l)
{
	return fact_unknown(card_class(l->g)) || fact_unknown(card_compute_capability(l->g));
}

static bool is_turing(struct look *l)
{
	return l->s.way == MECHANISM_NONE;
}

static bool is_mining(struct look *l)
{
	return fact_is(card_class(l->g), CARD_MINING);
}

static bool not_listed(struct look *l)
{
	return l->s.way == MECHANISM_UNKNOWN;
}

/* Not in the table, and the driver's own answer, which nothing forces, is yes. */
static bool driver_allows(struct look *l)
{
	bool all = l->m->gpu_n > 1;

	for (size_t i = 0; i < l->m->gpu_n; i++)
		all &= &l->m->gpus[i] == l->g || says_ok(l, i);
	return not_listed(l) && all && !driver_forced_p2p(l->d, l->g);
}

static bool alone(struct look *l)
{
	for (size_t i = 0; i < l->m->gpu_n; i++)
		if (&l->m->gpus[i] != l->g && through_bar1(l, &l->m->gpus[i]) &&
		    card_same_generation(l->g, &l->m->gpus[i]))
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
	return !fact_known(l->d->module_version);
}

static bool proprietary(struct look *l)
{
	return fact_is(l->d->flavor, DRIVER_PROPRIETARY);
}

static bool gb20x_too_early(struct look *l)
{
	return driver_branch(l->d->module_version) < support_native_from(l->g);
}

static bool release_without_keys(struct look *l)
{
	return !l->release->keys;
}

static bool sizes_unknown(struct look *l)
{
	struct fact_int missing =
		fact_known(l->g->vram_bytes) ? l->g->bar1_bytes : l->g->vram_bytes;

	l->text = FACT_WHY(missing);
	return !sizes_known(l->g);
}

static bool bar1_in_guest(struct look *l)
{
	l->text = fact_str_or(l->m->kernel.hypervisor, "");
	return bar1_is_small(l) && fact_known(l->m->kernel.hypervisor);
}

static bool bar1_too_large_to_be(struct look *l)
{
	return bar1_is_small(l) && l->bar1.largest && l->bar1.largest < l->g->vram_bytes.value &&
	       l->g->vram_bytes.value > 32 * GIB;
}

static bool bar1_old_vbios(struct look *l)
{
	bool none = fact_absent(l->g->pci->rebar_sizes);

	return bar1_is_small(l) &&
	       (none || (l->bar1.largest && l->bar1.largest < l->g->vram_bytes.value));
}

static bool bar1_not_grown(struct look *l)
{
	return bar1_is_small(l) && fact_is(l->d->resizable_bar, 1);
}

static bool bar1_small(struct look *l)
{
	return bar1_is_small(l);
}

static bool no_room_for_cpu(struct look *l)
{
	return l->release->cpu_needs_room && room(l->g) < GIB;
}

static bool no_room_for_console(struct look *l)
{
	return fact_is(card_has_console(l->g), 1) && room(l->g) < CONSOLE_ROOM;
}

static bool nvlink_would_go(struct look *l)
{
	return l->release->old_type && linked(l) > 0;
}

static bool forced_without(struct look *l)
{
	return driver_forced_p2p(l->d, l->g) && fact_is(mechanism(l), 0);
}

/* Another card that it is to reach through BAR1, whatever the driver makes of that. */
static bool wants_peer(const struct look *l, size_t i)
{
	const struct gpu *g = &l->m->gpus[i];

	return g != l->g && through_bar1(l, g) && card_same_generation(l->g, g) &&
	       !is_linked(l->g, g);
}

/* All peers, of which there are some. */
static bool all_peers(const struct look *l, bool (*is_so)(const struct look *l, size_t i))
{
	size_t n = 0;

	for (size_t i = 0; i < l->m->gpu_n; i++) {
		if (!wants_peer(l, i))
			continue;
		if (!is_so(l, i))
			return false;
		n++;
	}
	return n > 0;
}

static bool arrives(const struct look *l, size_t i)
{
	size_t g = l->g->index;

	return topology_path(l->t, g, i)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_WORKS &&
	       topology_path(l->t, i, g)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_WORKS;
}

static bool driver_uses_bar1(const struct look *l, size_t i)
{
	return says_ok(l, i) && driver_means_bar1(l->m, l->g->index, i);
}

/* Some edits choose BAR1 themselves, without keys. */
static bool needs_no_keys(struct look *l)
{
	return fact_is(mechanism(l), 1) && all_peers(l, driver_uses_bar1);
}

/* The edited modules that run let managed memory write where it must not. */
static bool lacks_gate(struct look *l)
{
	l->text = fact_is(registry_keys_good(l->d, l->g), 1) || needs_no_keys(l)
			  ? "in force, but"
			  : "the module that runs is edited,";
	return fact_is(mechanism(l), 1) && card_needs_uvm_gate(l->g) &&
	       fact_is(driver_uvm_gate(l->d), 0);
}

/* The next boot ends that. */
static bool gate_waits_for_reload(struct look *l)
{
	return lacks_gate(l) && fact_is(l->d->bar1_p2p.installed, 1) &&
	       fact_is(l->d->uvm_gate.installed, 1) && !fact_is(driver_edit_is_old(l->d), 1);
}

static bool edit_is_old(struct look *l)
{
	l->text = fact_str_or(l->d->bar1_p2p.mark, "");
	return through_bar1(l, l->g) && card_needs_uvm_gate(l->g) &&
	       fact_is(l->d->bar1_p2p.installed, 1) && fact_is(driver_edit_is_old(l->d), 1);
}

/* Checked data outweighs what could keep it from arriving, as it does for onehop check; not what writes elsewhere. */
static bool is_proven(struct look *l)
{
	bool harms = lacks_gate(l) || edit_is_old(l);

	l->text =
		l->bar1.cover == BAR1_TOO_SMALL ? ", although BAR1 does not cover the memory" : "";
	return all_peers(l, arrives) && !harms;
}

/* On one card or another: its peers reach into its BAR1 at the wrong place. */
static bool console_shifts(struct look *l)
{
	const struct gpu *g = l->m->gpus, *end = g + l->m->gpu_n;

	while (g < end && !(through_bar1(l, g) && fact_is(support_console_shifts(l->d, g), 1)))
		g++;
	if (g == end)
		return false;
	l->text = arena_printf(l->m->arena, "GPU%zu", g->index);
	return fact_is(mechanism(l), 1);
}

static bool seen_in_force(struct look *l)
{
	return fact_is(mechanism(l), 1) && fact_is(registry_keys_good(l->d, l->g), 1);
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
	return fact_is(mechanism(l), 1) && !fact_known(registry_keys_good(l->d, l->g));
}

/* The driver says that it reaches this other card; how, is another question. */
static bool is_allowed(const struct look *l, size_t i)
{
	return &l->m->gpus[i] != l->g && through_bar1(l, &l->m->gpus[i]) && says_ok(l, i);
}

/* By the kernel log, and no copy has shown the contrary. */
static bool mapping_fails(const struct path *p)
{
	return p->chain[CHAIN_DRIVER].reason == REASON_DRIVER_MAPPING && p->verdict != PAIR_DIRECT;
}

static bool is_unfinished(struct look *l)
{
	for (size_t i = 0; i < l->m->gpu_n && !fact_known(mechanism(l)); i++)
		if (is_allowed(l, i) && mapping_fails(topology_path(l->t, l->g->index, i)))
			return true;
	return false;
}

static bool driver_says_mailbox(struct look *l)
{
	for (size_t i = 0; i < l->m->gpu_n && !fact_known(mechanism(l)); i++)
		if (is_allowed(l, i) && fact_is(connection(l, i), RM_CONNECTION_MAILBOX))
			return true;
	return false;
}

static bool driver_forced_to_mailbox(struct look *l)
{
	return driver_forced_p2p(l->d, l->g) && driver_says_mailbox(l);
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

	return g != l->g && l->equipped[i] && card_same_generation(l->g, g) &&
	       !is_linked(l->g, g) && !fact_is(c, RM_CONNECTION_NVLINK) &&
	       !fact_is(c, RM_CONNECTION_NVLINK_INDIRECT) && !fact_is(c, RM_CONNECTION_C2C);
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

static bool copy_fails(const struct look *l, size_t i)
{
	size_t g = l->g->index;

	return topology_path(l->t, g, i)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_FAILS ||
	       topology_path(l->t, i, g)->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_FAILS;
}

/* Names the peers. */
static bool copies_fail(struct look *l)
{
	AUTO_STRBUF struct strbuf names = {0};

	for (size_t i = 0; i < l->m->gpu_n; i++)
		if (is_peer(l, i) && copy_fails(l, i))
			strbuf_printf(&names, "%sGPU%zu", names.len ? ", " : "", i);
	l->text = arena_strdup(l->m->arena, strbuf_str(&names));
	return names.len > 0;
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

static bool lacks_keys(struct look *l)
{
	return needs_no_keys(l) && !fact_is(registry_keys_good(l->d, l->g), 1);
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
#define UVM                                                                                        \
	"open-gpu-kernel-modules kernel-open/nvidia-uvm uvm_turing_mmu.c make_pte_turing; "        \
	"WU-CVGL/cluster-setup docs/05_GPU_P2P_GeForce_and_CMP.md"
#define KERNEL_BIF "open-gpu-kernel-modules kernel_bif.c _kbifInitRegistryOverrides"

#define MAILBOX                                                                                    \
	"the driver allows P2P for it and leads it through a mailbox, which it does not have: "    \
	"data is lost; whether its module is edited could not be seen"

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
	{"other-card", has_mailbox, NEED_NOTHING,
	 "workstation and data centre cards have P2P in the driver as it is", NULL, P2P_CAPS},
	{"not-driven", not_driven, NEED_REFUSED, "%s", "install modules of the kind that drives it",
	 "NVIDIA driver README, \"Open Linux Kernel "
	 "Modules\""},
	{"nvlink", all_nvlink, NEED_NOTHING, "NVLink joins it with every other GPU", NULL,
	 P2P_CAPS},
	{"before-turing", before_turing, NEED_NOTHING,
	 "GeForce cards before the 20 series have P2P in the driver as it is", NULL, P2P_CAPS},
	{"turing", is_turing, NEED_REFUSED,
	 "GeForce cards of the 20 series have no Resizable BAR: BAR1 (%B) cannot cover the memory "
	 "(%V)",
	 "nothing on the host; an NVLink bridge joins two of them", STATIC},
	{"mining", is_mining, NEED_UNKNOWN,
	 "what the driver offers CMP cards differs by model; ForceP2P hung a host with one",
	 "let onehop test decide, without keys", "WU-CVGL/cluster-setup docs/05"},
	{"driver-allows", driver_allows, NEED_NOTHING,
	 "this chip was not tried, and the driver allows P2P for it as it is (let onehop test "
	 "decide)",
	 NULL, P2P_CAPS},
	{"not-listed", not_listed, NEED_UNKNOWN,
	 "this chip was not tried: whether the driver has P2P through BAR1 for it is not known",
	 "a newer onehop; edited modules that have it on every chip would be recognised", NULL},
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
	{"release", release_without_keys, NEED_UNKNOWN,
	 "driver %D was not tried: its registry keys are not known",
	 "onehop unlock --tree says of its sources whether they can be edited, by what they hold; "
	 "535 and later were tried",
	 NVOC},
	{"proven", is_proven, NEED_IN_FORCE, NULL, NULL, NULL}, /* pair_rows says more */
	{"forced", forced_without, NEED_REFUSED,
	 "ForceP2P is set, but the module that runs has no P2P for this card: the driver says yes "
	 "over "
	 "hardware that is not there, and data is lost",
	 "take ForceP2P out of NVreg_RegistryDwords now; it comes back with the edited module",
	 KERNEL_BIF "; tinygrad/open-gpu-kernel-modules#16"},
	{"sizes-unknown", sizes_unknown, NEED_UNKNOWN,
	 "the sizes of memory and BAR1 could not be read: %s", "load the driver and ask again",
	 NULL},
	{"bar1-host", bar1_in_guest, NEED_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), and this is a virtual machine (%s), where BAR1 "
	 "is as the host gave it",
	 "make BAR1 as large as the memory on the host first (see onehop check)",
	 "PCIe 6.0, 7.8.6"},
	{"bar1-never", bar1_too_large_to_be, NEED_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), and the card's largest is %L, as on cards that "
	 "were given more memory",
	 "nothing on the host: BAR1 mapped in windows, one for each allocation, is what would "
	 "serve it, and onehop does not make that edit, since nobody has proved it on such a card "
	 "and a wrong window lets peers write into the host's memory (onehop test on a card with "
	 "an "
	 "edit of others counts here as proof); or give up the memory beyond BAR1: OverrideFbSize "
	 "and RMForceStaticBar1=1 in NVreg_RegistryDwordsPerDevice, for this card alone, since a "
	 "card "
	 "with that key and a smaller BAR1 does not start",
	 "tinygrad/open-gpu-kernel-modules#36; aikitoria/open-gpu-kernel-modules#2, #38"},
	{"bar1-vbios", bar1_old_vbios, NEED_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), and the card offers no larger one",
	 "update the card's VBIOS (its maker's Resizable BAR update)", "PCIe 6.0, 7.8.6"},
	{"bar1-not-grown", bar1_not_grown, NEED_REFUSED,
	 "BAR1 (%B) does not cover the memory (%V), although NVreg_EnableResizableBar=1 is set "
	 "already",
	 "onehop check says what keeps it small (bar1-firmware, bar1-window, bar1-small)",
	 "kernel-open/nvidia/nv-pci.c nv_resize_pcie_bars"},
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
	{"gate-reload", gate_waits_for_reload, NEED_RELOAD,
	 "%s without the gate for managed memory; the modules on disk have it", NULL, UVM},
	{"uvm-gate", lacks_gate, NEED_REPLACE,
	 "%s without the gate for managed memory: replace it, or the first program that has "
	 "managed "
	 "memory on two of these cards ends in Xid 31 and 154, and only a reboot helps",
	 NULL, UVM},
	{"edit-old", edit_is_old, NEED_REPLACE,
	 "the module on disk is the edit of an earlier onehop (%s): today's edit stops writes to "
	 "wrong addresses that it allows",
	 NULL, UVM},
	{"console-shift", console_shifts, NEED_REPLACE,
	 "a console holds the start of BAR1 of %s, and the edited modules that run are not "
	 "onehop's: "
	 "in this release they reckon from the start of BAR1, so that data lands in the wrong "
	 "place",
	 NULL, STATIC "; aikitoria/open-gpu-kernel-modules 570.86.16-p2p nv_gpu_ops.c"},
	{"in-force", seen_in_force, NEED_IN_FORCE, NULL, NULL, NULL}, /* pair_rows says more */
	{"in-force", needs_no_keys, NEED_IN_FORCE, NULL, NULL, NULL},
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
	{"mailbox", driver_forced_to_mailbox, NEED_REFUSED, MAILBOX,
	 MAILBOX_UNSEEN "; until then take ForceP2P out of NVreg_RegistryDwords", RM_CAPS},
	{"mailbox", driver_says_mailbox, NEED_REFUSED, MAILBOX, MAILBOX_UNSEEN, RM_CAPS},
	{"mapping-fails", is_unfinished, NEED_REFUSED,
	 "the driver says that P2P is possible, and the kernel log shows that its mappings of peer "
	 "memory fail; whether its module is edited could not be seen",
	 "`onehop check` says what the log shows and what may be missing; run onehop unlock on the "
	 "machine itself, as root",
	 P2P_CAPS},
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
	{"proven", is_proven, NEED_IN_FORCE,
	 "onehop test found that data arrives right between it and its peers%s", NULL, RM_CAPS},
	{"copies-fail", copies_fail, NEED_REFUSED,
	 "the module that runs has BAR1 P2P for it, but copies between it and %s were seen to fail",
	 "`onehop check` says what may be in the way (observed-fails); once that is changed, "
	 "`onehop "
	 "test` again",
	 NULL},
	{"in-force", lacks_keys, NEED_IN_FORCE,
	 "the module that runs has BAR1 P2P for it, and the driver connects it with its peers "
	 "through BAR1 without options",
	 NULL, RM_CAPS},
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
			add = size_words(l->m, l->bar1.largest);
		else if (*s == '%' && s[1] == 'D')
			add = fact_str_or(l->d->module_version, "of this version");
		s += add != NULL;
		for (const char *c = add ? add : letter; *c; c++)
			*ARENA_PUSH(l->m->arena, out, n) = *c;
	}
	*ARENA_PUSH(l->m->arena, out, n) = '\0';
	return out;
}

/* By the first of the rows that holds; one always does. `all` is what is known for all cards. */
static struct card_need judge(const struct look *all, const struct gpu *g,
			      const struct need_row *row)
{
	struct look l = *all;
	const struct nvidia_driver *d = &l.m->driver;

	l.g = g;
	l.s = support_of(l.m, g);
	if (through_bar1(&l, g) && l.s.way != MECHANISM_BAR1)
		l.s = support_through_bar1(l.m, g);
	l.bar1 = support_bar1(g);
	while (!row->holds(&l))
		row++;
	return (struct card_need){.gpu = g,
				  .need = row->need,
				  .wants_options =
					  row->need <= NEED_OPTIONS ||
					  (l.equipped && fact_is(registry_keys_good(d, g), 1)),
				  .id = row->id,
				  .why = fill_in(&l, row->why),
				  .change = fill_in(&l, row->change),
				  .reference = row->reference};
}

/* ---- cards of one generation ---- */

/*
 * ForceP2P of either card of a pair makes the driver say yes, and only the key of the first, whichever
 * that is, chooses BAR1 (p2p_caps.c, 535 to 595). So a card with mailboxes gets the keys too where one
 * of its generation goes through BAR1, and where a card cannot have them, none of its generation can.
 */

/* Peers over PCIe for CUDA, and both in NVIDIA's driver. */
static bool may_pair(const struct gpu *a, const struct gpu *b)
{
	return a != b && card_same_generation(a, b) && !is_linked(a, b) &&
	       strcmp(fact_str_or(a->pci->driver, "nvidia"), "nvidia") == 0 &&
	       strcmp(fact_str_or(b->pci->driver, "nvidia"), "nvidia") == 0;
}

/* It has mailboxes, and a card that has none is to reach it. */
static bool joins_bar1_cards(struct machine *m, const struct gpu *g)
{
	if (support_of(m, g).mechanism != MECHANISM_MAILBOX)
		return false;
	for (size_t i = 0; i < m->gpu_n; i++)
		if (may_pair(g, &m->gpus[i]) && support_of(m, &m->gpus[i]).way == MECHANISM_BAR1)
			return true;
	return false;
}

static bool takes_keys(const struct card_need *c)
{
	return c->need <= NEED_OPTIONS || c->need == NEED_IN_FORCE;
}

/* Another card of the generation that has keys or gets them. */
static bool any_takes_keys(const struct machine_need *n, const struct gpu *g)
{
	for (size_t i = 0; i < n->n; i++)
		if (may_pair(g, n->cards[i].gpu) && takes_keys(&n->cards[i]))
			return true;
	return false;
}

/* Of those that this card would reach, one that cannot have the keys. */
static const struct card_need *without_keys(const struct machine_need *n, const struct gpu *g)
{
	for (size_t i = 0; i < n->n; i++) {
		const struct card_need *c = &n->cards[i];

		if (may_pair(g, c->gpu) && (c->need == NEED_REFUSED || c->need == NEED_UNKNOWN))
			return c;
	}
	return NULL;
}

static struct card_need refused_by(const struct look *l, struct card_need c,
				   const struct card_need *other)
{
	struct arena *a = l->m->arena;

	c.need = NEED_REFUSED;
	c.wants_options = false;
	c.id = "mixed";
	c.why = arena_printf(
		a,
		"GPU%zu is of its generation and cannot have the options (%s): set for "
		"one card of a pair, they make the driver say yes and lead it through a "
		"mailbox, which this card does not have",
		other->gpu->index, other->why);
	c.change = arena_printf(a, "GPU%zu: %s; or take that card out, or give it to vfio-pci",
				other->gpu->index, other->change);
	c.reference = P2P_CAPS " _kp2pCapsCheckStatusOverridesForPcie, "
			       "_kp2pCapsGetStatusOverPcieBar1; " KERNEL_BIF;
	return c;
}

/* One with mailboxes, which it keeps unless there is a card to reach through BAR1. */
static void judge_mailbox_card(const struct look *l, struct machine_need *n, size_t i,
			       bool *bar1_way)
{
	struct card_need *c = &n->cards[i];

	if (takes_keys(c) && any_takes_keys(n, c->gpu)) {
		c->why = arena_printf(
			l->m->arena,
			"it has mailboxes, and cards of its generation here have none: "
			"it is to go through BAR1, as they do; %s",
			c->why ? c->why : "");
	} else {
		bar1_way[i] = false;
		*c = judge(l, c->gpu, rows);
	}
}

/* All of a generation, or none; n's cards as they were judged one by one. */
static void judge_together(const struct look *l, struct machine_need *n, bool *bar1_way)
{
	AUTO_FREE struct card_need *alone = xcalloc(n->n, sizeof(*alone));

	for (size_t i = 0; i < n->n; i++)
		alone[i] = n->cards[i];
	for (size_t i = 0; i < n->n; i++) {
		struct machine_need before = {.cards = alone, .n = n->n};
		const struct gpu *g = alone[i].gpu;
		const struct card_need *other = without_keys(&before, g);
		bool edit = need_builds(alone[i].need);

		if (takes_keys(&alone[i]) && other &&
		    !(driver_denies_half_pairs(l->d, edit) && any_takes_keys(&before, g)))
			n->cards[i] = refused_by(l, alone[i], other);
	}
	for (size_t i = 0; i < n->n; i++)
		if (bar1_way[i] && support_of(l->m, alone[i].gpu).mechanism == MECHANISM_MAILBOX)
			judge_mailbox_card(l, n, i, bar1_way);
}

/* ---- what is no matter of edits and options ---- */

/* What keeps a pair from P2P, or was logged to, by the chain; NULL: nothing. */
static const struct chain_link *obstacle(const struct path *p)
{
	if (p->verdict == PAIR_BLOCKED)
		return &p->chain[p->first_bad];
	return mapping_fails(p) ? &p->chain[CHAIN_DRIVER] : NULL;
}

/* All pairs that have one, and the sentence of the first. */
static const char *obstacle_words(const struct look *l, const struct card_need *c)
{
	AUTO_STRBUF struct strbuf names = {0};
	const struct path *first = NULL;
	size_t n = 0, g = c->gpu->index;
	char why[512];

	if (c->need != NEED_IN_FORCE && c->need != NEED_NOTHING)
		return NULL;
	for (size_t i = 0; i < l->m->gpu_n; i++) {
		const struct path *out = topology_path(l->t, g, i);
		const struct path *p = i != g && obstacle(out) ? out : topology_path(l->t, i, g);

		if (i == g || !obstacle(p))
			continue;
		strbuf_printf(&names, "%sGPU%zu", n++ ? ", " : "", i);
		first = first ? first : p;
	}
	if (!first)
		return NULL;
	return arena_printf(l->m->arena, "the way to %s is %s: %s",
			    n < l->m->gpu_n - 1 ? strbuf_str(&names) : "every other GPU",
			    pair_verdict_text(first->verdict),
			    chain_explain(first, obstacle(first), why, sizeof(why)));
}

static void judge_cards(struct machine *m, struct machine_need *n)
{
	AUTO_FREE bool *equipped = xcalloc(m->gpu_n, sizeof(*equipped));
	AUTO_FREE bool *bar1_way = xcalloc(m->gpu_n, sizeof(*bar1_way));
	struct topology *t = topology_new(m);
	struct look all = {.m = m,
			   .d = &m->driver,
			   .release = driver_release(&m->driver),
			   .bar1_way = bar1_way,
			   .t = t,
			   .text = ""};

	for (size_t i = 0; i < m->gpu_n; i++)
		bar1_way[i] = support_of(m, &m->gpus[i]).way == MECHANISM_BAR1 ||
			      joins_bar1_cards(m, &m->gpus[i]);
	for (size_t i = 0; i < m->gpu_n; i++)
		*ARENA_PUSH(m->arena, n->cards, n->n) = judge(&all, &m->gpus[i], rows);
	judge_together(&all, n, bar1_way);
	for (size_t i = 0; i < n->n; i++)
		equipped[i] = n->cards[i].need == NEED_IN_FORCE;
	all.equipped = equipped;
	for (size_t i = 0; i < n->n; i++)
		if (equipped[i])
			n->cards[i] = judge(&all, &m->gpus[i], pair_rows);
	for (size_t i = 0; i < n->n; i++) {
		n->cards[i].obstacle = obstacle_words(&all, &n->cards[i]);
		n->obstacle |= n->cards[i].obstacle != NULL;
	}
	topology_free(t);
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
		[NEED_REPLACE] = "replace",   [NEED_PATCH] = "patch",
		[NEED_RELOAD] = "reload",     [NEED_OPTIONS] = "options",
		[NEED_REFUSED] = "refused",   [NEED_UNKNOWN] = "unknown",
		[NEED_IN_FORCE] = "in-force", [NEED_NOTHING] = "nothing",
	};

	return words[n];
}
