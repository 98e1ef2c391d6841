/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <errno.h>

int fd_read_all(int fd, size_t max, char **ret, size_t *ret_size)
{
	AUTO_FREE char *data = NULL;
	size_t size = 0, room = 0;

	for (;;) {
		ssize_t n;

		if (size + 1 >= room) {
			room = room ? 2 * room : 4096;
			data = xrealloc(data, room, 1);
		}
		n = read(fd, data + size, room - size - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
		if (size > max)
			return -EFBIG;
	}
	data[size] = '\0';
	*ret = TAKE_PTR(data);
	*ret_size = size;
	return 0;
}
