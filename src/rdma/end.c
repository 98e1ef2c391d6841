/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/end.h"

#include "base/err.h"
#include "kernels/pattern.h"
#include "rdma/message_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX   4096
#define WINDOW_LEAST (1ull << 20)

/* ---- memory ---- */

/* The fewest messages that are whole vectors of the pattern, 16 bytes. */
static uint64_t whole(uint64_t bytes)
{
	uint64_t factor = bytes & -bytes;

	return factor < 16 ? 16 / factor : 1;
}

uint64_t end_places(uint64_t window, const struct rdma_load *load)
{
	uint64_t n = window / load->bytes, unit = whole(load->bytes) * load->queues;

	n = n > PLACES_MAX ? PLACES_MAX : n;
	n -= n % unit;
	return n ? n : unit;
}

bool end_can_halve(uint64_t places, const struct rdma_load *load)
{
	uint64_t half = places / 2;

	return places % (2ull * load->queues) == 0 && half * load->bytes % 16 == 0 &&
	       half * load->bytes >= WINDOW_LEAST;
}

static int set_failed(struct rdma_failure *f, int r)
{
	return r < 0 ? rdma_fail(f, RDMA_STEP_GPU, -r, "%s", err_msg()) : 0;
}

int end_open_host(struct end *e, uint64_t window, struct rdma_failure *f)
{
	struct device_request *r = calloc(1, sizeof(*r));
	int error = r ? 0 : err_set(ENOMEM, "no memory");

	if (r) {
		r->kind = DEVICE_HOST;
		r->n = 1;
		r->ordinal[0] = -1;
		r->host.fault.initiator = r->host.fault.target = -1;
		r->host.memory_bytes = END_SIDE_N * (window + 4 * BUFFER_GUARD);
		error = device_open(r, &e->set);
		free(r);
	}
	return set_failed(f, error);
}

int end_open_gpu(struct end *e, const struct device_request *gpu, struct rdma_failure *f)
{
	return set_failed(f, device_open(gpu, &e->set));
}

int end_open_memory(const struct nic *n, struct end *e, uint64_t bytes, enum region_way way,
		    bool relaxed, uint64_t owner_limit_us, struct rdma_failure *f)
{
	int r = 0;

	for (int i = 0; r == 0 && i < END_SIDE_N; i++) {
		r = buffer_open(e->set, bytes, owner_limit_us, &e->buffers[i], f);
		if (r == 0)
			r = region_open(n, &e->buffers[i], way, relaxed, &e->regions[i], f);
	}
	return r;
}

int end_register(const struct nic *n, struct end *e, enum region_way way, bool relaxed,
		 struct rdma_failure *f)
{
	int r = 0;

	for (int i = 0; r == 0 && i < END_SIDE_N; i++) {
		region_close(n, &e->regions[i]);
		r = region_open(n, &e->buffers[i], way, relaxed, &e->regions[i], f);
	}
	return r;
}

void end_close_memory(const struct nic *n, struct end *e)
{
	for (int i = 0; i < END_SIDE_N; i++) {
		region_close(n, &e->regions[i]);
		buffer_close(&e->buffers[i]);
	}
}

void end_close_queues(const struct nic *n, struct end *e)
{
	for (size_t i = 0; i < STREAMS_MAX; i++)
		queue_pair_close(n, &e->queues[i]);
}

void end_close(const struct nic *n, struct end *e)
{
	end_close_queues(n, e);
	end_close_memory(n, e);
	device_close(e->set);
	e->set = NULL;
}

struct place end_place(const struct end *e, enum end_side side, bool remote)
{
	const struct region *r = &e->regions[side];

	return (struct place){r->at, remote ? r->mr->rkey : r->mr->lkey};
}

/* ---- the owner's work ---- */

static u64 tag_of(const struct end_round *r, bool poison)
{
	return pattern_tag_make(r->pair, 0x80u | r->read, r->round, poison);
}

int end_fill(const struct end *e, const struct end_round *r, struct rdma_failure *f)
{
	return buffer_fill(&e->buffers[END_OUT], tag_of(r, false), f);
}

int end_poison(const struct end *e, const struct end_round *r, struct rdma_failure *f)
{
	return buffer_poison(&e->buffers[END_IN], tag_of(r, true), f);
}

int end_say_wrong(const struct rdma_cell *cell, bool read, struct rdma_failure *f)
{
	char text[128], of[64] = "";

	wrong_say(&cell->wrong, text, sizeof(text));
	if (cell->wrong.kind != WRONG_GARBAGE &&
	    cell->wrong.kind != WRONG_OUTSIDE) /* these say it */
		snprintf(of, sizeof(of), " (%llu of %llu words)",
			 (unsigned long long)cell->wrong.wrong_words,
			 (unsigned long long)cell->wrong.words);
	return rdma_fail(f, RDMA_STEP_DATA, (int)cell->wrong.kind,
			 "every %s completed, but the data is wrong: %s%s", read ? "read" : "write",
			 text, of);
}

int end_check(const struct end *e, const struct end_round *r, struct rdma_cell *cell,
	      struct rdma_failure *f)
{
	const struct buffer *b = &e->buffers[END_IN];
	struct wrong wrong = {0};
	int error = buffer_check(b, tag_of(r, false), tag_of(r, true), &wrong, f);

	if (error < 0)
		return error;
	cell->checked_bytes += b->bytes;
	cell->data = RDMA_DATA_RIGHT;
	if (wrong.kind == WRONG_NOTHING)
		return 0;
	cell->data = RDMA_DATA_WRONG;
	cell->wrong = wrong;
	return end_say_wrong(cell, r->read, f);
}

int end_check_message(const struct end *e, const struct end_round *r, uint64_t bytes,
		      struct rdma_cell *cell, struct rdma_failure *f)
{
	const struct buffer *b = &e->buffers[END_IN];
	uint8_t *got = malloc(bytes);
	int error = got ? b->set->ops->read(b->set, &b->memory, BUFFER_GUARD, got, bytes)
			: err_set(ENOMEM, "no memory");

	if (error == 0)
		cell->wrong = message_check(got, bytes, tag_of(r, false), tag_of(r, true));
	free(got);
	return error < 0 ? set_failed(f, error) : message_judge(cell, bytes, f);
}
