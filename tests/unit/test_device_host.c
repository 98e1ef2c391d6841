/* SPDX-License-Identifier: Apache-2.0 */
/* device/host: memory, streams, events, graphs, peer access, sharing, and each fault's effect. */
#include "device_rig.h"

#include "base/array.h"
#include "device/host.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (64u << 10)

static u64 tag_of(int target, int initiator, unsigned round)
{
	return pattern_tag_make((u64)target, (u64)initiator, round, 0);
}

static void opens_what_is_asked(void **state)
{
	struct device_request r = {.kind = DEVICE_HOST, .n = 2, .number = {4, 9}};
	struct device_set *s;

	(void)state;
	assert_ok(device_open(&r, &s));
	assert_string_equal(s->ops->name, "host");
	assert_int_equal(s->n, 2);
	assert_string_equal(s->info[1].name, "host device 9");
	assert_int_equal(s->info[1].number, 9);
	assert_int_equal(s->info[1].ordinal, -1);
	assert_int_equal(s->info[0].memory_bytes, 256 << 20);
	device_close(s);
	r.n = 0;
	assert_int_equal(device_open(&r, &s), -EINVAL);
	r.n = DEVICE_MAX + 1;
	assert_int_equal(device_open(&r, &s), -EINVAL);
}

static void fault_names(void **state)
{
	(void)state;
	for (enum fault_kind f = FAULT_NONE; f < FAULT_N; f++)
		assert_int_equal(fault_parse(fault_word(f)), f);
	assert_int_equal(fault_parse("melt"), FAULT_N);
}

/* ---- memory ---- */

static void memory_runs_out(void **state)
{
	struct device_set *s = rig_open(1, FAULT_NONE);
	struct memory a, b, c;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, 5 << 20, &a));
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, 5 << 20, &b), -ENOMEM);
	assert_non_null(strstr(err_msg(), "host device 0 has no memory left for 5242880 bytes"));
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, UINT64_MAX, &b), -ENOMEM);
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, 0, &b), -EINVAL);
	assert_int_equal(s->ops->alloc(s, 1, MEMORY_DEVICE, 1, &b), -EINVAL);
	assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, 3 << 20, &b));
	assert_ok(s->ops->free(s, &a));
	assert_int_equal(s->ops->free(s, &a), -EINVAL);
	assert_ok(s->ops->alloc(s, 0, MEMORY_EXPORTABLE, 5 << 20, &c));
	device_close(s);
}

/* Many small ones fill it to the last page, and none overlaps another. */
static void memory_is_filled(void **state)
{
	struct device_set *s = rig_open(1, FAULT_NONE);
	const u32 n = (8 << 20) / 4096;
	struct memory *m = calloc(n, sizeof(*m)), more;

	(void)state;
	for (u32 i = 0; i < n; i++) {
		assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, i % 4096 + 1, &m[i]));
		assert_ok(s->ops->write(s, &m[i], i % 4096, "x", 1));
	}
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, 1, &more), -ENOMEM);
	for (u32 i = 0; i < n; i += 2)
		assert_ok(s->ops->free(s, &m[i]));
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, 2 << 20, &more), -ENOMEM); /* pieces */
	for (u32 i = 0; i < n; i += 2)
		assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, 4096, &m[i]));
	free(m);
	device_close(s);
}

static void memory_is_read_and_written(void **state)
{
	struct device_set *s = rig_open(1, FAULT_NONE);
	char text[64] = "", own[16] = "the caller's";
	struct memory m = rig_alloc(s, 0, 64), wrapped;
	u64 at;

	(void)state;
	for (size_t offset = 0; offset < 9; offset++) {
		assert_ok(s->ops->write(s, &m, offset, "0123456789abcdef", 17));
		assert_ok(s->ops->read(s, &m, offset, text, 17));
		assert_string_equal(text, "0123456789abcdef");
	}
	assert_int_equal(s->ops->read(s, &m, 48, text, 17), -EINVAL);
	assert_int_equal(s->ops->read(s, &m, UINT64_MAX, text, 2), -EINVAL);
	assert_ok(s->ops->wrap(s, 0, (u64)own, sizeof(own), &wrapped));
	assert_ok(s->ops->address(s, &wrapped, 0, &at));
	assert_int_equal(at, (u64)own);
	assert_ok(s->ops->read(s, &wrapped, 4, text, 6));
	assert_memory_equal(text, "caller", 6);
	assert_ok(s->ops->free(s, &wrapped));
	assert_string_equal(own, "the caller's");
	device_close(s);
}

