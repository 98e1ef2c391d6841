// SPDX-License-Identifier: Apache-2.0
#include "collective/operation.h"

#include "base/err.h"
#include "collective/slots.h"
#include "kernels/typed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SHARD_ALIGNMENT 16u

/* All: every rank; otherwise the root. */
static const struct {
	const char *name;
	bool from_all, to_all;
	bool scatters; /* the input has a piece for each rank */
	bool gathers;  /* the output has a piece of each rank */
	bool reduces;
	/* it can be split into shards, which go to their owners first, then to the receivers */
	bool two_steps;
	bool chain; /* a piece can go from rank to rank */
} rows[OPERATION_N] = {
	[OPERATION_ALL_REDUCE] = {"all_reduce", true, true, false, false, true, true, false},
	[OPERATION_REDUCE] = {"reduce", true, false, false, false, true, true, true},
	[OPERATION_REDUCE_SCATTER] = {"reduce_scatter", true, true, true, false, true, false, true},
	[OPERATION_ALL_GATHER] = {"all_gather", true, true, false, true, false, false, true},
	[OPERATION_BROADCAST] = {"broadcast", false, true, false, false, false, true, true},
	[OPERATION_ALL_TO_ALL] = {"all_to_all", true, true, true, true, false, false, false},
};

const char *operation_word(enum operation o)
{
	return rows[o].name;
}

/* An operation as this rank sees it. */
struct view {
	enum operation o;
	const struct operation_call *call;
	u32 senders, takers; /* masks of ranks */
	u32 others, me;
	u32 reach; /* ranks whose memory this one stores into */
	u64 bytes; /* of a piece */
};

static u32 bit(u32 rank)
{
	return 1u << rank;
}

static void look(const struct comm_facts *f, u32 me, enum operation o,
		 const struct operation_call *call, struct view *ret)
{
	const u32 all = (1u << f->n) - 1, root = bit((u32)call->root);

	*ret = (struct view){.o = o,
			     .call = call,
			     .senders = rows[o].from_all ? all : root,
			     .takers = rows[o].to_all ? all : root,
			     .others = all & ~bit(me),
			     .me = bit(me),
			     .reach = f->reach[me],
			     .bytes = call->count * typed_bytes(call->type)};
}

/*
 * Where to write what ranks of a mask are all to read: in the memory of those that this one
 * reaches, and once for the others.
 */
static u32 places_for(const struct view *v, u32 ranks)
{
	const u32 direct = ranks & v->reach;

	return direct | (ranks & ~direct ? v->me : 0);
}

/* ---- what ranks tell each other ---- */

bool operation_has_root(enum operation o)
{
	return !rows[o].from_all || !rows[o].to_all;
}

#define BARRIER (1u << 15)

/* What a rank passes without need does not count. */
static struct agree_call tell(enum operation o, const struct operation_call *call)
{
	const u32 op = rows[o].reduces ? call->op : 0,
		  root = operation_has_root(o) ? (u32)call->root : 0;

	return (struct agree_call){1u << 31 | o | call->type << 8 | (call->barrier ? BARRIER : 0) |
					   op << 16 | root << 24,
				   call->count};
}

static const char *const type_words[ELEMENT_TYPE_N] = {
	[ELEMENT_INT8] = "int8",
	[ELEMENT_UINT8] = "uint8",
	[ELEMENT_INT32] = "int32",
	[ELEMENT_UINT32] = "uint32",
	[ELEMENT_INT64] = "int64",
	[ELEMENT_UINT64] = "uint64",
	[ELEMENT_FLOAT16] = "float16",
	[ELEMENT_FLOAT32] = "float32",
	[ELEMENT_FLOAT64] = "float64",
	[ELEMENT_BFLOAT16] = "bfloat16",
	[ELEMENT_FLOAT8_E4M3] = "float8_e4m3",
	[ELEMENT_FLOAT8_E5M2] = "float8_e5m2",
};

static const char *const reduction_words[REDUCE_OP_N] = {
	[REDUCE_SUM] = "sum", [REDUCE_PROD] = "prod", [REDUCE_MAX] = "max",
	[REDUCE_MIN] = "min", [REDUCE_AVG] = "avg",
};

const char *element_word(unsigned type)
{
	return type < ELEMENT_TYPE_N ? type_words[type] : "unknown";
}

