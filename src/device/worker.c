/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side: starts the worker, sends it calls, and is never held up by it. */
#include "device/worker.h"

#include "base/array.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "device/message.h"
#include "device/worker_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_US      10000000 /* of a call, beyond its own */
#define OPEN_LIMIT_US 60000000 /* a driver that has to wake eight GPUs takes its time */
#define END_LIMIT_US  3000000  /* of a worker whose socket was closed: to end by itself */
#define KILL_LIMIT_US 1000000
#define VMSTAT_MAX    65536

struct worker_reply {
	struct worker_answer answer;
	unsigned char payload[WORKER_PAYLOAD_MAX];
};

struct worker {
	struct device_set set;
	int socket; /* -1: closed */
	pid_t pid;  /* 0: ended, and nothing is left of it */
	pid_t named_pid;
	uint32_t number;  /* of the last call */
	const char *hung; /* in which call; NULL: it is not */
	char devices[64]; /* "devices 0 1 2" */
	char end[128];    /* how it ended, "ended with exit status 1" */
	bool killed;      /* by this process */
	/* another process or the kernel ended it, which did nothing wrong itself */
	bool from_outside;
	uint64_t oom_kills; /* of the kernel when it was started */
	struct worker_reply reply;
};

static struct worker *worker_of(const struct device_set *s)
{
	return (struct worker *)s;
}

/* ---- how it ends ---- */

/* How many processes the kernel has killed for lack of memory since the boot; 0: unknown. */
static uint64_t count_oom_kills(void)
{
	AUTO_CLOSE int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *text = NULL;
	const char *at;
	size_t n;

	if (fd < 0 || fd_read_all(fd, VMSTAT_MAX, &text, &n) < 0 ||
	    !text_after(text, "oom_kill ", &at, &n))
		return 0;
	return strtoull(at, NULL, 10);
}

/* Signals that a process gets for what it did itself. */
static bool is_own_fault(int number)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		if (faults[i] == number)
			return true;
	return false;
}

/* The kernel does not say who sent a signal. */
static const char *likely_sender(const struct worker *w, int number)
{
	if (w->killed || is_own_fault(number))
		return "";
	if (number != SIGKILL)
		return ", from outside onehop";
	return count_oom_kills() > w->oom_kills
		       ? ", probably by the kernel, which ran out of memory"
		       : ", from outside onehop: by a person or a program";
}

static void note_end(struct worker *w, int status)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	w->from_outside = number && !w->killed && !is_own_fault(number);
	if (number)
		snprintf(w->end, sizeof(w->end), "was killed by signal %d (%s)%s", number,
			 strsignal(number), likely_sender(w, number));
	else
		snprintf(w->end, sizeof(w->end), "ended with exit status %d", WEXITSTATUS(status));
}

/*
 * In a program that ignores or reaps its children, how it ended remains unknown. -ETIMEDOUT: it has
 * not.
 */
static int reap_within(struct worker *w, uint64_t limit_us)
{
	int status, r;

	if (w->pid == 0)
		return 0;
	r = child_wait(w->pid, limit_us, &status);
	if (r == -ETIMEDOUT)
		return r;
	if (r == 0)
		note_end(w, status);
	else
		snprintf(w->end, sizeof(w->end), "ended for an unknown reason");
	w->pid = 0;
	return 0;
}

static void close_socket(struct worker *w)
{
	if (w->socket >= 0)
		close(w->socket);
	w->socket = -1;
}

static int kill_within(struct worker *w, uint64_t limit_us)
{
	w->killed = true;
	if (reap_within(w, 0) < 0)
		kill(w->pid, SIGKILL);
	close_socket(w);
	return reap_within(w, limit_us);
}

/*
 * The socket is closed: says how the worker ended. After worker_kill that is this process's doing,
 * however it ended.
 */
static int gone(struct worker *w, const char *op)
{
	close_socket(w);
	if (reap_within(w, KILL_LIMIT_US) < 0)
		return err_set(ESRCH, "%s: worker %d (%s) closed its socket", op, (int)w->named_pid,
			       w->devices);
	return err_set(w->from_outside && !w->killed ? EOWNERDEAD : ESRCH, "%s: worker %d (%s) %s",
		       op, (int)w->named_pid, w->devices, w->end);
}

static int late(struct worker *w, const char *op, uint64_t limit_us)
{
	w->hung = op;
	return err_set(ETIMEDOUT, "%s: no answer from worker %d (%s) within %llu ms", op,
		       (int)w->named_pid, w->devices, (unsigned long long)(limit_us / 1000));
}

