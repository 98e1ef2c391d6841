/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onehop unlock --sources, and --apply without a tree: an edited driver, or options, into the
 * system.
 */
#pragma once

#include "cli/command.h"
#include "session/deliver_session.h"

int deliver(const struct deliver_choice *o, const struct common_options *common);
