/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/machine.h"

#include "base/source.h"
#include "machine/live_host.h"

int machine_open_live(const struct machine_request *request, struct source **ret)
{
	return source_open_root("/", live_providers, (void *)request, ret);
}
