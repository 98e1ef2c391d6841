/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onehop check --explain and --list: the rules themselves, without a machine. Each returns the exit
 * code.
 */
#pragma once

#include "cli/command.h"

extern const char *const rule_list_formats[];

int check_explain(const char *id, const struct common_options *common);
/* `format`: 1 + index in rule_list_formats. */
int check_list(int format, const struct common_options *common);
