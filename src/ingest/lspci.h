/* SPDX-License-Identifier: Apache-2.0 */
/* `lspci -x`, `-xxx` and `-xxxx`: configuration space as text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct source;

bool lspci_recognise(const char *text, size_t size);
/* Fills the map with configuration space and the list of functions. */
int lspci_parse(const char *text, size_t size, const char *file, struct source *map);
