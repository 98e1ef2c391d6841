// SPDX-License-Identifier: Apache-2.0
/* A set that passes calls on, writes them down, and fails or hangs at a chosen one. */
#include "fake_device.h"

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fake {
	struct device_set set;
	struct device_set *inner;
	struct fake_plan plan;
	char op[32]; /* plan.op is here */
	unsigned matched;
	char *calls;
	size_t len, size;
};

static struct fake *fake_of(const struct device_set *s)
{
	return (struct fake *)s;
}

static int note(struct fake *f, const char *line)
{
	const size_t n = strlen(line);

	if (f->len + n + 2 > f->size) {
		const size_t size = 2 * f->size + n + 2;
		char *calls = realloc(f->calls, size);

		if (!calls)
			return err_set(ENOMEM, "no memory for the calls so far");
		f->calls = calls;
		f->size = size;
	}
	memcpy(f->calls + f->len, line, n);
	memcpy(f->calls + f->len + n, "\n", 2);
	f->len += n + 1;
	return 0;
}

/* Writes the call down; 0: it is to be passed on, 1: it is to hang, or the planned error. */
__attribute__((format(printf, 3, 4))) static int step(struct fake *f, const char *op,
						      const char *fmt, ...)
{
	const struct fake_plan *p = &f->plan;
	char line[160];
	va_list ap;
	int r;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	r = note(f, line);
	if (r < 0 || (p->op && strcmp(p->op, op) != 0))
		return r;
	f->matched++;
	if (!p->nth || f->matched < p->nth || (f->matched > p->nth && !p->lasting))
		return 0;
	return p->error ? err_set(-p->error, "%s, call %u, was made to fail", op, f->matched) : 1;
}

static int hung(const char *op)
{
	return err_set(ETIMEDOUT, "%s was made to hang", op);
}

/* "host" or the number of a device index. */
static const char *place(int device, char buf[12])
{
	snprintf(buf, 12, "%d", device);
	return device < 0 ? "host" : buf;
}

#define PLACE(device) place(device, (char[12]){0})

