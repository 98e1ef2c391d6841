/* SPDX-License-Identifier: Apache-2.0 */
#include "base/child.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
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

static bool is_listed(char *const *changes, const char *variable)
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
		if (!is_listed(changes, *e))
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

/* No signal is blocked or ignored in it. `group`: POSIX_SPAWN_SETPGROUP or SETSID. 0 or an errno. */
static int spawn(const char *program, char *const *argv, char *const *environment,
		 const posix_spawn_file_actions_t *files, int group, pid_t *ret)
{
	posix_spawnattr_t attributes;
	sigset_t signals;
	int r;

	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes,
				 (short)(group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	r = posix_spawn(ret, program, files, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	return r;
}

static int spawn_self(const struct child_request *c, int socket, int file, pid_t *ret)
{
	const char *program = c->program ? c->program : "/proc/self/exe";
	char name[] = "onehop";
	char *argv[] = {name, (char *)c->command, NULL};
	AUTO_FREE char **environment = environment_with(c->changes);
	posix_spawn_file_actions_t files;
	int r;

	if (!environment)
		return err_set(ENOMEM, "no memory for a child process");
	posix_spawn_file_actions_init(&files);
	take_files(&files, socket, file, c->output);
	r = spawn(program, argv, environment, &files, POSIX_SPAWN_SETPGROUP, ret);
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
	r = spawn_self(c, lifted, file, ret_pid);
	if (r < 0)
		return r;
	*ret_socket = TAKE_FD(own);
	return 0;
}

/* ---- its end ---- */

int child_wait(pid_t pid, uint64_t limit_us, int *ret_status)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	const uint64_t begun = clock_us();

	for (;;) {
		pid_t r = waitpid(pid, ret_status, WNOHANG);

		if (r == pid)
			return 0;
		if (r < 0 && errno != EINTR)
			return -ECHILD;
		if (clock_us() - begun >= limit_us)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

/* ---- what a program prints ---- */

#define HALF (CHILD_OUTPUT_MAX / 2)

struct capture {
	int fd; /* the end of the pipe that is read, O_NONBLOCK; -1: everybody closed the other */
	struct strbuf text;
	size_t left_out; /* bytes that were after the first HALF */
};

static void capture_done(struct capture *c)
{
	if (c->fd >= 0)
		close(c->fd);
	strbuf_done(&c->text);
}

/* Keeps the head and the last `tail` bytes. */
static void shorten(struct capture *c, size_t tail)
{
	size_t cut = c->text.len > HALF + tail ? c->text.len - HALF - tail : 0;

	if (!cut)
		return;
	memmove(c->text.text + HALF, c->text.text + HALF + cut, tail + 1);
	c->text.len -= cut;
	c->left_out += cut;
}

/* What is there to read now, but no more than a pipe holds: who never stops would never be done. */
static void take_output(struct capture *c)
{
	char buf[16 << 10];

	for (unsigned i = 0; i < 64 && c->fd >= 0; i++) {
		ssize_t n = read(c->fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			close(TAKE_FD(c->fd));
			return;
		}
		strbuf_add(&c->text, buf, (size_t)n);
		if (c->text.len > 4 * CHILD_OUTPUT_MAX)
			shorten(c, HALF);
	}
}

static void give_output(struct capture *c, struct strbuf *output)
{
	size_t head;

	shorten(c, HALF);
	for (size_t i = 0; i < c->text.len; i++)
		if (!c->text.text[i])
			c->text.text[i] = '?';
	head = c->left_out ? HALF : c->text.len;
	strbuf_add(output, strbuf_str(&c->text), head);
	if (c->left_out)
		strbuf_printf(output, "\n[%zu bytes left out]\n", c->left_out);
	strbuf_add(output, strbuf_str(&c->text) + head, c->text.len - head);
}

/* ---- to the end of a program ---- */

#define TERM_NS                                                                                    \
	((uint64_t)5 * 1000000000) /* from SIGTERM to SIGKILL, and from there to giving up */
#define NAP_MS   20                /* without pidfd_open, which Linux has since 5.3 */
#define WAIT_MS  1000
#define NO_LIMIT UINT64_MAX

/*
 * Exited, but not yet waited for, so that its number stays its own. Also if there is nothing to
 * wait for because the caller ignores SIGCHLD: collect() says so.
 */
static bool has_exited(pid_t pid)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return errno != EINTR;
	return info.si_pid == pid;
}

/* Readable once the program has exited. -1: this kernel has no such descriptors. */
static int open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, pid, 0);
#else
	(void)pid;
	return -1;
#endif
}

/* Until there is output, the program exits, or the limit is near. */
static void wait_for_change(int output, int exit, uint64_t limit_ns)
{
	struct pollfd p[] = {{.fd = output, .events = POLLIN}, {.fd = exit, .events = POLLIN}};
	uint64_t now = clock_ns(), left_ms = limit_ns > now ? (limit_ns - now) / 1000000 + 1 : 0;
	uint64_t most_ms = exit < 0 ? NAP_MS : WAIT_MS;

	poll(p, 2, (int)(left_ms < most_ms ? left_ms : most_ms));
}

