/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/buffer.h"

#include "base/err.h"

#include <errno.h>

#define THREADS 512

static int gpu_failed(struct rdma_failure *f, int r)
{
	return rdma_fail(f, RDMA_STEP_GPU, -r, "%s", err_msg());
}

/*
 * Memory that a NIC may be given, of the device's own kind: simulated devices export theirs as a
 * file.
 */
static enum memory_kind kind_for(const struct device_set *s)
{
	return s->caps & DEVICE_EXPORT_DMABUF ? MEMORY_DEVICE : MEMORY_EXPORTABLE;
}

static int allocate(struct buffer *b)
{
	const struct device_ops *o = b->set->ops;
	uint64_t size = b->bytes + 2 * BUFFER_GUARD;
	int r = o->stream_new(b->set, 0, &b->stream);

	if (r == 0)
		r = o->alloc(b->set, 0, kind_for(b->set), size, &b->memory);
	if (r == 0)
		r = o->address(b->set, &b->memory, 0, &b->at);
	if (r == 0)
		r = o->alloc(b->set, 0, MEMORY_DEVICE, PART_N * sizeof(struct check_report),
			     &b->reports);
	if (r == 0)
		r = o->address(b->set, &b->reports, 0, &b->reports_at);
	b->at += BUFFER_GUARD;
	return r;
}

int buffer_open(struct device_set *set, uint64_t bytes, uint64_t limit_us, struct buffer *ret,
		struct rdma_failure *f)
{
	int r;

	*ret = (struct buffer){.set = set, .bytes = bytes, .limit_us = limit_us};
	r = allocate(ret);
	return r < 0 ? gpu_failed(f, r) : 0;
}

void buffer_close(struct buffer *b)
{
	if (b->memory.size)
		b->set->ops->free(b->set, &b->memory);
	if (b->reports.size)
		b->set->ops->free(b->set, &b->reports);
	if (b->stream.id)
		b->set->ops->stream_free(b->set, b->stream);
	*b = (struct buffer){0};
}

/* ---- the owner's kernels ---- */

static int launch(const struct buffer *b, enum device_kernel kernel, const void *args, size_t size)
{
	const struct launch l = {
		.kernel = kernel,
		.blocks = b->set->info[0].blocks,
		.threads = THREADS,
		.args = args,
		.args_size = size,
	};

	return b->set->ops->launch(b->set, b->stream, &l);
}

/* The three parts of a buffer, each of which counts its words from 0. */
struct span {
	uint64_t at, words;
};

static void spans_of(const struct buffer *b, struct span ret[static PART_N])
{
	ret[PART_RANGE] = (struct span){b->at, b->bytes / 8};
	ret[PART_BEFORE] = (struct span){b->at - BUFFER_GUARD, BUFFER_GUARD / 8};
	ret[PART_BEHIND] = (struct span){b->at + b->bytes, BUFFER_GUARD / 8};
}

static int fill(const struct buffer *b, const struct span *s, u64 tag)
{
	const struct fill_args args = {.target = s->at, .words = s->words, .tag = tag};

	return launch(b, KERNEL_fill, &args, sizeof(args));
}

static int wait_for_it(const struct buffer *b, int r, struct rdma_failure *f)
{
	if (r == 0)
		r = b->set->ops->wait(b->set, b->stream, b->limit_us);
	return r < 0 ? gpu_failed(f, r) : 0;
}

int buffer_fill(const struct buffer *b, u64 tag, struct rdma_failure *f)
{
	struct span spans[PART_N];

	spans_of(b, spans);
	return wait_for_it(b, fill(b, &spans[PART_RANGE], tag), f);
}

int buffer_poison(const struct buffer *b, u64 tag, struct rdma_failure *f)
{
	struct span spans[PART_N];
	int r = 0;

	spans_of(b, spans);
	for (int p = 0; r == 0 && p < PART_N; p++)
		r = fill(b, &spans[p], tag);
	return wait_for_it(b, r, f);
}

static int check(const struct buffer *b, u64 tag, u64 poison, struct range_check *c)
{
	const struct device_ops *o = b->set->ops;
	struct check_report empty[PART_N] = {0};
	struct span spans[PART_N];
	int r;

	spans_of(b, spans);
	for (int p = 0; p < PART_N; p++)
		empty[p].first_wrong = CHECK_NONE;
	r = o->write(b->set, &b->reports, 0, empty, sizeof(empty));
	for (size_t p = 0; r == 0 && p < PART_N; p++) {
		const struct check_args args = {
			.origin = spans[p].at,
			.words = spans[p].words,
			.tag = p == PART_RANGE ? tag : poison,
			.report = b->reports_at + p * sizeof(struct check_report),
		};

		c->words[p] = spans[p].words;
		r = launch(b, KERNEL_check, &args, sizeof(args));
	}
	if (r == 0)
		r = o->wait(b->set, b->stream, b->limit_us);
	return r < 0 ? r : o->read(b->set, &b->reports, 0, c->reports, sizeof(c->reports));
}

int buffer_check(const struct buffer *b, u64 tag, u64 poison, struct wrong *ret,
		 struct rdma_failure *f)
{
	struct range_check c = {.data_tag = tag};
	int r = check(b, tag, poison, &c);

	if (r < 0)
		return gpu_failed(f, r);
	*ret = classify(&c);
	return 0;
}