/* ---- streams ---- */

static void streams_wait_for_events(void **state)
{
	struct device_set *s = rig_open(2, FAULT_NONE);
	struct memory words = rig_alloc(s, -1, 8), data = rig_alloc(s, 0, SIZE);
	struct memory to = rig_alloc(s, 1, SIZE);
	struct stream a = rig_stream(s, 0), b = rig_stream(s, 1);
	struct event filled, end;
	const u32 closed[2] = {0}, open = 1;
	double us;

	(void)state;
	rig_peers(s);
	assert_ok(s->ops->enqueue_time(s, &us));
	assert_true(us == 0);
	rig_set(s, &words, closed, sizeof(closed));
	assert_ok(s->ops->event_new(s, 0, &filled));
	assert_ok(s->ops->event_new(s, 1, &end));
	RIG_LAUNCH(s, a, gate, 1, rig_address(s, &words, 0), rig_address(s, &words, 0) + 4,
		   RIG_LIMIT_NS);
	RIG_LAUNCH(s, a, fill, 2, rig_address(s, &data, 0), SIZE / 8, 0, tag_of(1, 0, 1));
	assert_ok(s->ops->event_record(s, a, filled));
	assert_ok(s->ops->event_wait(s, b, filled));
	assert_ok(s->ops->copy(s, b, &to, 0, &data, 0, SIZE));
	assert_ok(s->ops->enqueue_time(s, &us));
	assert_true(us > 0); /* though it has not begun */
	assert_ok(s->ops->event_record(s, b, end));
	assert_int_equal(s->ops->wait(s, b, 1), -ETIMEDOUT);
	assert_int_equal(s->ops->event_elapsed(s, filled, end, &us), -EBUSY);
	rig_set(s, &words, &open, sizeof(open));
	rig_wait(s, b);
	assert_int_equal(rig_check(s, &to, tag_of(1, 0, 1)).wrong, 0);
	assert_ok(s->ops->event_elapsed(s, filled, end, &us));
	assert_true(us >= 0);
	assert_ok(s->ops->event_free(s, filled));
	assert_int_equal(s->ops->event_record(s, a, filled), -EINVAL);
	assert_ok(s->ops->stream_free(s, a));
	assert_int_equal(s->ops->wait(s, a, 1), -EINVAL);
	device_close(s);
}

static void streams_finish_after_free(void **state)
{
	struct device_set *s = rig_open(1, FAULT_NONE);
	struct memory data = rig_alloc(s, 0, SIZE);
	struct stream a = rig_stream(s, 0), b = rig_stream(s, 0);
	struct event done;

	(void)state;
	assert_ok(s->ops->event_new(s, 0, &done));
	RIG_LAUNCH(s, a, fill, 2, rig_address(s, &data, 0), SIZE / 8, 0, 5);
	assert_ok(s->ops->event_record(s, a, done));
	assert_ok(s->ops->stream_free(s, a));
	assert_ok(s->ops->event_wait(s, b, done));
	rig_wait(s, b);
	assert_int_equal(rig_check(s, &data, 5).wrong, 0);
	device_close(s);
}