/* `all`: waits also for whoever else holds its output. False: the limit came first. */
static bool wait_until(pid_t pid, struct capture *c, uint64_t limit_ns, bool all)
{
	AUTO_CLOSE int pidfd = open_pidfd(pid);

	for (;;) {
		bool exited = has_exited(pid); /* before reading, so that its last words are read */

		take_output(c);
		if (exited && (!all || c->fd < 0))
			return true;
		if (clock_ns() >= limit_ns)
			return false;
		wait_for_change(c->fd, exited ? -1 : pidfd, limit_ns);
	}
}

/* Its whole group, stopped ones too. False: it cannot even be killed. */
static bool end_group(pid_t pid, struct capture *c)
{
	kill(-pid, SIGTERM);
	kill(-pid, SIGCONT);
	if (wait_until(pid, c, clock_ns() + TERM_NS, true))
		return true;
	kill(-pid, SIGKILL);
	return wait_until(pid, c, clock_ns() + TERM_NS, false);
}

static int collect(pid_t pid, int *ret_status)
{
	siginfo_t info = {0};

	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0)
		if (errno != EINTR)
			return err_sys(errno, "wait for a program");
	*ret_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	return 0;
}

/* The time is over. */
static int end_late(const char *program, unsigned deadline_s, pid_t pid, struct capture *c)
{
	int status = 0, r;

	if (!end_group(pid, c))
		return err_set(ETIMEDOUT, "%s did not exit within %u s and cannot be killed",
			       program, deadline_s);
	r = collect(pid, &status);
	return r < 0 ? r
		     : err_set(ETIMEDOUT, "%s did not exit within %u s and was killed", program,
			       deadline_s);
}

static uint64_t limit_of(unsigned deadline_s)
{
	return deadline_s ? clock_ns() + (uint64_t)deadline_s * 1000000000 : NO_LIMIT;
}

static int run_to_end(const char *program, unsigned deadline_s, pid_t pid, struct capture *c,
		      int *ret_status)
{
	if (wait_until(pid, c, limit_of(deadline_s), false))
		return collect(pid, ret_status);
	return end_late(program, deadline_s, pid, c);
}

static const char *const clean_environment[] = {
	"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
	"HOME=/root",
	"LC_ALL=C.UTF-8",
	"DEBIAN_FRONTEND=noninteractive",
	"SYSTEMD_PAGER=",
	"TERM=dumb",
	NULL,
};

/* The clean one, and variables of this process; the strings are borrowed. NULL: no memory. */
static char **clean_environment_with(const char *const *keep)
{
	char *const *clean = (char *const *)clean_environment;
	char **all = calloc(count(clean) + count(environ) + 1, sizeof(*all));
	size_t n = 0;

	if (!all)
		return NULL;
	for (; *clean; clean++)
		all[n++] = *clean;
	for (char **e = environ; e && *e; e++)
		if (is_listed((char *const *)keep, *e))
			all[n++] = *e;
	return all;
}

static int spawn_program(const char *program, const char *const *argv, const char *const *keep,
			 int output, pid_t *ret)
{
	AUTO_FREE char **environment = clean_environment_with(keep);
	posix_spawn_file_actions_t files;
	int r;

	if (!environment)
		return err_set(ENOMEM, "no memory for %s", program);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
	r = spawn(program, (char *const *)argv, environment, &files, POSIX_SPAWN_SETSID, ret);
	posix_spawn_file_actions_destroy(&files);
	return r == 0 ? 0 : err_sys(r, "%s cannot be started", program);
}

int child_run(const char *program, const char *const *argv, unsigned deadline_s,
	      struct strbuf *output, int *ret_status)
{
	CLEANUP(capture_done) struct capture c = {.fd = -1};
	AUTO_CLOSE int its = -1, lifted = -1;
	int ends[2], r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(errno, "a pipe for %s", program);
	c.fd = ends[0];
	its = ends[1];
	lifted = lift(its);
	if (lifted < 0)
		return lifted;
	if (fcntl(c.fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(errno, "a pipe for %s", program);
	r = spawn_program(program, argv, NULL, lifted, &pid);
	if (r < 0)
		return r;
	close(TAKE_FD(its));
	close(TAKE_FD(lifted));
	r = run_to_end(program, deadline_s, pid, &c, ret_status);
	give_output(&c, output);
	return r;
}

/* ---- one that is watched ---- */

#define TICK_NS ((uint64_t)1000000000)

static int cancel(const char *program, pid_t pid, struct capture *c)
{
	int status = 0, r;

	if (!end_group(pid, c))
		return err_set(ECANCELED, "%s was to be stopped, but cannot be killed", program);
	r = collect(pid, &status);
	return r < 0 ? r : err_set(ECANCELED, "%s was stopped as requested", program);
}

int child_run_watched(const char *program, const char *const *argv, const struct child_watch *w,
		      int *ret_status)
{
	struct capture none = {.fd = -1};
	AUTO_CLOSE int lifted = lift(w->output);
	const uint64_t limit = limit_of(w->deadline_s);
	pid_t pid;
	int r;

	if (lifted < 0)
		return lifted;
	r = spawn_program(program, argv, w->keep, lifted, &pid);
	if (r < 0)
		return r;
	for (;;) {
		uint64_t next = clock_ns() + TICK_NS;

		if (wait_until(pid, &none, next < limit ? next : limit, false))
			return collect(pid, ret_status);
		if (clock_ns() >= limit)
			return end_late(program, w->deadline_s, pid, &none);
		if (w->tick && !w->tick(w->context))
			return cancel(program, pid, &none);
	}
}
