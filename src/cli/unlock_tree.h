/* SPDX-License-Identifier: Apache-2.0 */
/* onehop unlock --tree: only the edits of a source tree, shown, made or taken back. */
#pragma once

#include "cli/command.h"
#include "report/report_unlock.h"

int unlock_tree(const char *dir, enum unlock_mode mode, const struct common_options *common);