const char *operation_text(const struct agree_call *call, char *buf, size_t size)
{
	const u32 o = call->what & 0xff, type = call->what >> 8 & 0x7f,
		  op = call->what >> 16 & 0xff;
	int at;

	if (o >= OPERATION_N || type >= ELEMENT_TYPE_N || op >= REDUCE_OP_N)
		return "unknown"; /* another process wrote it */
	if (call->what & BARRIER)
		return "barrier";
	at = snprintf(buf, size, "%s(%lu %s", rows[o].name, call->count, type_words[type]);
	if (rows[o].reduces)
		at += snprintf(buf + at, size - (size_t)at, ", %s", reduction_words[op]);
	if (operation_has_root((enum operation)o))
		at += snprintf(buf + at, size - (size_t)at, ", root %u", call->what >> 24 & 0x7f);
	snprintf(buf + at, size - (size_t)at, ")");
	return buf;
}

/* ---- shapes ---- */

static u64 scale_bits(unsigned n)
{
	const double scale = 1. / n;
	u64 bits;

	memcpy(&bits, &scale, sizeof(bits));
	return bits;
}

/* Of pieces in the order of ranks, beginning with rank `first`. */
static u64 places_from(unsigned n, unsigned first)
{
	u64 places = 0;

	for (unsigned i = 0; i < n; i++)
		places |= (u64)i << 4 * ((first + i) % n);
	return places;
}

static void fill_common(const struct comm_facts *f, u32 me, const struct view *v,
			struct collective_shape *s)
{
	const unsigned n = f->n;

	*s = (struct collective_shape){
		.in = (u64)v->call->in,
		.out = (u64)v->call->out,
		.in_bytes = rows[v->o].scatters ? n * v->bytes : v->bytes,
		.out_bytes = rows[v->o].gathers ? n * v->bytes : v->bytes,
		.scale = scale_bits(n),
		.type = v->call->type,
		.op = rows[v->o].reduces ? v->call->op : REDUCE_OP_N,
		.n = n,
		.me = me,
		.pull = v->takers & v->me ? v->senders & v->others : 0,
		.own = rows[v->o].reduces && (v->senders & v->takers & v->me),
		.keep = (v->takers & v->me) != 0,
		.places = places_from(n, 0),
	};
}

static void fill_one_step(const struct view *v, struct collective_shape *s)
{
	const u32 to = v->takers & v->others;

	s->piece = v->bytes;
	s->copied = rows[v->o].reduces ? 0 : v->senders & v->takers & v->me;
	s->in_stride = rows[v->o].scatters ? v->bytes : 0;
	s->out_stride = rows[v->o].gathers ? v->bytes : 0;
	s->tokens = rows[v->o].scatters ? v->others : places_for(v, v->others);
	if (!(v->senders & v->me) || !to)
		return;
	s->push = rows[v->o].scatters ? to : places_for(v, to);
}

/* A root owns no shard: it sends or receives all data anyway, and nothing twice. */
static unsigned owners(const struct comm_facts *f, enum operation o)
{
	return operation_has_root(o) && f->n > 1 ? f->n - 1 : f->n;
}

/* Of one of n shards. */
static u64 share_bytes(u64 bytes, unsigned n)
{
	const u64 each = (u64)SHARD_ALIGNMENT * (n ? n : 1);

	return (bytes + each - 1) / each * SHARD_ALIGNMENT;
}

static u64 shard_bytes(const struct comm_facts *f, enum operation o, u64 bytes)
{
	return share_bytes(bytes, owners(f, o));
}

/* A shard that only comes from the root is passed on unchanged; the root has it already. */
static void pass_on(struct view *v, struct collective_shape *s)
{
	v->takers &= ~v->senders;
	s->type = ELEMENT_UINT8;
	s->op = REDUCE_SUM;
	s->keep = (v->takers & v->me) != 0;
	if (v->senders & v->me)
		s->copied = v->others | v->me;
}

/*
 * Shards go to their owners, who reduce them. The root comes last, so that its shard begins where
 * the data ends.
 */
static void fill_two_steps(const struct comm_facts *f, struct view v, struct collective_shape *s)
{
	s->piece = s->in_stride = s->out_stride = shard_bytes(f, v.o, v.bytes);
	if (operation_has_root(v.o))
		s->places = places_from(f->n, ((u32)v.call->root + 1) % f->n);
	if (!rows[v.o].reduces)
		pass_on(&v, s);
	else
		s->own = (v.senders & v.me) != 0;
	s->push = v.senders & v.me ? v.others : 0;
	s->pull = v.senders & v.others;
	s->tokens = v.others;
	s->push2 = places_for(&v, v.takers & v.others);
	s->pull2 = s->keep ? v.others : 0;
}

/* ---- in levels ---- */

/* Of a group, the rank with the same place as `me`. */
static u32 rank_in(const struct comm_facts *f, u32 me, unsigned group)
{
	const u32 those = groups_counterparts(&f->groups, f->n, me) | bit(me);

	for (u32 r = 0; r < f->n; r++)
		if ((those >> r & 1) && f->groups.of[r] == group)
			return r;
	return me;
}

