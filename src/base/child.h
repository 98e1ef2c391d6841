/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes that a socket leads to: this program again, to do what may hang. */
#pragma once

#include <sys/types.h>

#define CHILD_SOCKET 3 /* the child's end of the socket */
#define CHILD_FILE   4

struct child_request {
	const char *program; /* NULL: this very one */
	const char *command; /* its only argument */
	int output;          /* file descriptor that it prints to; -1: nowhere */
	int file;            /* what its CHILD_FILE is; -1: nothing */
	char *const *
		changes; /* NAME=VALUE, or NAME to unset, for its environment; NULL-ended, or NULL */
};

/*
 * Starts it in a process group of its own: Ctrl-C is for this process, which says what becomes of its
 * children. It reads nothing, and no signal is blocked or ignored in it. The socket is SOCK_SEQPACKET;
 * the caller closes it, and waits for the process. 0 or a negative errno with a sentence.
 */
int child_start(const struct child_request *c, int *ret_socket, pid_t *ret_pid);
