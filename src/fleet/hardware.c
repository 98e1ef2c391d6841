/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of hosts: only hosts with the same devices, CPU and board are compared. */
#include "fleet/fleet.h"

#include "base/alloc.h"
#include "base/strbuf.h"

#include <string.h>

static void put_devices(const struct fleet_hardware *hardware, struct strbuf *out)
{
	for (size_t i = 0; i < hardware->device_n; i++) {
		const struct fleet_devices *d = &hardware->devices[i];

		if (i)
			strbuf_puts(out, d->nic == d[-1].nic ? " + " : ", ");
		if (d->n)
			strbuf_printf(out, "%u x %s", d->n, d->name);
		else
			strbuf_printf(out, "no %s", d->name);
	}
	strbuf_printf(out, "%s%s", hardware->device_n ? ", " : "", hardware->platform);
}

const struct fleet_hardware *fleet_hardware(struct fleet *f, struct fleet_hardware hardware)
{
	struct fleet_hardware *copy = arena_alloc(f->arena, 1, sizeof(*copy));
	AUTO_STRBUF struct strbuf name = {0};

	put_devices(&hardware, &name);
	hardware.name = fleet_keep(f, strbuf_str(&name));
	hardware.platform = fleet_keep(f, hardware.platform);
	*copy = hardware;
	return copy;
}

void fleet_hardware_add(struct fleet *f, struct fleet_hardware *hardware, bool nic, unsigned n,
			const char *name)
{
	*ARENA_PUSH(f->arena, hardware->devices, hardware->device_n) =
		(struct fleet_devices){fleet_keep(f, name), n, nic};
}

bool fleet_hardware_alike(const struct fleet_hardware *a, const struct fleet_hardware *b)
{
	for (size_t i = 0; i < a->device_n && a->device_n == b->device_n; i++)
		if (a->devices[i].nic != b->devices[i].nic ||
		    strcmp(a->devices[i].name, b->devices[i].name) != 0)
			return false;
	return a->device_n == b->device_n && strcmp(a->platform, b->platform) == 0;
}
