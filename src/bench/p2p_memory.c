/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, streams and peer access of a run of pair measurements. */
#include "bench/p2p_impl.h"

#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool has(const struct memory *m)
{
	return m->size != 0;
}

static int device_memory(struct p2p *p, int device, uint64_t size, struct memory *ret)
{
	return p->set->ops->alloc(p->set, device, MEMORY_DEVICE, size, ret);
}

static int device_open_memory(struct p2p *p, int device)
{
	struct bench_device *d = &p->devices[device];
	/* What peers read comes first: on H200 reading a later allocation is 0.1 % slower. */
	int r = device_memory(p, device, p->bytes, &d->out);

	if (r == 0)
		r = device_memory(p, device, p->bytes, &d->in);
	if (r == 0)
		r = device_memory(p, device, sizeof(struct check_report), &d->report);
	if (r == 0)
		r = device_memory(p, device, sizeof(u32), &d->flag);
	return r < 0 ? r : p2p_need_lanes(p, device, 1);
}

int p2p_need_host(struct p2p *p, int device)
{
	struct bench_device *d = &p->devices[device];

	if (has(&d->host))
		return 0;
	return p->set->ops->alloc(p->set, device, MEMORY_PINNED, p->host_bytes, &d->host);
}

static int lane_open(struct device_set *s, int device, struct lane *ret)
{
	struct lane lane = {0};
	int r = s->ops->stream_new(s, device, &lane.stream);

	if (r == 0)
		r = s->ops->event_new(s, device, &lane.start);
	if (r == 0)
		r = s->ops->event_new(s, device, &lane.end);
	if (r == 0)
		*ret = lane;
	return r; /* what was made of a lane that failed goes with the set */
}

int p2p_need_lanes(struct p2p *p, int device, size_t n)
{
	struct bench_device *d = &p->devices[device];
	struct lane *more;

	if (n <= d->lane_n)
		return 0;
	more = realloc(d->lanes, n * sizeof(*more));
	if (!more)
		return err_set(ENOMEM, "no memory for %zu streams", n);
	d->lanes = more;
	while (d->lane_n < n) {
		int r = lane_open(p->set, device, &d->lanes[d->lane_n]);

		if (r < 0)
			return r;
		d->lane_n++;
	}
	return 0;
}

/* ---- peer access ---- */

struct reach *p2p_reach(const struct p2p *p, int initiator, int target)
{
	return &p->reach[(size_t)initiator * p->set->n + (size_t)target];
}

/* A refusal is an answer, and so is that the mapping has no room; anything else is an error. */
static int switch_pair(struct p2p *p, int initiator, int target, bool on)
{
	struct reach *reach = p2p_reach(p, initiator, target);
	int r = p->set->ops->peer_access(p->set, initiator, target, on);

	if (r == 0)
		reach->on = on;
	if (r != -EACCES && r != -ENOTSUP && r != -ENOMEM)
		return r;
	free(reach->why);
	reach->why = strdup(err_msg());
	return 0;
}

static int switch_all(struct p2p *p, bool on)
{
	for (int i = 0; i < (int)p->set->n; i++)
		for (int j = 0; j < (int)p->set->n; j++) {
			int r = 0;

			if (i != j && p2p_reach(p, i, j)->on != on)
				r = switch_pair(p, i, j, on);
			if (r < 0)
				return r;
		}
	return 0;
}

static bool is_by_round(const struct p2p *p)
{
	return p->set->n > P2P_PEERS_MAX + 1;
}

int p2p_round_access(struct p2p *p, int initiator, int target, bool on)
{
	if (!is_by_round(p) || p2p_reach(p, initiator, target)->on == on)
		return 0;
	return switch_pair(p, initiator, target, on);
}

int p2p_set_staged(struct p2p *p, bool staged)
{
	int r = p->staged == staged || is_by_round(p) ? 0 : switch_all(p, !staged);

	if (r == 0)
		p->staged = staged;
	return r;
}

/* ---- all of it ---- */

static uint64_t largest_copy(const struct p2p_options *o)
{
	uint64_t bytes = P2P_CHASE_BYTES;

	for (size_t i = 0; i < o->size_n; i++)
		bytes = o->sizes[i] > bytes ? o->sizes[i] : bytes;
	return (bytes + 15) / 16 * 16;
}

int p2p_memory_open(struct p2p *p)
{
	size_t n = p->set->n;
	int r = 0;

	p->bytes = largest_copy(p->options);
	p->host_bytes = p->bytes < P2P_HOST_MAX ? p->bytes : P2P_HOST_MAX;
	p->devices = calloc(n, sizeof(*p->devices));
	p->reach = calloc(n * n, sizeof(*p->reach));
	if (!p->devices || !p->reach)
		return err_set(ENOMEM, "no memory for %zu devices", n);
	r = p->set->ops->alloc(p->set, 0, MEMORY_PINNED, P2P_GATES * sizeof(u32), &p->gate);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = device_open_memory(p, (int)i);
	p->staged = true; /* until the first quantity that needs peer access */
	return r;
}

static void free_memory(struct device_set *s, const struct memory *m)
{
	if (has(m))
		s->ops->free(s, m);
}

static void device_close_memory(struct device_set *s, struct bench_device *d)
{
	for (size_t i = 0; i < d->lane_n; i++) {
		s->ops->event_free(s, d->lanes[i].start);
		s->ops->event_free(s, d->lanes[i].end);
		s->ops->stream_free(s, d->lanes[i].stream);
	}
	free(d->lanes);
	free_memory(s, &d->in);
	free_memory(s, &d->out);
	free_memory(s, &d->report);
	free_memory(s, &d->host);
	free_memory(s, &d->flag);
}

void p2p_memory_close(struct p2p *p)
{
	size_t n = p->set->n;

	for (size_t i = 0; p->devices && i < n; i++)
		device_close_memory(p->set, &p->devices[i]);
	for (size_t i = 0; p->reach && i < n * n; i++)
		free(p->reach[i].why);
	free_memory(p->set, &p->gate);
	free(p->devices);
	free(p->reach);
}
