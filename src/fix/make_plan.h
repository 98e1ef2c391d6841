/* SPDX-License-Identifier: Apache-2.0 */
/* From changes to steps: how this distribution, boot loader and kernel want them made. */
#pragma once

#include "change/change.h"
#include "fix/step.h"

struct machine;
struct source;

/* Whether kernel parameters are tried for one boot before they stay, where the boot loader can. */
enum trial_wish {
	TRIAL_NEVER,
	TRIAL_WITHOUT_DISPLAY, /* where nobody could choose another entry in the boot menu */
	TRIAL_ALWAYS,
};

struct plan_request {
	const struct machine *machine;
	struct source *source; /* the same host's files: what they hold now is each step's `old` */
	bool image;            /* a mounted image: only what lasts; programs become manual steps */
	/* a system image that is prepared, seen from inside, as by chroot: no container */
	bool inside;
	enum trial_wish trial;
	bool confirms; /* parameters that this boot has were tried, and are planned all the same */
	unsigned lifetime; /* enum change_lifetime: mask over what the changes want */
	/*
	 * this program's absolute path, for a unit that runs it at boot; NULL: others than root
	 * could put another there
	 */
	const char *program;
	/*
	 * Steps of the caller that put other modules into the system: before what modprobe's file
	 * holds, and the initramfs is made again after both. Not in an image. Kept by pointer with
	 * their texts: they outlive the plan.
	 */
	const struct step *modules;
	size_t module_n;
	const char *nvidia_file; /* their nvidia.ko's name, without .ko; NULL: as it is now */
	/* how they are taken back without onehop, one line; NULL: no way */
	const char *modules_back;
};

/*
 * Never fails: what cannot be done here is a manual step with the exact words. Pure but for reading.
 *
 * The plan's `wanted` rows (kind, value):
 *   kernel-parameter  iommu=pt
 *   acs               0000:22:00.0 0011
 *   module-option     nvidia NVreg_EnableResizableBar=1
 *   registry-dword    nvidia ForceP2P=0x11
 *   module-blacklist  nouveau
 */
struct plan *plan_make(const struct plan_request *r, const struct change_set *changes);
