/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/rdma_worker_impl.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "device/message.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEND_LIMIT_US 5000000
#define LIST_LIMIT_US 20000000 /* providers of many NICs */
#define END_LIMIT_US  1000000

static int start(struct rdma_worker *w, const char *program)
{
	const struct child_request request = {.program = program,
					      .command = RDMA_WORKER_COMMAND,
					      .output = STDERR_FILENO,
					      .file = -1};

	return w->pid > 0 ? 0 : child_start(&request, &w->socket, &w->pid);
}

/* A process that the kernel cannot end (a driver that hangs) is left behind. */
static bool reap(struct rdma_worker *w, int *ret_status)
{
	return child_wait(w->pid, END_LIMIT_US, ret_status) == 0;
}

static void forget(struct rdma_worker *w)
{
	if (w->socket >= 0)
		close(w->socket);
	*w = RDMA_WORKER_NONE;
}

void rdma_worker_end(struct rdma_worker *w)
{
	int status;

	if (w->pid <= 0)
		return;
	close(w->socket);
	w->socket = -1;
	if (!reap(w, &status)) {
		kill(w->pid, SIGKILL);
		reap(w, &status);
	}
	forget(w);
}

/* "it was killed by signal 11 (Segmentation fault)" */
static void say_death(struct rdma_worker *w, char *buf, size_t size)
{
	int status = 0;

	if (reap(w, &status) && WIFSIGNALED(status))
		snprintf(buf, size, "it was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(buf, size, "it exited without an answer");
	forget(w);
}

static int send_order(struct rdma_worker *w, const char *program, const struct rdma_order *order)
{
	struct iovec part = {(void *)order, sizeof(*order)};
	int r = start(w, program);

	if (r < 0)
		return r;
	if (message_send(w->socket, &part, 1, -1, deadline_in(SEND_LIMIT_US)) < 0) {
		char text[96];

		say_death(w, text, sizeof(text));
		return err_set(ESRCH, "the process that calls libibverbs: %s", text);
	}
	return 0;
}

int rdma_worker_list(struct rdma_worker *w, const char *program, struct port_listing *ret)
{
	const struct rdma_order order = {.kind = RDMA_ORDER_LIST};
	int r = send_order(w, program, &order);
	char text[96];
	ssize_t n;

	if (r < 0)
		return r;
	n = message_receive(w->socket, ret, sizeof(*ret), NULL, deadline_in(LIST_LIMIT_US));
	if (n == sizeof(*ret))
		return 0;
	if (n == -ETIMEDOUT) {
		kill(w->pid, SIGKILL);
		say_death(w, text, sizeof(text));
		return err_set(ETIMEDOUT, "listing the NICs hangs: no answer for %d s",
			       LIST_LIMIT_US / 1000000);
	}
	say_death(w, text, sizeof(text));
	return err_set(ESRCH, "the process that lists the NICs: %s", text);
}

static void hear(struct rdma_worker *w, double quiet_s)
{
	w->since_s = clock_s();
	w->until_s = w->since_s + quiet_s;
}

static int begin(struct rdma_worker *w, const char *program, const struct rdma_order *order)
{
	int r = send_order(w, program, order);

	hear(w, PULSE_QUIET_S);
	return r;
}

int rdma_worker_begin(struct rdma_worker *w, const char *program, const struct loopback_job *job)
{
	const struct rdma_order order = {.kind = RDMA_ORDER_LOOPBACK, .loopback = *job};

	return begin(w, program, &order);
}

int rdma_worker_begin_link(struct rdma_worker *w, const char *program, const struct link_order *o)
{
	const struct rdma_order order = {.kind = RDMA_ORDER_LINK, .link = *o};

	return begin(w, program, &order);
}

/* Takes an answer of this size; a worker that died is zeros and a failure. */
static bool finish(struct rdma_worker *w, void *ret, size_t size, struct rdma_failure *f)
{
	ssize_t n = message_receive(w->socket, ret, size, NULL, deadline_in(SEND_LIMIT_US));
	char text[96];

	if (n == (ssize_t)size)
		return true;
	if (n == sizeof(uint8_t)) {
		hear(w, *(const uint8_t *)ret);
		return false;
	}
	memset(ret, 0, size);
	say_death(w, text, sizeof(text));
	rdma_fail(f, RDMA_STEP_WORKER, ESRCH, "the measuring process: %s", text);
	return true;
}

static void give_up(struct rdma_worker *w, struct rdma_failure *f)
{
	double silent_s = clock_s() - w->since_s;
	char text[96];

	kill(w->pid, SIGKILL);
	say_death(w, text, sizeof(text));
	rdma_fail(f, RDMA_STEP_WORKER, ETIMEDOUT,
		  "no sign of life for %.0f s, and the measuring process was killed", silent_s);
}

bool rdma_worker_finish(struct rdma_worker *w, struct loopback_result *ret)
{
	return finish(w, ret, sizeof(*ret), &ret->failure);
}

bool rdma_worker_finish_link(struct rdma_worker *w, struct link_answer *ret)
{
	return finish(w, ret, sizeof(*ret), &ret->failure);
}

void rdma_worker_give_up(struct rdma_worker *w, struct loopback_result *ret)
{
	*ret = (struct loopback_result){0};
	give_up(w, &ret->failure);
}

void rdma_worker_give_up_link(struct rdma_worker *w, struct link_answer *ret)
{
	*ret = (struct link_answer){0};
	give_up(w, &ret->failure);
}
