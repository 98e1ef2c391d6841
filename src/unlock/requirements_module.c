/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules that run and lie on disk: edited or not, with which edit, and what the driver says
 * where neither was seen.
 */
#include "unlock/candidate.h"

#include "base/alloc.h"

/* The next boot ends that. */
static bool gate_waits_for_reload(struct candidate *l)
{
	return candidate_lacks_gate(l) && fact_is(l->d->bar1_p2p.installed, 1) &&
	       fact_is(l->d->uvm_gate.installed, 1) && !fact_is(driver_edit_is_old(l->d), 1);
}

/* On one card or another: its peers reach into its BAR1 at the wrong place. */
static bool console_shifts(struct candidate *l)
{
	const struct gpu *g = l->m->gpus, *end = g + l->m->gpu_n;

	while (g < end &&
	       !(candidate_through_bar1(l, g) && fact_is(support_console_shifts(l->d, g), 1)))
		g++;
	if (g == end)
		return false;
	l->text = arena_printf(l->m->arena, "GPU%zu", g->index);
	return fact_is(candidate_mechanism(l), 1);
}

static bool seen_in_force(struct candidate *l)
{
	return fact_is(candidate_mechanism(l), 1) && fact_is(registry_keys_good(l->d, l->g), 1);
}

static bool only_options(struct candidate *l)
{
	return fact_is(candidate_mechanism(l), 1);
}

static bool waits_for_reload(struct candidate *l)
{
	return fact_is(l->d->bar1_p2p.installed, 1) && fact_is(candidate_mechanism(l), 0);
}

static bool only_file_seen(struct candidate *l)
{
	return fact_is(l->d->bar1_p2p.installed, 1) && !fact_known(candidate_mechanism(l));
}

static bool options_unknown(struct candidate *l)
{
	return fact_is(candidate_mechanism(l), 1) && !fact_known(registry_keys_good(l->d, l->g));
}

/* The driver says that it reaches this other card; how, is another question. */
static bool is_allowed(const struct candidate *l, size_t i)
{
	return &l->m->gpus[i] != l->g && candidate_through_bar1(l, &l->m->gpus[i]) &&
	       candidate_says_ok(l, i);
}

static bool is_unfinished(struct candidate *l)
{
	for (size_t i = 0; i < l->m->gpu_n && !fact_known(candidate_mechanism(l)); i++)
		if (is_allowed(l, i) &&
		    candidate_mapping_fails(topology_path(l->t, l->g->index, i)))
			return true;
	return false;
}

static bool driver_says_mailbox(struct candidate *l)
{
	for (size_t i = 0; i < l->m->gpu_n && !fact_known(candidate_mechanism(l)); i++)
		if (is_allowed(l, i) && fact_is(candidate_connection(l, i), RM_CONNECTION_MAILBOX))
			return true;
	return false;
}

static bool driver_forced_to_mailbox(struct candidate *l)
{
	return driver_forced_p2p(l->d, l->g) && driver_says_mailbox(l);
}

static bool driver_says_yes(struct candidate *l)
{
	for (size_t i = 0; i < l->m->gpu_n && !fact_known(candidate_mechanism(l)); i++)
		if (is_allowed(l, i))
			return true;
	return false;
}

#define LOST_AT_BOOT                                                                               \
	"the running module is edited, but the one on disk is not, as after a package upgrade: P2P is lost at the next boot"

#define MAILBOX                                                                                    \
	"the driver allows P2P for it through a mailbox, which it does not have: data is lost. Whether its module is edited could not be read"

static const struct requirement_row rows[] = {
	{"gate-reload", gate_waits_for_reload, ACTION_RELOAD,
	 "%s without the gate for managed memory; the modules on disk have it", NULL, UVM},
	{"uvm-gate", candidate_lacks_gate, ACTION_REPLACE,
	 "%s without the gate for managed memory: the first program with managed memory on two of these cards ends in Xid 31 and 154, and then only a reboot helps",
	 NULL, UVM},
	{"edit-old", candidate_edit_is_old, ACTION_REPLACE,
	 "the module on disk was edited by an earlier onehop (%s) and allows writes to wrong addresses, which the current edit prevents",
	 NULL, UVM},
	{"console-shift", console_shifts, ACTION_REPLACE,
	 "a console occupies the start of BAR1 of %s, and the running modules were not edited by onehop: in this release they compute addresses from the start of BAR1, so data goes to the wrong place",
	 NULL, STATIC "; aikitoria/open-gpu-kernel-modules 570.86.16-p2p nv_gpu_ops.c"},
	{"in-force", seen_in_force, ACTION_IN_FORCE, NULL, NULL,
	 NULL}, /* requirements_pair.c says more */
	{"in-force", candidate_needs_no_keys, ACTION_IN_FORCE, NULL, NULL, NULL},
	{"options-unknown", options_unknown, ACTION_UNKNOWN,
	 "the running module has BAR1 P2P for it; its options could not be read",
	 "run onehop unlock on the machine itself: /proc/driver/nvidia/params", NVOC},
	{"rebuild", candidate_lost_at_boot, ACTION_REBUILD, LOST_AT_BOOT, NULL, NVOC},
	{"options", only_options, ACTION_OPTIONS,
	 "the running module has BAR1 P2P for it; only options are missing", NULL, NVOC},
	{"reload", waits_for_reload, ACTION_RELOAD,
	 "the module on disk is edited, but the running one is not", NULL, NVOC},
	{"file-only", only_file_seen, ACTION_UNKNOWN,
	 "the module on disk has BAR1 P2P for it; the running one could not be read",
	 "run onehop unlock on the machine itself: /proc/kallsyms", NVOC},
	{"mailbox", driver_forced_to_mailbox, ACTION_REFUSED, MAILBOX,
	 MAILBOX_UNSEEN "; until then remove ForceP2P from NVreg_RegistryDwords", RM_CAPS},
	{"mailbox", driver_says_mailbox, ACTION_REFUSED, MAILBOX, MAILBOX_UNSEEN, RM_CAPS},
	{"mapping-fails", is_unfinished, ACTION_REFUSED,
	 "the driver reports P2P, but the kernel log shows that its mappings of peer memory fail. Whether its module is edited could not be read",
	 "see `onehop check` for the log and what may be missing; then run onehop unlock on the machine itself, as root",
	 P2P_CAPS},
	{"says-yes", driver_says_yes, ACTION_UNKNOWN,
	 "the driver reports P2P; whether its module is edited could not be read",
	 "run onehop test", P2P_CAPS},
	{"patch", candidate_always, ACTION_PATCH,
	 "the driver has BAR1 P2P, but only stubs for this chip", NULL, NVOC},
};

const struct requirement_rows requirement_module_rows = {rows, sizeof(rows) / sizeof(rows[0])};

static const struct requirement_row boot_rows[] = {
	{"rebuild", candidate_lost_at_boot, ACTION_REBUILD, LOST_AT_BOOT, NULL, NVOC},
};

const struct requirement_rows requirement_boot_rows = {boot_rows,
						       sizeof(boot_rows) / sizeof(boot_rows[0])};
