// SPDX-License-Identifier: Apache-2.0
/* The ways between host devices: windows into each other's memory, their rates and their faults. */
#include "base/clock.h"
#include "base/err.h"
#include "device/host_impl.h"
#include "kernels/typed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOWER       100 /* times, with FAULT_SLOW */
#define ASSUMED_GBPS 10. /* of a link that is unlimited, when it is to be slow */
/* In the last 4 MiB that the test allocates, and ahead of where its transfers go there. */
#define HOLE_BELOW_END (7680ull << 10)
#define HOST_PROTECT   (PROT_READ | PROT_WRITE)
#define HOST_ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static bool meant(int wanted, int number)
{
	return wanted < 0 || wanted == number;
}

enum fault_kind host_fault(const struct host_set *h, int initiator, int target)
{
	const struct fault *f = &h->request.host.fault;
	const bool here = target >= 0 && initiator != target && meant(f->initiator, initiator) &&
			  meant(f->target, target);

	return here ? f->kind : FAULT_NONE;
}

double host_gbps(const struct host_set *h, int initiator, int target)
{
	const bool known = initiator >= 0 && initiator < DEVICE_MAX && target >= 0 &&
			   target < DEVICE_MAX && initiator != target;

	return known ? (double)h->request.host.link_gbps[initiator][target] : 0;
}

