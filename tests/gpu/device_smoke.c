/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does what a back end offers once, on real GPUs, and says how it went: "ok NAME  figures",
 * "skip NAME: why" or "FAIL NAME: sentence" a line. "device_smoke" opens all GPUs that CUDA shows,
 * "device_smoke host" two simulated devices of the host. Memory is exported to a second process, which
 * is this program again.
 */
#include "base/cleanup.h"
#include "base/err.h"
#include "device/cuda.h"
#include "kernels/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_US   60000000
#define LIMIT_NS   (LIMIT_US * 1000ul)
#define ROUNDS     2000
#define BLOCKS     8 /* of all_reduce */
#define STEPS      20000
#define CHILD_FD   3
#define INFO_BYTES 256

/* Where things are in the 64 KiB of scratch memory that each device has. */
enum scratch {
	AT_CHECK_REPORT = 0,
	AT_FLAG = 4096,
	AT_PING_PONG = 8192,
	AT_END = 12288,
	AT_TICKS = 16384, /* u64[ROUNDS] */
	AT_TABLES = 36864,
	AT_INBOX = 40960, /* u32[2 * BLOCKS * DEVICE_MAX] */
	AT_BLOCK_REPORTS = 49152,
	SCRATCH_BYTES = 65536,
};

/* The same for the pinned memory. */
enum pinned { PINNED_OPEN = 0, PINNED_REPORT = 64, PINNED_ABORT = 128, PINNED_BYTES = 4096 };

struct smoke {
	struct device_request request;
	struct device_set *set;
	const struct device_ops *ops;
	struct stream stream[DEVICE_MAX];
	struct memory scratch[DEVICE_MAX];
	struct memory buffer[DEVICE_MAX]; /* `bytes` each */
	struct memory pinned;
	uint64_t bytes;
	const char *program;
	unsigned failed;
};

/* For the second process; the export's descriptor comes along. */
struct job {
	struct device_request request;
	struct memory_export export;
	uint64_t words, found_tag, left_tag;
};

#define TRY(call)                                                                                  \
	do {                                                                                       \
		int try_ = (call);                                                                 \
		if (try_ != 0)                                                                     \
			return try_;                                                               \
	} while (0)

#define OP(t, op, ...) TRY((t)->ops->op((t)->set, __VA_ARGS__))

#define SKIP 1

static int skip(const char *why)
{
	err_set(0, "%s", why);
	return SKIP;
}

/* ---- steps that most checks take ---- */

static uint64_t at(struct smoke *t, const struct memory *m, int device, uint64_t offset)
{
	uint64_t address = 0;

	if (t->ops->address(t->set, m, device, &address) < 0)
		return 0; /* whoever uses it tells */
	return address + offset;
}

static int launch(struct smoke *t, int device, enum device_kernel kernel, unsigned blocks,
		  unsigned threads, const void *args, size_t size)
{
	struct launch l = {kernel, blocks, threads, args, size};

	return t->ops->launch(t->set, t->stream[device], &l);
}