/* Each group is divided among its ranks in the same way. */
static struct collective_shape shape_of_shards(const struct comm_facts *f, const struct view *v,
					       const struct collective_shape *common)
{
	struct collective_shape s = *common;

	s.piece = s.in_stride = s.out_stride = share_bytes(v->bytes, f->groups.size);
	s.places = 0;
	for (u32 r = 0; r < f->n; r++)
		s.places |= (u64)groups_place(&f->groups, r) << 4 * r;
	s.tokens = v->others;
	return s;
}

/*
 * What the owner has reduced, each counterpart's and this rank's own chunks, is passed on unchanged
 * within the group.
 */
static void fill_third(u32 owner, const struct collective_shape *across,
		       struct collective_shape *ret)
{
	const bool mine = owner == across->me;

	*ret = *across;
	ret->type = ELEMENT_UINT8;
	ret->op = REDUCE_SUM;
	ret->own = mine;
	ret->pull = mine ? 0 : bit(owner);
	ret->keep = !mine;
	ret->push2 = ret->pull2;
}

/*
 * A shard belongs to one rank of each group, which has its group's sum of it in the output until it
 * knows the others'.
 */
static void fill_levels(const struct comm_facts *f, const struct view *v,
			struct operation_shape *ret)
{
	const struct collective_shape common = shape_of_shards(f, v, &ret->s);
	const u32 me = common.me, mates = groups_mates(&f->groups, f->n, me);
	const u32 counterparts = groups_counterparts(&f->groups, f->n, me);

	ret->stages = groups_stages(&f->groups);
	ret->shares = groups_shares(&f->groups);
	for (unsigned share = 0; share < ret->shares; share++) {
		const u32 owner = ret->shares > 1 ? rank_in(f, me, share) : me;
		struct collective_shape *within = &ret->level[share],
					*across = within + ret->shares;

		*within = *across = common;
		within->push = within->pull = mates;
		within->op = common.op == REDUCE_AVG ? REDUCE_SUM : common.op;
		within->push2 =
			ret->shares == 1 ? places_for(v, counterparts) : bit(owner) & ~v->me;
		across->in = common.out;
		across->pull = counterparts;
		across->keep = owner == me;
		across->push2 = ret->shares == 1 ? mates
				: owner == me    ? places_for(v, counterparts)
						 : 0;
		across->pull2 = mates;
		if (ret->shares > 1)
			fill_third(owner, across, across + ret->shares);
	}
	ret->s = ret->level[0];
}

/* ---- in a chain ---- */

/* What is reduced begins behind the rank that gets it, everything else at the rank that has it. */
static void fill_chain(const struct comm_facts *f, const struct view *v,
		       struct operation_shape *ret)
{
	const u32 n = f->n, me = ret->s.me, before = bit((me + n - 1) % n),
		  next = bit((me + 1) % n);
	const bool reduces = rows[v->o].reduces, rooted = operation_has_root(v->o);
	struct collective_shape *middle = &ret->place[CHAIN_MIDDLE],
				*last = &ret->place[CHAIN_LAST];

	ret->pieces = rooted ? bit((u32)v->call->root) : (1u << n) - 1;
	ret->shift = reduces;
	ret->period = rooted ? 1 : n - 1;
	fill_one_step(v, &ret->s);
	ret->s.tokens = v->others;
	if (!reduces) {
		ret->s.type = ELEMENT_UINT8;
		ret->s.op = REDUCE_SUM;
	}
	ret->s.push = next;
	*last = ret->s;
	last->copied = 0;
	last->pull = before;
	last->own = reduces;
	last->keep = 1;
	*middle = *last;
	middle->op = last->op == REDUCE_AVG ? REDUCE_SUM : last->op;
	middle->keep = !reduces;
	middle->push2 = next;
}

/* How many ranks a piece passes before this one; 0: it begins there. */
static unsigned chain_place(const struct operation_shape *s, unsigned piece)
{
	return chain_distance(s->s.n, s->shift, s->s.me, piece);
}

static void fill_shape(const struct comm_facts *f, u32 me, const struct view *v, enum algorithm a,
		       struct operation_shape *ret)
{
	ret->stages = ret->shares = ret->pieces = 0;
	ret->period = 1;
	fill_common(f, me, v, &ret->s);
	if (steps_of(a) == STEPS_LEVELS)
		fill_levels(f, v, ret);
	else if (steps_of(a) == STEPS_CHAIN)
		fill_chain(f, v, ret);
	else if (steps_of(a) == STEPS_TWO)
		fill_two_steps(f, *v, &ret->s);
	else
		fill_one_step(v, &ret->s);
}

