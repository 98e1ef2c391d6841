/* SPDX-License-Identifier: Apache-2.0 */
/* The running machine as a source of bytes. */
#pragma once

#include "base/source.h"

struct machine_request;

/* The live host as a source; keeps `request` by pointer. 0 or a negative errno. */
int machine_open_live(const struct machine_request *request, struct source **ret);
