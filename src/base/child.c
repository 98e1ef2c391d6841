/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- its environment ---- */

static size_t count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* Whether `change`, NAME=VALUE or NAME, is about the variable. */
static bool is_about(const char *change, const char *variable)
{
	size_t n = strcspn(change, "=");

	return strncmp(change, variable, n) == 0 && variable[n] == '=';
}

static bool is_changed(char *const *changes, const char *variable)
{
	for (; changes && *changes; changes++)
		if (is_about(*changes, variable))
			return true;
	return false;
}

/* This process's with the changes; the strings are borrowed. NULL: no memory. */
static char **environment_with(char *const *changes)
{
	char **all = calloc(count(environ) + count(changes) + 1, sizeof(*all));
	size_t n = 0;

	if (!all)
		return NULL;
	for (char **e = environ; e && *e; e++)
		if (!is_changed(changes, *e))
			all[n++] = *e;
	for (; changes && *changes; changes++)
		if (strchr(*changes, '='))
			all[n++] = *changes;
	return all;
}

/* ---- its files ---- */

static void take_files(posix_spawn_file_actions_t *files, int socket, int file, int output)
{
	posix_spawn_file_actions_adddup2(files, socket, CHILD_SOCKET);
	if (file >= 0)
		posix_spawn_file_actions_adddup2(files, file, CHILD_FILE);
	posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (output >= 0)
		posix_spawn_file_actions_adddup2(files, output, STDOUT_FILENO);
	else
		posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
}

/* Above all that the child's files become, so that none is overwritten before it is taken. */
static int lift(int fd)
{
	int r = fcntl(fd, F_DUPFD_CLOEXEC, CHILD_FILE + 1);

	return r < 0 ? err_sys(errno, "a file for a child process") : r;
}

/* ---- start ---- */

static int spawn(const struct child_request *c, int socket, int file, pid_t *ret)
{
	const char *program = c->program ? c->program : "/proc/self/exe";
	char name[] = "onehop";
	char *argv[] = {name, (char *)c->command, NULL};
	AUTO_FREE char **environment = environment_with(c->changes);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t signals;
	int r;

	if (!environment)
		return err_set(ENOMEM, "no memory for a child process");
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	take_files(&files, socket, file, c->output);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	r = posix_spawn(ret, program, &files, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return r == 0 ? 0 : err_sys(r, "%s %s cannot be started", program, c->command);
}

int child_start(const struct child_request *c, int *ret_socket, pid_t *ret_pid)
{
	AUTO_CLOSE int own = -1, its = -1, lifted = -1, file = -1;
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(errno, "a socket for a child process");
	own = ends[0];
	its = ends[1];
	lifted = lift(its);
	if (lifted < 0)
		return lifted;
	file = c->file < 0 ? -1 : lift(c->file);
	if (c->file >= 0 && file < 0)
		return file;
	r = spawn(c, lifted, file, ret_pid);
	if (r < 0)
		return r;
	*ret_socket = TAKE_FD(own);
	return 0;
}