void operation_shape(const struct comm_facts *f, unsigned me, enum operation o,
		     const struct operation_call *call, enum algorithm a,
		     struct operation_shape *ret)
{
	struct view v;

	look(f, me, o, call, &v);
	fill_shape(f, me, &v, a, ret);
}

/* ---- what crosses links ---- */

struct mover {
	const struct comm_facts *f;
	unsigned me;
	void (*each)(void *context, const struct operation_move *m);
	void *context;
};

static u64 piece_bytes(u64 all, u64 begin, u64 piece)
{
	const u64 there = begin < all ? all - begin : 0;

	return there < piece ? there : piece;
}

static u64 input_bytes(const struct collective_shape *s, unsigned rank)
{
	return piece_bytes(s->in_bytes, piece_place(s, rank) * s->in_stride, s->piece);
}

static u64 output_bytes(const struct collective_shape *s, unsigned rank)
{
	return piece_bytes(s->out_bytes, piece_place(s, rank) * s->out_stride, s->piece);
}

/*
 * m->what, of the ranks of a mask. A rank's own place is that of all whose memory it does not
 * reach.
 */
static void move(const struct mover *x, const struct collective_shape *s, u32 mask,
		 struct operation_move m)
{
	const bool stores = m.what == MOVE_SEND || m.what == MOVE_SPREAD;
	const bool own = m.what == MOVE_SPREAD || (m.what == MOVE_TAKE && s->op != REDUCE_OP_N);

	for (u32 r = 0; r < s->n; r++) {
		if (!(mask >> r & 1))
			continue;
		m.other = r;
		m.direct = stores ? r != x->me && is_direct(x->f, x->me, r)
				  : is_direct(x->f, r, x->me);
		m.bytes = own                   ? input_bytes(s, x->me)
			  : m.what == MOVE_SEND ? input_bytes(s, r)
						: output_bytes(s, r);
		x->each(x->context, &m);
	}
}

static void move_in_chain(const struct mover *x, const struct operation_shape *s)
{
	for (unsigned piece = 0; piece < s->s.n; piece++) {
		const unsigned at = chain_place(s, piece);
		const struct collective_shape *p =
			&s->place[at + 1 < s->s.n ? CHAIN_MIDDLE : CHAIN_LAST];

		if (!(s->pieces >> piece & 1))
			continue;
		if (!at) {
			move(x, &s->s, s->s.push, (struct operation_move){MOVE_SEND, 0, 1});
			continue;
		}
		move(x, p, p->pull, (struct operation_move){MOVE_TAKE, at, 1});
		move(x, p, p->push2, (struct operation_move){MOVE_SPREAD, at, 1});
	}
}

void operation_moves(const struct comm_facts *f, unsigned me, const struct operation_shape *s,
		     void (*each)(void *context, const struct operation_move *m), void *context)
{
	const struct mover x = {f, me, each, context};
	const unsigned stages = s->stages ? s->stages : 1, shares = s->stages ? s->shares : 1;
	const struct collective_shape *last =
		s->stages ? &s->level[(size_t)(stages - 1) * shares] : &s->s;

	if (s->pieces) {
		move_in_chain(&x, s);
		return;
	}
	move(&x, &s->s, s->s.push, (struct operation_move){MOVE_SEND, 0, 1});
	for (unsigned k = 0; k < stages; k++)
		for (unsigned i = 0; i < shares; i++) {
			const struct collective_shape *part =
				s->stages ? &s->level[(size_t)k * shares + i] : &s->s;

			/* Another rank's share. */
			if (s->stages && !part->keep && !part->push2)
				continue;
			move(&x, part, part->pull,
			     (struct operation_move){MOVE_TAKE, 1 + k, shares});
			move(&x, part, part->push2,
			     (struct operation_move){MOVE_SPREAD, 1 + k, shares});
		}
	move(&x, last, last->pull2, (struct operation_move){MOVE_PLACE, 1 + stages, 1});
}

/* Bytes on the links of each rank and of each group that shares one. */
struct counted {
	const struct comm_facts *f;
	unsigned me;
	struct crossing out[GROUPS_RANKS_MAX], in[GROUPS_RANKS_MAX];
	struct crossing group_out[GROUPS_RANKS_MAX], group_in[GROUPS_RANKS_MAX];
};

