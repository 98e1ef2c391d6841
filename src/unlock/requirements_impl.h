/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of requirements.h share. */
#pragma once

#include "unlock/requirements.h"

/* Parameters of module nvidia. */
#define PARAMETER_DWORDS            "NVreg_RegistryDwords"
#define PARAMETER_DWORDS_PER_DEVICE "NVreg_RegistryDwordsPerDevice"

/* requirement_options.c: fills in the options, once the cards are judged. */
void requirement_options(struct machine *m, struct unlock_requirements *n);
/* The setting for all cards holds a key that this release's options are made of. */
bool requirement_sets_for_all(const struct machine *m);

/* requirement_steps.c: fills in sources, steps, the way back and cautions, once the options are there. */
void requirement_steps(struct machine *m, struct unlock_requirements *n);
/*
 * The module's file name without ".ko" and what compressed it, since Debian's differs from the
 * module's; `otherwise` where it is unknown.
 */
const char *requirement_file_name(struct machine *m, const char *module, const char *otherwise);
