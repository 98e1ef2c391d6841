/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic that starts together behind a gate, is timed by events, and checked where it arrives. */
#include "bench/p2p_impl.h"

#include "base/err.h"
#include "kernels/pattern.h"

#include <errno.h>
#include <stdio.h>

#define COPY_THREADS 512

static struct lane *lane_of(struct p2p *p, const struct flow *flows, size_t i)
{
	size_t lane = 0;

	for (size_t k = 0; k < i; k++)
		lane += flows[k].device == flows[i].device;
	return &p->devices[flows[i].device].lanes[lane];
}

static int need_lanes(struct p2p *p, const struct flow *flows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t lanes = 0;
		int r;

		for (size_t k = 0; k < n; k++)
			lanes += flows[k].device == flows[i].device;
		r = p2p_need_lanes(p, flows[i].device, lanes);
		if (r < 0)
			return r;
	}
	return n <= P2P_GATES - GATE_REPORTS ? 0
					     : err_set(E2BIG, "too many copies at once: %zu", n);
}

int flow_use_kernel(struct p2p *p, struct flow *f)
{
	const struct device_ops *ops = p->set->ops;
	uint64_t target = 0, origin = 0;
	int r = ops->address(p->set, &f->target, f->device, &target);

	if (r == 0)
		r = ops->address(p->set, &f->origin, f->device, &origin);
	if (r < 0)
		return r;
	f->by_kernel = true;
	f->args.copy = (struct copy_args){.target = target + f->target_offset,
					  .origin = origin + f->origin_offset,
					  .bytes = f->bytes};
	f->launch = (struct launch){.kernel = KERNEL_copy,
				    .blocks = p->set->info[f->device].blocks,
				    .threads = COPY_THREADS,
				    .args = &f->args.copy,
				    .args_size = sizeof(f->args.copy)};
	return 0;
}

/* ---- one sample ---- */

static int set_gate(struct p2p *p, u32 open)
{
	return p->set->ops->write(p->set, &p->gate, GATE_OPEN * sizeof(u32), &open, sizeof(open));
}

static int close_gates(struct p2p *p, size_t n)
{
	u32 words[P2P_GATES] = {0};

	return p->set->ops->write(p->set, &p->gate, 0, words, (GATE_REPORTS + n) * sizeof(u32));
}

static int enqueue_gate(struct p2p *p, struct stream stream, size_t i)
{
	uint64_t gate;
	int r = p->set->ops->address(p->set, &p->gate, stream.device, &gate);
	struct gate_args args;

	if (r < 0)
		return r;
	args = (struct gate_args){.open = gate + GATE_OPEN * sizeof(u32),
				  .report = gate + (GATE_REPORTS + i) * sizeof(u32),
				  .limit_ns = P2P_GATE_NS};
	return p->set->ops->launch(p->set, stream,
				   &(struct launch){.kernel = KERNEL_gate,
						    .blocks = 1,
						    .threads = 1,
						    .args = &args,
						    .args_size = sizeof(args)});
}

/* A copy repeats itself: no start of a launch lies between. */
static int launch_copy(struct p2p *p, struct stream stream, struct flow *f, unsigned times)
{
	f->args.copy.repeats = times;
	return p->set->ops->launch(p->set, stream, &f->launch);
}

/* A chain is followed by multiprocessors that are spread over the device, one after the other. */
static int launch_chase(struct p2p *p, struct stream stream, struct flow *f, unsigned times)
{
	int r = 0;

	for (unsigned k = 0; r == 0 && k < times; k++) {
		f->args.chase.block = k * f->launch.blocks / times;
		r = p->set->ops->launch(p->set, stream, &f->launch);
	}
	return r;
}

static int launch_work(struct p2p *p, struct stream stream, struct flow *f, unsigned times)
{
	return f->launch.kernel == KERNEL_copy ? launch_copy(p, stream, f, times)
					       : launch_chase(p, stream, f, times);
}

