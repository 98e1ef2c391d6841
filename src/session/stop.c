/* SPDX-License-Identifier: Apache-2.0 */
#include "session/stop.h"

#include "base/err.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int stop_signals_open(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(errno, "signalfd");
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
		close(fd);
		return err_sys(errno, "sigprocmask");
	}
	return fd;
}

bool stop_signals_seen(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&p, 1, 0) == 1;
}