static void count_move(void *context, const struct operation_move *m)
{
	struct counted *x = context;
	const struct groups *g = &x->f->shared;
	const double bytes = (double)m->bytes / m->shares;
	const bool stores = m->what == MOVE_SEND || m->what == MOVE_SPREAD;

	if (!m->direct)
		(stores ? &x->out : &x->in)[0][x->me].host += bytes;
	if (!m->direct || !stores)
		return; /* loads of a rank's own memory take no link */
	x->out[x->me].direct += bytes;
	x->in[m->other].direct += bytes;
	if (g->n && g->of[x->me] != g->of[m->other]) {
		x->group_out[g->of[x->me]].direct += bytes;
		x->group_in[g->of[m->other]].direct += bytes;
	}
}

static void keep_busiest(const struct comm_facts *f, enum algorithm a, struct crossing bytes,
			 double piece, struct crossing *ret)
{
	const struct crossing c = {bytes.direct / piece, bytes.host / piece};

	if (crossing_us(f, a, c) > crossing_us(f, a, *ret))
		*ret = c;
}

/* Of data that can be divided by all numbers of ranks and groups. */
#define COUNTED_BYTES (SHARD_ALIGNMENT * 720720ul)

/*
 * A link that a group shares is taken to be as fast as a GPU's: so it is between two switches, and
 * between sockets nobody has measured more. Traffic through the host's memory takes none.
 */
static void count_from(const struct comm_facts *f, enum operation o, int root, enum algorithm a,
		       struct crossing *ret)
{
	const struct operation_call call = {.count = COUNTED_BYTES,
					    .type = ELEMENT_UINT8,
					    .root = root};
	struct counted x = {.f = f};
	double piece = 1;

	for (unsigned me = 0; me < f->n; me++) {
		struct operation_shape s;

		operation_shape(f, me, o, &call, a, &s);
		piece = (double)s.s.piece;
		x.me = me;
		operation_moves(f, me, &s, count_move, &x);
	}
	for (unsigned i = 0; i < f->n; i++) {
		keep_busiest(f, a, x.out[i], piece, ret);
		keep_busiest(f, a, x.in[i], piece, ret);
		keep_busiest(f, a, x.group_out[i], piece, ret);
		keep_busiest(f, a, x.group_in[i], piece, ret);
	}
}

static bool can_step(enum operation o, enum steps how)
{
	const bool can[STEPS_N] = {
		[STEPS_ONE] = true,
		[STEPS_TWO] = rows[o].two_steps,
		[STEPS_LEVELS] = o == OPERATION_ALL_REDUCE,
		[STEPS_CHAIN] = rows[o].chain,
	};

	return can[how];
}

bool operation_can_use(enum operation o, enum algorithm a)
{
	return can_step(o, steps_of(a));
}

/* Whether these ranks can. */
static bool has_steps(const struct comm_facts *f, enum operation o, enum steps how)
{
	if (!can_step(o, how))
		return false;
	switch (how) {
	case STEPS_TWO:
		return owners(f, o) > 1;
	case STEPS_LEVELS:
		return f->groups.n;
	case STEPS_CHAIN:
		return f->direct && f->n > 2 && (!rows[o].reduces || shares_links(f));
	default:
		return true;
	}
}

/* From or to the root with which it takes longest. */
void operation_count(struct comm_facts *f)
{
	for (int o = 0; o < OPERATION_N; o++)
		for (int a = PIPED_ONE; a < ALGORITHM_N; a++) {
			const unsigned roots = operation_has_root((enum operation)o) ? f->n : 1;
			const enum steps how = steps_of((enum algorithm)a);
			struct crossing *c = &f->crossing[o][how];

			*c = (struct crossing){0};
			for (unsigned root = 0;
			     has_steps(f, (enum operation)o, how) && root < roots; root++)
				count_from(f, (enum operation)o, (int)root, (enum algorithm)a, c);
		}
}

/* ---- launches ---- */

static const char *name_of(enum operation o, const struct operation_call *call)
{
	return call->barrier ? "barrier" : rows[o].name;
}

static int launch(struct onehop_comm *c, const struct view *v, const struct launch *l)
{
	const struct agree_call call = tell(v->o, v->call);

	return comm_launch(c, v->call->stream, l,
			   &(struct comm_shown){.name = name_of(v->o, v->call), .call = &call});
}

/* Where each rank of the mask finds this rank's data, in rank order. */
static u32 list_places(u32 mask, const u64 *to, u64 *ret)
{
	u32 n = 0;

	for (u32 r = 0; r < COLLECTIVE_RANKS_MAX; r++)
		if (mask >> r & 1)
			ret[n++] = to[r];
	return n;
}

/*
 * The receive slots of other ranks are at equal distances, starting with rank 0, if all are in one
 * memory.
 */
static u64 stride_of(const struct collective_ways *w)
{
	return w->from[1] - w->from[0];
}

static void fill_small(const struct onehop_comm *c, const struct collective_flagged_args *f,
		       struct collective_small_args *ret)
{
	const struct collective_shape *s = &f->s;
	const bool two = s->push2 || s->pull2;

