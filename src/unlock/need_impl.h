/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of need.h share. */
#pragma once

#include "unlock/need.h"

/* Parameters of module nvidia. */
#define NEED_DWORDS            "NVreg_RegistryDwords"
#define NEED_DWORDS_PER_DEVICE "NVreg_RegistryDwordsPerDevice"

/* need_options.c: fills in the options, once the cards are judged. */
void need_options(struct machine *m, struct machine_need *n);
/* The setting for all cards holds a key that this release's options are made of. */
bool need_sets_for_all(const struct machine *m);

/* need_steps.c: fills in sources, steps, the way back and cautions, once the options are there. */
void need_steps(struct machine *m, struct machine_need *n);
/*
 * The module's file name without ".ko" and what compressed it, since Debian's differs from the
 * module's; `otherwise` where it is not known.
 */
const char *need_file_name(struct machine *m, const char *module, const char *otherwise);
