/* SPDX-License-Identifier: Apache-2.0 */
#include "support/release.h"

#include "base/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define EDIT_DENIES 2 /* the first edit that does: edit_number */

/*
 * From the sources of the open kernel modules, 144 releases from 535.43.02 to 595.45.04.
 * ForceP2P: bits 1:0 reads, 5:4 writes, 9:8 atomics, which 565 and later know (2: as the platform has
 * it; 0 would switch them off). Key types were renumbered in 575, which got one of its own for PCIe
 * (kernel_bif.c _kbifInitRegistryOverrides, nvrm_registry.h). Static BAR1: for Hopper alone before 565,
 * off unless asked for in 575 (kern_bus_tu102.c kbusIsStaticBar1Supported). From 545 to 570 the
 * override is tested before the mapping (p2p_caps.c _kp2pCapsGetStatusOverPcieBar1).
 */
/* clang-format off */
static const struct release releases[] = {
	{.from = 0, .old_type = true, .cpu_needs_room = true},
	{.from = 535, .keys = "ForceP2P=0x11;RMForceP2PType=2",
	 .old_type = true, .cpu_needs_room = true, .untested = true},
	{.from = 545, .keys = "ForceP2P=0x11;RMForceP2PType=2",
	 .old_type = true, .cpu_needs_room = true, .forced_caps = true},
	{.from = 565, .keys = "ForceP2P=0x211;RMForceP2PType=2",
	 .old_type = true, .forced_caps = true},
	{.from = 570, .keys = "ForceP2P=0x211;RMForceP2PType=2",
	 .old_type = true, .forced_caps = true, .console_shifts = true},
	{.from = 575, .keys = "ForceP2P=0x211;RMPcieP2PType=1;RMForceStaticBar1=2",
	 .console_shifts = true, .edit_denies = true, .untested = true},
	{.from = 580, .keys = "ForceP2P=0x211;RMPcieP2PType=1", .edit_denies = true,
	 .bar1_entries = true},
	{.from = 590, .keys = "ForceP2P=0x211;RMPcieP2PType=1", .edit_denies = true,
	 .bar1_entries = true, .uvm_bar1 = true},
};
/* clang-format on */

#define RELEASES (sizeof(releases) / sizeof(releases[0]))

static const int tried[] = {535, 545, 550, 555, 560, 565, 570, 575, 580, 590, 595};

#define TRIED (sizeof(tried) / sizeof(tried[0]))

const struct release *release_table(size_t *ret_n)
{
	*ret_n = RELEASES;
	return releases;
}

const struct release *release_find(int release)
{
	const struct release *r = &releases[0];

	for (size_t i = 0; i < RELEASES; i++)
		if (release >= releases[i].from)
			r = &releases[i];
	return r;
}

const struct release *driver_release(const struct nvidia_driver *d)
{
	return release_find(driver_branch(d->module_version));
}

bool release_tried(int release)
{
	for (size_t i = 0; i < TRIED; i++)
		if (tried[i] == release)
			return true;
	return false;
}

int release_newest(void)
{
	return tried[TRIED - 1];
}

/* ---- registry keys ---- */

#define TYPE      "RMForceP2PType"
#define PCIE_TYPE "RMPcieP2PType"
#define ANY       9999

