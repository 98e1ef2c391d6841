/* SPDX-License-Identifier: Apache-2.0 */
/* A machine with its topology and its diagnosis, for tests of rules. */
#pragma once

#include "diagnose/diagnose.h"

struct judged {
	struct machine *m;
	struct topology *t;
	struct diagnosis *d;
	void (*free_machine)(struct machine *m);
};

/* Of a machine that was built (build_machine.h), or read; judged_done frees it too. */
struct judged judge_built(struct machine *m);
struct judged judge_read(struct machine *m);
void judged_done(struct judged *j);
