/* SPDX-License-Identifier: Apache-2.0 */
/* The unified kernel images of the boot partitions (machine/boot_image.h), whose command lines are inside. */
#pragma once

#include "fix/host.h"

struct arena;

struct boot_image {
	const char *path; /* below the root, "boot/EFI/Linux/6.9.efi" */
	const char *name; /* the end of path */
	const char *text; /* its command line, in the form of an entry: "options root=... quiet" */
};

/* Of a boot partition, where boot menus look for them. */
#define BOOT_IMAGE_FOLDER "EFI/Linux"
bool boot_image_is(const char *name);
/* Those with a command line, in the arena. 0, or a negative errno with a sentence: one could not be read. */
int boot_images_read(struct fix_host *h, struct arena *a, struct boot_image **ret, size_t *ret_n);