	*ret = (struct collective_small_args){
		.state = s->state,
		.in = s->in,
		.out = s->out,
		.bytes = s->out_bytes,
		.set_bytes = f->set_bytes,
		.block_bytes = f->block_bytes,
		.n = s->n,
		.me = s->me,
		.type = s->type,
		.op = s->op,
		.from = f->first.from[0],
		.from_stride = stride_of(&f->first),
		.piece = two ? s->piece : 0,
		.from2 = f->second.from[0],
		.from2_stride = stride_of(&f->second),
		.scale = s->scale,
		.report = s->report,
		.abort = s->abort,
		.limit_ns = s->limit_ns,
		.number = c->number,
	};
	ret->host_rows = f->host_rows;
	ret->hosts = f->hosts;
	ret->directs = list_places(f->direct, f->first.to, ret->to);
	list_places(f->direct, f->second.to, ret->to2);
	ret->places = list_places(s->push, f->first.to, ret->to);
	ret->places2 = list_places(s->push2, f->second.to, ret->to2);
}

/* A barrier sends no data, and a single rank has no receivers. */
static bool is_small(const struct comm_facts *f, const struct view *v,
		     const struct collective_shape *s)
{
	return !f->mixed && v->o == OPERATION_ALL_REDUCE && s->push && v->bytes &&
	       collective_sums_fast(s->type, s->op);
}

/* In the first step, each rank gets data of its own. */
static bool goes_to_pairs(const struct view *v, enum algorithm a)
{
	return steps_of(a) != STEPS_ONE || rows[v->o].scatters;
}

static int launch_flagged(struct onehop_comm *c, const struct view *v, const struct choice *p,
			  struct operation_shape *s)
{
	const bool pairs = goes_to_pairs(v, p->algorithm);
	struct collective_flagged_args args = {.first = pairs ? c->flagged.pair : c->flagged.all,
					       .second = c->flagged.second,
					       .set_bytes = slots_set_bytes(&c->facts),
					       .block_bytes = slots_block_bytes(&c->facts),
					       .host_rows = c->flagged.host_rows,
					       .hosts = c->flagged.hosts,
					       .direct = c->facts.reach[c->me],
					       .round_bytes = p->chunk * p->blocks,
					       .rounds = p->chunks};
	struct launch l = {KERNEL_collective_flagged, p->blocks, p->threads, &args, sizeof(args)};
	struct collective_small_args small;

	s->s.state = c->flagged_state;
	args.s = s->s;
	if (p->chunks == 1 && is_small(&c->facts, v, &s->s)) {
		fill_small(c, &args, &small);
		l.kernel = KERNEL_collective_small;
		l.args = &small;
		l.args_size = sizeof(small);
	}
	return launch(c, v, &l);
}

static u64 slots_of(const struct onehop_comm *c, const struct collective_ways *w)
{
	return w == &c->routes.pair.first ? PIPED_FIRST_SLOTS : PIPED_SECOND_SLOTS;
}

/* Where a stage finds what it reduces, and where the result goes. */
static struct collective_stage stage_of(const struct onehop_comm *c,
					const struct collective_ways *from,
					const struct collective_ways *to)
{
	return (struct collective_stage){{*from, *to, c->routes.pair.flags},
					 slots_of(c, from),
					 slots_of(c, to)};
}

static int launch_levels(struct onehop_comm *c, const struct view *v, const struct choice *p,
			 const struct operation_shape *s)
{
	const struct collective_ways *first = &c->routes.pair.first,
				     *second = &c->routes.pair.second;
	const bool shared = s->shares > 1;
	struct collective_levels_args a = {.stage = {stage_of(c, first, shared ? first : second),
						     stage_of(c, shared ? first : second, second),
						     stage_of(c, second, second)},
					   .slot_bytes = c->facts.slot_bytes,
					   .turn_bytes = slots_turn_bytes(&c->facts),
					   .chunk = p->chunk,
					   .chunks = p->chunks,
					   .stages = s->stages,
					   .shares = s->shares};
	const struct launch l = {KERNEL_collective_levels, p->blocks, p->threads, &a, sizeof(a)};

	memcpy(a.s, s->level, (size_t)s->stages * s->shares * sizeof(a.s[0]));
	a.s[0] = s->s;
	return launch(c, v, &l);
}

