/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

int memory_file(uint64_t size)
{
	struct rlimit limit;
	int fd, e;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size)
		return -EFBIG;
	fd = memfd_create("onehop", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		return fd;
	e = errno;
	if (fd >= 0)
		close(fd);
	return -e;
}
