/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a dkms.conf: what is said of it is well-formed, and stays so when more is read. */
#include "base/alloc.h"
#include "unlock/delivery_conf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	char *text = arena_strndup(a, (const char *)data, size);
	struct dkms_conf c = {0};
	const char *dest;

	dkms_conf_read(text, a, &c);
	dkms_conf_read(text, a, &c);
	dest = dkms_conf_dest(&c, "nvidia");
	if (c.module_n > DKMS_MODULES || (dest && strchr(dest, '\n') && dkms_is_plain(dest)))
		abort();
	for (size_t i = 0; i < c.patch_n; i++)
		if (!*c.patches[i])
			abort();
	arena_free(a);
	return 0;
}