static void bad_launches(void **state)
{
	struct device_set *s = rig_open(1, FAULT_NONE);
	struct memory m = rig_alloc(s, 0, 8);
	struct stream stream = rig_stream(s, 0);
	const struct gate_args args = {0};
	struct launch l = {KERNEL_gate, 1, 1, &args, sizeof(args)};

	(void)state;
	l.args_size--;
	assert_int_equal(s->ops->launch(s, stream, &l), -EINVAL);
	l = (struct launch){KERNEL_gate, 0, 1, &args, sizeof(args)};
	assert_int_equal(s->ops->launch(s, stream, &l), -EINVAL);
	l = (struct launch){KERNEL_N, 1, 1, &args, sizeof(args)};
	assert_int_equal(s->ops->launch(s, stream, &l), -EINVAL);
	assert_int_equal(s->ops->copy(s, stream, &m, 1, &m, 0, 8), -EINVAL);
	device_close(s);
}

static void graphs_replay(void **state)
{
	struct device_set *s = rig_open(1, FAULT_NONE);
	struct memory a = rig_alloc(s, 0, SIZE), b = rig_alloc(s, 0, SIZE);
	struct stream stream = rig_stream(s, 0);
	struct event begin, end;
	struct graph g;
	double us;

	(void)state;
	assert_ok(s->ops->event_new(s, 0, &begin));
	assert_ok(s->ops->event_new(s, 0, &end));
	assert_int_equal(s->ops->capture_end(s, stream, &g), -EINVAL);
	assert_ok(s->ops->capture_begin(s, stream));
	assert_int_equal(s->ops->capture_begin(s, stream), -EBUSY);
	assert_ok(s->ops->event_record(s, stream, begin));
	assert_ok(s->ops->copy(s, stream, &b, 0, &a, 0, SIZE));
	assert_ok(s->ops->event_record(s, stream, end));
	assert_ok(s->ops->event_wait(s, stream, end));
	assert_int_equal(s->ops->wait(s, stream, 1), -EBUSY);
	assert_ok(s->ops->capture_end(s, stream, &g));
	assert_int_equal(s->ops->event_elapsed(s, begin, end, &us), -EBUSY); /* nothing ran */
	for (u64 round = 0; round < 3; round++) {
		rig_fill(s, &a, round);
		assert_int_not_equal(rig_check(s, &b, round).wrong, 0);
		assert_ok(s->ops->graph_launch(s, stream, g));
		rig_wait(s, stream);
		assert_ok(s->ops->event_elapsed(s, begin, end, &us));
		assert_int_equal(rig_check(s, &b, round).wrong, 0);
	}
	assert_ok(s->ops->graph_free(s, g));
	assert_int_equal(s->ops->graph_launch(s, stream, g), -EINVAL);
	assert_ok(s->ops->capture_begin(s, stream));
	assert_ok(s->ops->copy(s, stream, &b, 0, &a, 0, SIZE)); /* left for close */
	device_close(s);
}

static void add_one(void *context)
{
	*(int *)context += 1;
}

static void other_libraries_use_streams(void **state)
{
	struct device_set *s = rig_open(1, FAULT_NONE);
	struct stream stream = rig_stream(s, 0), wrapped;
	struct host_native *native;
	void *p;
	int n = 0;

	(void)state;
	assert_ok(s->ops->make_current(s, 0));
	assert_int_equal(s->ops->make_current(s, 1), -EINVAL);
	assert_ok(s->ops->stream_native(s, stream, &p));
	native = p;
	assert_ok(native->call(native, add_one, &n));
	assert_ok(s->ops->stream_wrap(s, 0, p, &wrapped));
	rig_wait(s, wrapped);
	assert_int_equal(n, 1);
	assert_ok(s->ops->stream_free(s, wrapped));
	assert_ok(native->call(native, add_one, &n));
	rig_wait(s, stream);
	assert_int_equal(n, 2);
	assert_int_equal(s->ops->stream_wrap(s, 0, &n, &wrapped), -EINVAL);
	/* A default stream that cannot be made: why, not that NULL is no stream. */
	assert_int_equal(s->ops->stream_wrap(s, 99, NULL, &wrapped), -EINVAL);
	assert_null(strstr(err_msg(), "not a stream"));
	device_close(s);
}

/* ---- between devices ---- */