#define LAUNCH(t, device, name, blocks, threads, ...)                                              \
	launch(t, device, KERNEL_##name, blocks, threads, &(struct name##_args){__VA_ARGS__},      \
	       sizeof(struct name##_args))

static int finish(struct smoke *t, int device)
{
	return t->ops->wait(t->set, t->stream[device], LIMIT_US);
}

static unsigned all_blocks(const struct smoke *t, int device)
{
	return t->set->info[device].blocks * 4;
}

static int fill(struct smoke *t, int device, const struct memory *m, uint64_t bytes, uint64_t tag)
{
	TRY(LAUNCH(t, device, fill, all_blocks(t, device), 512, .target = at(t, m, device, 0),
		   .words = bytes / 8, .tag = tag));
	return finish(t, device);
}

static int check_start(struct smoke *t, int device, const struct memory *m, uint64_t bytes,
		       uint64_t tag)
{
	const struct check_report none = {.first_wrong = CHECK_NONE};

	OP(t, write, &t->scratch[device], AT_CHECK_REPORT, &none, sizeof(none));
	return LAUNCH(t, device, check, all_blocks(t, device), 512, .origin = at(t, m, device, 0),
		      .words = bytes / 8, .tag = tag,
		      .report = at(t, &t->scratch[device], device, AT_CHECK_REPORT));
}

static int check_end(struct smoke *t, int device, struct check_report *ret)
{
	TRY(finish(t, device));
	return t->ops->read(t->set, &t->scratch[device], AT_CHECK_REPORT, ret, sizeof(*ret));
}

static int check(struct smoke *t, int device, const struct memory *m, uint64_t bytes, uint64_t tag)
{
	struct check_report r;

	TRY(check_start(t, device, m, bytes, tag));
	TRY(check_end(t, device, &r));
	if (!r.wrong)
		return 0;
	return err_set(
		EIO,
		"%lu of %llu words are wrong: %lu zero, %lu old, %lu foreign, %lu displaced; words "
		"%lu to %lu",
		r.wrong, (unsigned long long)bytes / 8, r.zero, r.old, r.foreign, r.displaced,
		r.first_wrong, r.last_wrong);
}

/* Microseconds of what `work` enqueues on a device's stream. */
static int timed(struct smoke *t, int device, int (*work)(struct smoke *t, const void *what),
		 const void *what, double *ret_us)
{
	struct event e[2];

	OP(t, event_new, device, &e[0]);
	OP(t, event_new, device, &e[1]);
	OP(t, event_record, t->stream[device], e[0]);
	TRY(work(t, what));
	OP(t, event_record, t->stream[device], e[1]);
	TRY(finish(t, device));
	OP(t, event_elapsed, e[0], e[1], ret_us);
	OP(t, event_free, e[0]);
	return t->ops->event_free(t->set, e[1]);
}

struct transfer {
	int initiator, from, to;
	const struct memory *target, *origin;
	bool by_kernel;
};

static int transfer(struct smoke *t, const void *what)
{
	const struct transfer *x = what;
	int i = x->initiator;

	if (!x->by_kernel)
		return t->ops->copy(t->set, t->stream[i], x->target, 0, x->origin, 0, t->bytes);
	return LAUNCH(t, i, copy, all_blocks(t, i), 512, .target = at(t, x->target, i, 0),
		      .origin = at(t, x->origin, i, 0), .bytes = t->bytes);
}

/* The owner of the target poisons it and checks it afterwards. Adds "NAME 123.4 GB/s". */
static int checked_transfer(struct smoke *t, const char *name, const struct transfer *x, char *info)
{
	static uint64_t round;
	uint64_t tag = pattern_tag_make((u64)x->to, (u64)x->from, ++round, 0);
	double us, warm_us;
	size_t n = strlen(info);

	TRY(fill(t, x->from, x->origin, t->bytes, tag));
	TRY(timed(t, x->initiator, transfer, x, &warm_us));
	TRY(fill(t, x->to, x->target, t->bytes, tag | 1));
	TRY(timed(t, x->initiator, transfer, x, &us));
	TRY(check(t, x->to, x->target, t->bytes, tag));
	snprintf(info + n, INFO_BYTES - n, "%s %.1f GB/s  ", name, (double)t->bytes / us / 1e3);
	return 0;
}

static int second(const struct smoke *t)
{
	return t->set->n > 1 ? 1 : 0;
}

/* Peer access among all, or why not. */
static int peers(struct smoke *t, bool on)
{
	int n = (int)t->set->n;

	if (n < 2)
		return skip("one device");
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++) {
			bool can;

			if (i == k)
				continue;
			OP(t, can_access, i, k, &can);
			if (!can)
				return skip("the driver refuses peer access");
			OP(t, peer_access, i, k, on);
		}
	return 0;
}

/* ---- the checks: 0, SKIP, or a negative errno; info gets figures ---- */

static int check_memory(struct smoke *t, char *info)
{
	static const enum memory_kind kinds[] = {MEMORY_DEVICE, MEMORY_EXPORTABLE, MEMORY_PINNED};
	unsigned done = 0;

	for (int d = 0; d < (int)t->set->n; d++)
		for (size_t k = 0; k < 3; k++) {
			unsigned char in[4096], out[4096] = {0};
			struct memory m;

			if (kinds[k] == MEMORY_EXPORTABLE && !(t->set->caps & DEVICE_EXPORT_FD))
				continue;
			for (size_t i = 0; i < sizeof(in); i++)
				in[i] = (unsigned char)(i * 31 + k);
			OP(t, alloc, d, kinds[k], t->bytes / 8, &m);
			OP(t, write, &m, t->bytes / 8 - sizeof(in), in, sizeof(in));
			OP(t, read, &m, t->bytes / 8 - sizeof(in), out, sizeof(out));
			if (memcmp(in, out, sizeof(in)) != 0)
				return err_set(EIO, "what is read differs from what was written");
			OP(t, free, &m);
			done++;
		}
	snprintf(info, INFO_BYTES, "%u allocations", done);
	return 0;
}

/* Also that what is wrong is found: one word is changed. */
static int check_pattern(struct smoke *t, char *info)
{
	for (int d = 0; d < (int)t->set->n; d++) {
		const struct memory *m = &t->buffer[d];
		struct check_report r;
		uint64_t zero = 0;

		TRY(fill(t, d, m, t->bytes, pattern_tag_make((u64)d, (u64)d, 1, 0)));
		TRY(check(t, d, m, t->bytes, pattern_tag_make((u64)d, (u64)d, 1, 0)));
		OP(t, write, m, t->bytes - 16, &zero, 8);
		TRY(check_start(t, d, m, t->bytes, pattern_tag_make((u64)d, (u64)d, 1, 0)));
		TRY(check_end(t, d, &r));
		if (r.wrong != 1 || r.zero != 1 || r.first_wrong != t->bytes / 8 - 2)
			return err_set(EIO, "a changed word is not found: %lu wrong, first %lu",
				       r.wrong, r.first_wrong);
	}
	snprintf(info, INFO_BYTES, "%llu MiB on each device", (unsigned long long)t->bytes >> 20);
	return 0;
}

static int check_local_copy(struct smoke *t, char *info)
{
	struct memory other;
	struct transfer x = {0, 0, 0, &other, &t->buffer[0], false};

	OP(t, alloc, 0, MEMORY_DEVICE, t->bytes, &other);
	TRY(checked_transfer(t, "copy engine", &x, info));
	x.by_kernel = true;
	TRY(checked_transfer(t, "kernel", &x, info));
	return t->ops->free(t->set, &other);
}

static int check_host_copy(struct smoke *t, char *info)
{
	struct memory host;
	double us;
	struct transfer out = {0, 0, 0, &host, &t->buffer[0], false};
	struct transfer in = {0, 0, 0, &t->buffer[0], &host, false};

	OP(t, alloc, 0, MEMORY_PINNED, t->bytes, &host);
	TRY(fill(t, 0, &t->buffer[0], t->bytes, 2));
	TRY(timed(t, 0, transfer, &out, &us));
	snprintf(info, INFO_BYTES, "to host %.1f GB/s", (double)t->bytes / us / 1e3);
	TRY(fill(t, 0, &t->buffer[0], t->bytes, 3));
	TRY(timed(t, 0, transfer, &in, &us));
	TRY(check(t, 0, &t->buffer[0], t->bytes, 2));
	snprintf(info + strlen(info), INFO_BYTES - strlen(info), "  from host %.1f GB/s",
		 (double)t->bytes / us / 1e3);
	return t->ops->free(t->set, &host);
}

static int check_staged(struct smoke *t, char *info)
{
	struct transfer x = {0, 0, 1, &t->buffer[1], &t->buffer[0], false};

	if (t->set->n < 2)
		return skip("one device");
	if (t->set->caps & DEVICE_PEER_SWITCH) {
		int r = peers(t, false);

		if (r < 0)
			return r;
	}
	return checked_transfer(t, "0->1", &x, info);
}

static int check_peer_copy(struct smoke *t, char *info)
{
	const struct memory *b = t->buffer;

	TRY(peers(t, true));
	TRY(checked_transfer(t, "push 0->1", &(struct transfer){0, 0, 1, &b[1], &b[0], false},
			     info));
	TRY(checked_transfer(t, "pull 0->1", &(struct transfer){1, 0, 1, &b[1], &b[0], false},
			     info));
	return checked_transfer(t, "push 1->0", &(struct transfer){1, 1, 0, &b[0], &b[1], false},
				info);
}

static int check_peer_kernel(struct smoke *t, char *info)
{
	const struct memory *b = t->buffer;

	TRY(peers(t, true));
	TRY(checked_transfer(t, "write 0->1", &(struct transfer){0, 0, 1, &b[1], &b[0], true},
			     info));
	return checked_transfer(t, "read 0->1", &(struct transfer){1, 0, 1, &b[1], &b[0], true},
				info);
}

/* Mapped memory, made before and after access is turned on, and with it off. */
static int check_peer_exportable(struct smoke *t, char *info)
{
	struct memory before, after;
	struct transfer x = {0, 0, 1, &before, &t->buffer[0], true};

	if (!(t->set->caps & DEVICE_EXPORT_FD))
		return skip("no memory that can be exported as a file descriptor");
	TRY(peers(t, false));
	OP(t, alloc, 1, MEMORY_EXPORTABLE, t->bytes, &before);
	x.by_kernel = false;
	TRY(checked_transfer(t, "access off", &x, info));
	TRY(peers(t, true));
	x.by_kernel = true;
	TRY(checked_transfer(t, "turned on", &x, info));
	OP(t, alloc, 1, MEMORY_EXPORTABLE, t->bytes, &after);
	x.target = &after;
	TRY(checked_transfer(t, "made later", &x, info));
	OP(t, free, &before);
	return t->ops->free(t->set, &after);
}

static int close_gate(struct smoke *t, uint64_t limit_ns)
{
	const uint32_t zero = 0;

	OP(t, write, &t->pinned, PINNED_OPEN, &zero, 4);
	OP(t, write, &t->pinned, PINNED_REPORT, &zero, 4);
	return LAUNCH(t, 0, gate, 1, 1, .open = at(t, &t->pinned, 0, PINNED_OPEN),
		      .report = at(t, &t->pinned, 0, PINNED_REPORT), .limit_ns = limit_ns);
}

static int gate_ended(struct smoke *t, enum wait_end expected)
{
	uint32_t end;

	TRY(finish(t, 0));
	OP(t, read, &t->pinned, PINNED_REPORT, &end, 4);
	return end == expected ? 0 : err_set(EIO, "the gate reports %u, not %d", end, expected);
}

/* While a stream is held, reads and writes of the device's memory still go through. */
static int check_gate(struct smoke *t, char *info)
{
	uint32_t one = 1, word = 0x5eed, seen = 0;
	int r;

	TRY(close_gate(t, LIMIT_NS));
	r = t->ops->wait(t->set, t->stream[0], 20000);
	if (r != -ETIMEDOUT)
		return r < 0 ? r : err_set(EIO, "a closed gate held nothing back");
	snprintf(info, INFO_BYTES, "%s", err_msg());
	OP(t, write, &t->scratch[0], AT_END, &word, 4);
	OP(t, read, &t->scratch[0], AT_END, &seen, 4);
	OP(t, write, &t->pinned, PINNED_OPEN, &one, 4);
	TRY(gate_ended(t, WAIT_DONE));
	TRY(close_gate(t, 10000000));
	TRY(gate_ended(t, WAIT_TIMED_OUT));
	return seen == word ? 0 : err_set(EIO, "a word changed while the stream was held");
}

static int check_graph(struct smoke *t, char *info)
{
	const struct check_report none = {.first_wrong = CHECK_NONE};
	struct check_report r;
	struct memory other;
	struct graph g;

	if (!(t->set->caps & DEVICE_GRAPHS))
		return skip("this back end has no graphs");
	OP(t, alloc, 0, MEMORY_DEVICE, t->bytes, &other);
	OP(t, capture_begin, t->stream[0]);
	TRY(LAUNCH(t, 0, fill, 64, 512, .target = at(t, &t->buffer[0], 0, 0), .words = t->bytes / 8,
		   .tag = 77));
	OP(t, copy, t->stream[0], &other, 0, &t->buffer[0], 0, t->bytes);
	TRY(LAUNCH(t, 0, check, 64, 512, .origin = at(t, &other, 0, 0), .words = t->bytes / 8,
		   .tag = 77, .report = at(t, &t->scratch[0], 0, AT_CHECK_REPORT)));
	OP(t, capture_end, t->stream[0], &g);
	for (int i = 0; i < 3; i++) {
		TRY(fill(t, 0, &other, t->bytes, 1));
		OP(t, write, &t->scratch[0], AT_CHECK_REPORT, &none, sizeof(none));
		OP(t, graph_launch, t->stream[0], g);
		TRY(check_end(t, 0, &r));
		if (r.wrong)
			return err_set(EIO, "replay %d: %lu words are wrong", i, r.wrong);
	}
	snprintf(info, INFO_BYTES, "fill, copy and check, replayed 3 times");
	OP(t, graph_free, g);
	return t->ops->free(t->set, &other);
}

static int ping_pong_start(struct smoke *t, int me, int other)
{
	static const struct ping_pong_report none;
	const uint32_t zero = 0;

	OP(t, write, &t->scratch[me], AT_FLAG, &zero, 4);
	OP(t, write, &t->scratch[other], AT_FLAG, &zero, 4);
	OP(t, write, &t->scratch[me], AT_PING_PONG, &none, sizeof(none));
	return 0;
}

static int ping_pong_launch(struct smoke *t, int me, int other)
{
	return LAUNCH(t, me, ping_pong, 1, 1, .mine = at(t, &t->scratch[me], me, AT_FLAG),
		      .theirs = at(t, &t->scratch[other], me, AT_FLAG), .rounds = ROUNDS,
		      .first = me == 0, .abort = at(t, &t->pinned, me, PINNED_ABORT),
		      .limit_ns = LIMIT_NS / 2, .ticks = at(t, &t->scratch[me], me, AT_TICKS),
		      .report = at(t, &t->scratch[me], me, AT_PING_PONG));
}

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int check_ping_pong(struct smoke *t, char *info)
{
	const uint32_t zero = 0;
	struct ping_pong_report r;
	uint64_t ticks[ROUNDS];
	double ns;

	TRY(peers(t, true));
	OP(t, write, &t->pinned, PINNED_ABORT, &zero, 4);
	TRY(ping_pong_start(t, 0, 1));
	TRY(ping_pong_start(t, 1, 0));
	TRY(ping_pong_launch(t, 1, 0));
	TRY(ping_pong_launch(t, 0, 1));
	TRY(finish(t, 0));
	TRY(finish(t, 1));
	OP(t, read, &t->scratch[0], AT_PING_PONG, &r, sizeof(r));
	OP(t, read, &t->scratch[0], AT_TICKS, ticks, sizeof(ticks));
	if (r.end != WAIT_DONE || r.rounds != ROUNDS)
		return err_set(EIO, "ended with %lu after %lu rounds", r.end, r.rounds);
	qsort(ticks, ROUNDS, sizeof(*ticks), by_size);
	ns = (double)r.ns / (double)r.ticks;
	snprintf(info, INFO_BYTES, "round trip %.0f ns median, %.0f to %.0f; a tick is %.4f ns",
		 (double)ticks[ROUNDS / 2] * ns, (double)ticks[0] * ns,
		 (double)ticks[ROUNDS - 1] * ns, ns);
	return 0;
}

struct chase {
	int device;
	const struct memory *m;
};

static int chase(struct smoke *t, const void *what)
{
	const struct chase *c = what;

	return LAUNCH(t, c->device, chase, 1, 1, .buffer = at(t, c->m, c->device, 0),
		      .steps = STEPS, .end = at(t, &t->scratch[c->device], c->device, AT_END));
}

/* Entries 4 KiB apart over the whole buffer; warmed up once. */
static int chase_ns(struct smoke *t, int device, int owner, double *ret)
{
	struct chase c = {device, &t->buffer[owner]};
	uint64_t end = 0, stride = 4096, n = t->bytes / stride;
	double us;

	TRY(LAUNCH(t, owner, chain, all_blocks(t, owner), 512, .buffer = at(t, c.m, owner, 0),
		   .seen_as = at(t, c.m, device, 0), .bytes = t->bytes, .stride = stride));
	TRY(finish(t, owner));
	TRY(timed(t, device, chase, &c, &us));
	TRY(timed(t, device, chase, &c, &us));
	OP(t, read, &t->scratch[device], AT_END, &end, 8);
	if (end != at(t, c.m, device, STEPS % n * stride))
		return err_set(EIO, "the chase ended at the wrong place");
	*ret = us * 1e3 / STEPS;
	return 0;
}

static int check_chase(struct smoke *t, char *info)
{
	double local, far;
	int r;

	TRY(chase_ns(t, 0, 0, &local));
	snprintf(info, INFO_BYTES, "own memory %.0f ns (second pass)", local);
	r = peers(t, true);
	if (r != 0)
		return r < 0 ? r : 0;
	TRY(chase_ns(t, 0, 1, &far));
	snprintf(info, INFO_BYTES, "own memory %.0f ns, 1's from 0 %.0f ns (second pass)", local,
		 far);
	return 0;
}

/* Input of device d is the pattern of tag d; in u32, so both halves of a word are summed apart. */
static int check_sums(struct smoke *t, const struct memory *m, uint64_t offset)
{
	uint32_t got[2048];

	OP(t, read, m, offset, got, sizeof(got));
	for (size_t i = 0; i < 2048; i++) {
		uint32_t sum = 0;

		for (u64 d = 0; d < t->set->n; d++)
			sum += (uint32_t)(pattern_word(d, offset / 8 + i / 2) >> (i % 2 * 32));
		if (got[i] != sum)
			return err_set(EIO, "element %llu is %#x and not %#x",
				       (unsigned long long)offset / 4 + i, got[i], sum);
	}
	return 0;
}

static int all_reduce_tables(struct smoke *t, int me, const struct memory *outputs, bool clear)
{
	static const uint32_t zeros[2 * BLOCKS * DEVICE_MAX];
	uint64_t tables[3][DEVICE_MAX] = {0};
	size_t n = t->set->n;

	for (size_t d = 0; d < n; d++) {
		tables[0][d] = at(t, &t->buffer[d], me, 0);
		tables[1][d] = at(t, &outputs[d], me, 0);
		tables[2][d] = at(t, &t->scratch[d], me, AT_INBOX);
	}
	if (clear)
		OP(t, write, &t->scratch[me], AT_INBOX, zeros, sizeof(zeros));
	return t->ops->write(t->set, &t->scratch[me], AT_TABLES, tables, sizeof(tables));
}

static int all_reduce_launch(struct smoke *t, int me, uint64_t count, uint64_t epoch)
{
	const struct memory *s = &t->scratch[me];
	uint64_t tables = at(t, s, me, AT_TABLES), one = DEVICE_MAX * 8;

	return LAUNCH(t, me, all_reduce, BLOCKS, 512, .inputs = tables, .outputs = tables + one,
		      .flags = tables + 2 * one, .n = t->set->n, .me = (u64)me, .count = count,
		      .epoch = epoch, .abort = at(t, &t->pinned, me, PINNED_ABORT),
		      .limit_ns = LIMIT_NS / 2, .report = at(t, s, me, AT_BLOCK_REPORTS));
}

static int all_reduce_run(struct smoke *t, const struct memory *outputs, uint64_t bytes)
{
	int n = (int)t->set->n;

	for (int d = 0; d < n; d++) {
		TRY(fill(t, d, &t->buffer[d], bytes, (u64)d));
		TRY(all_reduce_tables(t, d, outputs, true));
	}
	for (uint64_t epoch = 1; epoch <= 3; epoch++)
		for (int d = 0; d < n; d++)
			TRY(all_reduce_launch(t, d, bytes / 4, epoch));
	for (int d = 0; d < n; d++) {
		uint32_t ends[BLOCKS];

		TRY(finish(t, d));
		OP(t, read, &t->scratch[d], AT_BLOCK_REPORTS, ends, sizeof(ends));
		for (int b = 0; b < BLOCKS; b++)
			if (ends[b] != WAIT_DONE)
				return err_set(EIO, "block %d of device %d ended with %u", b, d,
					       ends[b]);
		TRY(check_sums(t, &outputs[d], 0));
		TRY(check_sums(t, &outputs[d], bytes - 8192));
	}
	return 0;
}

static int check_all_reduce(struct smoke *t, char *info)
{
	struct memory outputs[DEVICE_MAX];
	const uint32_t zero = 0;
	uint64_t bytes = t->bytes / 8;
	int n = (int)t->set->n;

	TRY(peers(t, true));
	OP(t, write, &t->pinned, PINNED_ABORT, &zero, 4);
	for (int d = 0; d < n; d++)
		OP(t, alloc, d, MEMORY_DEVICE, bytes, &outputs[d]);
	TRY(all_reduce_run(t, outputs, bytes));
	for (int d = 0; d < n; d++)
		OP(t, free, &outputs[d]);
	snprintf(info, INFO_BYTES, "%llu MiB over %d devices, 3 runs",
		 (unsigned long long)bytes >> 20, n);
	return 0;
}

/* ---- the second process ---- */

static int send_job(int to, const struct job *j, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {(void *)(uintptr_t)j, sizeof(*j)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *h;

	if (fd >= 0) {
		m.msg_control = control;
		m.msg_controllen = sizeof(control);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	}
	return sendmsg(to, &m, MSG_NOSIGNAL) == sizeof(*j) ? 0 : err_sys(errno, "sendmsg");
}

static int receive_job(int from, struct job *ret)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = {ret, sizeof(*ret)};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *h;

	if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != sizeof(*ret))
		return err_sys(errno ? errno : EPIPE, "recvmsg");
	h = CMSG_FIRSTHDR(&m);
	ret->export.fd = -1;
	if (h && h->cmsg_type == SCM_RIGHTS)
		memcpy(&ret->export.fd, CMSG_DATA(h), sizeof(int));
	return 0;
}

