/* SPDX-License-Identifier: Apache-2.0 */
/* Which unified kernel images the boot partitions have, and the command lines inside. */
#include "fix/boot_images.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/text.h"
#include "machine/boot_entry.h"
#include "machine/boot_image.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool boot_image_is(const char *name)
{
	const size_t n = strlen(name), end = strlen(".efi");

	return n > end && *name != '.' && strcasecmp(name + n - end, ".efi") == 0;
}

/* What is not a regular file, no boot loader starts. */
static int read_words(struct fix_host *h, const char *path, char **ret)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r = host_stat(h, path, &st);

	if (r < 0 || !S_ISREG(st.st_mode))
		return r == -ENOENT ? 0 : r;
	r = host_open_read(h, path, &fd);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = boot_image_words(fd, ret);
	return r < 0 ? err_sys(-r, "read /%s", path) : 0;
}

static int read_folder(struct fix_host *h, struct arena *a, const char *folder,
		       struct boot_image **images, size_t *image_n)
{
	char **names = NULL;
	size_t n = 0;
	int r = host_list(h, folder, &names, &n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		AUTO_FREE char *words = NULL;
		const char *path = arena_printf(a, "%s/%s", folder, names[i]);

		r = boot_image_is(names[i]) ? read_words(h, path, &words) : 0;
		if (r == 0 && words)
			*ARENA_PUSH(a, *images, *image_n) =
				(struct boot_image){path, path + strlen(folder) + 1,
						    arena_printf(a, "options %s\n", words)};
	}
	source_free_names(names, n);
	return r == -ENOENT ? 0 : r;
}

int boot_images_read(struct fix_host *h, struct arena *a, struct boot_image **ret, size_t *ret_n)
{
	int r = 0;

	*ret = NULL;
	*ret_n = 0;
	for (size_t i = 0; r == 0 && boot_partitions[i]; i++)
		r = read_folder(h, a, arena_printf(a, "%s/" BOOT_IMAGE_FOLDER, boot_partitions[i]),
				ret, ret_n);
	return r;
}