static int launch_chain(struct onehop_comm *c, const struct view *v, const struct choice *p,
			const struct operation_shape *s)
{
	const struct collective_ways *first = &c->routes.pair.first;
	struct collective_chain_args a = {.routes = {*first, *first, c->routes.pair.flags},
					  .slot_bytes = c->facts.slot_bytes,
					  .turn_bytes = slots_turn_bytes(&c->facts),
					  .chunk = p->chunk,
					  .chunks = p->chunks,
					  .shift = s->shift,
					  .period = s->period,
					  .place = s->period > 1
							   ? 0
							   : chain_place(s, (u32)v->call->root)};
	const struct launch l = {KERNEL_collective_chain, p->blocks, p->threads, &a, sizeof(a)};

	memcpy(a.s, s->place, sizeof(a.s));
	a.s[CHAIN_FIRST] = s->s;
	return launch(c, v, &l);
}

/* This rank gets nothing from others and, as the root of a broadcast, passes nothing on. */
static bool only_sends(const struct view *v, const struct collective_shape *s)
{
	return !s->pull && !s->pull2 && (!s->push2 || v->senders == v->me);
}

static int launch_piped(struct onehop_comm *c, const struct view *v, const struct choice *p,
			struct operation_shape *s)
{
	const bool pairs = goes_to_pairs(v, p->algorithm);
	struct collective_piped_args args = {.slot_bytes = c->facts.slot_bytes,
					     .turn_bytes = slots_turn_bytes(&c->facts),
					     .chunk = p->chunk,
					     .chunks = p->chunks};
	const struct launch l = {KERNEL_collective_piped, p->blocks, p->threads, &args,
				 sizeof(args)};

	s->s.state = c->piped_state;
	s->s.tokens = places_for(v, v->others); /* flags are the same for all */
	if (p->algorithm == PIPED_CHAIN)
		return launch_chain(c, v, p, s);
	s->s.ahead = only_sends(v, &s->s);
	if (p->algorithm == PIPED_LEVELS)
		return launch_levels(c, v, p, s);
	args.s = s->s;
	args.routes = pairs ? c->routes.pair : c->routes.all;
	return launch(c, v, &l);
}

/* What is smaller than float would be rounded after each rank of a chain. */
static bool rounds_in_chain(enum operation o, unsigned type)
{
	const u32 bits = typed_fraction_bits(type);

	return rows[o].reduces && bits && bits < typed_fraction_bits(ELEMENT_FLOAT32);
}

static struct choice_request request_of(const struct comm_facts *f, enum operation o, u64 count,
					unsigned type)
{
	const u64 bytes = count * typed_bytes(type);
	struct choice_request q = {.operation = o,
				   .period = operation_has_root(o) ? 1 : f->n - 1,
				   .wide = rows[o].reduces && collective_is_wide(type, 0)};

	memcpy(q.crossing, f->crossing[o], sizeof(q.crossing));
	q.piece[STEPS_ONE] = bytes;
	if (has_steps(f, o, STEPS_TWO)) /* one owner would only pass on all of it */
		q.piece[STEPS_TWO] = shard_bytes(f, o, bytes);
	if (has_steps(f, o, STEPS_LEVELS))
		q.piece[STEPS_LEVELS] = share_bytes(bytes, f->groups.size);
	if (has_steps(f, o, STEPS_CHAIN) && !rounds_in_chain(o, type))
		q.piece[STEPS_CHAIN] = bytes;
	return q;
}

void operation_estimate(const struct comm_facts *f, enum operation o, uint64_t count, unsigned type,
			struct choice ret[ALGORITHM_N])
{
	const struct choice_request q = request_of(f, o, count, type);

	choose_each(f, &q, ret);
}

void operation_choose(const struct comm_facts *f, enum operation o, uint64_t count, unsigned type,
		      enum algorithm forced, struct choice *ret)
{
	const struct choice_request q = request_of(f, o, count, type);

	choose(f, &q, forced, ret);
}

static unsigned chosen_place(const struct view *v)
{
	const u64 key =
		(v->call->count * ELEMENT_TYPE_N + v->call->type) * OPERATION_N + (unsigned)v->o;

	return (unsigned)(key * 0x9e3779b97f4a7c15ul >> 32) % COMM_CHOSEN;
}

/*
 * To choose would be more than a third of what a call takes on the host besides the launch, and
 * programs make the same calls again and again.
 */
static const struct choice *choose_once(struct onehop_comm *c, const struct view *v)
{
	struct comm_chosen *k = &c->chosen[chosen_place(v)];

	if (k->choice.blocks && k->what == (unsigned)v->o && k->type == v->call->type &&
	    k->count == v->call->count && k->forced == c->options.forced)
		return &k->choice;
	*k = (struct comm_chosen){.what = (unsigned)v->o,
				  .type = v->call->type,
				  .forced = c->options.forced,
				  .count = v->call->count};
	operation_choose(&c->facts, v->o, k->count, k->type, k->forced, &k->choice);
	return &k->choice;
}

