/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine needs for P2P over PCIe: each row of the decision, the options, the commands. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "build_machine.h"
#include "support/support.h"
#include "unlock/requirements.h"
#include "unlock/requirements_kernel.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((int64_t)1 << 30)
#define MIB ((int64_t)1 << 20)

static const char from[] = "test";

/* Two 4090 in order; what a case changes about them. */
struct change {
	const char *release, *dwords;
	int loaded, installed; /* of bar1_p2p; -1: not known */
	void (*also)(struct machine *m);
};

static void each(struct machine *m, int64_t vram, int64_t bar1, const char *model, int cc)
{
	for (size_t i = 0; i < m->gpu_n; i++) {
		m->gpus[i].vram_bytes = fact_int(vram, from);
		m->gpus[i].bar1_bytes = fact_int(bar1, from);
		build_model(&m->gpus[i], model, cc);
	}
}

static void rtx3090(struct machine *m)
{
	each(m, 24576 * MIB, 32 * GIB, "NVIDIA GeForce RTX 3090", 86);
}

static void rtx5090(struct machine *m)
{
	each(m, 32607 * MIB, 32 * GIB, "NVIDIA GeForce RTX 5090", 120);
}

static void rtx5090_screen(struct machine *m)
{
	rtx5090(m);
	m->gpus[0].display_active = m->gpus[1].display_active = fact_int(1, from);
}

static void rtx4090_screen(struct machine *m)
{
	m->gpus[0].pci->boot_vga = m->gpus[1].pci->boot_vga = fact_int(1, from);
}

static void rtx4090_screen_onehop(struct machine *m)
{
	rtx4090_screen(m);
	m->driver.bar1_p2p.mark = fact_str(EDIT_MARK, from);
}

static void gate_missing(struct machine *m)
{
	m->driver.uvm_gate.loaded = m->driver.uvm_gate.installed = fact_int(0, from);
}

static void gate_on_disk(struct machine *m)
{
	gate_missing(m);
	m->driver.uvm_gate.installed = fact_int(1, from);
	m->driver.bar1_p2p.mark = fact_str(EDIT_MARK, from);
}

/* Even where nvidia_uvm cannot be looked into. */
static void old_edit(struct machine *m)
{
	m->driver.bar1_p2p.mark = fact_str("unlock 1", from);
}

/* Both are on disk, and the gate is another's: the core is the old one still. */
static void old_edit_gated(struct machine *m)
{
	gate_on_disk(m);
	old_edit(m);
}

static void newer_edit(struct machine *m)
{
	m->driver.bar1_p2p.mark = fact_str("unlock 1000", from);
}

static void rtx5090_no_gate(struct machine *m)
{
	rtx5090(m);
	gate_missing(m);
}

/* The resource manager's answer for all pairs. */
static void connect_all(struct machine *m, struct fact_int connection)
{
	for (size_t i = 0; i < m->gpu_n * m->gpu_n; i++)
		m->pairs[i].rm.connection = connection;
}

static void gate_unseen(struct machine *m)
{
	m->driver.uvm_gate.loaded = fact_int_unknown("not collected");
	m->driver.uvm_gate.installed = fact_int_unknown("not collected");
}

/*
 * The fork of somebody else needs no options, and nobody could look into the nvidia_uvm that runs.
 */
static void fork_gate_on_disk_missing(struct machine *m)
{
	connect_all(m, fact_int(RM_CONNECTION_BAR1, from));
	gate_unseen(m);
	m->driver.uvm_gate.installed = fact_int(0, from);
}

/* As built from the present edit, and the file of a fork lies in its place. */
static void gate_lost_on_disk(struct machine *m)
{
	m->driver.uvm_gate.loaded = fact_int(1, from);
	m->driver.uvm_gate.installed = fact_int(0, from);
}

static void rtx4080(struct machine *m)
{
	each(m, 16376 * MIB, 16 * GIB, "NVIDIA GeForce RTX 4080", 89);
}

static void rtx2080(struct machine *m)
{
	each(m, 11264 * MIB, 256 * MIB, "NVIDIA GeForce RTX 2080 Ti", 75);
}

static void gtx1080(struct machine *m)
{
	each(m, 8192 * MIB, 256 * MIB, "NVIDIA GeForce GTX 1080", 61);
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, from);
}

static void a100(struct machine *m)
{
	each(m, 40 * GIB, 64 * GIB, "NVIDIA A100-PCIE-40GB", 80);
}

static void copy_failed(struct machine *m)
{
	build_observed(m, OBSERVED_PEER_COPY, 1, 0, false);
}

static void small_bar1(struct machine *m)
{
	each(m, 24564 * MIB, 256 * MIB, "NVIDIA GeForce RTX 4090", 89);
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].pci->rebar_sizes = fact_int(0xffc0, from); /* 64 MiB to 32 GiB */
}

/* With twice its memory, seen without the right to read what the card offers. */
static void memory_doubled(struct machine *m)
{
	each(m, 49140 * MIB, 32 * GIB, "NVIDIA GeForce RTX 4090", 89);
}

/* A chip to come, of which the table holds nothing. */
static void rtx6090(struct machine *m)
{
	each(m, 32607 * MIB, 64 * GIB, "NVIDIA GeForce RTX 6090", 130);
	m->gpus[0].pci->device = m->gpus[1].pci->device = fact_int(0x3f80, from);
}

static void rtx6090_refused(struct machine *m)
{
	rtx6090(m);
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_CHIPSET_NOT_SUPPORTED);
}

static void told_to_grow(struct machine *m)
{
	small_bar1(m);
	m->driver.resizable_bar = fact_int(1, from);
}

static void guest(struct machine *m)
{
	small_bar1(m);
	m->kernel.hypervisor = fact_str("kvm", from);
	m->gpus[0].pci->rebar_sizes = m->gpus[1].pci->rebar_sizes = fact_int_absent(from);
}

static void old_vbios(struct machine *m)
{
	small_bar1(m);
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].pci->rebar_sizes = fact_int(0x1c0, from); /* up to 256 MiB */
}

static void more_memory(struct machine *m)
{
	small_bar1(m);
	each(m, 49140 * MIB, 32 * GIB, "NVIDIA GeForce RTX 4090", 89);
}

static void no_sizes(struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].vram_bytes = fact_int_unknown("NVML was not opened");
}

static void text_without_sizes(struct machine *m)
{
	no_sizes(m);
	m->text_part_n = 1;
}

static void text_without_models(struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++) {
		m->gpus[i].model = fact_str_unknown("not in the text");
		m->gpus[i].compute_capability = fact_int_unknown("not in the text");
		m->gpus[i].pci->device = fact_int_unknown("not in the text");
	}
	m->text_part_n = 1;
}

static void no_bar1(struct machine *m)
{
	small_bar1(m);
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].bar1_bytes = fact_int_absent(from);
}

static void generations(struct machine *m)
{
	build_model(&m->gpus[0], "NVIDIA GeForce RTX 3080", 86);
}

static void proprietary(struct machine *m)
{
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, from);
}

static void container(struct machine *m)
{
	m->kernel.container = fact_str("docker", "proc/self/cgroup");
}

static void unloaded(struct machine *m)
{
	m->driver.loaded = fact_int(0, from);
	m->driver.module_version = fact_str_absent(from);
}

static void nouveau(struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].pci->driver = fact_str("nouveau", from);
}