/* Notes the call by the format and values behind it, then hangs, fails or passes it on. */
#define FORWARD(op, call, ...)                                                                     \
	do {                                                                                       \
		struct fake *f_ = fake_of(s);                                                      \
		const struct device_ops *ops_ = f_->inner->ops;                                    \
		const int step_ = step(f_, #op, #op __VA_ARGS__);                                  \
                                                                                                   \
		s = f_->inner;                                                                     \
		if (step_ < 0)                                                                     \
			return step_;                                                              \
		return step_ ? hung(#op) : ops_->op call;                                          \
	} while (0)

static void fake_close(struct device_set *s)
{
	struct fake *f = fake_of(s);

	device_close(f->inner);
	free(f->calls);
	free(f);
}

static const char *const kernel_names[KERNEL_N] = {
#define NAME(name) #name,
	KERNELS(NAME)
#undef NAME
};

static int fake_can_access(struct device_set *s, int initiator, int target, bool *ret)
{
	FORWARD(can_access, (s, initiator, target, ret), " %d->%d", initiator, target);
}

static int fake_peer_access(struct device_set *s, int initiator, int target, bool on)
{
	FORWARD(peer_access, (s, initiator, target, on), " %d->%d %s", initiator, target,
		on ? "on" : "off");
}

static int fake_alloc(struct device_set *s, int device, enum memory_kind kind, uint64_t size,
		      struct memory *ret)
{
	FORWARD(alloc, (s, device, kind, size, ret), " %s %lu",
		PLACE(kind == MEMORY_PINNED || kind == MEMORY_SHARED ? -1 : device), size);
}

static int fake_wrap(struct device_set *s, int device, uint64_t address, uint64_t size,
		     struct memory *ret)
{
	FORWARD(wrap, (s, device, address, size, ret), " %s %lu", PLACE(device), size);
}

static int fake_free(struct device_set *s, const struct memory *m)
{
	FORWARD(free, (s, m), " %s", PLACE(m->device));
}

static int fake_address(struct device_set *s, const struct memory *m, int device, uint64_t *ret)
{
	FORWARD(address, (s, m, device, ret), " %s for %d", PLACE(m->device), device);
}

static int fake_memory_at(struct device_set *s, int device, uint64_t address, uint64_t *ret_begin,
			  uint64_t *ret_end)
{
	FORWARD(memory_at, (s, device, address, ret_begin, ret_end), " %d", device);
}

static int fake_export(struct device_set *s, const struct memory *m, enum export_kind kind,
		       struct memory_export *ret)
{
	FORWARD(export, (s, m, kind, ret), " %s", PLACE(m->device));
}

static int fake_import(struct device_set *s, int device, const struct memory_export *e,
		       struct memory *ret)
{
	FORWARD(import, (s, device, e, ret), " %d %lu", device, e->size);
}

static int fake_read(struct device_set *s, const struct memory *m, uint64_t offset, void *to,
		     size_t n)
{
	FORWARD(read, (s, m, offset, to, n), " %s %zu", PLACE(m->device), n);
}

static int fake_write(struct device_set *s, const struct memory *m, uint64_t offset,
		      const void *from, size_t n)
{
	FORWARD(write, (s, m, offset, from, n), " %s %zu", PLACE(m->device), n);
}

static int fake_stream_new(struct device_set *s, int device, struct stream *ret)
{
	FORWARD(stream_new, (s, device, ret), " %d", device);
}

static int fake_stream_wrap(struct device_set *s, int device, void *native, struct stream *ret)
{
	FORWARD(stream_wrap, (s, device, native, ret), " %d", device);
}

static int fake_stream_free(struct device_set *s, struct stream stream)
{
	FORWARD(stream_free, (s, stream), " %d", stream.device);
}

static int fake_event_new(struct device_set *s, int device, struct event *ret)
{
	FORWARD(event_new, (s, device, ret), " %d", device);
}

static int fake_event_free(struct device_set *s, struct event e)
{
	FORWARD(event_free, (s, e), " %d", e.device);
}

static int fake_event_record(struct device_set *s, struct stream stream, struct event e)
{
	FORWARD(event_record, (s, stream, e), " %d", stream.device);
}

static int fake_event_wait(struct device_set *s, struct stream stream, struct event e)
{
	FORWARD(event_wait, (s, stream, e), " %d for %d", stream.device, e.device);
}

static int fake_event_elapsed(struct device_set *s, struct event from, struct event to,
			      double *ret_us)
{
	FORWARD(event_elapsed, (s, from, to, ret_us), " %d", to.device);
}

static int fake_copy(struct device_set *s, struct stream stream, const struct memory *target,
		     uint64_t target_offset, const struct memory *origin, uint64_t origin_offset,
		     uint64_t bytes)
{
	FORWARD(copy, (s, stream, target, target_offset, origin, origin_offset, bytes),
		" %s->%s %lu", PLACE(origin->device), PLACE(target->device), bytes);
}

static int fake_enqueue_time(struct device_set *s, double *ret_us)
{
	FORWARD(enqueue_time, (s, ret_us), "%s", "");
}

static int fake_launch(struct device_set *s, struct stream stream, const struct launch *l)
{
	FORWARD(launch, (s, stream, l), " %d %s", stream.device,
		l->kernel < KERNEL_N ? kernel_names[l->kernel] : "?");
}

static int fake_atomics(struct device_set *s, int device, const char *pci, bool *ret)
{
	FORWARD(atomics, (s, device, pci, ret), " %d %s", device, pci);
}

static int fake_capturing(struct device_set *s, struct stream stream, bool *ret)
{
	FORWARD(capturing, (s, stream, ret), " %d", stream.device);
}

static int fake_capture_begin(struct device_set *s, struct stream stream)
{
	FORWARD(capture_begin, (s, stream), " %d", stream.device);
}

static int fake_capture_end(struct device_set *s, struct stream stream, struct graph *ret)
{
	FORWARD(capture_end, (s, stream, ret), " %d", stream.device);
}

static int fake_graph_launch(struct device_set *s, struct stream stream, struct graph g)
{
	FORWARD(graph_launch, (s, stream, g), " %d", stream.device);
}

static int fake_graph_free(struct device_set *s, struct graph g)
{
	FORWARD(graph_free, (s, g), " %d", g.device);
}

static int fake_make_current(struct device_set *s, int device)
{
	FORWARD(make_current, (s, device), " %d", device);
}

static int fake_stream_native(struct device_set *s, struct stream stream, void **ret)
{
	FORWARD(stream_native, (s, stream, ret), " %d", stream.device);
}

/* The one call with a deadline: it hangs until then. */
static int fake_wait(struct device_set *s, struct stream stream, uint64_t limit_us)
{
	struct fake *f = fake_of(s);
	const struct timespec limit = {(time_t)(limit_us / 1000000),
				       (long)(limit_us % 1000000) * 1000};
	const int r = step(f, "wait", "wait %d", stream.device);

	if (r < 0)
		return r;
	if (r == 0)
		return f->inner->ops->wait(f->inner, stream, limit_us);
	nanosleep(&limit, NULL);
	return hung("wait");
}

static const struct device_ops fake_ops = {
	.name = "fake",
	.close = fake_close,
	.wait = fake_wait,
	.can_access = fake_can_access,
	.atomics = fake_atomics,
	.peer_access = fake_peer_access,
	.alloc = fake_alloc,
	.wrap = fake_wrap,
	.free = fake_free,
	.address = fake_address,
	.memory_at = fake_memory_at,
	.export = fake_export,
	.import = fake_import,
	.read = fake_read,
	.write = fake_write,
	.stream_new = fake_stream_new,
	.stream_wrap = fake_stream_wrap,
	.stream_free = fake_stream_free,
	.event_new = fake_event_new,
	.event_free = fake_event_free,
	.event_record = fake_event_record,
	.event_wait = fake_event_wait,
	.event_elapsed = fake_event_elapsed,
	.copy = fake_copy,
	.enqueue_time = fake_enqueue_time,
	.launch = fake_launch,
	.capturing = fake_capturing,
	.capture_begin = fake_capture_begin,
	.capture_end = fake_capture_end,
	.graph_launch = fake_graph_launch,
	.graph_free = fake_graph_free,
	.make_current = fake_make_current,
	.stream_native = fake_stream_native,
};

int fake_open(struct device_set *inner, const struct fake_plan *plan, struct device_set **ret)
{
	struct fake *f = calloc(1, sizeof(*f));

	if (!f) {
		device_close(inner);
		return err_set(ENOMEM, "no memory for a set that fails");
	}
	f->set = *inner;
	f->set.ops = &fake_ops;
	f->inner = inner;
	f->plan = *plan;
	if (plan->op) {
		snprintf(f->op, sizeof(f->op), "%s", plan->op);
		f->plan.op = f->op;
	}
	*ret = &f->set;
	return 0;
}

const char *fake_calls(const struct device_set *s)
{
	const struct fake *f = fake_of(s);

	return f->calls ? f->calls : "";
}
