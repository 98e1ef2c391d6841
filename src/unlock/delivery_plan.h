/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that bring an edited driver and its options into this system, for fix_apply. */
#pragma once

#include "fix/make_plan.h"
#include "unlock/delivery.h"

struct delivery_plan_request {
	const struct delivery *delivery;
	const struct unlock_requirements *requirements;
	struct machine *machine; /* outlives the plan, which borrows from its arena */
	struct source *source;
	struct fix_host *host; /* the same system's files: what DKMS has built is looked into */
	/* Of delivery.core_built; NULL: it is not built yet, so that the plan is only for reading. */
	const char *core;
	size_t core_size;
	bool image; /* options for all cards, of this release: there are none to be judged */
};

/*
 * Forward: the build that is there is saved, files, `dkms build`, probe, `dkms install`, options,
 * initramfs. Undoing, also of a part: options back, files back, the saved build installed again,
 * initramfs. What is already done gets no step. 0, or a negative errno with a sentence: -EEXIST: another
 * delivery is in place, which has to be taken back first; -EBUSY: DKMS has something else installed.
 */
int delivery_plan(const struct delivery_plan_request *r, struct plan **ret);

/*
 * Where the log of a DKMS build that failed is, below the root; NULL: the plan has none. In the
 * machine's arena.
 */
const char *delivery_build_log(const struct delivery_plan_request *r);
/* What the core is once it is in the driver's tree; see delivery.core. */
#define DELIVERY_CORE_MAX ((size_t)128 << 20)
