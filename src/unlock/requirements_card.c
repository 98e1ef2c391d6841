/* SPDX-License-Identifier: Apache-2.0 */
/* What a card is, what drives it and where, and what was seen to work: whatever its BAR1 is. */
#include "unlock/candidate.h"

#include "machine/container.h"
#include "machine/distribution.h"

#include <string.h>

static bool has_mailbox(struct candidate *l)
{
	return fact_is(card_is_geforce(l->g), 0) && l->s.mechanism == MECHANISM_MAILBOX;
}

static bool not_driven(struct candidate *l)
{
	l->text = l->s.why;
	return l->s.way == MECHANISM_MAILBOX && l->s.mechanism == MECHANISM_NONE;
}

static bool all_nvlink(struct candidate *l)
{
	return l->m->gpu_n > 1 && candidate_linked(l) == l->m->gpu_n - 1;
}

static bool before_turing(struct candidate *l)
{
	return fact_is(card_is_geforce(l->g), 1) && l->s.mechanism == MECHANISM_MAILBOX;
}

static bool model_unknown(struct candidate *l)
{
	return fact_unknown(card_class(l->g)) || fact_unknown(card_compute_capability(l->g));
}

static bool model_not_in_text(struct candidate *l)
{
	return l->m->text_part_n && model_unknown(l);
}

static bool is_turing(struct candidate *l)
{
	return l->s.way == MECHANISM_NONE;
}

static bool is_mining(struct candidate *l)
{
	return fact_is(card_class(l->g), CARD_MINING);
}

static bool not_listed(struct candidate *l)
{
	return l->s.way == MECHANISM_UNKNOWN;
}

/* Not in the table, and the driver's own answer, which nothing forces, is yes. */
static bool driver_allows(struct candidate *l)
{
	bool all = l->m->gpu_n > 1;

	for (size_t i = 0; i < l->m->gpu_n; i++)
		all &= &l->m->gpus[i] == l->g || candidate_says_ok(l, i);
	return not_listed(l) && all && !driver_forced_p2p(l->d, l->g);
}

static bool alone(struct candidate *l)
{
	for (size_t i = 0; i < l->m->gpu_n; i++)
		if (&l->m->gpus[i] != l->g && candidate_through_bar1(l, &l->m->gpus[i]) &&
		    card_same_generation(l->g, &l->m->gpus[i]))
			return false;
	return true;
}

static bool other_driver(struct candidate *l)
{
	const char *name = fact_str_or(l->g->pci->driver, "nvidia");

	l->text = name;
	return strcmp(name, "nvidia") != 0;
}

static bool in_container(struct candidate *l)
{
	l->text = fact_str_or(l->m->kernel.container, "");
	return fact_known(l->m->kernel.container) && !container_is_guess(l->m);
}

static bool no_driver(struct candidate *l)
{
	return fact_is(l->d->loaded, 0);
}

static bool driver_unknown(struct candidate *l)
{
	return !fact_known(l->d->module_version);
}

static bool proprietary(struct candidate *l)
{
	return fact_is(l->d->flavor, DRIVER_PROPRIETARY);
}

static bool gb20x_too_early(struct candidate *l)
{
	return driver_branch(l->d->module_version) < support_native_from(l->g);
}

static bool release_without_keys(struct candidate *l)
{
	return !l->release->keys;
}

static bool forced_without(struct candidate *l)
{
	return driver_forced_p2p(l->d, l->g) && fact_is(candidate_mechanism(l), 0);
}

