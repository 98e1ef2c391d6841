/* SPDX-License-Identifier: Apache-2.0 */
/* Latency between devices: chains of dependent loads, and flags sent to and fro. */
#include "bench/p2p_impl.h"

#include "base/err.h"

#include <stdio.h>

/* ---- chains ---- */

static int make_chain(struct p2p *p, int owner, const struct memory *m, u64 seen_as)
{
	struct chain_args args = {.seen_as = seen_as,
				  .bytes = P2P_CHASE_BYTES,
				  .stride = P2P_CHASE_STRIDE};
	int r = p->set->ops->address(p->set, m, owner, &args.buffer);

	return r < 0 ? r : p2p_kernel(p, owner, KERNEL_chain, 64, 256, &args, sizeof(args));
}

static size_t wrong_entries(const u64 *piece, uint64_t offset, u64 buffer)
{
	size_t wrong = 0;

	for (uint64_t at = 0; at < P2P_PIECE; at += P2P_CHASE_STRIDE)
		wrong += piece[at / sizeof(*piece)] !=
			 buffer + (offset + at + P2P_CHASE_STRIDE) % P2P_CHASE_BYTES;
	return wrong;
}

/* What is not an address would be followed all the same, and that fault would end the run. */
static int read_chain(struct p2p *p, const struct flow *f, struct p2p_cell *cell)
{
	const struct memory *out = &p->devices[f->device].out;
	struct copy_args args = {.origin = f->args.chase.buffer, .bytes = P2P_CHASE_BYTES};
	int r = p->set->ops->address(p->set, out, f->device, &args.target);
	u64 piece[P2P_PIECE / sizeof(u64)];
	size_t wrong = 0;

	if (r == 0)
		r = p2p_kernel(p, f->device, KERNEL_copy, f->launch.blocks, 256, &args,
			       sizeof(args));
	for (uint64_t at = 0; r == 0 && at < P2P_CHASE_BYTES; at += P2P_PIECE) {
		r = p->set->ops->read(p->set, out, at, piece, sizeof(piece));
		if (r == 0)
			wrong += wrong_entries(piece, at, f->args.chase.buffer);
	}
	if (wrong)
		snprintf(cell->why, sizeof(cell->why),
			 "%zu of %lu addresses in the chain read wrong", wrong,
			 (unsigned long)(P2P_CHASE_BYTES / P2P_CHASE_STRIDE));
	return r;
}

int chase_check(struct p2p *p, const struct flow *f, struct p2p_cell *cell)
{
	const u64 expected =
		f->args.chase.buffer + (u64)P2P_CHASE_STEPS * P2P_CHASE_STRIDE % P2P_CHASE_BYTES;
	u64 end = 0;
	int r = p->set->ops->read(p->set, &p->devices[f->device].report, 0, &end, sizeof(end));

	if (r == 0 && end != expected)
		snprintf(cell->why, sizeof(cell->why), "the chain ended at the wrong address");
	return r;
}

int chase_flow(struct p2p *p, struct p2p_cell *cell, struct flow *f)
{
	bool host = cell->target < 0;
	int device = cell->initiator, owner = host ? device : cell->target, r;
	const struct memory *chain;
	struct chase_args *args = &f->args.chase;
	const u64 nowhere = 0;

	r = host ? p2p_need_host(p, device) : 0;
	if (r < 0)
		return r;
	chain = host ? &p->devices[device].host : &p->devices[owner].in;
	*f = (struct flow){.device = device, .by_kernel = true, .times = P2P_CHASE_BLOCKS};
	args->steps = P2P_CHASE_STEPS;
	r = p->set->ops->address(p->set, chain, device, &args->buffer);
	if (r == 0)
		r = p->set->ops->address(p->set, &p->devices[device].report, device, &args->end);
	if (r == 0)
		r = p->set->ops->write(p->set, &p->devices[device].report, 0, &nowhere,
				       sizeof(nowhere));
	if (r == 0)
		r = make_chain(p, owner, chain, args->buffer);
	f->launch = (struct launch){.kernel = KERNEL_chase,
				    .blocks = p->set->info[device].blocks,
				    .threads = 1,
				    .args = args,
				    .args_size = sizeof(*args)};
	return r < 0 ? r : read_chain(p, f, cell);
}

/* ---- flags ---- */

