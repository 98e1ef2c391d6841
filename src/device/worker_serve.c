/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side: opens the devices, does what the parent asks, and ends with it. */
#include "device/message.h"
#include "device/worker.h"
#include "device/worker_protocol.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define END_LIMIT_US 2000000 /* to close the devices, once the parent is gone */

const struct worker_op_rule worker_op_rules[WORKER_OP_N] = {
#define WORKER_OP_RULE(name, payload, how) [WORKER_##name] = {#name, payload, WORKER_##how},
	WORKER_OPS(WORKER_OP_RULE)
#undef WORKER_OP_RULE
};

struct server {
	int socket;
	struct device_set *set; /* NULL: not opened yet */
	int failed; /* the first enqueued call that failed since the last answer: errno */
	char failed_sentence[512];
	int passed; /* file descriptor that came with the call; -1: none */
	struct {
		struct worker_call call;
		unsigned char payload[WORKER_PAYLOAD_MAX];
	} in;
	struct {
		struct worker_answer answer;
		unsigned char payload[WORKER_PAYLOAD_MAX];
	} out;
	int pass; /* file descriptor to send with the answer; -1: none */
};

/* ---- one function a call ---- */

static int do_open(struct server *v)
{
	struct device_request r;
	int err;

	if (v->set || v->in.call.payload != sizeof(r))
		return err_set(EINVAL, "open: the devices are already open");
	memcpy(&r, v->in.payload, sizeof(r));
	if (r.n == 0 || r.n > DEVICE_MAX)
		return err_set(EINVAL, "open: cannot open %zu of them", r.n);
	err = device_open(&r, &v->set);
	if (err < 0)
		return err;
	v->out.answer.u.open.n = v->set->n;
	v->out.answer.u.open.caps = v->set->caps;
	v->out.answer.payload = v->set->n * sizeof(*v->set->info);
	memcpy(v->out.payload, v->set->info, v->out.answer.payload);
	return 0;
}

static int do_can_access(struct server *v)
{
	bool can = false;
	int r = v->set->ops->can_access(v->set, v->in.call.u.pair.initiator,
					v->in.call.u.pair.target, &can);

	v->out.answer.u.can = can;
	return r;
}

static int do_peer_access(struct server *v)
{
	return v->set->ops->peer_access(v->set, v->in.call.u.pair.initiator,
					v->in.call.u.pair.target, v->in.call.u.pair.on != 0);
}

static int do_alloc(struct server *v)
{
	return v->set->ops->alloc(v->set, v->in.call.u.alloc.device, v->in.call.u.alloc.kind,
				  v->in.call.u.alloc.size, &v->out.answer.u.memory);
}

static int do_free(struct server *v)
{
	return v->set->ops->free(v->set, &v->in.call.u.memory.memory);
}

static int do_address(struct server *v)
{
	return v->set->ops->address(v->set, &v->in.call.u.memory.memory, v->in.call.u.memory.device,
				    &v->out.answer.u.address);
}

static int do_export(struct server *v)
{
	struct memory_export e = {.fd = -1};
	int r = v->set->ops->export(v->set, &v->in.call.u.memory.memory, v->in.call.u.memory.kind,
				    &e);

	if (r < 0)
		return r;
	v->pass = e.fd;
	v->out.answer.u.export = e;
	return 0;
}

static int do_import(struct server *v)
{
	struct memory_export e = v->in.call.u.import.export;

	e.fd = v->passed;
	return v->set->ops->import(v->set, v->in.call.u.import.device, &e, &v->out.answer.u.memory);
}

static int do_read(struct server *v)
{
	uint64_t size = v->in.call.u.memory.size;
	int r;

	if (size > sizeof(v->out.payload))
		return err_set(EINVAL, "read: too large, %llu bytes", (unsigned long long)size);
	r = v->set->ops->read(v->set, &v->in.call.u.memory.memory, v->in.call.u.memory.offset,
			      v->out.payload, size);
	v->out.answer.payload = r < 0 ? 0 : size;
	return r;
}

