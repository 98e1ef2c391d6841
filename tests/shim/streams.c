// SPDX-License-Identifier: Apache-2.0
/*
 * The order of a communicator's operations (plugins/nccl/streams.c) on a model of CUDA's streams,
 * events and graphs, which knows of each operation what surely ends before it. Random programs on
 * four streams capture and launch graphs, several at a time; each operation must come after the one
 * that was issued before it. TAP.
 */
#include "nccl/streams.h"

#include "base/dl.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 4, GRAPHS = 6, NODES = 64, RUNS = 1024, INVALID = 1, ACTIVE = 1 };

/* ---- the model ---- */

/* What ran, by number. */
struct set {
	uint64_t word[RUNS / 64];
};

enum kind { OPERATION, OTHER, WAIT, RECORD };

struct node {
	enum kind kind;
	uint64_t behind; /* nodes of its graph, by number */
	struct graph *graph;
};

struct graph {
	struct node node[NODES];
	size_t n;
	uint64_t id; /* of its capture; 0: not in use */
	bool captured;
};

struct stream {
	struct set done;         /* before what comes next */
	struct graph *capturing; /* NULL: what is enqueued runs */
	uint64_t behind;         /* then: nodes that the next one comes after */
	void *listed[NODES];
};

static struct stream streams[STREAMS];
static struct graph graphs[GRAPHS];
static struct set event;
static uint64_t captures;
static size_t runs;
static int last_operation; /* what ran as the last one; -1: none */
static bool in_order;

static void add(struct set *s, const struct set *other)
{
	for (size_t i = 0; i < RUNS / 64; i++)
		s->word[i] |= other->word[i];
}

static void add_one(struct set *s, size_t i)
{
	s->word[i / 64] |= 1ull << i % 64;
}

static bool has(const struct set *s, size_t i)
{
	return s->word[i / 64] >> i % 64 & 1;
}

static size_t run(enum kind kind, const struct set *before)
{
	if (kind == OPERATION) {
		in_order &= last_operation < 0 || has(before, (size_t)last_operation);
		last_operation = (int)runs;
	}
	return runs++;
}

static struct node *add_node(struct graph *g, enum kind kind, uint64_t behind)
{
	struct node *n = &g->node[g->n];

	if (g->n == NODES)
		abort();
	*n = (struct node){kind, behind, g};
	g->n++;
	return n;
}

static uint64_t bit_of(const struct node *n)
{
	return 1ull << (n - n->graph->node);
}

static void enqueue(struct stream *s, enum kind kind)
{
	if (s->capturing)
		s->behind = bit_of(add_node(s->capturing, kind, s->behind));
	else
		add_one(&s->done, run(kind, &s->done));
}

/* Waits are for what the event was behind when the graph was launched. */
static void launch(struct graph *g, struct stream *s)
{
	struct set after[NODES], at_launch = event, all = s->done;

	for (size_t i = 0; i < g->n; i++) {
		const struct node *n = &g->node[i];

		after[i] = s->done;
		for (size_t k = 0; k < i; k++)
			if (n->behind >> k & 1)
				add(&after[i], &after[k]);
		if (n->kind == WAIT)
			add(&after[i], &at_launch);
		if (n->kind == RECORD)
			event = after[i];
		add_one(&after[i], run(n->kind, &after[i]));
		add(&all, &after[i]);
	}
	s->done = all;
}

/* ---- the driver's functions ---- */

static int nothing(void)
{
	return 0;
}

static int some_context(void **ret, int device)
{
	(void)device;
	*ret = &event;
	return 0;
}

static int create_event(void **ret, unsigned flags)
{
	(void)flags;
	*ret = &event;
	return 0;
}

static int record(void *e, void *stream)
{
	struct stream *s = stream;

	if (s->capturing)
		return INVALID;
	*(struct set *)e = s->done;
	return 0;
}

static int wait_event(void *stream, void *e, unsigned flags)
{
	struct stream *s = stream;

	if (s->capturing || flags)
		return INVALID;
	add(&s->done, e);
	return 0;
}

static int capture_info(void *stream, int *status, uint64_t *id, void **graph, void ***nodes,
			size_t *n)
{
	struct stream *s = stream;

	*status = s->capturing ? ACTIVE : 0;
	if (!s->capturing)
		return 0;
	*id = s->capturing->id;
	*graph = s->capturing;
	*nodes = s->listed;
	*n = 0;
	for (size_t i = 0; i < s->capturing->n; i++)
		if (s->behind >> i & 1)
			s->listed[(*n)++] = &s->capturing->node[i];
	return 0;
}

static int add_dependencies(void *stream, void **nodes, size_t n, unsigned flags)
{
	struct stream *s = stream;

	if (!s->capturing || flags)
		return INVALID;
	for (size_t i = 0; i < n; i++) {
		const struct node *node = nodes[i];

		if (node->graph != s->capturing)
			return INVALID;
		s->behind |= bit_of(node);
	}
	return 0;
}

static int add_event_node(void **ret, void *graph, void *const *nodes, size_t n, void *e,
			  enum kind kind)
{
	uint64_t behind = 0;

	for (size_t i = 0; i < n; i++) {
		const struct node *node = nodes[i];

		if (node->graph != graph)
			return INVALID;
		behind |= bit_of(node);
	}
	*ret = add_node(graph, kind, behind);
	return e == &event ? 0 : INVALID;
}

static int add_wait(void **ret, void *graph, void *const *nodes, size_t n, void *e)
{
	return add_event_node(ret, graph, nodes, n, e, WAIT);
}

