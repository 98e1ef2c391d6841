/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as text: a value that is short is on one line, else each member or element starts a line. */
#pragma once

#include "base/strbuf.h"

#include <jansson.h>

/*
 * Adds the text without a newline at its end, and without a character that a terminal may obey;
 * -EINVAL: the value is not valid.
 */
int json_lay_out(struct strbuf *out, const json_t *value);
/* The same on one line, without spaces. */
int json_line(struct strbuf *out, const json_t *value);