/* What it says makes no sense, so nothing more is asked of it. */
static int broken(struct worker *w, const char *op, const char *what)
{
	kill_within(w, KILL_LIMIT_US);
	return err_set(EPROTO, "%s: worker %d (%s) %s", op, (int)w->named_pid, w->devices, what);
}

/* ---- calls ---- */

/* One call and what came back. */
struct exchange {
	struct worker_call call;
	const void *payload; /* call.payload bytes */
	int pass;            /* file descriptor to send along; -1: none */
	uint64_t own_us;     /* limit of the call itself, on top of the worker's */
	struct worker_answer answer;
	int passed; /* file descriptor that came; -1: none */
};

#define EXCHANGE(name, ...)                                                                        \
	{                                                                                          \
		.call = {.op = WORKER_##name, .u = {__VA_ARGS__}}, .pass = -1, .passed = -1        \
	}

static uint64_t add_limits(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int io_error(struct worker *w, const char *op, ssize_t err, uint64_t limit_us)
{
	if (err == -ETIMEDOUT)
		return late(w, op, limit_us);
	if (err == -EPIPE || err == -ECONNRESET)
		return gone(w, op);
	return err_sys((int)-err, "%s: worker %d (%s)", op, (int)w->named_pid, w->devices);
}

static int send_call(struct worker *w, struct exchange *x)
{
	const char *op = worker_op_rules[x->call.op].name;
	struct iovec parts[2] = {{&x->call, sizeof(x->call)},
				 {(void *)x->payload, x->call.payload}};
	ssize_t n;

	if (w->socket < 0)
		return gone(w, op);
	if (w->hung)
		return err_set(ETIMEDOUT, "%s: worker %d (%s) hangs in an earlier call: %s", op,
			       (int)w->named_pid, w->devices, w->hung);
	if (x->call.payload > worker_op_rules[x->call.op].payload_max)
		return err_set(EINVAL, "%s: too large, %llu bytes", op,
			       (unsigned long long)x->call.payload);
	x->call.number = ++w->number;
	n = message_send(w->socket, parts, x->payload ? 2 : 1, x->pass, deadline_in(LIMIT_US));
	return n < 0 ? io_error(w, op, n, LIMIT_US) : 0;
}

static bool well_formed(const struct worker *w, size_t n)
{
	const struct worker_answer *a = &w->reply.answer;

	return n >= sizeof(*a) && a->number == w->number && a->payload == n - sizeof(*a) &&
	       a->result <= 0;
}

static int receive_answer(struct worker *w, struct exchange *x, uint64_t limit)
{
	const char *op = worker_op_rules[x->call.op].name;
	int *passed = x->call.op == WORKER_export ? &x->passed : NULL;
	ssize_t n =
		message_receive(w->socket, &w->reply, sizeof(w->reply), passed, deadline_in(limit));

	if (n < 0)
		return io_error(w, op, n, limit);
	if (n == 0)
		return gone(w, op);
	if (!well_formed(w, (size_t)n)) {
		cleanup_close(&x->passed);
		return broken(w, op, "answered another call than the one made");
	}
	x->answer = w->reply.answer;
	if (x->answer.result == 0)
		return 0;
	cleanup_close(&x->passed);
	return err_set(-x->answer.result, "%.*s", (int)x->answer.payload,
		       (const char *)w->reply.payload);
}

static int ask(struct device_set *s, struct exchange *x)
{
	struct worker *w = worker_of(s);
	int r = send_call(w, x);

	if (r < 0 || worker_op_rules[x->call.op].how == WORKER_ENQUEUES)
		return r;
	return receive_answer(w, x, add_limits(LIMIT_US, x->own_us));
}

/* ---- device_ops, in its order ---- */

static int forward_can_access(struct device_set *s, int initiator, int target, bool *ret)
{
	struct exchange x = EXCHANGE(can_access, .pair = {initiator, target});
	int r = ask(s, &x);

	if (r == 0)
		*ret = x.answer.u.can != 0;
	return r;
}

static int forward_peer_access(struct device_set *s, int initiator, int target, bool on)
{
	struct exchange x = EXCHANGE(peer_access, .pair = {initiator, target, on});

	return ask(s, &x);
}

static int forward_alloc(struct device_set *s, int device, enum memory_kind kind, uint64_t size,
			 struct memory *ret)
{
	struct exchange x =
		EXCHANGE(alloc, .alloc = {.device = device, .kind = kind, .size = size});
	int r = ask(s, &x);

	if (r == 0)
		*ret = x.answer.u.memory;
	return r;
}

static int not_here(const char *op)
{
	return err_set(ENOTSUP, "%s: not possible, the devices are in another process", op);
}

static int forward_wrap(struct device_set *s, int device, uint64_t address, uint64_t size,
			struct memory *ret)
{
	(void)s, (void)device, (void)address, (void)size, (void)ret;
	return not_here("wrap");
}

static int forward_free(struct device_set *s, const struct memory *m)
{
	struct exchange x = EXCHANGE(free, .memory = {.memory = *m});

	return ask(s, &x);
}

static int forward_address(struct device_set *s, const struct memory *m, int device, uint64_t *ret)
{
	struct exchange x = EXCHANGE(address, .memory = {.memory = *m, .device = device});
	int r = ask(s, &x);

	if (r == 0)
		*ret = x.answer.u.address;
	return r;
}

static int forward_export(struct device_set *s, const struct memory *m, enum export_kind kind,
			  struct memory_export *ret)
{
	struct exchange x = EXCHANGE(export, .memory = {.memory = *m, .kind = kind});
	int r = ask(s, &x);

	if (r == 0) {
		*ret = x.answer.u.export;
		ret->fd = x.passed;
	}
	return r;
}

static int forward_import(struct device_set *s, int device, const struct memory_export *e,
			  struct memory *ret)
{
	struct exchange x = EXCHANGE(import, .import = {.export = *e, .device = device});
	int r;

	x.pass = e->fd;
	r = ask(s, &x);
	if (r == 0)
		*ret = x.answer.u.memory;
	return r;
}

static int forward_read(struct device_set *s, const struct memory *m, uint64_t offset, void *to,
			size_t n)
{
	struct exchange x = EXCHANGE(read, .memory = {.memory = *m, .offset = offset, .size = n});
	int r;

	if (n > WORKER_PAYLOAD_MAX)
		return err_set(EINVAL, "read: too large, %zu bytes", n);
	r = ask(s, &x);
	if (r == 0 && x.answer.payload != n)
		return broken(worker_of(s), "read", "sent too few bytes");
	if (r == 0)
		memcpy(to, worker_of(s)->reply.payload, n);
	return r;
}

static int forward_write(struct device_set *s, const struct memory *m, uint64_t offset,
			 const void *from, size_t n)
{
	struct exchange x = EXCHANGE(write, .memory = {.memory = *m, .offset = offset, .size = n});

	x.payload = from;
	x.call.payload = n;
	return ask(s, &x);
}

static int forward_stream_new(struct device_set *s, int device, struct stream *ret)
{
	struct exchange x = EXCHANGE(stream_new, .device = {device});
	int r = ask(s, &x);

	if (r == 0)
		*ret = x.answer.u.stream;
	return r;
}

static int forward_stream_wrap(struct device_set *s, int device, void *native, struct stream *ret)
{
	(void)s, (void)device, (void)native, (void)ret;
	return not_here("stream_wrap");
}

static int forward_stream_free(struct device_set *s, struct stream stream)
{
	struct exchange x = EXCHANGE(stream_free, .stream = {.stream = stream});

	return ask(s, &x);
}

static int forward_wait(struct device_set *s, struct stream stream, uint64_t limit_us)
{
	struct exchange x = EXCHANGE(wait, .stream = {.stream = stream, .limit_us = limit_us});

	x.own_us = limit_us;
	return ask(s, &x);
}

static int forward_event_new(struct device_set *s, int device, struct event *ret)
{
	struct exchange x = EXCHANGE(event_new, .device = {device});
	int r = ask(s, &x);

	if (r == 0)
		*ret = x.answer.u.event;
	return r;
}

static int forward_event_free(struct device_set *s, struct event e)
{
	struct exchange x = EXCHANGE(event_free, .stream = {.event = e});

	return ask(s, &x);
}

static int forward_event_record(struct device_set *s, struct stream stream, struct event e)
{
	struct exchange x = EXCHANGE(event_record, .stream = {.stream = stream, .event = e});

	return ask(s, &x);
}

static int forward_event_wait(struct device_set *s, struct stream stream, struct event e)
{
	struct exchange x = EXCHANGE(event_wait, .stream = {.stream = stream, .event = e});

	return ask(s, &x);
}

static int forward_event_elapsed(struct device_set *s, struct event from, struct event to,
				 double *ret_us)
{
	struct exchange x = EXCHANGE(event_elapsed, .events = {from, to});
	int r = ask(s, &x);

	if (r == 0)
		*ret_us = x.answer.u.us;
	return r;
}

static int forward_copy(struct device_set *s, struct stream stream, const struct memory *target,
			uint64_t target_offset, const struct memory *origin, uint64_t origin_offset,
			uint64_t bytes)
{
	struct exchange x = EXCHANGE(copy, .copy = {.stream = stream,
						    .target = *target,
						    .origin = *origin,
						    .target_offset = target_offset,
						    .origin_offset = origin_offset,
						    .bytes = bytes});

	return ask(s, &x);
}

static int forward_enqueue_time(struct device_set *s, double *ret_us)
{
	struct exchange x = EXCHANGE(enqueue_time, .device = {0});
	int r = ask(s, &x);

	if (r == 0)
		*ret_us = x.answer.u.us;
	return r;
}

static int forward_launch(struct device_set *s, struct stream stream, const struct launch *l)
{
	struct exchange x = EXCHANGE(launch, .launch = {.stream = stream,
							.kernel = l->kernel,
							.blocks = l->blocks,
							.threads = l->threads});

	x.payload = l->args;
	x.call.payload = l->args_size;
	return ask(s, &x);
}

static int forward_capture_begin(struct device_set *s, struct stream stream)
{
	struct exchange x = EXCHANGE(capture_begin, .stream = {.stream = stream});

	return ask(s, &x);
}

static int forward_capture_end(struct device_set *s, struct stream stream, struct graph *ret)
{
	struct exchange x = EXCHANGE(capture_end, .stream = {.stream = stream});
	int r = ask(s, &x);

	if (r == 0)
		*ret = x.answer.u.graph;
	return r;
}

static int forward_graph_launch(struct device_set *s, struct stream stream, struct graph g)
{
	struct exchange x = EXCHANGE(graph_launch, .stream = {.stream = stream, .graph = g});

	return ask(s, &x);
}

static int forward_graph_free(struct device_set *s, struct graph g)
{
	struct exchange x = EXCHANGE(graph_free, .stream = {.graph = g});

	return ask(s, &x);
}

static int forward_make_current(struct device_set *s, int device)
{
	(void)s, (void)device;
	return not_here("make_current");
}

static int forward_atomics(struct device_set *s, int device, const char *pci, bool *ret)
{
	(void)s, (void)device, (void)pci, (void)ret;
	return not_here("atomics");
}

static int forward_capturing(struct device_set *s, struct stream stream, bool *ret)
{
	(void)s;
	(void)stream;
	(void)ret;
	return not_here("capturing");
}

static int forward_memory_at(struct device_set *s, int device, uint64_t address,
			     uint64_t *ret_begin, uint64_t *ret_end)
{
	(void)s;
	(void)device;
	(void)address;
	(void)ret_begin;
	(void)ret_end;
	return not_here("memory_at");
}

static int forward_stream_native(struct device_set *s, struct stream stream, void **ret)
{
	(void)s, (void)stream, (void)ret;
	return not_here("stream_native");
}

/* A worker that hangs is not given the time to end by itself. */
static void forward_close(struct device_set *s)
{
	struct worker *w = worker_of(s);

	close_socket(w);
	if (w->hung || reap_within(w, END_LIMIT_US) < 0)
		kill_within(w, KILL_LIMIT_US);
	free(w->set.info);
	free(w);
}

static const struct device_ops forwarding = {
	.name = "worker",
	.close = forward_close,
	.can_access = forward_can_access,
	.atomics = forward_atomics,
	.peer_access = forward_peer_access,
	.alloc = forward_alloc,
	.wrap = forward_wrap,
	.free = forward_free,
	.address = forward_address,
	.memory_at = forward_memory_at,
	.export = forward_export,
	.import = forward_import,
	.read = forward_read,
	.write = forward_write,
	.stream_new = forward_stream_new,
	.stream_wrap = forward_stream_wrap,
	.stream_free = forward_stream_free,
	.wait = forward_wait,
	.event_new = forward_event_new,
	.event_free = forward_event_free,
	.event_record = forward_event_record,
	.event_wait = forward_event_wait,
	.event_elapsed = forward_event_elapsed,
	.copy = forward_copy,
	.enqueue_time = forward_enqueue_time,
	.launch = forward_launch,
	.capturing = forward_capturing,
	.capture_begin = forward_capture_begin,
	.capture_end = forward_capture_end,
	.graph_launch = forward_graph_launch,
	.graph_free = forward_graph_free,
	.make_current = forward_make_current,
	.stream_native = forward_stream_native,
};

/* ---- start ---- */

static int start(struct worker *w, const char *program)
{
	const struct child_request child = {.program = program,
					    .command = "worker",
					    .output = -1,
					    .file = -1};
	int r = child_start(&child, &w->socket, &w->pid);

	w->named_pid = w->pid;
	return r;
}

static void name_devices(struct worker *w, const struct device_request *r)
{
	size_t at = (size_t)snprintf(w->devices, sizeof(w->devices), "%s",
				     text_plural(r->n, "device", "devices"));

	for (size_t i = 0; i < r->n && at < sizeof(w->devices); i++)
		at += (size_t)snprintf(w->devices + at, sizeof(w->devices) - at, " %d",
				       r->number[i]);
}

int worker_open_start(const char *program, const struct device_request *r, struct device_set **ret)
{
	struct exchange x = EXCHANGE(open);
	struct worker *w;
	int err;

	if (r->n == 0 || r->n > DEVICE_MAX)
		return err_set(EINVAL, "a worker for %zu devices", r->n);
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(ENOMEM, "no memory for a worker");
	w->set.ops = &forwarding;
	w->socket = -1;
	name_devices(w, r);
	w->oom_kills = count_oom_kills();
	x.payload = r;
	x.call.payload = sizeof(*r);
	err = start(w, program);
	if (err == 0)
		err = send_call(w, &x);
	if (err < 0)
		forward_close(&w->set);
	else
		*ret = &w->set;
	return err;
}

static int take_devices(struct worker *w, const struct worker_answer *a)
{
	uint64_t n = a->u.open.n;

	if (n == 0 || n > DEVICE_MAX || a->payload != n * sizeof(*w->set.info))
		return broken(w, "open", "opened no devices");
	w->set.info = calloc(n, sizeof(*w->set.info));
	if (!w->set.info)
		return err_set(ENOMEM, "no memory for %zu devices", (size_t)n);
	memcpy(w->set.info, w->reply.payload, a->payload);
	w->set.n = n;
	w->set.caps = a->u.open.caps & ~DEVICE_NATIVE;
	return 0;
}

/* Until the worker says something, is late, or `stop` becomes readable. */
static int await_worker(struct worker *w, int stop, uint64_t limit_us)
{
	struct pollfd polls[] = {{.fd = w->socket, .events = POLLIN},
				 {.fd = stop, .events = POLLIN}};
	uint64_t deadline = deadline_in(limit_us);
	int n;

	do {
		n = poll(polls, 2, deadline_poll_ms(deadline));
	} while ((n < 0 && errno == EINTR) || (n == 0 && clock_us() < deadline));
	if (n <= 0)
		return late(w, "open", limit_us);
	if (!polls[1].revents)
		return 0;
	w->hung = "open"; /* for all that is known */
	return err_set(EINTR, "stopped while opening %s", w->devices);
}

int worker_open_finish(struct device_set *s, int stop, uint64_t limit_us)
{
	struct worker *w = worker_of(s);
	struct exchange x = EXCHANGE(open);
	int r;

	if (w->socket < 0)
		return gone(w, "open");
	r = await_worker(w, stop, limit_us);
	if (r == 0)
		r = receive_answer(w, &x, LIMIT_US);
	return r < 0 ? r : take_devices(w, &x.answer);
}

int worker_open(const char *program, const struct device_request *r, int stop,
		struct device_set **ret)
{
	struct device_set *s;
	int err = worker_open_start(program, r, &s);

	if (err < 0)
		return err;
	err = worker_open_finish(s, stop, OPEN_LIMIT_US);
	if (err < 0)
		device_close(s);
	else
		*ret = s;
	return err;
}

int worker_kill(struct device_set *s, uint64_t limit_us)
{
	struct worker *w = worker_of(s);

	if (kill_within(w, limit_us) < 0)
		return err_set(ETIMEDOUT,
			       "worker %d (%s) was killed but does not end: it hangs in the kernel",
			       (int)w->named_pid, w->devices);
	return 0;
}
