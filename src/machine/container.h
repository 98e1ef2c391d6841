/* SPDX-License-Identifier: Apache-2.0 */
/* How sure it is that this is a container. Pure. */
#pragma once

#include "machine/machine.h"

/* Nothing but a file that a runtime leaves says that this is a container; disk images that were made
 * from a container's have it too. */
bool container_is_guess(const struct machine *m);
/* It was given device nodes for some of the GPUs that the driver runs. */
bool container_lacks_gpus(const struct machine *m);
/* "/.dockerenv", for a guess. */
const char *container_sign(const struct machine *m, char *buf, size_t size);