/*
 * ThreadSanitizer compares addresses: where nothing changes what goes between two devices, both see
 * memory at one.
 */
static void memory_is_seen_where_its_owner_sees_it(void **state)
{
	static const struct {
		enum fault_kind fault;
		bool same;
	} cases[] = {{FAULT_NONE, true}, {FAULT_MIRROR, false}, {FAULT_SLOW, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct device_set *s = rig_open(2, cases[i].fault);
		const struct memory m = rig_alloc(s, 1, 4096);

		rig_peers(s);
		assert_int_equal(rig_address(s, &m, 0) == rig_address(s, &m, 1), cases[i].same);
		device_close(s);
	}
}

static void without_peer_access(void **state)
{
	struct device_set *s = rig_open(2, FAULT_NONE);
	struct memory a = rig_alloc(s, 0, SIZE), b = rig_alloc(s, 1, SIZE);
	struct stream stream = rig_stream(s, 0);
	bool can;
	u64 at;

	(void)state;
	assert_ok(s->ops->can_access(s, 0, 1, &can));
	assert_true(can);
	assert_int_equal(s->ops->address(s, &b, 0, &at), -EACCES);
	rig_fill(s, &a, 1);
	assert_ok(s->ops->copy(s, stream, &b, 0, &a, 0, SIZE));
	rig_wait(s, stream);
	assert_int_equal(rig_check(s, &b, 1).wrong, 0);
	assert_ok(s->ops->peer_access(s, 0, 1, true));
	assert_ok(s->ops->address(s, &b, 0, &at));
	assert_ok(s->ops->peer_access(s, 0, 1, false));
	assert_int_equal(s->ops->address(s, &b, 0, &at), -EACCES);
	assert_int_equal(s->ops->address(s, &a, 1, &at), -EACCES);
	assert_int_equal(s->ops->peer_access(s, 1, 1, true), -EINVAL);
	device_close(s);
}

enum way { BY_COPY, BY_KERNEL };

/* The initiator, device 0, writes or reads SIZE bytes of the target's. */
static void move(struct device_set *s, enum way way, struct memory *to, struct memory *from)
{
	struct stream stream = rig_stream(s, 0);

	if (way == BY_COPY)
		assert_ok(s->ops->copy(s, stream, to, 0, from, 0, SIZE));
	else
		RIG_LAUNCH(s, stream, copy, 3, rig_address(s, to, 0), rig_address(s, from, 0),
			   SIZE);
	rig_wait(s, stream);
	assert_ok(s->ops->stream_free(s, stream));
}

/* What three rounds of writing and of reading give, as each side's owner sees it. */
struct outcome {
	struct check_report write[3], read[3];
};

static struct outcome outcome_of(enum fault_kind fault, enum way way)
{
	struct device_set *s = rig_open(2, fault);
	struct memory mine = rig_alloc(s, 0, SIZE), theirs = rig_alloc(s, 1, SIZE);
	struct memory got = rig_alloc(s, 0, SIZE), source = rig_alloc(s, 1, SIZE);
	struct outcome o;

	rig_peers(s);
	for (unsigned round = 0; round < 3; round++) {
		rig_fill(s, &mine, tag_of(1, 0, round));
		rig_fill(s, &theirs, tag_of(1, 0, round) | 1);
		move(s, way, &theirs, &mine);
		o.write[round] = rig_check(s, &theirs, tag_of(1, 0, round));
		rig_fill(s, &source, tag_of(0, 1, round));
		rig_fill(s, &got, tag_of(0, 1, round) | 1);
		move(s, way, &got, &source);
		o.read[round] = rig_check(s, &got, tag_of(0, 1, round));
	}
	device_close(s);
	return o;
}

#define WORDS (SIZE / 8)

#define FOR_EACH_WAY_AND_ROUND(fault)                                                              \
	for (enum way way = BY_COPY; way <= BY_KERNEL; way++)                                      \
		for (struct outcome o = outcome_of(fault, way), *once = &o; once; once = NULL)     \
			for (unsigned round = 0; round < 3; round++)

static void no_fault(void **state)
{
	(void)state;
	FOR_EACH_WAY_AND_ROUND(FAULT_NONE)
	{
		assert_int_equal(o.write[round].wrong, 0);
		assert_int_equal(o.read[round].wrong, 0);
	}
}

/* What was written is only seen by its writer; what is read was never written there. */
static void fault_mirror(void **state)
{
	struct device_set *s = rig_open(2, FAULT_MIRROR);
	struct memory mine = rig_alloc(s, 0, SIZE), theirs = rig_alloc(s, 1, SIZE);

	(void)state;
	FOR_EACH_WAY_AND_ROUND(FAULT_MIRROR)
	{
		assert_int_equal(o.write[round].poison, WORDS);
		assert_int_equal(o.read[round].zero, WORDS);
	}
	rig_peers(s);
	rig_fill(s, &mine, 3);
	move(s, BY_COPY, &theirs, &mine);
	rig_fill(s, &mine, 4);
	move(s, BY_COPY, &mine, &theirs);
	assert_int_equal(rig_check(s, &mine, 3).wrong, 0);
	device_close(s);
}

static void fault_lost(void **state)
{
	(void)state;
	FOR_EACH_WAY_AND_ROUND(FAULT_LOST)
	{
		assert_int_equal(o.write[round].poison, WORDS);
		assert_int_equal(o.read[round].zero, WORDS);
	}
}

/* A page of 512 words: the first stays as it was, the rest is shifted. */
static void fault_displace(void **state)
{
	(void)state;
	FOR_EACH_WAY_AND_ROUND(FAULT_DISPLACE)
	{
		assert_int_equal(o.write[round].poison, 512);
		assert_int_equal(o.write[round].displaced, WORDS - 512);
		assert_int_equal(o.write[round].any_shift, -512);
		assert_int_equal(o.read[round].displaced, WORDS - 512);
		assert_int_equal(o.read[round].any_shift, 512);
		assert_int_equal(o.read[round].shifts_differ, 0);
	}
}

static void fault_stale(void **state)
{
	(void)state;
	FOR_EACH_WAY_AND_ROUND(FAULT_STALE)
	{
		const struct check_report *w = &o.write[round], *r = &o.read[round];

		if (round == 0) {
			assert_int_equal(w->poison, WORDS);
			assert_int_equal(r->zero, WORDS);
		} else {
			assert_int_equal(w->old, WORDS);
			assert_int_equal(w->poison, 0);
			assert_int_equal(w->any_old_tag, tag_of(1, 0, round - 1));
			assert_int_equal(r->old, WORDS);
			assert_int_equal(r->any_old_tag, tag_of(0, 1, round - 1));
		}
	}
}

static void fault_torn(void **state)
{
	(void)state;
	FOR_EACH_WAY_AND_ROUND(FAULT_TORN)
	{
		assert_int_equal(o.write[round].poison, WORDS / 4);
		assert_int_equal(o.write[round].first_wrong, WORDS - WORDS / 4);
		assert_int_equal(o.read[round].poison, WORDS / 4);
		assert_int_equal(o.read[round].first_wrong, WORDS - WORDS / 4);
	}
}

static void fault_slow(void **state)
{
	(void)state;
	FOR_EACH_WAY_AND_ROUND(FAULT_SLOW)
	{
		assert_int_equal(o.write[round].wrong, 0);
		assert_int_equal(o.read[round].wrong, 0);
	}
}

static void fault_refuse(void **state)
{
	struct device_set *s = rig_open(2, FAULT_REFUSE);
	struct memory a = rig_alloc(s, 0, SIZE), b = rig_alloc(s, 1, SIZE);
	bool can = true;

	(void)state;
	assert_ok(s->ops->can_access(s, 0, 1, &can));
	assert_false(can);
	assert_int_equal(s->ops->peer_access(s, 0, 1, true), -EACCES);
	assert_non_null(strstr(err_msg(), "access of host device 0 to host device 1 is refused"));
	rig_fill(s, &a, 1);
	move(s, BY_COPY, &b, &a); /* by way of the host */
	assert_int_equal(rig_check(s, &b, 1).wrong, 0);
	device_close(s);
}

/* Hangs until the set is closed, which must not wait for it; other devices go on. */
static void fault_hang(void **state)
{
	struct device_set *s = rig_open(2, FAULT_HANG);
	struct memory a = rig_alloc(s, 0, SIZE), b = rig_alloc(s, 1, SIZE);
	struct stream copies = rig_stream(s, 0), stores = rig_stream(s, 0);
	struct stream away = rig_stream(s, 0);

	(void)state;
	rig_peers(s);
	rig_fill(s, &b, 1);
	assert_ok(s->ops->copy(s, copies, &b, 0, &a, 0, SIZE));
	RIG_LAUNCH(s, stores, fill, 1, rig_address(s, &b, 0), WORDS, 0, 2);
	assert_ok(s->ops->copy(s, away, &b, 0, &a, 0, SIZE));
	assert_ok(s->ops->stream_free(s, away));
	assert_int_equal(s->ops->wait(s, copies, 1000), -ETIMEDOUT);
	assert_int_equal(s->ops->wait(s, stores, 1000), -ETIMEDOUT);
	assert_int_equal(rig_check(s, &b, 1).wrong, 0);
	device_close(s);
}

/* Only the ordered pair that is named is faulty. */
static void fault_of_one_pair(void **state)
{
	struct device_request r = {.kind = DEVICE_HOST,
				   .n = 3,
				   .number = {10, 11, 12},
				   .host.memory_bytes = 1 << 20,
				   .host.fault = {FAULT_REFUSE, 11, 12}};
	struct device_set *s;

	(void)state;
	assert_ok(device_open(&r, &s));
	for (int i = 0; i < 3; i++)
		for (int t = 0; t < 3; t++)
			if (i != t)
				assert_int_equal(s->ops->peer_access(s, i, t, true),
						 i == 1 && t == 2 ? -EACCES : 0);
	device_close(s);
}

/* Closing ends kernels that wait for what never comes. */
static void close_ends_kernels(void **state)
{
	struct device_set *s = rig_open(1, FAULT_NONE);
	struct memory words = rig_alloc(s, -1, 8);
	struct stream stream = rig_stream(s, 0);
	const u32 closed[2] = {0};

	(void)state;
	rig_set(s, &words, closed, sizeof(closed));
	RIG_LAUNCH(s, stream, gate, 1, rig_address(s, &words, 0), rig_address(s, &words, 0) + 4,
		   UINT64_MAX);
	assert_int_equal(s->ops->wait(s, stream, 1000), -ETIMEDOUT);
	device_close(s);
}

/* Bytes arrive whatever the link's rate; several at once share it. */
static void links_have_rates(void **state)
{
	struct device_request r = {.kind = DEVICE_HOST, .n = 2, .number = {0, 1}};
	struct memory from[2], to[2];
	struct stream stream[2];
	struct device_set *s;

	(void)state;
	r.host.link_gbps[0][1] = r.host.link_gbps[1][0] = 10;
	assert_ok(device_open(&r, &s));
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < 2; i++) {
			from[i] = rig_alloc(s, 0, 3 << 20);
			to[i] = rig_alloc(s, 1, 3 << 20);
			stream[i] = rig_stream(s, i);
			rig_fill(s, &from[i], (u64)i);
			assert_ok(s->ops->copy(s, stream[i], &to[i], 0, &from[i], 0, 3 << 20));
		}
		for (int i = 0; i < 2; i++) {
			rig_wait(s, stream[i]);
			assert_int_equal(rig_check(s, &to[i], (u64)i).wrong, 0);
		}
		rig_peers(s); /* the first time it was by way of the host */
	}
	device_close(s);
}

