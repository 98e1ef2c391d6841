/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of abstract sockets, which last as long as somebody has the socket, and can be looked up
 * without being answered.
 */
#include "device/presence.h"

#include "device/rendezvous_impl.h"
#include "device/socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

static int place_of(const char *key, int rank, struct socket_place *ret)
{
	char name[RENDEZVOUS_KEY_MAX + 16];
	const int n = snprintf(name, sizeof(name), "%s/%d", key, rank);

	if (n < 0 || (size_t)n >= sizeof(name))
		return -EINVAL;
	rendezvous_unix_place(name, ret);
	return 0;
}

int presence_announce(const char *key, int rank)
{
	struct socket_place p;
	int fd, r = place_of(key, rank, &p);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&p.address, p.size) == 0)
		return fd;
	r = -errno;
	close_fd(&fd);
	return r;
}

int presence_count(const char *key, int n)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), count = 0;
	struct socket_place p;

	for (int i = 0; fd >= 0 && i < n; i++)
		if (place_of(key, i, &p) == 0 &&
		    connect(fd, (const struct sockaddr *)&p.address, p.size) == 0)
			count++;
	close_fd(&fd);
	return count;
}
