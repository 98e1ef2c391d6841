/* SPDX-License-Identifier: Apache-2.0 */
/* What a live source makes up: kernel log, process, environments, module files, the answers of NVML
 * and of the driver. */
#pragma once

#include "base/source.h"

/* Ends with a NULL name; the context is a const struct machine_request. */
extern const struct source_provider live_providers[];
