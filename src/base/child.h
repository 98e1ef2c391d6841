/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes: this program again, to do what may hang; and programs of the host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct strbuf;

#define CHILD_SOCKET 3 /* the child's end of the socket */
#define CHILD_FILE   4

struct child_request {
	const char *program; /* NULL: this very one */
	const char *command; /* its only argument */
	int output;          /* file descriptor that it prints to; -1: nowhere */
	int file;            /* what its CHILD_FILE is; -1: nothing */
	/* NAME=VALUE, or NAME to unset, for its environment; NULL-ended, or NULL */
	char *const *changes;
};

/*
 * Starts it in a process group of its own: Ctrl-C is for this process, which says what becomes of
 * its children. It reads nothing, and no signal is blocked or ignored in it. The socket is
 * SOCK_SEQPACKET; the caller closes it, and waits for the process. 0 or a negative errno with a
 * sentence.
 */
int child_start(const struct child_request *c, int *ret_socket, pid_t *ret_pid);

/*
 * Waits until a child has ended, at most for the limit (0: only looks). 0, and *ret_status is that
 * of waitpid(2);
 * -ETIMEDOUT: it still runs, in the worst case for ever, because a driver that hangs keeps it in
 * the kernel; -ECHILD: it is gone, and how it ended is unknown (this process ignores SIGCHLD). No
 * sentence is set.
 */
int child_wait(pid_t pid, uint64_t limit_us, int *ret_status);

/*
 * Runs a program, by its path, to its end: nothing to read, a clean environment (PATH of the
 * system's folders, C.UTF-8, no questions, no pager), a session of its own, so that neither Ctrl-C
 * nor a lost terminal ends it in the middle. What it prints to both outputs is added to `output`:
 * all of it up to CHILD_OUTPUT_MAX bytes, else its head and its tail; bytes of 0 become '?'.
 *
 * 0, and *ret_status is its exit status, or 128 + the signal that ended it. It counts as ended once
 * it has exited, also if processes that it left keep its output open. After `deadline_s` (0: none)
 * it and what it started are sent SIGTERM, 5 s later SIGKILL: -ETIMEDOUT with a sentence.
 */
#define CHILD_OUTPUT_MAX ((size_t)256 << 10)
int child_run(const char *program, const char *const *argv, unsigned deadline_s,
	      struct strbuf *output, int *ret_status);

/*
 * The same with its output in a file, for what runs long. `tick` (may be NULL) is called about once
 * a second; false: it is to end now, -ECANCELED.
 */
struct child_watch {
	int output; /* file descriptor that it prints to */
	unsigned deadline_s;
	/* Names of variables of this process that it gets too; NULL-ended, or NULL: none. */
	const char *const *keep;
	bool (*tick)(void *context);
	void *context;
};

int child_run_watched(const char *program, const char *const *argv, const struct child_watch *w,
		      int *ret_status);