static int copy_work(struct p2p *p, struct stream stream, const struct flow *f, unsigned times)
{
	int r = 0;

	for (unsigned k = 0; r == 0 && k < times; k++)
		r = p->set->ops->copy(p->set, stream, &f->target, f->target_offset, &f->origin,
				      f->origin_offset, f->bytes);
	return r;
}

static int enqueue_work(struct p2p *p, struct stream stream, struct flow *f, unsigned times)
{
	return f->by_kernel ? launch_work(p, stream, f, times) : copy_work(p, stream, f, times);
}

/*
 * Of a rate the first copy is not timed: the way from the gate to the engine would be part of it.
 * What is staged goes without a gate: the driver moves it piece by piece, and its call may not
 * return before the stream moves.
 */
static int enqueue_flow(struct p2p *p, const struct lane *lane, struct flow *f, size_t i)
{
	const struct device_ops *ops = p->set->ops;
	int r = p->staged ? 0 : enqueue_gate(p, lane->stream, i);

	if (r == 0 && f->lead_in && !p->staged)
		r = enqueue_work(p, lane->stream, f, 1);
	if (r == 0)
		r = ops->event_record(p->set, lane->stream, lane->start);
	if (r == 0)
		r = enqueue_work(p, lane->stream, f, f->times);
	if (r == 0)
		r = ops->event_record(p->set, lane->stream, lane->end);
	if (r == 0 && f->ask_enqueue)
		r = ops->enqueue_time(p->set, &f->enqueue_us);
	return r;
}

static int collect(struct p2p *p, struct flow *flows, size_t n)
{
	u32 reports[P2P_GATES];
	int r = p->set->ops->read(p->set, &p->gate, GATE_REPORTS * sizeof(u32), reports,
				  n * sizeof(u32));

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct lane *lane = lane_of(p, flows, i);

		if (!p->staged && reports[i] != WAIT_DONE)
			return err_set(EAGAIN, "the host was slower than the gate's %.0f s",
				       P2P_GATE_NS / 1e9);
		r = p->set->ops->event_elapsed(p->set, lane->start, lane->end, &flows[i].us);
	}
	return r;
}

static int wait_all(struct p2p *p, const struct flow *flows, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = p->set->ops->wait(p->set, lane_of(p, flows, i)->stream, p->options->limit_us);
	return r;
}

/* What was enqueued before an error must not run on into what comes next. */
static int drain(struct p2p *p, const struct flow *flows, size_t n, int error)
{
	char why[192];

	snprintf(why, sizeof(why), "%s", err_msg());
	wait_all(p, flows, n);
	return err_set(-error, "%s", why);
}

static int sample_once(struct p2p *p, struct flow *flows, size_t n, const struct round *under_load)
{
	const struct p2p_hooks *hooks = p->options->hooks;
	int r = close_gates(p, n), opened;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = enqueue_flow(p, lane_of(p, flows, i), &flows[i], i);
	if (r < 0) {
		set_gate(p, 1); /* whatever happened: nothing may be left waiting */
		return drain(p, flows, n, r);
	}
	opened = set_gate(p, 1);
	if (opened == 0 && under_load && hooks && hooks->under_load)
		hooks->under_load(hooks->context, under_load);
	r = wait_all(p, flows, n);
	return opened < 0 ? opened : r < 0 ? r : collect(p, flows, n);
}

#define GATE_TRIES 8

int flows_sample(struct p2p *p, struct flow *flows, size_t n, const struct round *under_load,
		 unsigned *timeouts)
{
	int r = need_lanes(p, flows, n);

	if (r < 0)
		return r;
	for (int tries = 0; tries < GATE_TRIES; tries++) {
		r = sample_once(p, flows, n, under_load);
		if (r != -EAGAIN)
			return r;
		++*timeouts;
		for (size_t i = 0; i < n; i++)
			flows[i].times = (flows[i].times + 1) / 2;
	}
	return r;
}

