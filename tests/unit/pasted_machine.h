/* SPDX-License-Identifier: Apache-2.0 */
/* A machine that texts are about, for tests. */
#pragma once

#include "machine/machine.h"

/* The texts are called "a", "b", ... */
struct machine *machine_of_texts(const char *const *texts, size_t n);
/* What the text, n bytes, says of one of its hosts. */
struct machine *machine_of_host(const char *text, size_t n, const char *host);
/* Whether something that it says could not be read has these words. */
bool has_trouble(const struct machine *m, const char *words);
