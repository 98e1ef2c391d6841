/* SPDX-License-Identifier: Apache-2.0 */
/* One recording, copied tree or text as a source. */
#pragma once

#include "ingest/ingest.h"

static inline int open_recording(const char *path, struct source **ret)
{
	return ingest_open_all(&path, 1, NULL, ret);
}