static int add_record(void **ret, void *graph, void *const *nodes, size_t n, void *e)
{
	return add_event_node(ret, graph, nodes, n, e, RECORD);
}

/* In the place of that of libonehop. */
int dl_load(const char *soname, const struct dl_symbol *symbols, size_t n, void *base)
{
	static const struct {
		const char *name;
		void (*function)(void);
	} functions[] = {
		{"cuDevicePrimaryCtxRetain", (void (*)(void))some_context},
		{"cuEventCreate", (void (*)(void))create_event},
		{"cuEventRecord", (void (*)(void))record},
		{"cuStreamWaitEvent", (void (*)(void))wait_event},
		{"cuStreamGetCaptureInfo_v2", (void (*)(void))capture_info},
		{"cuStreamUpdateCaptureDependencies", (void (*)(void))add_dependencies},
		{"cuGraphAddEventWaitNode", (void (*)(void))add_wait},
		{"cuGraphAddEventRecordNode", (void (*)(void))add_record},
	};

	(void)soname;
	for (size_t i = 0; i < n; i++) {
		void (*function)(void) = (void (*)(void))nothing;

		for (size_t k = 0; k < sizeof(functions) / sizeof(*functions); k++)
			if (strcmp(functions[k].name, symbols[i].name) == 0)
				function = functions[k].function;
		memcpy((char *)base + symbols[i].offset, &function, sizeof(function));
	}
	return 0;
}

/* ---- programs ---- */

static uint64_t dice;

static size_t roll(size_t sides)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(dice >> 33) % sides;
}

static struct streams *begin(bool mixed)
{
	struct streams *order;

	memset(streams, 0, sizeof(streams));
	memset(graphs, 0, sizeof(graphs));
	memset(&event, 0, sizeof(event));
	runs = 0;
	last_operation = -1;
	in_order = true;
	if (streams_open(0, mixed, &order) < 0)
		abort();
	return order;
}

/* With no element nothing is enqueued. */
static void call(struct streams *order, struct stream *s, bool elements)
{
	if (streams_before(order, s) < 0)
		abort();
	if (elements)
		enqueue(s, OPERATION);
	if (streams_after(order, s) < 0)
		abort();
}

static void begin_capture(struct stream *s)
{
	for (size_t i = 0; i < GRAPHS; i++)
		if (!graphs[i].id) {
			graphs[i].id = ++captures;
			s->capturing = &graphs[i];
			s->behind = 0;
			return;
		}
}

/* Streams that joined the capture are joined again. */
static void end_capture(struct stream *s)
{
	struct graph *g = s->capturing;

	g->captured = true;
	for (size_t i = 0; i < STREAMS; i++)
		if (streams[i].capturing == g)
			streams[i].capturing = NULL;
}

static void fork_capture(struct stream *from, struct stream *to)
{
	to->capturing = from->capturing;
	to->behind = from->behind;
}

static void step(struct streams *order)
{
	struct stream *s = &streams[roll(STREAMS)], *other = &streams[roll(STREAMS)];
	struct graph *g = &graphs[roll(GRAPHS)];

	switch (roll(8)) {
	case 0:
		if (s->capturing)
			end_capture(s);
		else
			begin_capture(s);
		break;
	case 1:
		if (s->capturing && !other->capturing)
			fork_capture(s, other);
		break;
	case 2:
	case 3:
		if (g->captured && !s->capturing)
			launch(g, s);
		break;
	case 4:
		enqueue(s, OTHER);
		break;
	default:
		if (!s->capturing || s->capturing->n < NODES - 4)
			call(order, s, roll(8) != 0);
	}
}

/* How many of the programs kept the order. */
static int programs(bool mixed, int n)
{
	int right = 0;

	for (int seed = 1; seed <= n; seed++) {
		struct streams *order = begin(mixed);

		dice = (uint64_t)seed;
		for (int i = 0; i < 60 && runs < RUNS - 2 * NODES; i++)
			step(order);
		right += in_order;
		streams_close(order);
	}
	return right;
}

static struct graph *graph_of_three(struct streams *order)
{
	struct stream *s = &streams[0];
	struct graph *g;

	begin_capture(s);
	g = s->capturing;
	for (int i = 0; i < 3; i++)
		call(order, s, true);
	end_capture(s);
	return g;
}

/*
 * Operations of a graph in one stream wait for each other and for what was before, and for no
 * record.
 */
static bool adds_little(bool mixed)
{
	struct streams *order = begin(mixed);
	const struct graph *g = graph_of_three(order);
	size_t count[RECORD + 1] = {0};
	bool straight = true;

	for (size_t i = 0; i < g->n; i++) {
		const struct node *n = &g->node[i];

		count[n->kind]++;
		for (size_t k = 0; k < i; k++)
			if (n->kind == OPERATION && n->behind >> k & 1)
				straight &= g->node[k].kind != RECORD;
	}
	streams_close(order);
	return straight && count[OPERATION] == 3 && count[WAIT] == mixed &&
	       count[RECORD] == (mixed ? 3 : 0);
}

static int number, failed;

static void result(bool right, const char *what)
{
	failed += !right;
	printf("%s %d - %s\n", right ? "ok" : "not ok", ++number, what);
}

int main(void)
{
	result(programs(true, 3000) == 3000, "graphs and what is in none keep the order");
	result(programs(false, 3000) < 3000,
	       "the model finds that they do not, if that is not wanted");
	result(adds_little(true),
	       "a graph waits once, and records after each operation, beside its way");
	result(adds_little(false), "or has its operations only");
	printf("1..%d\n", number);
	return failed != 0;
}