static void nvlink_pair(struct machine *m)
{
	rtx3090(m);
	build_nvlinks(&m->gpus[0], 4, NVLINK_REMOTE_GPU, m->gpus[1].pci->name);
	build_nvlinks(&m->gpus[1], 4, NVLINK_REMOTE_GPU, m->gpus[0].pci->name);
}

static void connect(struct machine *m, size_t i, size_t j, struct fact_int connection)
{
	m->pairs[i * m->gpu_n + j].rm.connection = m->pairs[j * m->gpu_n + i].rm.connection =
		connection;
}

static void mailbox(struct machine *m)
{
	connect_all(m, fact_int(RM_CONNECTION_MAILBOX, from));
}

static void not_connected(struct machine *m)
{
	connect_all(m, fact_int(RM_CONNECTION_NONE, from));
}

static void connected(struct machine *m)
{
	connect_all(m, fact_int(RM_CONNECTION_BAR1, from));
}

static void not_asked(struct machine *m)
{
	connect_all(m, fact_int_unknown("rm.json is missing"));
}

static void rtx5090_mailbox(struct machine *m)
{
	rtx5090(m);
	mailbox(m);
}

/* Plugged in, and nothing of it is in BAR1. */
static void monitor(struct machine *m)
{
	rtx5090(m);
	m->gpus[0].display_attached = m->gpus[1].display_attached = fact_int(1, from);
}

static void refused_by_driver(struct machine *m)
{
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_CHIPSET_NOT_SUPPORTED);
}

/* What the chain knows of pairs that no edit and no option mends. */
static void obstacles(void **state)
{
	struct machine *m = build_switch();
	const struct unlock_requirements *n;
	struct observed *o;

	(void)state;
	for (size_t i = 0; i < m->gpu_n; i++)
		build_model(&m->gpus[i], "NVIDIA RTX 6000 Ada Generation", 89);
	n = unlock_requirements(m);
	assert_int_equal(n->action, ACTION_NOTHING);
	assert_false(n->obstacle);
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	n = unlock_requirements(m);
	assert_int_equal(n->action, ACTION_NOTHING);
	assert_true(n->obstacle);
	assert_string_equal(
		n->cards[0].obstacle,
		"the way to every other GPU is blocked: the driver reports CNS for peer "
		"reads: the CPU or chipset is not on the driver's list");
	/* Checked data outweighs it, from one of the two. */
	o = ARENA_PUSH(m->arena, m->observed, m->observed_n);
	*o = (struct observed){
		.kind = OBSERVED_PEER_COPY, .initiator = 0, .target = 1, .ok = true, .from = from};
	assert_non_null(unlock_requirements(m)->cards[0].obstacle);
	o->initiator = o->target = -1;
	assert_null(unlock_requirements(m)->cards[0].obstacle);
	/* But not that a device is out of use now. */
	m->gpus[1].pci->driver = fact_str_absent(from);
	assert_non_null(strstr(unlock_requirements(m)->cards[0].obstacle, "no driver is bound to"));
	build_free(m);
}

#define STOCK   0, 0
#define EDITED  1, 1
#define UNKNOWN -1, -1

