/* SPDX-License-Identifier: Apache-2.0 */
/* How much room there is. */
#include "unlock/delivery_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

int disk_free(const char *root, const char *path, int64_t *ret_bytes, uint64_t *ret_device)
{
	AUTO_FREE char *at = xprintf("%s/%s", root, path);
	size_t keep = strlen(root);
	struct statvfs v;
	struct stat st;

	while (statvfs(at, &v) < 0 || stat(at, &st) < 0) {
		char *slash = strrchr(at + keep, '/');

		if (errno != ENOENT || !slash)
			return -errno;
		*slash = '\0';
	}
	*ret_bytes = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
	*ret_device = st.st_dev;
	return 0;
}
