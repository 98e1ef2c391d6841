/* SPDX-License-Identifier: Apache-2.0 */
/* What the cards of a machine need for P2P, printed; the exit code. */
#pragma once

#include "cli/command.h"

struct unlock_requirements;

int show_requirements(const struct machine *m, const struct unlock_requirements *n,
		      const struct common_options *common, bool by_hand);
/* Of the machine that the options choose. */
int unlock_need(const struct common_options *common, bool by_hand);
