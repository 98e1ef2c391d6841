/* SPDX-License-Identifier: Apache-2.0 */
#include "session/machine_choice.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "ingest/ingest.h"
#include "ingest/observe.h"
#include "machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Another user's environment is not ours to read, and none of it is not the same as nothing set. */
static int check_readable(int pid)
{
	AUTO_FREE char *path = xprintf("/proc/%d/environ", pid);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd >= 0 && read(fd, &byte, 1) >= 0)
		return 0;
	if (errno == ESRCH)
		return err_set(
			ESRCH,
			"--pid: process %d has no environment: it has ended, or is a thread of the kernel",
			pid);
	return err_set(
		errno,
		"--pid: the environment of process %d cannot be read (%s): run as its user or as "
		"root",
		pid, strerror(errno));
}

int machine_choice_check(const struct machine_choice *c)
{
	if (c->pid && c->from.n)
		return err_set(
			EINVAL,
			"--pid with --from: a recording has no running processes; record them with "
			"`onehop record --pid N`");
	/* Signal 0 asks only whether it exists. */
	if (c->pid && kill(c->pid, 0) < 0 && errno == ESRCH)
		return err_set(ESRCH, "--pid: there is no process %d", c->pid);
	return c->pid ? check_readable(c->pid) : 0;
}

int machine_choice_read_source(const struct machine_choice *c, unsigned parts, struct machine **ret,
			       struct source **ret_source)
{
	struct source *s;
	struct machine *m;
	int r = machine_choice_check(c);

	if (r < 0)
		return r;
	r = ingest_machine_source(c->from.items, c->from.n, c->host, c->pid,
				  c->no_store ? parts & ~MACHINE_OBSERVED : parts, c->ahead, &m,
				  &s);
	if (r < 0)
		return r;
	r = observe_files(c->observed.items, c->observed.n, m);
	if (r < 0) {
		machine_free(m);
		source_free(s);
		return r;
	}
	*ret = m;
	*ret_source = s;
	return 0;
}

int machine_choice_read(const struct machine_choice *c, unsigned parts, struct machine **ret)
{
	struct source *s;
	int r = machine_choice_read_source(c, parts, ret, &s);

	if (r == 0)
		source_free(s);
	return r;
}
