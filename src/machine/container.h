/* SPDX-License-Identifier: Apache-2.0 */
/* How certain it is that this is a container. No I/O. */
#pragma once

#include "machine/machine.h"

/*
 * The only sign of a container is a file that a runtime leaves; disk images made from a container
 * have it too.
 */
bool container_is_guess(const struct machine *m);
/* The container has device nodes for only some of the driver's GPUs. */
bool container_lacks_gpus(const struct machine *m);
/* "/.dockerenv", for a guess. */
const char *container_sign(const struct machine *m, char *buf, size_t size);
