/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are, or can be, a virtual machine's, below the switch that a port belongs to. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "fix/step_impl.h"
#include "machine/usable.h"

#include <string.h>

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int step_device_link(struct fix_host *h, const char *device, const char *rest, char **ret)
{
	AUTO_FREE char *path = xprintf(STEP_DEVICES "/%s%s", device, rest);

	return host_read_link(h, path, ret);
}

/*
 * "/0000:21:00.0/": the port's upstream port, which is above all ports of the switch in the link
 * of a device; of a root port, the port itself. NULL: the port is not a link. The caller frees.
 */
static int find_switch(struct fix_host *h, const char *port, char **ret)
{
	AUTO_FREE char *link = NULL;
	const char *above;
	char *slash;
	int r = step_device_link(h, port, "", &link);

	*ret = NULL;
	if (r < 0 || !link)
		return r == -ENOENT ? 0 : r;
	slash = strrchr(link, '/');
	if (!slash)
		return 0;
	*slash = '\0';
	above = last_component(link);
	*ret = xprintf("/%s/", strncmp(above, "pci", 3) == 0 ? port : above);
	return 0;
}

/* 1: the device is below the switch, and one of those drivers has it; its name in *ret_driver. */
static int is_guest(struct fix_host *h, const char *device, const char *above, char **ret_driver)
{
	AUTO_FREE char *link = NULL, *driver = NULL;
	const char *name;
	int r = step_device_link(h, device, "", &link);

	if (r == 0 && !strstr(link, above))
		return 0;
	if (r == 0)
		r = step_device_link(h, device, "/driver", &driver);
	if (r < 0 || !driver)
		return r == -ENOENT ? 0 : r;
	name = last_component(driver);
	if (!driver_is_for_guests(name))
		return 0;
	*ret_driver = xstrdup(name);
	return 1;
}

int step_check_guests(struct fix_host *h, const struct step *s)
{
	AUTO_FREE char *above = NULL, *driver = NULL;
	char **names;
	size_t n;
	int r = find_switch(h, s->target, &above);

	if (r < 0 || !above)
		return r;
	r = host_list(h, STEP_DEVICES, &names, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = is_guest(h, names[i], above, &driver);
		if (r > 0)
			r = err_set(
				EBUSY,
				"%s: %s stays as it is: %s below the same switch is bound to %s, "
				"and can be a virtual machine's, which ACS keeps from other devices",
				s->target, s->at, names[i], driver);
	}
	source_free_names(names, n);
	return r;
}