static const struct requirement_row rows[] = {
	{"model-unknown", model_not_in_text, ACTION_UNKNOWN,
	 "the text does not name the card's model",
	 "add the output of nvidia-smi -L or lspci -nn, or run onehop unlock on the machine itself",
	 NULL},
	{"model-unknown", model_unknown, ACTION_UNKNOWN, "the card's model could not be read",
	 "load the driver, or add the device id to pci.ids and report it", NULL},
	{"other-card", has_mailbox, ACTION_NOTHING,
	 "workstation and data center cards have P2P in the stock driver", NULL, P2P_CAPS},
	{"not-driven", not_driven, ACTION_REFUSED, "%s",
	 "install modules of the kind that drives it",
	 "NVIDIA driver README, \"Open Linux Kernel Modules\""},
	{"nvlink", all_nvlink, ACTION_NOTHING, "NVLink connects it to every other GPU", NULL,
	 P2P_CAPS},
	{"before-turing", before_turing, ACTION_NOTHING,
	 "GeForce cards before the 20 series have P2P in the stock driver", NULL, P2P_CAPS},
	{"turing", is_turing, ACTION_REFUSED,
	 "GeForce cards of the 20 series have no Resizable BAR: BAR1 (%B) cannot cover the memory "
	 "(%V)",
	 "nothing on the host; an NVLink bridge connects two of them", STATIC},
	{"mining", is_mining, ACTION_UNKNOWN,
	 "the driver's P2P support for CMP cards differs by model; ForceP2P hung a host with one",
	 "run onehop test, without registry keys", "WU-CVGL/cluster-setup docs/05"},
	{"driver-allows", driver_allows, ACTION_NOTHING,
	 "this chip is untested, and the stock driver allows P2P for it (run onehop test)", NULL,
	 P2P_CAPS},
	{"not-listed", not_listed, ACTION_UNKNOWN,
	 "this chip is untested: it is unknown whether the driver has BAR1 P2P for it",
	 "use a newer onehop, or edited modules with BAR1 P2P for every chip", NULL},
	{"container", in_container, ACTION_REFUSED,
	 "this is a container (%s): modules and their options are set on the host",
	 "run onehop unlock on the host", "container runtimes share the host's kernel"},
	{"other-driver", other_driver, ACTION_REFUSED, "it is bound to %s, not to NVIDIA's driver",
	 "bind it to NVIDIA's driver (see onehop check)", NULL},
	{"no-driver", no_driver, ACTION_REFUSED, "NVIDIA's kernel module is not loaded",
	 "install NVIDIA's driver with its open kernel modules, and load it", NULL},
	{"driver-unknown", driver_unknown, ACTION_UNKNOWN, "the driver's version could not be read",
	 "run onehop unlock on the machine itself: /proc/driver/nvidia/version", NULL},
	{"alone", alone, ACTION_REFUSED,
	 "no other card of its generation here uses BAR1, and CUDA's library refuses pairs of different generations",
	 "pair it with a card of its generation", "aikitoria/open-gpu-kernel-modules#12, #28, #40"},
	{"proprietary", proprietary, ACTION_REFUSED,
	 "the proprietary modules are loaded, whose core has no public sources",
	 "install the open kernel modules of %D (" DISTRIBUTION_OPEN_MODULES ")",
	 "NVIDIA driver README, \"Open Linux Kernel Modules\""},
	{"gb20x-driver", gb20x_too_early, ACTION_REFUSED,
	 "the BAR1 P2P of driver %D is incomplete for this chip: unified memory does not support BAR1 peers "
	 "before 590",
	 "install driver 590 or later: it needs module options alone", NVOC},
	{"release", release_without_keys, ACTION_REFUSED,
	 "driver %D is too old: its sources have no P2P through BAR1 that an edit could enable",
	 "install driver 535 or later", NVOC},
	{"proven", candidate_is_proven, ACTION_IN_FORCE, NULL, NULL,
	 NULL}, /* requirements_pair.c says more */
	{"forced", forced_without, ACTION_REFUSED,
	 "ForceP2P is set, but the running module has no P2P for this card: the driver reports P2P that the hardware lacks, and data is lost",
	 "remove ForceP2P from NVreg_RegistryDwords now; the edited module sets it again",
	 KERNEL_BIF "; tinygrad/open-gpu-kernel-modules#16"},
};

const struct requirement_rows requirement_card_rows = {rows, sizeof(rows) / sizeof(rows[0])};
