/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/container.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

bool container_is_guess(const struct machine *m)
{
	static const char *const files[] = {"./.dockerenv", "run/.containerenv",
					    "run/systemd/container"};
	const char *from = m->kernel.container.from;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (fact_known(m->kernel.container) && from && !strcmp(from, files[i]))
			return true;
	return false;
}

bool container_lacks_gpus(const struct machine *m)
{
	struct fact_int nodes = m->driver.device_nodes, driven = m->driver.gpus_in_proc;

	return fact_known(m->kernel.container) && fact_known(nodes) && fact_known(driven) &&
	       nodes.value < driven.value;
}

const char *container_sign(const struct machine *m, char *buf, size_t size)
{
	const char *from = m->kernel.container.from ? m->kernel.container.from : "";

	snprintf(buf, size, "/%s", text_starts_with(from, "./") ? from + 2 : from);
	return buf;
}
