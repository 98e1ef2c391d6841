// SPDX-License-Identifier: Apache-2.0
/* The host back end: opening, closing, and who may reach whom. */
#include "base/clock.h"
#include "base/err.h"
#include "device/host_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_MEMORY (256ull << 20)
#define MEMORY_MAX     (1ull << 40)
#define BLOCKS_MAX     4 /* that run at once: threads of a kernel */

bool host_closing(const struct host_set *h)
{
	return __atomic_load_n(&h->closing, __ATOMIC_ACQUIRE);
}

void host_sleep_until(struct host_set *h, uint64_t time_ns)
{
	struct timespec t = {(time_t)(time_ns / 1000000000), (long)(time_ns % 1000000000)};

	while (!host_closing(h) && clock_ns() < time_ns)
		pthread_cond_timedwait(&h->changed, &h->lock, &t);
}

int host_check_device(const struct host_set *h, int device)
{
	if (device >= 0 && (size_t)device < h->set.n)
		return 0;
	return err_set(EINVAL, "no device %d in a set of %zu", device, h->set.n);
}

int host_table_add(struct host_table *t, void *item, uint64_t *ret_id)
{
	/* Doubles at powers of two. */
	if ((t->n & (t->n - 1)) == 0) {
		void **items = realloc(t->items, (t->n ? 2 * t->n : 1) * sizeof(*items));

		if (!items) {
			err_set(ENOMEM, "no memory for a table of %zu handles", t->n + 1);
			return -ENOMEM;
		}
		t->items = items;
	}
	t->items[t->n++] = item;
	*ret_id = t->n;
	return 0;
}

void *host_table_get(const struct host_table *t, uint64_t id)
{
	return id - 1 < t->n ? t->items[id - 1] : NULL;
}

void host_table_drop(struct host_table *t, uint64_t id)
{
	t->items[id - 1] = NULL;
}

static int check_pair(const struct host_set *h, int initiator, int target)
{
	int r = host_check_device(h, initiator);

	if (r == 0)
		r = host_check_device(h, target);
	if (r == 0 && initiator == target)
		r = err_set(EINVAL, "device %d cannot be its own peer", initiator);
	return r;
}

static int can_access(struct device_set *s, int initiator, int target, bool *ret)
{
	int r = check_pair(host_of(s), initiator, target);

	if (r == 0)
		*ret = host_fault(host_of(s), s->info[initiator].number, s->info[target].number) !=
		       FAULT_REFUSE;
	return r;
}

static int peer_access(struct device_set *s, int initiator, int target, bool on)
{
	struct host_set *h = host_of(s);
	const struct host_arena *a;
	struct host_peer *p;
	int r = check_pair(h, initiator, target);

	if (r < 0)
		return r;
	a = &h->arenas[target];
	p = &h->peers[(size_t)initiator * s->n + (size_t)target];
	/* Turned off it stays mapped: kernels may still be running. */
	if (on && !p->window)
		r = host_window_new(h, a->fd, a->mapped, s->info[initiator].number,
				    s->info[target].number,
				    host_fault(h, s->info[initiator].number,
					       s->info[target].number),
				    &p->window);
	if (r == 0)
		p->on = on;
	return r;
}

static int make_current(struct device_set *s, int device)
{
	return host_check_device(host_of(s), device);
}

static void close_tables(struct host_set *h)
{
	const struct host_table *tables[] = {&h->blocks, &h->events, &h->graphs};

	for (size_t i = 0; i < h->graphs.n; i++)
		if (h->graphs.items[i])
			host_queue_clear(h->graphs.items[i]);
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
		for (size_t i = 0; i < tables[t]->n; i++)
			free(tables[t]->items[i]);
		free(tables[t]->items);
	}
	free(h->handles.items);
}

static void host_close(struct device_set *s)
{
	struct host_set *h = host_of(s);

	host_streams_close(h);
	while (h->windows)
		host_window_free(h, h->windows);
	host_flaws_free(h);
	close_tables(h);
	for (size_t i = 0; i <= s->n; i++)
		host_arena_close(&h->arenas[i]);
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	free(h->peers);
	free(s->info);
	free(h);
}