/* ---- between processes ---- */

/* In a child: fills what is imported, as device 1; the exit status. */
static int child_fills(const struct memory_export *e)
{
	struct device_request r = {.kind = DEVICE_HOST, .n = 1, .number = {1}};
	struct device_set *s;
	struct memory m;

	if (device_open(&r, &s) < 0 || s->ops->import(s, 0, e, &m) < 0)
		return 1;
	if (m.kind != MEMORY_IMPORTED || m.owner != 0 || m.size != SIZE)
		return 2;
	m.device = 0;
	rig_fill(s, &m, 7);
	if (s->ops->free(s, &m) < 0)
		return 3;
	device_close(s);
	return 0;
}

/* Exportable memory as a file descriptor, plain memory by IPC. */
static void memory_goes_to_processes(void **state)
{
	static const enum memory_kind kinds[] = {MEMORY_EXPORTABLE, MEMORY_DEVICE};
	static const enum export_kind ways[] = {EXPORT_FD, EXPORT_IPC};
	struct device_set *s = rig_open(1, FAULT_NONE);
	struct memory gap = rig_alloc(s, 0, 100), m;
	struct memory_export e;
	int status;
	pid_t child;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_ok(s->ops->alloc(s, 0, kinds[i], SIZE, &m));
		assert_int_equal(s->ops->export(s, &m, ways[!i], &e), -EINVAL);
		assert_int_equal(s->ops->export(s, &m, EXPORT_DMABUF, &e), -ENOTSUP);
		assert_ok(s->ops->export(s, &m, ways[i], &e));
		assert_int_equal(e.owner, 0);
		child = fork();
		if (child == 0)
			_exit(child_fills(&e));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(rig_check(s, &m, 7).wrong, 0);
		close(e.fd);
	}
	assert_ok(s->ops->free(s, &gap));
	device_close(s);
}

