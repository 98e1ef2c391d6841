/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop fix` would do about a diagnosis: check promises it, and fix does it. */
#pragma once

#include "diagnose/diagnose.h"
#include "fix/make_plan.h"
#include "session/machine_choice.h"

struct plan;
struct source;

struct planning {
	/* a recording or texts: their files are planned for; of none the host's */
	const struct machine_choice *from;
	/* what `from` was read from, the caller's; NULL: it is opened again */
	struct source *source;
	const char *root; /* a system image, which goes before both; NULL: none */
	struct propose_options propose;
	enum trial_wish trial;
	unsigned lifetime; /* enum change_lifetime */
};

struct planned {
	struct change_set changes, made; /* made: those not apart */
	struct plan *plan;
};

/* 0, or a negative errno with a sentence. The diagnosis must outlive it. */
int planned_make(const struct planning *how, const struct diagnosis *d, struct planned *ret);
void planned_done(struct planned *p);

/*
 * Whether only root can replace the file at this absolute path: it and each folder above it belong
 * to root, are not symbolic links, and are not writable by group or others. Here for tests.
 */
bool is_roots_alone(const char *path);