static int atomics(struct device_set *s, int device, const char *pci, bool *ret)
{
	(void)s, (void)device, (void)pci, (void)ret;
	return err_set(ENOTSUP, "the host back end has no links between devices");
}

static const struct device_ops host_ops = {
	.name = "host",
	.close = host_close,
	.can_access = can_access,
	.atomics = atomics,
	.peer_access = peer_access,
	.alloc = host_alloc,
	.wrap = host_wrap,
	.free = host_free,
	.address = host_address,
	.memory_at = host_memory_at,
	.export = host_export,
	.import = host_import,
	.read = host_memory_read,
	.write = host_memory_write,
	.stream_new = host_stream_new,
	.stream_wrap = host_stream_wrap,
	.stream_free = host_stream_free,
	.wait = host_wait,
	.event_new = host_event_new,
	.event_free = host_event_free,
	.event_record = host_event_record,
	.event_wait = host_event_wait,
	.event_elapsed = host_event_elapsed,
	.copy = host_copy,
	.enqueue_time = host_enqueue_time,
	.launch = host_launch,
	.capturing = host_capturing,
	.capture_begin = host_capture_begin,
	.capture_end = host_capture_end,
	.graph_launch = host_graph_launch,
	.graph_free = host_graph_free,
	.make_current = make_current,
	.stream_native = host_stream_native,
};

static unsigned blocks_at_once(size_t n)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN) / (long)n;

	return cores < 1 ? 1 : cores > BLOCKS_MAX ? BLOCKS_MAX : (unsigned)cores;
}

static void describe(struct host_set *h, size_t i)
{
	const struct device_request *r = &h->request;
	struct device_info *d = &h->set.info[i];

	snprintf(d->name, sizeof(d->name), "host device %d", r->number[i]);
	d->number = r->number[i];
	d->ordinal = -1;
	d->blocks = r->host.blocks ? r->host.blocks : blocks_at_once(h->set.n);
	d->threads = d->resident_threads = r->host.threads ? r->host.threads : 1;
	d->copy_engines = 1;
	d->memory_bytes = d->free_bytes = r->host.memory_bytes;
}

static void sync_init(struct host_set *h)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&h->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&h->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* Devices and their memory. */
static int make_devices(struct host_set *h)
{
	int r = 0;

	h->set.info = calloc(h->set.n, sizeof(*h->set.info));
	h->peers = calloc(h->set.n * h->set.n, sizeof(*h->peers));
	if (!h->set.info || !h->peers)
		return err_set(ENOMEM, "no memory for %zu host devices", h->set.n);
	if (h->request.host.memory_bytes > MEMORY_MAX)
		return err_set(EINVAL, "a simulated device can have at most %llu bytes",
			       MEMORY_MAX);
	for (size_t i = 0; i < h->set.n; i++)
		describe(h, i);
	for (size_t i = 0; r == 0 && i <= h->set.n; i++)
		r = host_arena_open(&h->arenas[i], h->request.host.memory_bytes);
	return r;
}

int host_open(const struct device_request *r, struct device_set **ret)
{
	struct host_set *h = calloc(1, sizeof(*h));
	int e;

	if (!h)
		return err_set(ENOMEM, "no memory for %zu host devices", r->n);
	h->set = (struct device_set){.ops = &host_ops,
				     .n = r->n,
				     .caps = DEVICE_EXPORT_FD | DEVICE_EXPORT_IPC |
					     DEVICE_PEER_SWITCH | DEVICE_GRAPHS | DEVICE_NATIVE |
					     DEVICE_COPY_ENGINES};
	h->request = *r;
	if (!r->host.memory_bytes)
		h->request.host.memory_bytes = DEFAULT_MEMORY;
	for (size_t i = 0; i <= r->n; i++)
		h->arenas[i].fd = -1;
	sync_init(h);
	e = make_devices(h);
	if (e < 0)
		host_close(&h->set);
	else
		*ret = &h->set;
	return e;
}