static int enqueue(struct onehop_comm *c, const struct view *v)
{
	const struct choice *p = choose_once(c, v);
	struct operation_shape s;
	int r;

	fill_shape(&c->facts, c->me, v, p->algorithm, &s);
	s.s.report = c->report;
	s.s.abort = c->abort;
	s.s.limit_ns = 1000 * comm_limit_us(c);
	s.s.number = c->number;
	r = (is_piped(p->algorithm) ? launch_piped : launch_flagged)(c, v, p, &s);
	if (r < 0)
		return r;
	c->last = p->algorithm;
	comm_count(c, v->call->barrier ? COMM_BARRIER : (unsigned)v->o);
	return 0;
}

/* ---- arguments ---- */

static int check_root(const struct onehop_comm *c, enum operation o, int root)
{
	if (!operation_has_root(o) || (root >= 0 && (unsigned)root < c->facts.n))
		return 0;
	return err_set(EINVAL, "%s: root %d is not a rank; ranks are 0 to %u", rows[o].name, root,
		       c->facts.n - 1);
}

int operation_check_elements(const char *name, uint64_t count, unsigned type)
{
	const u64 most = ~0ul / 16 / COLLECTIVE_RANKS_MAX;

	if (type >= ELEMENT_TYPE_N)
		return err_set(EINVAL, "%s: there is no element type %u", name, type);
	if (count > most)
		return err_set(EINVAL, "%s: %lu elements are too many", name, count);
	return 0;
}

int operation_check(enum operation o, uint64_t count, unsigned type, unsigned op)
{
	int r = operation_check_elements(rows[o].name, count, type);

	if (r == 0 && rows[o].reduces && op >= REDUCE_OP_N)
		r = err_set(EINVAL, "%s: there is no reduction %u", rows[o].name, op);
	return r;
}

static int check_call(const struct onehop_comm *c, enum operation o,
		      const struct operation_call *call)
{
	int r = operation_check(o, call->count, call->type, call->op);

	return r < 0 ? r : check_root(c, o, call->root);
}

static int check_buffer(struct onehop_comm *c, const char *function, const char *name,
			const void *buffer)
{
	int r;

	if (!buffer)
		return err_set(EINVAL, "%s: %s is NULL", function, name);
	r = comm_usable(c, (u64)buffer);
	return r < 0 ? err_wrap(r, "%s: %s", function, name) : 0;
}

/*
 * A block sends what is at its own offsets before it stores there, so one memory for both must
 * begin at the same offset.
 */
static int check_overlap(const struct onehop_comm *c, const struct view *v)
{
	const bool scatters = rows[v->o].scatters, gathers = rows[v->o].gathers;
	const u64 in = (u64)v->call->in, out = (u64)v->call->out;
	const u64 whole = c->facts.n * v->bytes, own = c->me * v->bytes;

	if (in >= out + (gathers ? whole : v->bytes) || out >= in + (scatters ? whole : v->bytes))
		return 0;
	if (gathers && !scatters)
		return in == out + own
			       ? 0
			       : err_set(EINVAL, "%s: in is in out, but not at out + rank * count",
					 rows[v->o].name);
	if (out == in || (scatters && !gathers && out == in + own))
		return 0;
	return err_set(EINVAL, "%s: in and out overlap, but do not start at the same address",
		       rows[v->o].name);
}

static int check_buffers(struct onehop_comm *c, const struct view *v)
{
	const bool sends = v->bytes && (v->senders & v->me),
		   takes = v->bytes && (v->takers & v->me);
	const char *name = rows[v->o].name;
	int r = 0;

	if (sends)
		r = check_buffer(c, name, "in", v->call->in);
	if (r == 0 && takes)
		r = check_buffer(c, name, "out", v->call->out);
	return r == 0 && sends && takes ? check_overlap(c, v) : r;
}

static int verify(struct onehop_comm *c, enum operation o, const struct operation_call *call,
		  struct view *ret)
{
	int r = comm_check_open(c, name_of(o, call));

	if (r < 0)
		return r;
	r = check_call(c, o, call);
	if (r == 0) {
		look(&c->facts, c->me, o, call, ret);
		r = check_buffers(c, ret);
	}
	return r < 0 ? err_wrap(r, "rank %u", c->me) : 0;
}

int operation_verify(struct onehop_comm *c, enum operation o, const struct operation_call *call)
{
	struct view v;

	return verify(c, o, call, &v);
}

int operation_enqueue(struct onehop_comm *c, enum operation o, const struct operation_call *call)
{
	struct view v;
	int r = verify(c, o, call, &v);

	return r < 0 ? r : enqueue(c, &v);
}
