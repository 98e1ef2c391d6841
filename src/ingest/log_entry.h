/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message of the journal, by the names of its fields (systemd.journal-fields(7)), as the line
 * that `journalctl` prints.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/* "2026-11-22T09:40:35.123456+0000 HOST kernel: MESSAGE"; false: it has no message. */
bool log_entry_write(struct strbuf *out, const json_t *entry);
/* Text, or its bytes as numbers; false: neither is there. */
bool log_entry_add_value(struct strbuf *out, const json_t *v);

/* A name that a field may have. */
bool log_entry_is_key(const char *key);
/* Of the many fields, one that the line is made of. */
bool log_entry_uses(const char *key);
