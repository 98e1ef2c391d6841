/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the processes that run collectives, listens to them, and kills them when they hang. */
#include "bench/collective_impl.h"

#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "device/message.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEND_LIMIT_US 5000000
#define LOG_MAX_BYTES (64 << 20)

struct child {
	pid_t pid;  /* 0: not started, or waited for */
	int socket; /* -1: closed */
	int log;    /* what NCCL writes; -1: none */
	bool ended; /* said so */
	struct collective_step step;
	uint64_t deadline_us;
};

struct runner {
	const struct collective_run *run;
	const struct nccl_listener *listener;
	struct child *children;
	size_t n;
	struct nccl_message message;
};

/* ---- starting ---- */

/* How it ended; a process that the kernel cannot end (a driver that hangs) is left behind. */
static bool reap(struct child *c, int *ret_status)
{
	int r = child_wait(c->pid, SEND_LIMIT_US, ret_status);

	if (r != -ETIMEDOUT)
		c->pid = 0;
	return r == 0;
}

/* "all-reduce, timing, 1024 bytes in place" */
static void step_text(const struct collective_step *s, char *buf, size_t size)
{
	if (s->bytes)
		snprintf(buf, size, "%s, %llu bytes%s", s->text, (unsigned long long)s->bytes,
			 s->in_place ? " in place" : "");
	else
		snprintf(buf, size, "%s", s->text);
}

static int rank_of(const struct runner *u, const struct child *c)
{
	return u->run->processes ? (int)(c - u->children) : u->run->ranks.rank;
}

static int died(struct runner *u, struct child *c)
{
	const char *reason = NULL;
	char step[128];
	int status = 0;

	step_text(&c->step, step, sizeof(step));
	if (reap(c, &status) && WIFSIGNALED(status))
		reason = strsignal(WTERMSIG(status));
	return err_set(ESRCH, "the process of rank %d ended (%s) during %s", rank_of(u, c),
		       reason ? reason : "without a message", step);
}

static void extend_deadline(struct runner *u, struct child *c)
{
	c->deadline_us = deadline_in((uint64_t)(u->run->limit_s * 1e6));
}

/* NCCL and the driver may print: not among the figures. */
static int start_process(const struct collective_run *run, struct child *c)
{
	struct child_request request = {.program = run->program,
					.command = NCCL_WORKER_COMMAND,
					.output = STDERR_FILENO,
					.changes = run->variables};

	c->log = request.file = memfd_create("nccl-log", MFD_CLOEXEC);
	if (c->log < 0)
		return err_sys(errno, "a file for NCCL's log");
	return child_start(&request, &c->socket, &c->pid);
}

static int start_child(struct runner *u, struct child *c, const struct nccl_order *order)
{
	struct iovec part = {(void *)order, sizeof(*order)};
	int r = start_process(u->run, c);
	ssize_t n;

	if (r < 0)
		return r;
	snprintf(c->step.text, sizeof(c->step.text), "%s",
		 collective_plan_uses(&u->run->plan, ENGINE_NCCL) ? "loading libnccl" : "starting");
	extend_deadline(u, c);
	n = message_send(c->socket, &part, 1, -1, deadline_in(SEND_LIMIT_US));
	return n < 0 ? died(u, c) : 0;
}

/* With a process per device, child i is rank i and has device i alone. */
static void give_one_device(const struct collective_run *run, size_t i, struct nccl_order *order)
{
	struct ranks *ranks = &order->ranks;

	order->devices.n = 1;
	order->devices.ordinal[0] = run->devices.ordinal[i];
	order->devices.number[0] = run->devices.number[i];
	*ranks = (struct ranks){.rank = (int)i,
				.size = (int)run->devices.n,
				.local_rank = (int)i,
				.hosts = HOSTS_ONE};
	snprintf(ranks->job, sizeof(ranks->job), "process.%ld", (long)getpid());
}

static int start_children(struct runner *u)
{
	const struct collective_run *run = u->run;
	AUTO_FREE struct nccl_order *order = calloc(1, sizeof(*order));
	int r = 0;

	if (!order)
		return err_set(ENOMEM, "no memory");
	order->plan = run->plan;
	order->devices = run->devices;
	order->ranks = run->ranks;
	order->arm = run->arm;
	order->limit_us = (uint64_t)(run->limit_s * 1e6);
	order->has_tuned = run->tuned != NULL;
	if (run->tuned)
		order->tuned = *run->tuned;
	order->has_library = run->library != NULL;
	snprintf(order->shim, sizeof(order->shim), "%s", run->shim ? run->shim : "");
	snprintf(order->library, sizeof(order->library), "%s", run->library ? run->library : "");
	for (size_t i = 0; r == 0 && i < u->n; i++) {
		if (run->processes)
			give_one_device(run, i, order);
		r = start_child(u, &u->children[i], order);
	}
	return r;
}

/* ---- ending ---- */

static void kill_children(struct runner *u)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->children[i].pid > 0 && !u->children[i].ended)
			kill(u->children[i].pid, SIGKILL);
}

static void close_children(struct runner *u)
{
	int status;

	for (size_t i = 0; i < u->n; i++) {
		struct child *c = &u->children[i];

		cleanup_close(&c->socket);
		cleanup_close(&c->log);
		if (c->pid > 0 && !reap(c, &status))
			kill(c->pid, SIGKILL);
	}
}

