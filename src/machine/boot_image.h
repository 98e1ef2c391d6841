/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unified kernel images (type 2 of the Boot Loader Specification): EFI programs with a command line
 * inside.
 */
#pragma once

/*
 * The command line of an image that is open to read: what its sections .cmdline hold, of which
 * there is one for each profile, with a blank between them and no line breaks. The caller frees
 * *ret; NULL: there is no such section, or the file is not such an image, or is damaged. 0, or the
 * negative errno of reading it.
 */
int boot_image_words(int fd, char **ret);