static char *map(int flags, uint64_t size, int fd)
{
	char *at = mmap(NULL, size, HOST_PROTECT, flags, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static bool map_direct(struct host_window *w, int fd)
{
	w->base = map(MAP_SHARED | MAP_NORESERVE, w->size, fd);
	return w->base;
}

/* What is seen is nowhere else. */
static bool map_private(struct host_window *w, int fd)
{
	(void)fd;
	w->base = map(HOST_ANONYMOUS, w->size, -1);
	return w->base;
}

/* A page off; behind the last page comes the first. */
static bool map_displaced(struct host_window *w, int fd)
{
	const int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
	const uint64_t most = w->size - HOST_PAGE;

	return map_private(w, fd) &&
	       mmap(w->base, most, HOST_PROTECT, flags, fd, HOST_PAGE) != MAP_FAILED &&
	       mmap(w->base + most, HOST_PAGE, HOST_PROTECT, flags, fd, 0) != MAP_FAILED;
}

/* `late` begins as what there is. */
static bool map_stale(struct host_window *w, int fd)
{
	w->real = map(MAP_SHARED | MAP_NORESERVE, w->size, fd);
	w->late = map(MAP_PRIVATE | MAP_NORESERVE, w->size, fd);
	return w->real && w->late && map_private(w, fd);
}

/*
 * A page that no transfer of a few MiB goes through, so that who meets it goes through all of the
 * last memory. A window covers twice what a device has.
 */
static bool map_hole(struct host_window *w, int fd)
{
	const uint64_t end = w->size / 2;

	if (!map_direct(w, fd))
		return false;
	return end < HOLE_BELOW_END || mmap(w->base + end - HOLE_BELOW_END, HOST_PAGE, HOST_PROTECT,
					    HOST_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/*
 * `late` will hold what was read, what copies wrote, or what memory looks like when it is
 * compressed.
 */
static bool map_reread(struct host_window *w, int fd)
{
	w->late = map(HOST_ANONYMOUS, w->size, -1);
	return w->late && map_direct(w, fd);
}

/* Where there is none, the window shows what there is. */
static bool (*const mappers[FAULT_N])(struct host_window *w, int fd) = {
	[FAULT_MIRROR] = map_private, [FAULT_DISPLACE] = map_displaced, [FAULT_STALE] = map_stale,
	[FAULT_LOST] = map_private,   [FAULT_REREAD] = map_reread,      [FAULT_LATE] = map_reread,
	[FAULT_HOLE] = map_hole,      [FAULT_PACKED] = map_reread,
};

static void unmap(struct host_window *w)
{
	char *const maps[] = {w->base, w->real, w->late};

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		if (maps[i])
			munmap(maps[i], w->size);
	free(w->was_read);
	host_flaw_drop(w);
	free(w);
}

int host_window_new(struct host_set *h, int fd, uint64_t size, int initiator, int target,
		    enum fault_kind fault, struct host_window **ret)
{
	struct host_window *w;

	if (fault == FAULT_REFUSE)
		return err_set(EACCES, "access of host device %d to host device %d is refused",
			       initiator, target);
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(ENOMEM, "no memory for a window");
	w->fault = fault;
	w->size = size;
	w->gbps = host_gbps(h, initiator, target);
	if (fault == FAULT_SLOW)
		w->gbps = (w->gbps > 0 ? w->gbps : ASSUMED_GBPS) / SLOWER;
	if (!(mappers[fault] ? mappers[fault] : map_direct)(w, fd)) {
		const int e = errno;

		unmap(w);
		return err_sys(e, "mapping the memory of host device %d for host device %d", target,
			       initiator);
	}
	pthread_mutex_lock(&h->lock);
	w->next = h->windows;
	h->windows = w;
	pthread_mutex_unlock(&h->lock);
	*ret = w;
	return 0;
}

void host_window_free(struct host_set *h, struct host_window *w)
{
	struct host_window **at = &h->windows;

	pthread_mutex_lock(&h->lock);
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	pthread_mutex_unlock(&h->lock);
	unmap(w);
}

/* ---- what an operation touches ---- */

static void add(struct host_passage *p, u64 address, uint64_t bytes, bool writes)
{
	p->spans[p->n++] = (struct host_span){(char *)address, bytes, writes, NULL};
}

static void spans_copy(const void *args, struct host_passage *p)
{
	const struct copy_args *a = args;

	add(p, a->target, a->bytes, true);
	add(p, a->origin, a->bytes, false);
}

static void spans_fill(const void *args, struct host_passage *p)
{
	const struct fill_args *a = args;

	add(p, a->target, a->words * 8, true);
}

static void spans_check(const void *args, struct host_passage *p)
{
	const struct check_args *a = args;

	add(p, a->origin, a->words * 8, false);
}

static void spans_chain(const void *args, struct host_passage *p)
{
	const struct chain_args *a = args;

	add(p, a->buffer, a->bytes, true);
}

/* How long the chain is, only its memory tells; where it begins is enough to hang. */
static void spans_chase(const void *args, struct host_passage *p)
{
	const struct chase_args *a = args;

	add(p, a->buffer, sizeof(u64), false);
}

static void spans_ping_pong(const void *args, struct host_passage *p)
{
	const struct ping_pong_args *a = args;

	add(p, a->theirs, sizeof(u32), true);
}

static void spans_all_reduce(const void *args, struct host_passage *p)
{
	const struct all_reduce_args *a = args;

	for (u64 d = 0; d < a->n && d < DEVICE_MAX; d++) {
		add(p, ((const u64 *)a->inputs)[d], a->count / a->n * 4, false);
		add(p, ((const u64 *)a->outputs)[d], a->count / a->n * 4, true);
		add(p, ((const u64 *)a->flags)[d], sizeof(u32), true);
	}
}

/*
 * Where the first unit and every flag goes: how much data goes with them depends on the launches
 * before.
 */
static void add_places(struct host_passage *p, const u64 *to, u32 places)
{
	for (u32 r = 0; r < COLLECTIVE_RANKS_MAX; r++)
		if (places >> r & 1)
			add(p, to[r], sizeof(u64), true);
}

static void spans_collective_flagged(const void *args, struct host_passage *p)
{
	const struct collective_flagged_args *a = args;

	add_places(p, a->first.to, a->s.tokens | a->s.push);
}

static void spans_collective_small(const void *args, struct host_passage *p)
{
	const struct collective_small_args *a = args;

	add_places(p, a->to, (1u << a->places) - 1);
}

static void spans_collective_piped(const void *args, struct host_passage *p)
{
	const struct collective_piped_args *a = args;

	add_places(p, a->routes.flags.to, a->s.tokens);
}

static void spans_collective_levels(const void *args, struct host_passage *p)
{
	const struct collective_levels_args *a = args;

	add_places(p, a->stage[0].routes.flags.to, a->s[0].tokens);
}

static void spans_collective_chain(const void *args, struct host_passage *p)
{
	const struct collective_chain_args *a = args;

	add_places(p, a->routes.flags.to, a->s[CHAIN_FIRST].tokens);
}

static void spans_collective_pairs(const void *args, struct host_passage *p)
{
	const struct collective_pairs_args *a = args;

	for (u32 i = 0; i < a->lanes; i++)
		if (a->lane[i].peer != a->me)
			add(p, a->lane[i].tell, sizeof(u64), true);
}

static void spans_collective_messages(const void *args, struct host_passage *p)
{
	const struct collective_messages_args *a = args;

	for (u32 i = 0; i < COLLECTIVE_RANKS_MAX; i++)
		if (a->lane[i].items && a->lane[i].peer != a->me)
			add(p, a->lane[i].tell, sizeof(u64), true);
}

static void spans_exchange(const void *args, struct host_passage *p)
{
	const struct exchange_args *a = args;

	if (a->produce)
		add(p, a->produce, a->bytes, true);
	if (a->consume)
		add(p, a->consume, a->bytes, false);
	add(p, a->post, sizeof(u32), true);
}

static void spans_tally(const void *args, struct host_passage *p)
{
	const struct tally_args *a = args;

	add(p, a->counter, sizeof(u32), true);
}

static void spans_typed_fill(const void *args, struct host_passage *p)
{
	const struct typed_fill_args *a = args;

	add(p, a->target, a->count * typed_bytes(a->type), true);
}

static void spans_typed_check(const void *args, struct host_passage *p)
{
	const struct typed_check_args *a = args;

	add(p, a->origin, a->count * typed_bytes(a->type), false);
}

static void spans_gate(const void *args, struct host_passage *p)
{
	(void)args;
	(void)p;
}

static void (*const kernel_spans[])(const void *args, struct host_passage *p) = {
#define SPANS(name) spans_##name,
	KERNELS(SPANS)
#undef SPANS
};

static void spans_of(const struct host_op *op, struct host_passage *p)
{
	if (op->kind == HOST_KERNEL) {
		kernel_spans[op->kernel.kernel](op->kernel.args, p);
	} else if (op->kind == HOST_COPY && !op->copy.staged) {
		add(p, (u64)op->copy.to, op->copy.bytes, true);
		add(p, (u64)op->copy.from, op->copy.bytes, false);
	}
}

static struct host_window *window_at(const struct host_set *h, const char *at)
{
	struct host_window *w = h->windows;

	while (w && !(at >= w->base && at < w->base + w->size))
		w = w->next;
	return w;
}

/* ---- faults ---- */

/* Where a kernel's arguments hold how much it writes, in whatever unit. */
static const size_t amounts[KERNEL_N] = {
	[KERNEL_copy] = offsetof(struct copy_args, bytes),
	[KERNEL_fill] = offsetof(struct fill_args, words),
	[KERNEL_all_reduce] = offsetof(struct all_reduce_args, count),
	[KERNEL_exchange] = offsetof(struct exchange_args, bytes),
	[KERNEL_typed_fill] = offsetof(struct typed_fill_args, count),
};

/* The last quarter of what the operation writes is left out. */
static void tear(struct host_op *op)
{
	uint64_t amount;

	if (op->kind == HOST_COPY) {
		op->copy.bytes -= op->copy.bytes / 4;
	} else if (amounts[op->kernel.kernel]) {
		memcpy(&amount, op->kernel.args + amounts[op->kernel.kernel], sizeof(amount));
		amount -= amount / 4;
		memcpy(op->kernel.args + amounts[op->kernel.kernel], &amount, sizeof(amount));
	}
}

/* The link is taken in the order in which operations come; others wait behind what is under way. */
static void reserve(struct host_passage *p, struct host_window *w, uint64_t bytes)
{
	const uint64_t now = clock_ns();
	const uint64_t begin = w->free_at_ns > now ? w->free_at_ns : now;

	w->free_at_ns = begin + (uint64_t)((double)bytes / w->gbps);
	if (!p->begin_ns || begin < p->begin_ns)
		p->begin_ns = begin;
	if (w->free_at_ns > p->end_ns)
		p->end_ns = w->free_at_ns;
}

bool host_passage_begin(struct host_set *h, struct host_op *op, struct host_passage *p)
{
	bool hang = false, torn = false;

	p->n = 0;
	p->begin_ns = p->end_ns = 0;
	p->flaw = (struct native_flaw){NATIVE_FLAW_NONE, 0, 0};
	spans_of(op, p);
	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < p->n; i++) {
		struct host_span *span = &p->spans[i];
		struct host_window *w = span->window = window_at(h, span->at);

		if (!w)
			continue;
		if (span->bytes > (uint64_t)(w->base + w->size - span->at))
			span->bytes = (uint64_t)(w->base + w->size - span->at);
		hang |= w->fault == FAULT_HANG;
		torn |= w->fault == FAULT_TORN;
		host_flaw_reread(w, op, span);
		host_flaw_pack(w, op, span);
		host_flaw_delay(w, op, span);
		if (p->flaw.kind == NATIVE_FLAW_NONE)
			p->flaw = host_flaw_of(w, op);
		if (w->gbps > 0)
			reserve(p, w, span->bytes);
	}
	while (hang && !host_closing(h))
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
	if (torn)
		tear(op);
	return !hang;
}

bool host_passage_pace(struct host_set *h, const struct host_passage *p, uint64_t done,
		       uint64_t bytes)
{
	if (p->end_ns) {
		const double part = bytes ? (double)done / (double)bytes : 1;

		pthread_mutex_lock(&h->lock);
		host_sleep_until(h, p->begin_ns +
					    (uint64_t)((double)(p->end_ns - p->begin_ns) * part));
		pthread_mutex_unlock(&h->lock);
	}
	return !host_closing(h);
}

/* What was written stays in the window until the next operation, what comes through is the last one's.
 */
static void make_late(const struct host_span *span, uint64_t at)
{
	const struct host_window *w = span->window;

	if (span->writes) {
		memcpy(w->real + at, w->late + at, span->bytes);
		memcpy(w->late + at, w->base + at, span->bytes);
	}
	memcpy(w->base + at, w->real + at, span->bytes);
}

void host_passage_end(struct host_passage *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct host_span *span = &p->spans[i];

		if (span->window && span->window->fault == FAULT_LOST)
			memset(span->at, 0, span->bytes);
		else if (span->window && span->window->fault == FAULT_STALE)
			make_late(span, (uint64_t)(span->at - span->window->base));
	}
}