/* ---- how many copies make a sample ---- */

#define TIMES_MAX 512

static unsigned times_for(const struct flow *f, double sample_us)
{
	double each = f->us / f->times, times = each > 0 ? sample_us / each : TIMES_MAX;

	return times < 1 ? 1 : times > TIMES_MAX ? TIMES_MAX : (unsigned)times;
}

/* Flows of about the same rate do the same number, so that none runs on alone for long. */
static void choose_times(struct flow *flows, size_t n, double sample_us)
{
	unsigned least = TIMES_MAX, most = 1;

	for (size_t i = 0; i < n; i++) {
		flows[i].times = times_for(&flows[i], sample_us);
		least = flows[i].times < least ? flows[i].times : least;
		most = flows[i].times > most ? flows[i].times : most;
	}
	for (size_t i = 0; most <= least + least / 4 + 1 && i < n; i++)
		flows[i].times = least;
}

/* The first copy is cold, so that the second one counts. */
int flows_calibrate(struct p2p *p, struct flow *flows, size_t n, double sample_us,
		    unsigned *timeouts)
{
	int r = 0;

	for (size_t i = 0; i < n; i++)
		flows[i].times = 1;
	for (int round = 0; r == 0 && round < 2; round++)
		r = flows_sample(p, flows, n, NULL, timeouts);
	if (r == 0)
		choose_times(flows, n, sample_us);
	return r;
}

/* ---- data ---- */

/*
 * Of the host's memory the CPU fills and checks this many pieces, the first, the last and others
 * evenly spread between them: all of it would take longer than to measure.
 */
#define HOST_PIECES 64

struct span {
	uint64_t at, bytes;
};

static bool is_with_host(const struct flow *f)
{
	return f->origin.device < 0 || f->target.device < 0;
}

static uint64_t pieces_of(const struct flow *f)
{
	return (f->bytes + P2P_PIECE - 1) / P2P_PIECE;
}

static size_t span_n(const struct flow *f)
{
	uint64_t pieces = pieces_of(f);

	return !is_with_host(f) ? 1 : pieces < HOST_PIECES ? pieces : HOST_PIECES;
}

static struct span span_of(const struct flow *f, size_t i)
{
	size_t n = span_n(f);
	struct span s = {.bytes = f->bytes};

	if (!is_with_host(f))
		return s;
	s.at = n < 2 ? 0 : i * (pieces_of(f) - 1) / (n - 1) * P2P_PIECE;
	s.bytes = f->bytes - s.at < P2P_PIECE ? f->bytes - s.at : P2P_PIECE;
	return s;
}

/* Data says whose memory it comes from; what lies in a buffer before is its poison. */
static u64 tag_of(const struct flow *f, const struct memory *m, bool poison)
{
	u64 owner = (u64)(m->device < 0 ? DEVICE_MAX + f->device : m->device);

	return pattern_tag_make(owner, owner, 0, poison);
}

int p2p_kernel(struct p2p *p, int device, enum device_kernel kernel, unsigned blocks,
	       unsigned threads, const void *args, size_t args_size)
{
	struct stream stream = p->devices[device].lanes[0].stream;
	int r = p->set->ops->launch(p->set, stream,
				    &(struct launch){.kernel = kernel,
						     .blocks = blocks,
						     .threads = threads,
						     .args = args,
						     .args_size = args_size});

	return r < 0 ? r : p->set->ops->wait(p->set, stream, p->options->limit_us);
}

static int fill_device(struct p2p *p, const struct memory *m, uint64_t offset, uint64_t bytes,
		       u64 tag)
{
	struct fill_args args = {.words = bytes / 8, .first = offset / 8, .tag = tag};
	int r = p->set->ops->address(p->set, m, m->device, &args.target);

	args.target += offset;
	return r < 0 ? r
		     : p2p_kernel(p, m->device, KERNEL_fill, p->set->info[m->device].blocks * 4,
				  256, &args, sizeof(args));
}