static const struct registry_key keys[] = {
	{"ForceP2P", 0, ANY, 0x33, 0x11, 0x11, false},
	{TYPE, 0, 574, -1, 2, 2, false},
	{TYPE, 575, ANY, -1, 0, 1, true}, /* 2 is NVLink alone there */
	{PCIE_TYPE, 575, ANY, -1, 1, 2, false},
	{"RMForceStaticBar1", 575, 579, -1, 1, 2, false},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

const struct registry_key *registry_key_table(size_t *ret_n)
{
	*ret_n = KEYS;
	return keys;
}

bool registry_key_counts(const struct registry_key *k, int release)
{
	return release >= k->from && release <= k->to;
}

bool registry_key_is_good(const struct registry_key *k, struct fact_int value)
{
	if (fact_absent(value))
		return k->may_lack;
	return (value.value & k->mask) >= k->low && (value.value & k->mask) <= k->high;
}

struct fact_int registry_keys_good(const struct nvidia_driver *d, const struct gpu *g)
{
	int release = driver_branch(d->module_version);
	struct fact_int ret = fact_int(1, d->registry_dwords.from);

	for (size_t i = 0; i < KEYS; i++) {
		struct fact_int value = driver_gpu_dword(d, g, keys[i].key);

		if (!registry_key_counts(&keys[i], release))
			continue;
		if (fact_unknown(value))
			return value;
		if (!registry_key_is_good(&keys[i], value))
			ret.value = 0;
	}
	return ret;
}

/* With AUTO (2) the mailbox's window stays, and mailboxes are the way where BAR1 cannot be mapped
 * (kern_bus_gm107.c _kbusRequiresP2PMailboxBar1). Releases ignore keys that they do not know. */
enum bar1_choice registry_bar1_choice(const struct nvidia_driver *d, const struct gpu *g)
{
	bool old = driver_release(d)->old_type, known = fact_known(d->module_version);
	struct fact_int way = driver_gpu_dword(d, g, PCIE_TYPE);

	if (old && fact_is(driver_gpu_dword(d, g, TYPE), 2))
		return BAR1_CHOSEN;
	if (old && known)
		return BAR1_NOT_CHOSEN;
	if (fact_is(way, 1))
		return BAR1_CHOSEN;
	return fact_is(way, 2) ? BAR1_AUTO : BAR1_NOT_CHOSEN;
}

bool registry_means_nvlink(const struct nvidia_driver *d, const struct gpu *g)
{
	return !driver_release(d)->old_type && fact_is(driver_gpu_dword(d, g, TYPE), 2);
}

/* p2p_caps.c _kp2pCapsCheckStatusOverridesForPcie, _kp2pCapsGetStatusOverPcieBar1; 535 to 595. */
bool registry_keys_one_sided(const struct nvidia_driver *d, const struct gpu *a,
			     const struct gpu *b)
{
	return !driver_forced_p2p(d, a) != !driver_forced_p2p(d, b) ||
	       (registry_bar1_choice(d, a) == BAR1_NOT_CHOSEN) !=
		       (registry_bar1_choice(d, b) == BAR1_NOT_CHOSEN);
}

/* ---- CUDA's library ---- */

static bool differs_from_module(const struct nvidia_driver *d, struct fact_str library)
{
	return fact_known(library) && fact_known(d->module_version) &&
	       strcmp(library.value, d->module_version.value) != 0;
}

bool driver_nvml_differs(const struct nvidia_driver *d)
{
	return differs_from_module(d, d->nvml_library);
}

enum library_fit driver_library_fit(const struct nvidia_driver *d)
{
	if (!differs_from_module(d, d->library_version))
		return LIBRARY_FITS;
	return driver_branch(d->library_version) > driver_branch(d->module_version) &&
			       fact_known(d->nvml_library) && !driver_nvml_differs(d)
		       ? LIBRARY_MAY_FIT
		       : LIBRARY_REFUSES;
}

/* ---- lock-ups ---- */

/* Both with public edits of the release, P2P through BAR1 and RTX 3090; neither was explained. */
static const struct lockup lockups[] = {
	{595, 7, "a machine with 4 RTX 3090 locked up under NCCL once it ran Linux 7.0",
	 "aikitoria/open-gpu-kernel-modules#28"},
	{610, 7,
	 "a machine with 2 RTX 3090 was reset under vLLM's custom all-reduce on Linux 7.0, while "
	 "NCCL over P2P ran clean",
	 "noonghunna/club-3090#1332"},
};

const struct lockup *driver_lockup(const struct nvidia_driver *d, const char *kernel)
{
	int major = kernel ? (int)strtol(kernel, NULL, 10) : INT_MAX;

	for (size_t i = 0; i < sizeof(lockups) / sizeof(lockups[0]); i++)
		if (driver_branch(d->module_version) == lockups[i].release &&
		    major >= lockups[i].kernel && fact_is(d->bar1_p2p.loaded, 1))
			return &lockups[i];
	return NULL;
}

/* ---- onehop's edits ---- */

int edit_number(const char *mark)
{
	static const char start[] = "unlock ";

	return text_starts_with(mark, start) ? (int)strtol(mark + strlen(start), NULL, 10) : 0;
}

struct fact_int driver_edit_is_old(const struct nvidia_driver *d)
{
	struct fact_str mark = d->bar1_p2p.mark;
	int number = edit_number(fact_str_or(mark, ""));

	if (fact_unknown(mark))
		return fact_int_unknown(mark.from);
	return fact_int(number > 0 && number < edit_number(EDIT_MARK), mark.from);
}

bool driver_loses_edit(const struct nvidia_driver *d)
{
	return fact_is(d->bar1_p2p.loaded, 1) && fact_is(d->bar1_p2p.installed, 0);
}

/* ---- other traits ---- */

bool driver_denies_half_pairs(const struct nvidia_driver *d, bool edited)
{
	int number = edit_number(fact_str_or(d->bar1_p2p.mark, ""));

	return driver_release(d)->edit_denies && (edited || number >= EDIT_DENIES);
}

bool driver_means_bar1(const struct machine *m, size_t initiator, size_t target)
{
	const struct gpu_pair *p = machine_pair(m, initiator, target);
	bool forced = driver_forced_p2p(&m->driver, &m->gpus[initiator]) ||
		      driver_forced_p2p(&m->driver, &m->gpus[target]);

	return fact_is(p->rm.connection, RM_CONNECTION_BAR1) &&
	       fact_known(m->driver.module_version) &&
	       !(forced && driver_release(&m->driver)->forced_caps);
}

/* NVIDIA driver 470 release notes. */
bool release_has_open_modules(int release)
{
	return release >= RELEASE_OPEN;
}

bool release_has_peermem(int release)
{
	return release >= RELEASE_PEERMEM;
}

bool release_checks_grdma(int release)
{
	return release >= 580;
}

/* nvidia-smi 610 topo -p2p. */
bool release_explains_dr(int release)
{
	return release >= 610;
}
