/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of JSON Schema that docs/json-schema uses: type, enum, const, required, properties,
 * items and $ref. Stricter than the standard in one point: a member that the schema does not name
 * is an error, so that no new member goes undocumented. Any other keyword is an error too.
 */
#pragma once

#include <jansson.h>

struct strbuf;

/* Validates against docs/json-schema/NAME; a sentence about the first difference, "" when valid. */
void json_schema_check(json_t *value, const char *name, struct strbuf *trouble);