static int fill_host(struct p2p *p, const struct flow *f, const struct memory *m, uint64_t offset,
		     u64 tag)
{
	u64 words[P2P_PIECE / sizeof(u64)];
	int r = 0;

	for (size_t i = 0; r == 0 && i < span_n(f); i++) {
		struct span s = span_of(f, i);

		for (uint64_t k = 0; k < s.bytes / 8; k++)
			words[k] = pattern_word(tag, (offset + s.at) / 8 + k);
		r = p->set->ops->write(p->set, m, offset + s.at, words, s.bytes);
	}
	return r;
}

/* Memory is filled and checked by its owner: a kernel of its device, or the CPU. */
static int fill(struct p2p *p, const struct flow *f, const struct memory *m, uint64_t offset,
		bool poison)
{
	u64 tag = tag_of(f, m, poison);

	return m->device < 0 ? fill_host(p, f, m, offset, tag)
			     : fill_device(p, m, offset, f->bytes, tag);
}

int flows_prepare(struct p2p *p, const struct flow *flows, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct flow *f = &flows[i];

		r = fill(p, f, &f->origin, f->origin_offset, false);
		if (r == 0)
			r = fill(p, f, &f->target, f->target_offset, true);
	}
	return r;
}

static int check_device(struct p2p *p, const struct flow *f, struct check_report *ret)
{
	const struct device_ops *ops = p->set->ops;
	int owner = f->target.device;
	const struct memory *memory = &p->devices[owner].report;
	struct check_args args = {.tag = tag_of(f, &f->origin, false)};
	uint64_t target = 0;
	int r = ops->address(p->set, &f->target, owner, &target);

	if (r == 0)
		r = ops->address(p->set, memory, owner, &args.report);
	if (r == 0)
		r = ops->write(p->set, memory, 0, ret, sizeof(*ret));
	for (size_t i = 0; r == 0 && i < span_n(f); i++) {
		struct span s = span_of(f, i);

		args.origin = target + f->target_offset + s.at;
		args.words = s.bytes / 8;
		args.first = (f->origin_offset + s.at) / 8;
		r = p2p_kernel(p, owner, KERNEL_check, p->set->info[owner].blocks * 4, 256, &args,
			       sizeof(args));
	}
	return r < 0 ? r : ops->read(p->set, memory, 0, ret, sizeof(*ret));
}

static int check_host(struct p2p *p, const struct flow *f, struct check_report *ret)
{
	u64 words[P2P_PIECE / sizeof(u64)], tag = tag_of(f, &f->origin, false);
	int r = 0;

	for (size_t i = 0; r == 0 && i < span_n(f); i++) {
		struct span s = span_of(f, i);
		uint64_t first = (f->origin_offset + s.at) / 8;

		r = p->set->ops->read(p->set, &f->target, f->target_offset + s.at, words, s.bytes);
		for (uint64_t k = 0; r == 0 && k < s.bytes / 8; k++)
			ret->wrong += words[k] != pattern_word(tag, first + k);
	}
	return r;
}

int flows_check(struct p2p *p, const struct flow *flows, size_t n, struct p2p_cell *cells)
{
	for (size_t i = 0; i < n; i++) {
		struct p2p_cell *cell = &cells[flows[i].cell];
		struct check_report report = {.first_wrong = CHECK_NONE};
		int r = flows[i].target.device < 0 ? check_host(p, &flows[i], &report)
						   : check_device(p, &flows[i], &report);

		if (r < 0)
			return r;
		for (size_t k = 0; k < span_n(&flows[i]); k++)
			cell->checked_words += span_of(&flows[i], k).bytes / 8;
		cell->wrong_words += report.wrong;
		cell->data = cell->wrong_words ? P2P_WRONG : P2P_RIGHT;
	}
	return 0;
}