static const struct {
	struct change change;
	enum unlock_action action;
	const char *id;
	const char *words; /* in the sentences; NULL: not looked at */
} cases[] = {
	{{"580.105.08", "", STOCK, NULL}, ACTION_PATCH, "patch", "stubs"},
	{{"580.105.08", "", STOCK, rtx3090}, ACTION_PATCH, "patch", NULL},
	{{"580.105.08", "", UNKNOWN, refused_by_driver}, ACTION_PATCH, "patch", NULL},
	{{"580.105.08", "", UNKNOWN, NULL}, ACTION_UNKNOWN, "says-yes", "onehop test"},
	{{"580.105.08", "", STOCK, rtx4090_screen}, ACTION_PATCH, "patch", NULL},
	{{"550.90.07", "", STOCK, NULL}, ACTION_PATCH, "patch", NULL},
	{{"570.211.01", "", STOCK, rtx4080}, ACTION_PATCH, "patch", NULL},
	{{"550.90.07", "", STOCK, rtx4080}, ACTION_REFUSED, "bar1-no-room", "565 or later"},
	{{"535.261.03", "", STOCK, rtx4080}, ACTION_REFUSED, "bar1-no-room", "16 GiB"},
	{{"525.60.11", "", STOCK, NULL}, ACTION_REFUSED, "release", "is too old"},
	{{"610.57.04", "", STOCK, rtx6090}, ACTION_NOTHING, "driver-allows", NULL},
	{{"610.57.04", "", STOCK, rtx6090_refused}, ACTION_UNKNOWN, "not-listed", "newer onehop"},
	{{"610.57.04", "", EDITED, rtx6090_refused}, ACTION_OPTIONS, "options", NULL},
	/* in force, or nearly */
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, NULL},
	 ACTION_IN_FORCE,
	 "in-force",
	 "to its peers through BAR1"},
	/* a copy that failed decides before it; with stock modules none can arrive */
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, copy_failed},
	 ACTION_REFUSED,
	 "copies-fail",
	 "failed"},
	{{"580.105.08", "", STOCK, copy_failed}, ACTION_PATCH, "patch", NULL},
	/* an edit that lets managed memory write where it must not is replaced */
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, gate_missing},
	 ACTION_REPLACE,
	 "uvm-gate",
	 "in effect, but without the gate for managed memory: the first program"},
	{{"580.105.08", "", EDITED, gate_missing},
	 ACTION_REPLACE,
	 "uvm-gate",
	 "is edited, without"},
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, gate_on_disk},
	 ACTION_RELOAD,
	 "gate-reload",
	 NULL},
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, old_edit},
	 ACTION_REPLACE,
	 "edit-old",
	 "an earlier onehop (unlock 1)"},
	{{"580.105.08", "", 0, 1, old_edit}, ACTION_REPLACE, "edit-old", NULL},
	{{"580.105.08", "", EDITED, old_edit_gated}, ACTION_REPLACE, "uvm-gate", NULL},
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, newer_edit},
	 ACTION_IN_FORCE,
	 "in-force",
	 NULL},
	{{"595.45.04", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, rtx5090_no_gate},
	 ACTION_IN_FORCE,
	 "in-force",
	 NULL},
	/* on disk too: the next boot loads it */
	{{"570.86.16", "", EDITED, fork_gate_on_disk_missing},
	 ACTION_REPLACE,
	 "uvm-gate",
	 "on disk are edited, without"},
	{{"570.86.16", "", 0, 1, gate_lost_on_disk}, ACTION_REPLACE, "uvm-gate", "on disk"},
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, gate_lost_on_disk},
	 ACTION_REPLACE,
	 "uvm-gate",
	 "on disk"},
	/* the file is stock again */
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", 1, 0, NULL},
	 ACTION_REBUILD,
	 "rebuild",
	 "P2P is lost at the next boot"},
	{{"580.105.08", "", 1, 0, NULL}, ACTION_REBUILD, "rebuild", NULL},
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", 1, 0, copy_failed},
	 ACTION_REFUSED,
	 "copies-fail",
	 NULL},
	{{"595.45.04", "ForceP2P=0x211;RMPcieP2PType=1", 1, 0, rtx5090},
	 ACTION_IN_FORCE,
	 "in-force",
	 NULL},
	/* what the driver makes of it decides */
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, mailbox},
	 ACTION_REFUSED,
	 "peers-mailbox",
	 "connects it to its peer through a mailbox"},
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, not_connected},
	 ACTION_REFUSED,
	 "peers-none",
	 "does not connect it to its peer"},
	{{"580.105.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, not_asked},
	 ACTION_UNKNOWN,
	 "peers-unknown",
	 "to its peer (rm.json is missing)"},
	{{"595.45.04", "ForceP2P=0x211;RMPcieP2PType=1", STOCK, rtx5090_mailbox},
	 ACTION_REFUSED,
	 "peers-mailbox",
	 NULL},
	/* a mailbox while keys are missing: they are what it takes */
	{{"580.105.08", "ForceP2P=0x211", EDITED, mailbox}, ACTION_OPTIONS, "options", NULL},
	{{"580.105.08", "ForceP2P=0x211", UNKNOWN, mailbox},
	 ACTION_REFUSED,
	 "mailbox",
	 "remove ForceP2P"},
	{{"580.105.08", "", UNKNOWN, mailbox}, ACTION_REFUSED, "mailbox", "kallsyms"},
	/* some edits choose BAR1 without keys */
	{{"570.86.16", "", EDITED, connected}, ACTION_IN_FORCE, "in-force", "without options"},
	/* edits of others take the start of BAR1 for the start of memory */
	{{"570.86.16", "", EDITED, rtx4090_screen}, ACTION_REPLACE, "console-shift", "of GPU0"},
	{{"570.86.16", "ForceP2P=0x211;RMForceP2PType=2", EDITED, rtx4090_screen},
	 ACTION_REPLACE,
	 "console-shift",
	 "not edited by onehop"},
	{{"570.86.16", "", EDITED, rtx4090_screen_onehop}, ACTION_OPTIONS, "options", NULL},
	{{"580.105.08", "", EDITED, rtx4090_screen}, ACTION_OPTIONS, "options", NULL},
	/* stock 545 to 570, told to, say BAR1 with nothing mapped */
	{{"550.90.07", "ForceP2P=0x11;RMForceP2PType=2", STOCK, NULL},
	 ACTION_REFUSED,
	 "forced",
	 NULL},
	{{"550.90.07", "ForceP2P=0x11;RMForceP2PType=2", UNKNOWN, NULL},
	 ACTION_UNKNOWN,
	 "says-yes",
	 NULL},
	{{"580.105.08", "ForceP2P=0x11;RMForceP2PType=1;RMPcieP2PType=2", EDITED, NULL},
	 ACTION_IN_FORCE,
	 "in-force",
	 NULL},
	{{"550.90.07", "ForceP2P=0x11;RMForceP2PType=2", EDITED, NULL},
	 ACTION_IN_FORCE,
	 "in-force",
	 NULL},
	{{"575.57.08", "ForceP2P=0x211;RMPcieP2PType=1;RMForceStaticBar1=2", EDITED, NULL},
	 ACTION_IN_FORCE,
	 "in-force",
	 NULL},
	{{"575.57.08", "ForceP2P=0x211;RMPcieP2PType=1", EDITED, NULL},
	 ACTION_OPTIONS,
	 "options",
	 NULL},
	/* 2 is NVLink from 575 on */
	{{"580.105.08", "ForceP2P=0x211;RMForceP2PType=2", EDITED, NULL},
	 ACTION_OPTIONS,
	 "options",
	 NULL},
	{{"580.105.08", "ForceP2P=0x01;RMPcieP2PType=1", EDITED, NULL},
	 ACTION_OPTIONS,
	 "options",
	 NULL},
	{{"580.105.08", "", EDITED, NULL}, ACTION_OPTIONS, "options", NULL},
	{{"580.105.08", NULL, EDITED, NULL}, ACTION_UNKNOWN, "options-unknown", NULL},
	{{"580.105.08", "", 0, 1, NULL}, ACTION_RELOAD, "reload", NULL},
	{{"580.105.08", "", -1, 1, NULL}, ACTION_UNKNOWN, "file-only", NULL},
	{{"580.105.08", "ForceP2P=0x211", STOCK, NULL},
	 ACTION_REFUSED,
	 "forced",
	 "remove ForceP2P"},
	{{"580.105.08", "ForceP2P=0x11", STOCK, small_bar1},
	 ACTION_REFUSED,
	 "forced",
	 "that the hardware lacks"},
	/* GB20x */
	{{"595.45.04", "", STOCK, rtx5090}, ACTION_OPTIONS, "options", NULL},
	{{"590.44.01", "ForceP2P=0x211;RMPcieP2PType=1", STOCK, rtx5090},
	 ACTION_IN_FORCE,
	 "in-force",
	 NULL},
	{{"580.105.08", "", STOCK, rtx5090}, ACTION_REFUSED, "gb20x-driver", "590 or later"},
	{{"595.45.04", "", STOCK, rtx5090_screen}, ACTION_REFUSED, "console", "another GPU"},
	{{"595.45.04", "", STOCK, monitor}, ACTION_OPTIONS, "options", NULL},
	/* what stands in the way */
	{{"580.105.08", "", STOCK, small_bar1}, ACTION_REFUSED, "bar1-small", "256 MiB"},
	{{"580.105.08", "", STOCK, told_to_grow}, ACTION_REFUSED, "bar1-not-grown", "set already"},
	{{"580.105.08", "", STOCK, guest}, ACTION_REFUSED, "bar1-host", "kvm"},
	{{"580.105.08", "", STOCK, no_bar1}, ACTION_REFUSED, "bar1-small", "not mapped"},
	{{"580.105.08", "", STOCK, old_vbios}, ACTION_REFUSED, "bar1-vbios", "VBIOS"},
	{{"580.105.08", "", STOCK, more_memory}, ACTION_REFUSED, "bar1-never", "48 GiB"},
	{{"580.105.08", "", EDITED, memory_doubled},
	 ACTION_REFUSED,
	 "bar1-never",
	 "Resizable BAR is on: no GeForce card has a larger one. nothing on the host"},
	{{"580.105.08", "", STOCK, no_sizes},
	 ACTION_UNKNOWN,
	 "sizes-unknown",
	 "NVML was not opened"},
	{{"580.105.08", "", STOCK, text_without_sizes},
	 ACTION_UNKNOWN,
	 "sizes-unknown",
	 "the text does not contain the sizes of memory and BAR1. add the output of nvidia-smi -q"},
	{{"580.105.08", "", STOCK, text_without_models},
	 ACTION_UNKNOWN,
	 "model-unknown",
	 "the text does not name the card's model. add the output of nvidia-smi -L"},
	{{"580.105.08", "", STOCK, generations}, ACTION_REFUSED, "alone", "generation"},
	{{"580.105.08", "", STOCK, proprietary}, ACTION_REFUSED, "proprietary", "580.105.08"},
	{{"580.105.08", "", EDITED, container}, ACTION_REFUSED, "container", "docker"},
	{{NULL, "", UNKNOWN, unloaded}, ACTION_REFUSED, "no-driver", NULL},
	{{NULL, "", UNKNOWN, NULL}, ACTION_UNKNOWN, "driver-unknown", NULL},
	{{"580.105.08", "", STOCK, nouveau}, ACTION_REFUSED, "other-driver", "nouveau"},
	{{"580.105.08", "", STOCK, rtx2080}, ACTION_REFUSED, "turing", "256 MiB"},
	/* nothing to do */
	{{"580.105.08", "", STOCK, gtx1080}, ACTION_NOTHING, "before-turing", NULL},
	{{"580.105.08", "", STOCK, a100}, ACTION_NOTHING, "other-card", NULL},
	{{NULL, "", UNKNOWN, a100}, ACTION_NOTHING, "other-card", NULL},
	{{"550.90.07", "", STOCK, nvlink_pair}, ACTION_NOTHING, "nvlink", NULL},
};