static int hangs(struct runner *u, struct child *c)
{
	char step[128];

	step_text(&c->step, step, sizeof(step));
	return err_set(ETIMEDOUT, "rank %d was killed: it took longer than %g s for %s",
		       rank_of(u, c), u->run->limit_s, step);
}

/* ---- listening ---- */

static void tell(struct runner *u, struct child *c)
{
	const struct nccl_listener *l = u->listener;
	const struct nccl_message *m = &u->message;

	if (m->kind == NCCL_SAYS_STEP) {
		c->step = m->u.step;
		if (l->step && c == u->children)
			l->step(l->context, &m->u.step);
	} else if (m->kind == NCCL_SAYS_RANK && l->rank) {
		l->rank(l->context, &m->u.rank);
	} else if (m->kind == NCCL_SAYS_START && l->start) {
		l->start(l->context, &m->u.start);
	} else if (m->kind == NCCL_SAYS_ROW && l->row) {
		l->row(l->context, &m->u.row);
	} else if (m->kind == NCCL_SAYS_TUNED && l->tuned) {
		l->tuned(l->context, &m->u.tuned);
	}
}

static int hear(struct runner *u, struct child *c)
{
	ssize_t n = message_receive(c->socket, &u->message, sizeof(u->message), NULL,
				    deadline_in(SEND_LIMIT_US));

	if (n <= 0)
		return died(u, c);
	extend_deadline(u, c);
	if (u->message.kind != NCCL_SAYS_END) {
		tell(u, c);
		return 0;
	}
	c->ended = true;
	close(c->socket);
	c->socket = -1;
	if (u->message.u.end.result == 0)
		return 0;
	return err_set(-u->message.u.end.result, "%s", u->message.u.end.text);
}

/* Milliseconds until the first deadline of those that still run. */
static int time_left(const struct runner *u, const struct child **ret_first)
{
	uint64_t first = UINT64_MAX, now = clock_us();

	for (size_t i = 0; i < u->n; i++) {
		const struct child *c = &u->children[i];

		if (!c->ended && c->deadline_us < first) {
			first = c->deadline_us;
			*ret_first = c;
		}
	}
	return first <= now ? 0 : (int)((first - now) / 1000 + 1);
}

static size_t running(const struct runner *u, struct pollfd *fds)
{
	size_t n = 0;

	for (size_t i = 0; i < u->n; i++) {
		fds[i] = (struct pollfd){.fd = u->children[i].socket, .events = POLLIN};
		n += !u->children[i].ended;
	}
	fds[u->n] = (struct pollfd){.fd = u->run->stop_fd, .events = POLLIN};
	return n;
}

static int listen_once(struct runner *u, struct pollfd *fds)
{
	const struct child *late = NULL;
	int left = time_left(u, &late), n, r = 0;

	n = poll(fds, u->n + 1, left);
	if (n < 0 && errno != EINTR)
		return err_sys(errno, "poll");
	if (n == 0 && left == 0)
		return hangs(u, &u->children[late - u->children]);
	if (n > 0 && fds[u->n].revents)
		return err_set(EINTR, "interrupted");
	for (size_t i = 0; n > 0 && r == 0 && i < u->n; i++)
		if (fds[i].revents)
			r = hear(u, &u->children[i]);
	return r;
}

static int listen_all(struct runner *u)
{
	AUTO_FREE struct pollfd *fds = calloc(u->n + 1, sizeof(*fds));
	int r = fds ? 0 : err_set(ENOMEM, "no memory");

	while (r == 0 && running(u, fds) > 0)
		r = listen_once(u, fds);
	return r;
}

/* Still written to perhaps, by a process that is being killed. */
static void tell_log(const struct runner *u, const struct child *c)
{
	off_t size = c->log < 0 ? 0 : lseek(c->log, 0, SEEK_END);
	size_t n = size > LOG_MAX_BYTES ? LOG_MAX_BYTES : (size_t)(size > 0 ? size : 0);
	AUTO_FREE char *text = malloc(n + 1);
	ssize_t got = text && n ? pread(c->log, text, n, 0) : 0;

	if (got <= 0)
		return;
	text[got] = '\0';
	u->listener->log(u->listener->context, text, (size_t)got);
}

static void tell_logs(const struct runner *u)
{
	for (size_t i = 0; u->listener->log && i < u->n; i++)
		tell_log(u, &u->children[i]);
}

int collective_run(const struct collective_run *run, const struct nccl_listener *listener)
{
	struct runner u = {
		.run = run,
		.listener = listener,
		.n = run->processes ? run->devices.n : 1,
	};
	int r = collective_plan_check(&run->plan);

	if (r < 0)
		return r;
	u.children = calloc(u.n, sizeof(*u.children));
	if (!u.children)
		return err_set(ENOMEM, "no memory");
	for (size_t i = 0; i < u.n; i++)
		u.children[i].socket = u.children[i].log = -1;
	r = start_children(&u);
	if (r == 0)
		r = listen_all(&u);
	if (r < 0)
		kill_children(&u);
	tell_logs(&u);
	close_children(&u);
	free(u.children);
	return r;
}