static void imports_are_checked(void **state)
{
	struct device_request r = {.kind = DEVICE_HOST,
				   .n = 1,
				   .number = {1},
				   .host.fault = {FAULT_REFUSE, 1, 0}};
	struct device_set *owner = rig_open(1, FAULT_NONE), *s;
	struct memory_export e, bad;
	struct memory m;

	(void)state;
	assert_ok(device_open(&r, &s));
	assert_ok(owner->ops->alloc(owner, 0, MEMORY_EXPORTABLE, SIZE, &m));
	assert_ok(owner->ops->export(owner, &m, EXPORT_FD, &e));
	assert_int_equal(s->ops->import(s, 0, &e, &m), -EACCES);
	bad = e;
	bad.offset = UINT64_MAX - 4096;
	assert_int_equal(s->ops->import(s, 0, &bad, &m), -EINVAL);
	bad.fd = -1;
	assert_int_equal(s->ops->import(s, 0, &bad, &m), -EBADF);
	close(e.fd);
	device_close(s);
	device_close(owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_what_is_asked),
		cmocka_unit_test(fault_names),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(memory_is_filled),
		cmocka_unit_test(memory_is_read_and_written),
		cmocka_unit_test(streams_wait_for_events),
		cmocka_unit_test(streams_finish_after_free),
		cmocka_unit_test(bad_launches),
		cmocka_unit_test(graphs_replay),
		cmocka_unit_test(other_libraries_use_streams),
		cmocka_unit_test(memory_is_seen_where_its_owner_sees_it),
		cmocka_unit_test(without_peer_access),
		cmocka_unit_test(no_fault),
		cmocka_unit_test(fault_mirror),
		cmocka_unit_test(fault_lost),
		cmocka_unit_test(fault_displace),
		cmocka_unit_test(fault_stale),
		cmocka_unit_test(fault_torn),
		cmocka_unit_test(fault_slow),
		cmocka_unit_test(fault_refuse),
		cmocka_unit_test(fault_hang),
		cmocka_unit_test(fault_of_one_pair),
		cmocka_unit_test(close_ends_kernels),
		cmocka_unit_test(links_have_rates),
		cmocka_unit_test(memory_goes_to_processes),
		cmocka_unit_test(imports_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
