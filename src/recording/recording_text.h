/* SPDX-License-Identifier: Apache-2.0 */
/* The text forms inside a recording; for recording.c and tests. */
#pragma once

#include "base/source.h"

struct strbuf;

/* Writes machine.txt for the entries, which it sorts by folder. */
void recording_write(struct source_entry *entries, size_t n, struct strbuf *out);
/* The folder that a "base FOLDER" line names; false if there is none. */
bool recording_base(const char *text, char *buf, size_t size);

/* Whether an entry's bytes go into config-space.txt; writes them in lspci's form. */
bool recording_is_config(const struct source_entry *e);
void recording_write_config(const struct source_entry *e, struct strbuf *out);