static struct fact_int probed(int value)
{
	return value < 0 ? fact_int_unknown("not collected") : fact_int(value, from);
}

static struct machine *build(const struct change *c)
{
	struct machine *m = build_two_root_ports();

	m->driver.module_version =
		c->release ? fact_str(c->release, from) : fact_str_unknown("not collected");
	m->driver.registry_dwords =
		c->dwords ? fact_str(c->dwords, from) : fact_str_unknown("not collected");
	m->driver.registry_dwords_per_device = fact_str_absent(from);
	m->driver.bar1_p2p.loaded = probed(c->loaded);
	m->driver.bar1_p2p.installed = probed(c->installed);
	m->driver.bar1_p2p.mark = fact_str_absent(from);
	connect_all(m, fact_int(fact_is(registry_keys_good(&m->driver, &m->gpus[0]), 1)
					? RM_CONNECTION_BAR1
					: RM_CONNECTION_NONE,
				from));
	if (c->also)
		c->also(m);
	return m;
}

static void each_case(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *m = build(&cases[i].change);
		const struct unlock_requirements *n = unlock_requirements(m);

		assert_int_equal(n->n, 2);
		for (size_t k = 0; k < 2; k++) {
			const struct card_requirement *c = &n->cards[k];
			char *all = xprintf("%s. %s", c->why, c->change ? c->change : "");

			if (strcmp(c->id, cases[i].id) != 0)
				print_error("case %zu: %s\n", i, all);
			assert_string_equal(c->id, cases[i].id);
			assert_int_equal(c->action, cases[i].action);
			if (cases[i].words && !strstr(all, cases[i].words))
				print_error("case %zu: '%s' is not in: %s\n", i, cases[i].words,
					    all);
			assert_true(!cases[i].words || strstr(all, cases[i].words));
			assert_null(strchr(all, '%'));
			assert_true((c->action == ACTION_REFUSED || c->action == ACTION_UNKNOWN) ==
				    (c->change != NULL));
			free(all);
		}
		assert_int_equal(n->action, cases[i].action);
		assert_int_equal(n->judged, cases[i].action != ACTION_UNKNOWN);
		assert_true((n->step_n > 0) == (n->action <= ACTION_OPTIONS));
		assert_true((n->source_n > 0) == action_builds(n->action));
		build_free(m);
	}
}

static void options_by_release(void **state)
{
	(void)state;
	assert_null(release_find(-1)->keys);
	assert_null(release_find(530)->keys);
	assert_string_equal(release_find(535)->keys, "ForceP2P=0x11;RMForceP2PType=2");
	assert_string_equal(release_find(560)->keys, "ForceP2P=0x11;RMForceP2PType=2");
	assert_string_equal(release_find(570)->keys, "ForceP2P=0x211;RMForceP2PType=2");
	assert_string_equal(release_find(575)->keys,
			    "ForceP2P=0x211;RMPcieP2PType=1;RMForceStaticBar1=2");
	assert_string_equal(release_find(580)->keys, "ForceP2P=0x211;RMPcieP2PType=1");
	assert_string_equal(release_find(610)->keys, "ForceP2P=0x211;RMPcieP2PType=1");
}

/* All cards alike: one setting, and what else a person has set stays. */
static void options_of_all(void **state)
{
	static const struct change c = {"580.105.08",
					"RMForceP2PType=2;PeerMappingOverride=1;x'=\"$(y);", EDITED,
					NULL};
	struct machine *m = build(&c);

	(void)state;
	assert_string_equal(
		unlock_requirements(m)->options,
		"options nvidia "
		"NVreg_RegistryDwords=\"ForceP2P=0x211;RMPcieP2PType=1;RMForceP2PType=0;PeerMappingOverride=1\"");
	build_free(m);
}

/* A card of another generation is left alone. */
static void options_of_some(void **state)
{
	static const struct change c = {"580.105.08", "", STOCK, NULL};
	struct machine *m = build(&c);
	const struct unlock_requirements *n;

	(void)state;
	build_model(build_gpu(m, "0000:05:00.0", NULL), "NVIDIA A10", 86);
	n = unlock_requirements(m);
	assert_int_equal(n->action, ACTION_PATCH);
	assert_int_equal(n->cards[2].action, ACTION_NOTHING);
	assert_true(n->per_device);
	assert_string_equal(
		n->options,
		"options nvidia "
		"NVreg_RegistryDwordsPerDevice=\"pci=0000:01:00.0;ForceP2P=0x211;RMPcieP2PType=1;pci=0000:02:00.0;ForceP2P=0x211;RMPcieP2PType=1\"");
	build_free(m);
}

#define OURS   "ForceP2P=0x211;RMPcieP2PType=1"
#define FIRST  "pci=0000:01:00.0;"
#define SECOND "pci=0000:02:00.0;"

/* What a person has set for devices, and what it becomes: a third card wants none. */
static const struct {
	const char *now, *dwords, *after;
} per_device[] = {
	{"", "", FIRST OURS ";" SECOND OURS},
	/* another card's entries and other keys of these stay where they are */
	{"pci=0000:05:00.0;RMx=1;" FIRST "Foo=2;ForceP2P=0x1;Bar=0x3", "",
	 "pci=0000:05:00.0;RMx=1;" FIRST OURS ";Foo=2;Bar=0x3;" SECOND OURS},
	/* its own ForceP2P too: it is not ours to judge */
	{"pci=0000:05:00.0;ForceP2P=0x0", "",
	 "pci=0000:05:00.0;ForceP2P=0x0;" FIRST OURS ";" SECOND OURS},
	/* other ways to write an address, blanks, a card that is not there */
	{" pci = 02:00 ; A=1 ; pci=0000:77:00.0;ForceP2P=0x11;pci=0000:01:00;B=2 ", "",
	 SECOND OURS ";A=1;pci=0000:77:00.0;ForceP2P=0x11;" FIRST OURS ";B=2"},
	/* named twice: the keys that count last are gone from the second place */
	{FIRST "A=1;" SECOND "B=2;" FIRST "RMPcieP2PType=0;C=3", "",
	 FIRST OURS ";A=1;" SECOND OURS ";B=2;" FIRST "C=3"},
	/* keys before the first card are of none */
	{"A=1;" SECOND "B=2", "", SECOND OURS ";B=2;" FIRST OURS},
	/* nothing for a shell to read */
	{SECOND "B=$(x);C=`y`;D='1';E=4", "", SECOND OURS ";E=4;" FIRST OURS},
	/* a type that this release must not have is taken back, one that it may have stays */
	{FIRST "RMForceP2PType=2;" SECOND "RMForceP2PType=1", "",
	 FIRST OURS ";RMForceP2PType=0;" SECOND OURS ";RMForceP2PType=1"},
	/* also where all cards have it */
	{"", "RMForceP2PType=2;Z=1",
	 FIRST OURS ";RMForceP2PType=0;" SECOND OURS ";RMForceP2PType=0"},
};