static int ping_pong_start(struct p2p *p, int me, int other, bool first)
{
	const struct device_ops *ops = p->set->ops;
	const struct bench_device *mine = &p->devices[me], *theirs = &p->devices[other];
	struct ping_pong_args args = {.rounds = P2P_ROUND_TRIPS,
				      .first = first,
				      .limit_ns =
					      1000 * device_kernel_limit_us(&p->set->info[me],
									    p->options->limit_us)};
	int r = ops->address(p->set, &mine->flag, me, &args.mine);

	if (r == 0)
		r = ops->address(p->set, &theirs->flag, me, &args.theirs);
	if (r == 0)
		r = ops->address(p->set, &mine->report, me, &args.report);
	if (r == 0)
		r = ops->address(p->set, &p->gate, me, &args.abort);
	if (r < 0)
		return r;
	args.abort += GATE_ABORT * sizeof(u32);
	return ops->launch(p->set, mine->lanes[0].stream,
			   &(struct launch){.kernel = KERNEL_ping_pong,
					    .blocks = 1,
					    .threads = 1,
					    .args = &args,
					    .args_size = sizeof(args)});
}

static int clear_flags(struct p2p *p, int device)
{
	const struct ping_pong_report report = {0};
	const struct bench_device *d = &p->devices[device];
	const u32 flag = 0;
	int r = p->set->ops->write(p->set, &d->flag, 0, &flag, sizeof(flag));

	return r < 0 ? r : p->set->ops->write(p->set, &d->report, 0, &report, sizeof(report));
}

static int ping_pong_end(struct p2p *p, struct p2p_cell *c, double *ret_us)
{
	const struct device_ops *ops = p->set->ops;
	struct ping_pong_report report = {0};
	int r = ops->wait(p->set, p->devices[c->initiator].lanes[0].stream,
			  p->options->limit_us * 2);

	if (r == 0)
		r = ops->wait(p->set, p->devices[c->target].lanes[0].stream,
			      p->options->limit_us * 2);
	if (r == 0)
		r = ops->read(p->set, &p->devices[c->initiator].report, 0, &report, sizeof(report));
	if (r < 0)
		return r;
	if (report.end == WAIT_DONE)
		*ret_us = (double)report.ns / (double)(report.rounds - 1) / 1e3;
	else
		snprintf(c->why, sizeof(c->why),
			 "the flag did not come back after %lu of %d round trips", report.rounds,
			 P2P_ROUND_TRIPS);
	return 0;
}

static int set_abort(struct p2p *p, u32 word)
{
	return p->set->ops->write(p->set, &p->gate, GATE_ABORT * sizeof(u32), &word, sizeof(word));
}

/* A kernel whose partner never started would wait for it to the end. */
static int abort_all(struct p2p *p, const struct p2p_cell *cells, size_t n, int error)
{
	char why[sizeof(cells->why)];

	snprintf(why, sizeof(why), "%s", err_msg());
	set_abort(p, 1);
	for (size_t i = 0; i < n; i++) {
		const struct bench_device *a = &p->devices[cells[i].initiator];
		const struct bench_device *b = &p->devices[cells[i].target];

		p->set->ops->wait(p->set, a->lanes[0].stream, p->options->limit_us);
		p->set->ops->wait(p->set, b->lanes[0].stream, p->options->limit_us);
	}
	return err_set(-error, "%s", why);
}

static int start_all(struct p2p *p, const struct p2p_cell *cells, size_t n)
{
	int r = set_abort(p, 0);

	for (size_t i = 0; r == 0 && i < n; i++) {
		if (*cells[i].why)
			continue;
		r = clear_flags(p, cells[i].initiator);
		if (r == 0)
			r = clear_flags(p, cells[i].target);
		if (r == 0)
			r = ping_pong_start(p, cells[i].target, cells[i].initiator, false);
		if (r == 0)
			r = ping_pong_start(p, cells[i].initiator, cells[i].target, true);
	}
	return r;
}

int round_trip_sample(struct p2p *p, struct p2p_cell *cells, size_t n, double *ret_values)
{
	int r = start_all(p, cells, n);

	if (r < 0)
		return abort_all(p, cells, n, r);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!*cells[i].why)
			r = ping_pong_end(p, &cells[i], &ret_values[i]);
	return r;
}
