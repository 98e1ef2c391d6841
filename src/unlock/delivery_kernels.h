/* SPDX-License-Identifier: Apache-2.0 */
/* Other kernels than the one that a delivery is for: what they have, and what undo leaves them. */
#pragma once

#include "fix/step.h"
#include "unlock/delivery.h"

/* What DKMS has built for another kernel while the patch was in place. All in the caller's arena. */
struct left_build {
	const char *kernel;
	const char *module; /* "NAME/VERSION", as dkms takes it */
	const char *how;    /* commands that build it again, a line each; they need a compiler */
};

/*
 * `undone` is the plan that was undone. None where it installed no patch, or where that is there still:
 * what is built then is what is wanted. Builds that cannot be read are left out.
 */
size_t delivery_left(struct fix_host *h, const struct plan *undone, struct arena *a,
		     struct left_build **ret);

/* `dkms build`. */
bool delivery_is_build(const struct step *s);
/* Whether it brought modules in: it has one of these. */
bool delivery_brought(const struct plan *p);

/*
 * A note where other kernels have modules that are not edited: the options count there too, and force
 * P2P over nothing once such a kernel is booted. `image` as in struct delivery_request.
 */
void delivery_check_kernels(struct fix_host *h, struct delivery *d, bool image, struct arena *a);