static void options_beside_others(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(per_device) / sizeof(per_device[0]); i++) {
		const struct change c = {"580.105.08", per_device[i].dwords, EDITED, NULL};
		struct machine *m = build(&c);
		const struct unlock_requirements *n;

		build_model(build_gpu(m, "0000:05:00.0", NULL), "NVIDIA A10", 86);
		m->driver.registry_dwords_per_device = fact_str(per_device[i].now, from);
		n = unlock_requirements(m);
		assert_int_equal(n->setting_n, 1);
		assert_string_equal(n->settings[0].parameter, "NVreg_RegistryDwordsPerDevice");
		assert_null(n->settings[0].key);
		assert_string_equal(n->settings[0].value, per_device[i].after);
		assert_non_null(strstr(n->options, per_device[i].after));
		/* what was made is in force, and stays as it is */
		m->driver.registry_dwords_per_device = fact_str(n->settings[0].value, from);
		n = unlock_requirements(m);
		assert_true(n->options_set);
		assert_string_equal(n->settings[0].value, per_device[i].after);
		build_free(m);
	}
}

/* Cards alike, but a key of ours is set for one of them: that would outweigh a setting for all. */
static void options_of_one_outweigh(void **state)
{
	static const struct change c = {"580.105.08", "", STOCK, NULL};
	struct machine *m = build(&c);

	(void)state;
	m->driver.registry_dwords_per_device = fact_str(SECOND "Other=1", from);
	assert_false(unlock_requirements(m)->per_device);
	m->driver.registry_dwords_per_device = fact_str(SECOND "Other=1;ForceP2P=0", from);
	assert_true(unlock_requirements(m)->per_device);
	assert_string_equal(unlock_requirements(m)->settings[0].value,
			    SECOND OURS ";Other=1;" FIRST OURS);
	build_free(m);
}

/* The same as data: a row a key, and those of others are not among them. */
static void options_as_data(void **state)
{
	static const struct change c = {"575.57.08", "RMForceP2PType=2;Mine=1", EDITED, NULL};
	static const char *const rows[][2] = {{"ForceP2P", "0x211"},
					      {"RMPcieP2PType", "1"},
					      {"RMForceStaticBar1", "2"},
					      {"RMForceP2PType", "0"}};
	struct machine *m = build(&c);
	const struct unlock_requirements *n = unlock_requirements(m);

	(void)state;
	assert_false(n->options_set);
	assert_int_equal(n->setting_n, 4);
	for (size_t i = 0; i < n->setting_n; i++) {
		assert_string_equal(n->settings[i].parameter, "NVreg_RegistryDwords");
		assert_string_equal(n->settings[i].key, rows[i][0]);
		assert_string_equal(n->settings[i].value, rows[i][1]);
	}
	build_free(m);
}

/* A key that this release does not use is a person's own: RMForceStaticBar1 from 580 on. */
static void options_keep_what_is_not_of_this_release(void **state)
{
	static const struct change c = {"580.105.08", "RMForceStaticBar1=1;OverrideFbSize=30000",
					EDITED, NULL};
	struct machine *m = build(&c);

	(void)state;
	assert_string_equal(unlock_requirements(m)->options,
			    "options nvidia NVreg_RegistryDwords=\"" OURS
			    ";RMForceStaticBar1=1;OverrideFbSize=30000\"");
	build_free(m);
}

/* Two cards and a third that has mailboxes, of one generation. */
struct mixed {
	const char *release, *geforce, *professional;
	int capability, loaded;
	const char *keys;
};

static struct machine *build_mixed(const struct mixed *c, bool professional_first)
{
	const struct change change = {c->release, "", c->loaded, c->loaded, NULL};
	struct machine *m = build(&change);
	const struct gpu *third = build_gpu(m, "0000:05:00.0", NULL);

	connect_all(m, fact_int(RM_CONNECTION_NONE, from));
	for (size_t i = 0; i < m->gpu_n; i++) {
		struct gpu *g = &m->gpus[i];
		bool is_professional = professional_first ? !i : g == third;

		build_model(g, is_professional ? c->professional : c->geforce, c->capability);
		g->vram_bytes = fact_int((is_professional ? 48 : 24) * GIB, from);
		g->bar1_bytes = fact_int((is_professional ? 64 : 32) * GIB, from);
		g->pci->boot_vga = fact_int(0, from);
	}
	return m;
}

/* ForceP2P of either card makes the driver say yes, and the first one's key chooses BAR1: all get both,
 * in whatever order they are. */