static int do_write(struct server *v)
{
	return v->set->ops->write(v->set, &v->in.call.u.memory.memory, v->in.call.u.memory.offset,
				  v->in.payload, v->in.call.payload);
}

static int do_stream_new(struct server *v)
{
	return v->set->ops->stream_new(v->set, v->in.call.u.device.device, &v->out.answer.u.stream);
}

static int do_stream_free(struct server *v)
{
	return v->set->ops->stream_free(v->set, v->in.call.u.stream.stream);
}

static int do_wait(struct server *v)
{
	return v->set->ops->wait(v->set, v->in.call.u.stream.stream, v->in.call.u.stream.limit_us);
}

static int do_event_new(struct server *v)
{
	return v->set->ops->event_new(v->set, v->in.call.u.device.device, &v->out.answer.u.event);
}

static int do_event_free(struct server *v)
{
	return v->set->ops->event_free(v->set, v->in.call.u.stream.event);
}

static int do_event_record(struct server *v)
{
	return v->set->ops->event_record(v->set, v->in.call.u.stream.stream,
					 v->in.call.u.stream.event);
}

static int do_event_wait(struct server *v)
{
	return v->set->ops->event_wait(v->set, v->in.call.u.stream.stream,
				       v->in.call.u.stream.event);
}

static int do_event_elapsed(struct server *v)
{
	return v->set->ops->event_elapsed(v->set, v->in.call.u.events.from, v->in.call.u.events.to,
					  &v->out.answer.u.us);
}

static int do_copy(struct server *v)
{
	return v->set->ops->copy(v->set, v->in.call.u.copy.stream, &v->in.call.u.copy.target,
				 v->in.call.u.copy.target_offset, &v->in.call.u.copy.origin,
				 v->in.call.u.copy.origin_offset, v->in.call.u.copy.bytes);
}

static int do_enqueue_time(struct server *v)
{
	return v->set->ops->enqueue_time(v->set, &v->out.answer.u.us);
}

static int do_launch(struct server *v)
{
	const struct launch l = {.kernel = v->in.call.u.launch.kernel,
				 .blocks = v->in.call.u.launch.blocks,
				 .threads = v->in.call.u.launch.threads,
				 .args = v->in.payload,
				 .args_size = v->in.call.payload};

	if (v->in.call.u.launch.kernel >= KERNEL_N)
		return err_set(EINVAL, "launch: unknown kernel %u", v->in.call.u.launch.kernel);
	return v->set->ops->launch(v->set, v->in.call.u.launch.stream, &l);
}

static int do_capture_begin(struct server *v)
{
	return v->set->ops->capture_begin(v->set, v->in.call.u.stream.stream);
}

/* It must end even when what was captured has failed; nobody would learn of the graph then. */
static int do_capture_end(struct server *v)
{
	struct graph *graph = &v->out.answer.u.graph;
	int r = v->set->ops->capture_end(v->set, v->in.call.u.stream.stream, graph);

	if (r == 0 && v->failed)
		v->set->ops->graph_free(v->set, *graph);
	return r;
}

static int do_graph_launch(struct server *v)
{
	return v->set->ops->graph_launch(v->set, v->in.call.u.stream.stream,
					 v->in.call.u.stream.graph);
}

static int do_graph_free(struct server *v)
{
	return v->set->ops->graph_free(v->set, v->in.call.u.stream.graph);
}

static int (*const functions[WORKER_OP_N])(struct server *v) = {
#define WORKER_FUNCTION(name, payload, how) [WORKER_##name] = do_##name,
	WORKER_OPS(WORKER_FUNCTION)
#undef WORKER_FUNCTION
};

/* ---- the loop ---- */

static void keep_failure(struct server *v, int r)
{
	if (v->failed || r == 0)
		return;
	v->failed = r;
	snprintf(v->failed_sentence, sizeof(v->failed_sentence), "%s", err_msg());
}

