/* SPDX-License-Identifier: Apache-2.0 */
/* Names from pci.ids, by libpci. Reading the file costs 10 ms, so it happens on the first question.
 */
#include "machine/pci.h"

#include <pci/pci.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct pci_access *names;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void be_quiet(char *format, ...)
{
	(void)format;
}

/* pci_alloc without pci_init: names need no device access, and libpci's error() would end the
 * process. */
static struct pci_access *open_names(void)
{
	if (!names) {
		names = pci_alloc();
		names->warning = be_quiet;
		names->debug = be_quiet;
	}
	return names;
}

const char *pci_device_name(const struct pci_function *f, char *buf, size_t size)
{
	if (!fact_known(f->vendor) || !fact_known(f->device)) {
		snprintf(buf, size, "unknown device");
		return buf;
	}
	pthread_mutex_lock(&lock);
	pci_lookup_name(open_names(), buf, (int)size,
			PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE | PCI_LOOKUP_NO_HWDB,
			(int)f->vendor.value, (int)f->device.value);
	pthread_mutex_unlock(&lock);
	return buf;
}
