/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration space: capability lists that loop, overlap and lead astray. */
#include "machine/config_space.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pci_function f = {0};
	uint8_t *exact = malloc(size ? size : 1); /* so that a read behind the end is seen */

	if (!exact)
		return 0;
	memcpy(exact, data, size);
	config_space_decode(&f, exact, size, "unread");
	free(exact);
	return 0;
}