/* What failed before comes first: what failed after it may only be its consequence. */
static int take_failure(struct server *v, int r)
{
	if (!v->failed)
		return r;
	r = err_set(-v->failed, "%s", v->failed_sentence);
	v->failed = 0;
	return r;
}

static int run_call(struct server *v, enum worker_op op)
{
	if (op != WORKER_open && !v->set)
		return err_set(EINVAL, "%s: no devices are open", worker_op_rules[op].name);
	if (worker_op_rules[op].how == WORKER_MAKES && v->failed)
		return v->failed;
	return functions[op](v);
}

static int send_answer(struct server *v)
{
	struct worker_answer *a = &v->out.answer;
	struct iovec part = {&v->out, sizeof(*a)};
	ssize_t n;

	if (a->result < 0) {
		a->payload = (uint64_t)snprintf((char *)v->out.payload, 1024, "%s", err_msg());
		cleanup_close(&v->pass);
		v->pass = -1;
	}
	part.iov_len += a->payload;
	n = message_send(v->socket, &part, 1, v->pass, UINT64_MAX);
	return n < 0 ? err_sys((int)-n, "answer to the parent") : 0;
}

static int serve_one(struct server *v)
{
	enum worker_op op = v->in.call.op;
	int r;

	memset(&v->out.answer, 0, sizeof(v->out.answer));
	r = run_call(v, op);
	if (worker_op_rules[op].how == WORKER_ENQUEUES) {
		keep_failure(v, r);
		return 0;
	}
	v->out.answer.number = v->in.call.number;
	v->out.answer.result = take_failure(v, r);
	r = send_answer(v);
	cleanup_close(&v->pass);
	v->pass = -1;
	return r;
}

static bool well_formed(const struct server *v, size_t n)
{
	const struct worker_call *c = &v->in.call;

	return n >= sizeof(*c) && c->op < WORKER_OP_N && c->payload == n - sizeof(*c) &&
	       c->payload <= worker_op_rules[c->op].payload_max;
}

/* 1: there may be more; 0: the parent has closed its end. */
static int receive_one(struct server *v)
{
	ssize_t n;
	int r;

	v->passed = -1;
	n = message_receive(v->socket, &v->in, sizeof(v->in), &v->passed, UINT64_MAX);
	if (n == 0 || n == -ECONNRESET)
		return 0;
	if (n < 0)
		return err_sys((int)-n, "call from the parent");
	r = well_formed(v, (size_t)n) ? serve_one(v)
				      : err_set(EPROTO, "a call of %zd bytes is malformed", n);
	cleanup_close(&v->passed);
	return r < 0 ? r : 1;
}

int worker_serve_calls(int fd, struct device_set *set)
{
	struct server *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return err_set(ENOMEM, "no memory for a worker");
	v->socket = fd;
	v->set = set;
	v->pass = -1;
	do {
		r = receive_one(v);
	} while (r > 0);
	device_close(v->set);
	free(v);
	return r;
}

/* ---- the process ---- */

/*
 * Ends a worker that hangs in a call when its parent is gone. PR_SET_PDEATHSIG would also strike
 * when only the thread ends that started the worker.
 */
static void *watch(void *context)
{
	while (wait_for((int)(intptr_t)context, 0, UINT64_MAX) == -ETIMEDOUT)
		;
	usleep(END_LIMIT_US);
	kill(getpid(), SIGKILL);
	return NULL;
}

static int start_watch(int fd)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, watch, (void *)(intptr_t)fd);

	if (r)
		return err_sys(r, "a thread that watches the parent");
	pthread_detach(thread);
	return 0;
}

static int check_socket(int fd)
{
	int type;
	socklen_t size = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET)
		return err_set(
			EINVAL,
			"file descriptor %d is not a worker's socket; onehop starts its workers "
			"itself",
			fd);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_sys(errno, "file descriptor %d", fd);
	return 0;
}

int worker_serve(int fd)
{
	int r = check_socket(fd);

	if (r == 0)
		r = start_watch(fd);
	return r < 0 ? r : worker_serve_calls(fd, NULL);
}
