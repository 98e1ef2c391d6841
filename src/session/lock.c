/* SPDX-License-Identifier: Apache-2.0 */
#include "session/lock.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The kernel releases the name when its holder ends: no file can be left behind or forged. */
static socklen_t lock_address(const char *name, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(ret->sun_path + 1));
}

static pid_t lock_holder(const struct sockaddr_un *address, socklen_t size)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred who = {0};
	socklen_t n = sizeof(who);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, size) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
		return 0;
	return who.pid;
}

int session_lock(const char *name, int *ret_fd)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	socklen_t size = lock_address(name, &address);
	pid_t holder;

	if (fd < 0)
		return err_sys(errno, "make a socket");
	if (bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 16) == 0) {
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
	if (errno != EADDRINUSE)
		return err_sys(errno, "take the lock %s", name);
	holder = lock_holder(&address, size);
	if (!holder)
		return err_set(EBUSY, "another onehop tests or measures on this machine");
	return err_set(
		EBUSY,
		"another onehop tests or measures on this machine, process %d; two at once would disturb each other's figures",
		(int)holder);
}