static int prepare(struct smoke *t);

/* Checks what the owner wrote and leaves something else there. */
static int do_job(struct smoke *t, const struct job *j)
{
	struct memory m;

	OP(t, import, 0, &j->export, &m);
	TRY(check(t, 0, &m, j->words * 8, j->found_tag));
	TRY(fill(t, 0, &m, j->words * 8, j->left_tag));
	return t->ops->free(t->set, &m);
}

static int child_main(void)
{
	struct smoke t = {.bytes = 1 << 20};
	struct job j;
	int r = receive_job(CHILD_FD, &j);

	if (r == 0) {
		t.request = j.request;
		r = prepare(&t);
	}
	if (r == 0)
		r = do_job(&t, &j);
	if (r < 0)
		printf("     in the second process: %s\n", err_msg());
	device_close(t.set);
	return r < 0;
}

static int run_child(struct smoke *t, const struct job *j, int fd)
{
	int pair[2], status = 0, r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(errno, "socketpair");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (pair[1] == CHILD_FD || dup2(pair[1], CHILD_FD) == CHILD_FD)
			execl(t->program, t->program, "import", (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	r = pid < 0 ? err_sys(errno, "fork") : send_job(pair[0], j, fd);
	close(pair[0]);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status != 0 && r == 0)
		r = err_set(EIO, "the second process failed (status %#x)", (unsigned)status);
	return r;
}

static int exported(struct smoke *t, enum memory_kind memory, enum export_kind kind, char *info)
{
	int user = peers(t, true) == 0 ? second(t) : 0;
	struct job j = {.request = t->request,
			.words = t->bytes / 8,
			.found_tag = 1234,
			.left_tag = 4320};
	struct memory m;
	int r;

	OP(t, alloc, 0, memory, t->bytes, &m);
	TRY(fill(t, 0, &m, t->bytes, j.found_tag));
	OP(t, export, &m, kind, &j.export);
	j.request.n = 1;
	j.request.ordinal[0] = t->request.ordinal[user];
	j.request.number[0] = t->request.number[user];
	r = run_child(t, &j, j.export.fd);
	if (j.export.fd >= 0)
		close(j.export.fd);
	TRY(r);
	TRY(check(t, 0, &m, t->bytes, j.left_tag));
	snprintf(info, INFO_BYTES, "0's memory, used by %d in another process", user);
	return t->ops->free(t->set, &m);
}

static int check_export_fd(struct smoke *t, char *info)
{
	if (!(t->set->caps & DEVICE_EXPORT_FD))
		return skip("this back end cannot");
	return exported(t, MEMORY_EXPORTABLE, EXPORT_FD, info);
}

static int check_export_ipc(struct smoke *t, char *info)
{
	if (!(t->set->caps & DEVICE_EXPORT_IPC))
		return skip("this back end cannot");
	return exported(t, MEMORY_DEVICE, EXPORT_IPC, info);
}

static int check_export_dmabuf(struct smoke *t, char *info)
{
	static const enum memory_kind kinds[] = {MEMORY_DEVICE, MEMORY_EXPORTABLE};

	if (!(t->set->caps & DEVICE_EXPORT_DMABUF))
		return skip("this back end cannot");
	for (size_t k = 0; k < 2; k++) {
		struct memory_export e;
		struct memory m;

		OP(t, alloc, 0, kinds[k], 4 << 20, &m);
		OP(t, export, &m, EXPORT_DMABUF, &e);
		snprintf(info + strlen(info), INFO_BYTES - strlen(info), "offset %llu  ",
			 (unsigned long long)e.offset);
		close(e.fd);
		OP(t, free, &m);
	}
	return 0;
}

static int check_native(struct smoke *t, char *info)
{
	struct stream wrapped;
	void *native;

	if (!(t->set->caps & DEVICE_NATIVE))
		return skip("this back end has none");
	for (int d = 0; d < (int)t->set->n; d++) {
		OP(t, stream_native, t->stream[d], &native);
		OP(t, stream_wrap, d, native, &wrapped);
		OP(t, wait, wrapped, LIMIT_US);
		OP(t, stream_free, wrapped);
		OP(t, make_current, d);
	}
	snprintf(info, INFO_BYTES, "streams handed out and taken in");
	return 0;
}

static int check_out_of_memory(struct smoke *t, char *info)
{
	struct memory m;
	int r = t->ops->alloc(t->set, 0, MEMORY_DEVICE, 10ull << 40, &m);

	if (r != -ENOMEM)
		return r < 0 ? r : err_set(EIO, "10 TiB were given");
	snprintf(info, INFO_BYTES, "%s", err_msg());
	return 0;
}

/* ---- all of it ---- */

static const struct {
	const char *name;
	int (*run)(struct smoke *t, char *info);
} checks[] = {
	{"memory", check_memory},
	{"pattern", check_pattern},
	{"local_copy", check_local_copy},
	{"host_copy", check_host_copy},
	{"staged_copy", check_staged},
	{"peer_copy", check_peer_copy},
	{"peer_kernel", check_peer_kernel},
	{"peer_exportable", check_peer_exportable},
	{"gate", check_gate},
	{"graph", check_graph},
	{"ping_pong", check_ping_pong},
	{"chase", check_chase},
	{"all_reduce", check_all_reduce},
	{"export_fd", check_export_fd},
	{"export_ipc", check_export_ipc},
	{"export_dmabuf", check_export_dmabuf},
	{"native", check_native},
	{"out_of_memory", check_out_of_memory},
};

/* Also what the second process needs. */
static int prepare(struct smoke *t)
{
	TRY(device_open(&t->request, &t->set));
	t->ops = t->set->ops;
	OP(t, alloc, 0, MEMORY_PINNED, PINNED_BYTES, &t->pinned);
	for (int d = 0; d < (int)t->set->n; d++) {
		OP(t, stream_new, d, &t->stream[d]);
		OP(t, alloc, d, MEMORY_DEVICE, SCRATCH_BYTES, &t->scratch[d]);
		OP(t, alloc, d, MEMORY_DEVICE, t->bytes, &t->buffer[d]);
	}
	return 0;
}

/* As many as CUDA opens: there is no device behind the last. */
static int count_gpus(struct device_request *r)
{
	int err;

	do {
		struct device_request one = *r;
		struct device_set *s = NULL;

		one.n = 1;
		one.ordinal[0] = (int)r->n;
		err = device_open(&one, &s);
		if (err == 0)
			printf("     CUDA device %d is %s at %s\n", one.ordinal[0], s->info[0].name,
			       s->info[0].pci);
		device_close(s);
	} while (err == 0 && ++r->n < DEVICE_MAX);
	return r->n ? 0 : err;
}

static int choose(struct smoke *t, bool host)
{
	t->request.kind = host ? DEVICE_HOST : DEVICE_CUDA;
	t->bytes = host ? 4 << 20 : 256 << 20;
	for (int i = 0; i < DEVICE_MAX; i++)
		t->request.ordinal[i] = t->request.number[i] = i;
	if (!host)
		return count_gpus(&t->request);
	t->request.n = 2;
	return 0;
}

static int free_all(struct smoke *t)
{
	for (int d = 0; d < (int)t->set->n; d++) {
		OP(t, stream_free, t->stream[d]);
		OP(t, free, &t->scratch[d]);
		OP(t, free, &t->buffer[d]);
	}
	return t->ops->free(t->set, &t->pinned);
}

static void say(struct smoke *t, const char *name, int r, const char *info)
{
	if (r == 0)
		printf("ok %s  %s\n", name, info);
	else
		printf("%s %s: %s\n", r == SKIP ? "skip" : "FAIL", name, err_msg());
	fflush(stdout);
	t->failed += r < 0;
}

int main(int argc, char **argv)
{
	struct smoke t = {.program = "/proc/self/exe"};
	char info[INFO_BYTES] = "";
	int r;

	if (argc > 1 && strcmp(argv[1], "import") == 0)
		return child_main();
	r = choose(&t, argc > 1 && strcmp(argv[1], "host") == 0);
	if (r == 0)
		r = prepare(&t);
	if (r == 0)
		snprintf(info, sizeof(info),
			 "%zu of %s, sm_%u, %u blocks, %u copy engines, caps %#x", t.set->n,
			 t.set->info[0].name, t.set->info[0].sm, t.set->info[0].blocks,
			 t.set->info[0].copy_engines, t.set->caps);
	say(&t, "open", r, info);
	for (size_t i = 0; r == 0 && i < sizeof(checks) / sizeof(*checks); i++) {
		info[0] = '\0';
		say(&t, checks[i].name, checks[i].run(&t, info), info);
	}
	if (r == 0)
		say(&t, "free", free_all(&t), "");
	device_close(t.set);
	printf("%u failed\n", t.failed);
	return t.failed != 0;
}
