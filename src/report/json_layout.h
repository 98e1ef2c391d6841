/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as text: a value that is short is on one line, else each member or element starts a line. */
#pragma once

#include "base/strbuf.h"

#include <jansson.h>

/* Adds the text without a newline at its end; -EINVAL: the value is not valid. */
int json_lay_out(struct strbuf *out, const json_t *value);