static void options_of_a_generation(void **state)
{
	static const struct mixed table[] = {
		{"535.261.03", "NVIDIA GeForce RTX 3090", "NVIDIA RTX A6000", 86, 0,
		 "ForceP2P=0x11;RMForceP2PType=2"},
		{"550.90.07", "NVIDIA GeForce RTX 4090", "NVIDIA RTX 6000 Ada Generation", 89, 1,
		 "ForceP2P=0x11;RMForceP2PType=2"},
		{"565.77", "NVIDIA GeForce RTX 4090", "NVIDIA L40S", 89, 0,
		 "ForceP2P=0x211;RMForceP2PType=2"},
		{"575.64.05", "NVIDIA GeForce RTX 3090", "NVIDIA A40", 86, 0,
		 "ForceP2P=0x211;RMPcieP2PType=1;RMForceStaticBar1=2"},
		{"580.105.08", "NVIDIA GeForce RTX 4090", "NVIDIA RTX 6000 Ada Generation", 89, 1,
		 OURS},
		{"595.45.04", "NVIDIA GeForce RTX 5090",
		 "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 120, 0, OURS},
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(table) / sizeof(table[0]); i++) {
		const struct mixed *c = &table[i / 2];
		bool edit = c->capability < 120 && !c->loaded;
		struct machine *m = build_mixed(c, i % 2);
		const struct unlock_requirements *n = unlock_requirements(m);

		assert_int_equal(n->action, edit ? ACTION_PATCH : ACTION_OPTIONS);
		for (size_t k = 0; k < n->n; k++)
			assert_int_equal(n->cards[k].action, n->action);
		assert_non_null(strstr(n->cards[i % 2 ? 0 : 2].why, "it has mailboxes"));
		assert_false(n->per_device);
		assert_non_null(strstr(n->options, c->keys));
		/* beside a card of another generation, each of these by its address */
		build_model(build_gpu(m, "0000:06:00.0", NULL), "NVIDIA T4", 75);
		n = unlock_requirements(m);
		assert_int_equal(n->cards[3].action, ACTION_NOTHING);
		assert_true(n->per_device);
		for (size_t k = 0; k < 3; k++) {
			AUTO_FREE char *own = xprintf("pci=%s;%s", m->gpus[k].pci->name, c->keys);

			assert_non_null(strstr(n->settings[0].value, own));
		}
		assert_null(strstr(n->settings[0].value, m->gpus[3].pci->name));
		build_free(m);
	}
}

static void small_bar1_of_the_professional(struct machine *m)
{
	m->gpus[2].bar1_bytes = fact_int(256 * MIB, from);
	m->gpus[2].pci->rebar_sizes = fact_int_absent(from);
}

static void another_driver(struct machine *m)
{
	small_bar1_of_the_professional(m);
	m->gpus[2].pci->driver = fact_str("vfio-pci", from);
}

static void more_memory_than_bar1(struct machine *m)
{
	build_model(&m->gpus[2], "NVIDIA GeForce RTX 4090", 89);
	m->gpus[2].bar1_bytes = fact_int(32 * GIB, from);
	m->gpus[2].pci->rebar_sizes = fact_int(0xffc0, from);
}

static void mining_card(struct machine *m)
{
	for (size_t i = 0; i < 2; i++)
		build_model(&m->gpus[i], "NVIDIA GeForce RTX 3090", 86);
	build_model(&m->gpus[2], "NVIDIA CMP 90HX", 86);
}

/* A card that cannot have the keys keeps others of its generation from them, unless the driver that is
 * edited refuses such pairs, as onehop's edit does from 575 on. */
static void one_without_keys_decides(void **state)
{
	static const struct {
		const char *release, *mark;
		int loaded;
		void (*also)(struct machine *m);
		const char *id, *third;
		const char *words;
	} table[] = {
		{"550.90.07", "", 0, small_bar1_of_the_professional, "mixed", "other-card",
		 "GPU2: update the card's VBIOS"},
		{"575.64.05", "", 0, small_bar1_of_the_professional, "patch", "other-card", NULL},
		{"580.105.08", "unlock 1", 1, small_bar1_of_the_professional, "edit-old",
		 "other-card", "an earlier onehop"},
		{"580.105.08", "", 1, small_bar1_of_the_professional, "mixed", "other-card",
		 "through a mailbox"},
		{"580.105.08", "unlock 2", 1, small_bar1_of_the_professional, "options",
		 "other-card", NULL},
		{"550.90.07", "unlock 2", 1, small_bar1_of_the_professional, "mixed", "other-card",
		 NULL},
		{"550.90.07", "", 0, another_driver, "patch", "other-card", NULL},
		{"550.90.07", "", 0, more_memory_than_bar1, "mixed", "bar1-never", "windows"},
		{"580.105.08", "", 0, more_memory_than_bar1, "patch", "bar1-never", NULL},
		{"550.90.07", "", 0, mining_card, "mixed", "mining", "remove that card"},
	};
	static const struct mixed ada = {
		"", "NVIDIA GeForce RTX 4090", "NVIDIA RTX 6000 Ada Generation", 89, 0, NULL};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct mixed c = ada;
		struct machine *m;
		const struct unlock_requirements *n;

		c.release = table[i].release;
		c.loaded = table[i].loaded;
		m = build_mixed(&c, false);
		m->driver.bar1_p2p.mark = fact_str(table[i].mark, from);
		table[i].also(m);
		n = unlock_requirements(m);
		assert_string_equal(n->cards[0].id, table[i].id);
		assert_string_equal(n->cards[1].id, table[i].id);
		assert_string_equal(n->cards[2].id, table[i].third);
		assert_true(!n->options == !strcmp(table[i].id, "mixed"));
		assert_false(n->cards[2].wants_options);
		if (table[i].words) {
			AUTO_FREE char *all =
				xprintf("%s. %s", n->cards[0].why, n->cards[0].change);

			assert_non_null(strstr(all, table[i].words));
		}
		build_free(m);
	}
}

/* One of each: without the other card's keys there would be no pair, whatever the edit refuses. */
static void a_pair_of_two_classes(void **state)
{
	static const struct change c = {"580.105.08", "", STOCK, NULL};
	struct machine *m = build(&c);

	(void)state;
	build_model(&m->gpus[1], "NVIDIA RTX 6000 Ada Generation", 89);
	assert_string_equal(unlock_requirements(m)->cards[0].id, "patch");
	assert_string_equal(unlock_requirements(m)->cards[1].id, "patch");
	m->gpus[1].bar1_bytes = fact_int(256 * MIB, from);
	assert_string_equal(unlock_requirements(m)->cards[0].id, "mixed");
	assert_string_equal(unlock_requirements(m)->cards[1].id, "other-card");
	/* NVLink joins them: neither needs BAR1 */
	m->gpus[1].bar1_bytes = fact_int(32 * GIB, from);
	nvlink_pair(m);
	build_model(&m->gpus[1], "NVIDIA RTX A6000", 86);
	assert_int_equal(unlock_requirements(m)->action, ACTION_NOTHING);
	build_free(m);
}

/* Three 3090, two of them with a bridge: choosing BAR1 must not cost the bridge. */
static void nvlink_beside_pcie(void **state)
{
	static const struct change old = {"550.90.07", "", STOCK, NULL},
				   new = {"580.105.08", "", STOCK, NULL};
	const struct change *both[] = {&old, &new};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct machine *m = build(both[i]);
		const struct unlock_requirements *n;

		build_gpu(m, "0000:05:00.0", NULL);
		nvlink_pair(m);
		n = unlock_requirements(m);
		assert_string_equal(n->cards[0].id, i ? "patch" : "nvlink-lost");
		/* The driver would say yes to it and those two as well. */
		assert_string_equal(n->cards[2].id, i ? "patch" : "mixed");
		build_free(m);
	}
}

/*
 * Three cards, one of which the driver reaches through nothing: each line names whom it is about.
 */
static void one_pair_decides(void **state)
{
	static const struct change c = {"580.105.08", OURS, EDITED, NULL};
	struct machine *m = build(&c);
	const struct unlock_requirements *n;

	(void)state;
	build_gpu(m, "0000:05:00.0", NULL);
	connect_all(m, fact_int(RM_CONNECTION_BAR1, from));
	connect(m, 0, 2, fact_int(RM_CONNECTION_NONE, from));
	connect(m, 1, 2, fact_int_unknown("nobody asked"));
	n = unlock_requirements(m);
	assert_string_equal(n->cards[0].id, "peers-none");
	assert_non_null(strstr(n->cards[0].why, "does not connect it to GPU2"));
	assert_string_equal(n->cards[1].id, "peers-unknown");
	assert_non_null(strstr(n->cards[1].why,
			       "how the driver connects it to GPU2 (nobody asked) is unknown"));
	assert_string_equal(n->cards[2].id, "peers-none");
	assert_non_null(strstr(n->cards[2].why, "does not connect it to GPU0"));
	/* The options stay those of all: nothing in them is to change. */
	assert_false(n->per_device);
	assert_true(n->options_set);
	build_free(m);
}

/* No peers over PCIe: NVLink joins them, the driver says so, or they are of other generations. */
static void not_every_card_is_a_peer(void **state)
{
	static const struct change c = {"580.105.08", OURS, EDITED, NULL};
	struct machine *m = build(&c);
	const struct unlock_requirements *n;

	(void)state;
	build_gpu(m, "0000:05:00.0", NULL);
	build_gpu(m, "0000:06:00.0", NULL);
	build_model(&m->gpus[3], "NVIDIA GeForce RTX 3090", 86);
	connect_all(m, fact_int(RM_CONNECTION_MAILBOX, from));
	connect(m, 0, 1, fact_int(RM_CONNECTION_BAR1, from));
	connect(m, 0, 2, fact_int(RM_CONNECTION_NVLINK, from));
	build_nvlinks(&m->gpus[1], 4, NVLINK_REMOTE_GPU, m->gpus[2].pci->name);
	n = unlock_requirements(m);
	assert_string_equal(n->cards[0].id, "in-force");
	assert_string_equal(n->cards[1].id, "in-force");
	assert_string_equal(n->cards[3].id, "alone");
	build_free(m);
}

