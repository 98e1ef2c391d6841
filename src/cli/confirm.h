/* SPDX-License-Identifier: Apache-2.0 */
/* onehop fix --confirm: what a trial boot has stays. */
#pragma once

#include "cli/command.h"

/*
 * Keeps the kernel parameters of the fix that is on trial in this boot. `when_healthy`: waits until the
 * system is up, and does it only if it is as healthy as before the trial. The exit code.
 */
int confirm_trial(const struct common_options *common, bool when_healthy);