static bool says(const struct requirement_step *steps, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (steps[i].text && strstr(steps[i].text, text))
			return true;
	return false;
}

static bool minds(const struct unlock_requirements *n, const char *text)
{
	for (size_t i = 0; i < n->caution_n; i++)
		if (strstr(n->cautions[i], text))
			return true;
	return false;
}

/* An edit that needs no options harms as any other does. */
static void an_unseen_gate_is_minded(void **state)
{
	static const struct change fork = {"570.86.16", "", EDITED, connected};
	struct machine *m = build(&fork);
	const struct unlock_requirements *n;

	(void)state;
	gate_unseen(m);
	n = unlock_requirements(m);
	assert_int_equal(n->action, ACTION_IN_FORCE);
	assert_null(n->options);
	assert_true(minds(n, "do not use managed memory"));
	m->driver.uvm_gate.loaded = fact_int(1, from);
	assert_false(minds(unlock_requirements(m), "do not use managed memory"));
	/* Cards that go through mailboxes are not concerned. */
	gate_unseen(m);
	a100(m);
	assert_false(minds(unlock_requirements(m), "do not use managed memory"));
	build_free(m);
}

/*
 * BAR1 smaller than the memory, and a test that found most pairs right: the failed one is the
 * reason.
 */
static void a_failed_pair_is_named(void **state)
{
	static const struct change c = {"550.90.07", "ForceP2P=0x11;RMForceP2PType=2", EDITED,
					NULL};
	struct machine *m = build(&c);
	const struct unlock_requirements *n;

	(void)state;
	build_gpu(m, "0000:05:00.0", NULL);
	memory_doubled(m);
	m->driver.uvm_gate.loaded = m->driver.uvm_gate.installed = fact_int(1, from);
	connect_all(m, fact_int(RM_CONNECTION_BAR1, from));
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			if (i != j)
				*ARENA_PUSH(m->arena, m->observed, m->observed_n) =
					(struct observed){.kind = OBSERVED_PEER_COPY,
							  .initiator = i,
							  .target = j,
							  .ok = !(i == 0 && j == 1),
							  .from = from};
	n = unlock_requirements(m);
	assert_string_equal(n->cards[0].id, "copies-fail");
	assert_non_null(strstr(n->cards[0].why, "GPU1"));
	assert_string_equal(n->cards[1].id, "copies-fail");
	assert_string_equal(n->cards[2].id, "proven");
	assert_int_equal(n->cards[2].action, ACTION_IN_FORCE);
	build_free(m);
}

/* An edit is of one release: another of a known branch was not tried either. */
static void what_was_not_tried_is_minded(void **state)
{
	static const struct {
		const char *release;
		bool tried, tested;
	} rows[] = {
		{"535.288.01", true, false}, {"550.163.01", true, true}, {"575.64.05", true, false},
		{"580.105.08", true, true},  {"580.999", false, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct change c = {rows[i].release, "", STOCK, NULL};
		struct machine *m = build(&c);
		const struct unlock_requirements *n = unlock_requirements(m);

		assert_int_equal(n->action, ACTION_PATCH);
		assert_int_equal(minds(n, "is untested"), !rows[i].tried);
		assert_int_equal(minds(n, "untested on any card"), !rows[i].tested);
		assert_int_equal(n->can_download, rows[i].tried);
		build_free(m);
	}
}

static void static_bar1_for_all_is_minded(void **state)
{
	static const struct {
		const char *keys;
		int64_t second; /* its BAR1 */
		const char *says;
	} rows[] = {
		{"", 32 * GIB, NULL},
		{"RMForceStaticBar1=2", 32 * GIB, NULL},
		{"RMForceStaticBar1=1", 32 * GIB, "smaller than its memory does not start"},
		{"RMForceStaticBar1=1", 256 * MIB,
		 "smaller than its memory (here GPU1) does not start"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct change c = {"580.105.08", rows[i].keys, STOCK, NULL};
		struct machine *m = build(&c);
		const struct unlock_requirements *n;

		m->gpus[1].bar1_bytes = fact_int(rows[i].second, from);
		n = unlock_requirements(m);
		assert_int_equal(minds(n, "RMForceStaticBar1=1 is set for all cards"),
				 rows[i].says != NULL);
		if (rows[i].says)
			assert_true(minds(n, rows[i].says));
		build_free(m);
	}
}

/* Debian's modules have names of their own, and so do their options. */
static void by_hand_on_debian(void **state)
{
	static const struct change c = {"550.163.01", "", STOCK, NULL};
	struct module modules[] = {
		{.name = "nvidia", .file = fact_str("updates/dkms/nvidia-current-open.ko", from)},
		{.name = "nvidia_uvm",
		 .file = fact_str("updates/dkms/nvidia-current-open-uvm.ko.xz", from)},
	};
	struct modprobe_line line = {MODPROBE_OPTIONS, "nvidia", "NVreg_RegistryDwords=\"A=1\"",
				     "/etc/modprobe.d/mine.conf", 7};
	struct machine *m = build(&c);
	const struct unlock_requirements *n;

	(void)state;
	m->modules = modules;
	m->module_n = 2;
	m->modprobe = &line;
	m->modprobe_n = 1;
	m->kernel.distribution_id = fact_str("debian", from);
	m->kernel.release = fact_str("6.1.0-56-amd64", from);
	m->kernel.headers = fact_int(0, from);
	m->kernel.secure_boot = fact_int(1, from);
	build_iommu(m, "DMA-FQ");
	n = unlock_requirements(m);
	assert_string_equal(n->options, "options nvidia-current-open "
					"NVreg_RegistryDwords=\"ForceP2P=0x11;RMForceP2PType=2\"");
	assert_true(
		says(n->sources, n->source_n, "--branch 550.163.01 https://github.com/NVIDIA/"));
	assert_true(says(n->sources, n->source_n, "apt source nvidia-open-gpu-kernel-modules"));
	assert_true(says(n->steps, n->step_n, "apt install linux-headers-6.1.0-56-amd64"));
	assert_true(
		says(n->steps, n->step_n, "onehop unlock --tree open-gpu-kernel-modules --apply"));
	assert_true(says(n->steps, n->step_n,
			 "kernel-open/nvidia-uvm.ko "
			 "/lib/modules/6.1.0-56-amd64/updates/onehop/nvidia-current-open-uvm.ko"));
	assert_true(says(n->steps, n->step_n, "override nvidia-current-open * updates/onehop"));
	assert_true(says(n->steps, n->step_n, "mokutil --import"));
	assert_true(says(n->steps, n->step_n, "update-initramfs -u -k 6.1.0-56-amd64"));
	assert_true(says(n->back, n->back_n, "rm -rf /etc/depmod.d/onehop-p2p.conf"));
	assert_true(minds(n, "iommu=pt"));
	assert_true(minds(n, "/etc/modprobe.d/mine.conf:7"));
	m->modules = NULL;
	m->modprobe = NULL;
	m->module_n = m->modprobe_n = 0;
	build_free(m);
}

/* What a recording says gets into commands only if a shell has nothing to read in it. */
/* Neither release nor chip is refused for its number: both are said to be not tried. */
static void not_tried_is_said(void **state)
{
	static const struct change c = {"610.57.04", "", EDITED, rtx6090_refused};
	struct machine *m = build(&c);
	const struct unlock_requirements *n = unlock_requirements(m);

	(void)state;
	assert_int_equal(n->action, ACTION_OPTIONS);
	assert_true(minds(n, "610.57.04 is untested"));
	assert_true(minds(n, "the chip of GPU0 is untested"));
	build_free(m);
}

static void by_hand_on_a_strange_kernel(void **state)
{
	static const struct change c = {"610.57.04", "", STOCK, NULL};
	struct machine *m = build(&c);
	const struct unlock_requirements *n;

	(void)state;
	m->kernel.release = fact_str("6.1; rm -rf ~", from);
	m->driver.library_version = fact_str("610.43.03", from);
	n = unlock_requirements(m);
	assert_false(says(n->steps, n->step_n, "rm -rf ~"));
	assert_true(says(n->steps, n->step_n, "/lib/modules/$(uname -r)/updates/onehop"));
	assert_true(minds(n, "610.57.04 is untested: onehop unlock --tree checks"));
	assert_true(minds(n, "610.43.03"));
	build_free(m);
}

/* Another line for the same parameter is to go, one for the other parameter stays. */
static void lines_that_count_last(void **state)
{
	static const struct change c = {"580.105.08", "ForceP2P=0x211", EDITED, NULL};
	struct modprobe_line lines[] = {
		{MODPROBE_OPTIONS, "nvidia", "NVreg_RegistryDwords=\"A=1\"",
		 "/etc/modprobe.d/all.conf", 3},
		{MODPROBE_OPTIONS, "nvidia", "NVreg_RegistryDwordsPerDevice=\"pci=01:00;A=1\"",
		 "/etc/modprobe.d/some.conf", 4},
		{MODPROBE_OPTIONS, "nvidia", "NVreg_RegistryDwords=\"A=1\"",
		 "/etc/modprobe.d/onehop.conf", 5},
	};
	struct machine *m = build(&c);
	const struct unlock_requirements *n;

	(void)state;
	m->modprobe = lines;
	m->modprobe_n = 3;
	n = unlock_requirements(m);
	assert_true(minds(n, "all.conf:3 also sets NVreg_RegistryDwords"));
	assert_false(minds(n, "some.conf"));
	assert_false(minds(n, "onehop.conf:5"));
	build_model(build_gpu(m, "0000:05:00.0", NULL), "NVIDIA A10", 86);
	m->driver.registry_dwords_per_device = fact_str_unknown("not collected");
	n = unlock_requirements(m);
	assert_false(minds(n, "all.conf"));
	assert_true(minds(n, "some.conf:4 also sets NVreg_RegistryDwordsPerDevice"));
	assert_true(minds(n, "for all cards, also those that must not"));
	assert_true(minds(n, "could not be read (not collected)"));
	m->modprobe = NULL;
	m->modprobe_n = 0;
	build_free(m);
}

static const struct {
	const char *driver, *kernel;
	const char *words; /* NULL: nothing is known against it */
} kernels[] = {
	{"535.230.02", "6.12.48+deb13-amd64", NULL},
	{"535.230.02", "6.13.0", "before 535.247.01 do not build on Linux 6.13"},
	{"535.247.01", "6.14.0-37-generic", NULL},
	/* the newest kernel's row, which does for those before it too */
	{"535.230.02", "6.17.0-35-generic", "use 535.274.02"},
	{"535.288.01", "6.17.13-2-pve", NULL},
	{"535.288.01", "6.19.2", "no release of 535 up to 535.288.01"},
	{"535.300.01", "6.19.2", NULL}, /* newer than what was looked at */
	{"550.163.01", "6.12.74", NULL},
	{"550.163.01", "6.17.13-2-pve", "del_timer_sync"},
	{"555.58.02", "6.17.13-2-pve", "no release of 555"},
	{"565.77", "6.13.0-aosc-main", "MODULE_IMPORT_NS"},
	{"570.86.16", "6.14.0", NULL},
	{"570.148.08", "6.15", "570.153.02"},
	{"570.190", "6.17.1", NULL},
	{"570.181", "6.17.1", "570.190"},
	{"580.105.08", "6.18.0", "580.119.02"},
	{"580.126.09", "6.19.2", "580.126.18"},
	{"580.126.20", "7.0.4+deb14-amd64", "580.142"},
	{"580.142", "7.0.12_1", NULL},
	{"580.142", "7.1.0_1", "of_gpio.h"},
	{"580.159.04", "7.1.0_1", NULL},
	{"590.48.01", "6.19.0-fractal", "595.58.03"},
	{"595.45.04", "7.0.0", "595.58.03"},
	{"595.45.04", "6.20.1", NULL},
	{"595.44.03", "7.0.0", NULL}, /* a line for developers */
	{"525.60.11", "7.0.0", NULL},
	{"580.105.08", "5.15.0-100-generic", NULL},
	{"", "", NULL},
	{"580.105.08", "strange", NULL},
};

static void releases_and_kernels(void **state)
{
	static const struct change c = {"580.105.08", "", STOCK, NULL};
	struct machine *m = build(&c);

	(void)state;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		const char *got = need_kernel_trouble(kernels[i].driver, kernels[i].kernel);

		if (!got != !kernels[i].words || (got && !strstr(got, kernels[i].words)))
			fail_msg("%s on %s: %s", kernels[i].driver, kernels[i].kernel,
				 got ? got : "nothing");
	}
	m->kernel.release = fact_str("6.18.7-arch1-1", from);
	assert_true(
		minds(unlock_requirements(m), "as released, releases of 580 before 580.119.02"));
	build_free(m);
}

static void nothing_to_judge(void **state)
{
	struct machine *m = build_machine();
	const struct unlock_requirements *n = unlock_requirements(m);

	(void)state;
	assert_false(n->judged);
	assert_int_equal(n->n, 0);
	build_gpu(m, "0000:01:00.0", NULL);
	n = unlock_requirements(m);
	assert_false(n->judged);
	assert_int_equal(n->step_n, 0);
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_case),
		cmocka_unit_test(options_by_release),
		cmocka_unit_test(options_of_all),
		cmocka_unit_test(options_of_some),
		cmocka_unit_test(options_of_a_generation),
		cmocka_unit_test(one_without_keys_decides),
		cmocka_unit_test(a_pair_of_two_classes),
		cmocka_unit_test(options_beside_others),
		cmocka_unit_test(options_of_one_outweigh),
		cmocka_unit_test(options_as_data),
		cmocka_unit_test(options_keep_what_is_not_of_this_release),
		cmocka_unit_test(nvlink_beside_pcie),
		cmocka_unit_test(one_pair_decides),
		cmocka_unit_test(not_every_card_is_a_peer),
		cmocka_unit_test(an_unseen_gate_is_minded),
		cmocka_unit_test(a_failed_pair_is_named),
		cmocka_unit_test(what_was_not_tried_is_minded),
		cmocka_unit_test(static_bar1_for_all_is_minded),
		cmocka_unit_test(by_hand_on_debian),
		cmocka_unit_test(by_hand_on_a_strange_kernel),
		cmocka_unit_test(not_tried_is_said),
		cmocka_unit_test(lines_that_count_last),
		cmocka_unit_test(releases_and_kernels),
		cmocka_unit_test(obstacles),
		cmocka_unit_test(nothing_to_judge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
