/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pattern_impl.h"

#include "base/clock.h"
#include "base/err.h"
#include "kernels/pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
/* Above each row: what it proves. */
const struct pattern_row pattern_rows[PATTERN_N] = {
	[PATTERN_NONE] = {"", "", PATTERN_ALWAYS, false, NULL, NULL},
	/*
	 * What a kernel reads of another GPU is what was written before the flag, ten thousand
	 * times, in memory shared by IPC and at odd offsets in it: inference engines' all-reduce.
	 */
	[PATTERN_PULL] = {
		"pull", "running kernels that pull from each other",
		PATTERN_ALWAYS, false, NULL, pattern_pull},
	/* Addresses and flags hold when kernels are replayed. */
	[PATTERN_GRAPH] = {
		"graph", "the same in a graph that is launched again",
		PATTERN_ALWAYS, false, NULL, pattern_graph},
	/* Data arrives before a flag that takes another path or comes from another engine. */
	[PATTERN_FLAGS] = {
		"flags", "data in one place, their flag in another",
		PATTERN_ALWAYS, true, NULL, pattern_flags},
	/* No cache outlives a kernel or a copy. */
	[PATTERN_REREAD] = {
		"reread", "memory read again after its owner rewrote it",
		PATTERN_ALWAYS, true, NULL, pattern_reread},
	/* No cache and no translation outlives a mapping. */
	[PATTERN_REMAP] = {
		"remap", "memory freed, allocated and mapped again",
		PATTERN_ALWAYS, true, NULL, pattern_remap},
	/* Windows cover the end of memory. */
	[PATTERN_LAST] = {
		"last", "all of the last memory that could be allocated",
		PATTERN_LONG, true, "--long SECONDS", pattern_last},
	/* What appears only under load and heat. */
	[PATTERN_SUSTAINED] = {
		"sustained", "running kernels that pull from each other for long",
		PATTERN_LONG, false, "--long SECONDS", pattern_sustained},
	/*
	 * The driver provides such memory, and both see the same data: NCCL keeps its buffers
	 * there.
	 */
	[PATTERN_HOST_MEMORY] = {
		"host-memory", "host memory that the driver created, written by one and read by the other",
		PATTERN_INFORMATION, true, "--host-memory", pattern_host_memory},
	/*
	 * The other's page table entries of such memory lead to it, and what is read is not
	 * compressed.
	 */
	[PATTERN_COMPRESSIBLE] = {
		"compressible", "memory that its GPU may keep compressed",
		PATTERN_INFORMATION, true, "--compressible", pattern_compressible},
	/* Nothing: they are lost where the path has no atomics, which few programs need. */
	[PATTERN_ATOMICS] = {
		"atomics", "atomic additions to the other's memory",
		PATTERN_INFORMATION, true, "--atomics", pattern_atomics},
};
/* clang-format on */

/* Faults of simulated devices that pass all copies, and the first pattern that meets them. */
static const enum pattern finders[FAULT_N] = {
	[FAULT_CACHED] = PATTERN_PULL,
	[FAULT_IPC_OFFSET] = PATTERN_PULL,
	[FAULT_REPLAY] = PATTERN_GRAPH,
	[FAULT_OVERTAKE] = PATTERN_FLAGS,
	[FAULT_LATE] = PATTERN_FLAGS,
	[FAULT_REREAD] = PATTERN_REREAD,
	[FAULT_REMAP] = PATTERN_REMAP,
	[FAULT_HOLE] = PATTERN_LAST,
	[FAULT_HOST_SHIFT] = PATTERN_HOST_MEMORY,
	[FAULT_COMPTAG] = PATTERN_COMPRESSIBLE,
	[FAULT_PACKED] = PATTERN_COMPRESSIBLE,
	[FAULT_LOSSY] = PATTERN_ATOMICS,
};

enum pattern pattern_finding(enum fault_kind fault)
{
	return finders[fault];
}

enum pattern pattern_parse(const char *name)
{
	int k = PATTERN_NONE + 1;

	while (k < PATTERN_N && strcmp(pattern_rows[k].name, name) != 0)
		k++;
	return (enum pattern)k;
}

unsigned pattern_bits(enum pattern_when when)
{
	unsigned bits = 0;

	for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++)
		if (pattern_rows[k].when == when)
			bits |= PATTERN_BIT(k);
	return bits;
}

unsigned pattern_wanted(bool with_long, unsigned informs)
{
	return pattern_bits(PATTERN_ALWAYS) | (with_long ? pattern_bits(PATTERN_LONG) : 0) |
	       informs;
}

/* ---- results ---- */

const char *pattern_result_word(const struct pattern_result *r)
{
	if (r->kind != WRONG_NOTHING)
		return wrong_word(r->kind);
	return r->done ? "ok" : r->not_offered ? "not-offered" : "not-run";
}

static struct pattern_result *result_of(const struct pattern_pair *p, unsigned direction,
					enum pattern pattern)
{
	return &p->results[direction]->patterns[pattern];
}

/* The first that fails names the pair; for information, it stays right. */
static void name_pair(struct pair_result *r, enum pattern pattern, enum wrong_kind kind)
{
	if (r->patterns[pattern].kind == WRONG_NOTHING)
		r->patterns[pattern].kind = kind;
	if (pattern_rows[pattern].when == PATTERN_INFORMATION || r->state != PAIR_RIGHT)
		return;
	r->state = PAIR_WRONG;
	r->kind = kind;
	r->pattern = pattern;
}

/* Of a pair that was right until now, behind what was said for information or was not run. */
__attribute__((format(printf, 2, 3))) static void say(struct pair_result *r, const char *fmt, ...)
{
	size_t at = strlen(r->sentence);
	va_list ap;

	if (r->state != PAIR_RIGHT)
		return;
	va_start(ap, fmt);
	if (at && at + 2 < sizeof(r->sentence)) {
		memcpy(r->sentence + at, "; ", 3);
		at += 2;
	}
	vsnprintf(r->sentence + at, sizeof(r->sentence) - at, fmt, ap);
	va_end(ap);
}

void pattern_found(const struct pattern_pair *p, unsigned direction, enum pattern pattern,
		   const struct check_report *report, uint64_t words, u64 tag, const char *says)
{
	struct pair_result *r = p->results[direction];
	struct range_check c = {.reports = {*report}, .words = {words}, .data_tag = tag};
	struct wrong w;
	char what[128];

	if (!report->wrong)
		return;
	w = classify(&c);
	w.rounds_ago = 0; /* wrong words of several rounds are in one report */
	wrong_say(&w, what, sizeof(what));
	say(r, "%s%s%s: %s", pattern_rows[pattern].title, *says ? ", " : "", says, what);
	name_pair(r, pattern, w.kind);
}

static void found_stall(const struct meeting *m, unsigned direction, uint64_t done, uint64_t rounds,
			const char *says)
{
	struct pair_result *r = m->pair->results[direction];

	say(r, "%s%s%s: a flag did not arrive, after %" PRIu64 " of %" PRIu64 " rounds",
	    pattern_rows[m->pattern].title, *says ? ", " : "", says, done, rounds);
	name_pair(r, m->pattern, WRONG_STALL);
}

/*
 * What could not be enqueued or did not end. Where that is not the pair's fault (memory ran out),
 * the pair is as right as it was, and the pattern counts as not run.
 */
static void found_error(struct pair_result *r, enum pattern pattern, int error)
{
	struct pair_result failed = {0};
	enum wrong_kind kind = verify_error(&failed, error);

	r->sets_lost |= failed.sets_lost;
	say(r, "%.100s%s: %.130s", pattern_rows[pattern].title,
	    kind == WRONG_NOTHING ? ", not run" : "", failed.sentence);
	if (kind != WRONG_NOTHING)
		name_pair(r, pattern, kind);
}

uint64_t pattern_rounds(const struct pattern_pair *p, uint64_t gpu, uint64_t host)
{
	return bench_device_info(p->ends[0])->threads > 1 ? gpu : host;
}

u64 pattern_tag_of(const struct bench_device *initiator, const struct bench_device *owner,
		   u64 round)
{
	return pattern_tag_make((u64)bench_device_info(owner)->number,
				(u64)bench_device_info(initiator)->number, round, 0);
}

/* ---- two kernels that meet ---- */

/* In a device's scratch memory. */
#define STATES_AT 0
#define REPORT_AT (MEETING_BLOCKS_MAX * sizeof(struct exchange_state))

static unsigned blocks_of(const struct pattern_pair *p)
{
	unsigned blocks = MEETING_BLOCKS_MAX;

	for (unsigned i = 0; i < 2; i++)
		if (bench_device_info(p->ends[i])->blocks < blocks)
			blocks = bench_device_info(p->ends[i])->blocks;
	return blocks;
}

/*
 * Plain memory, as inference engines share it; the window where IPC is refused, as in some
 * containers.
 */
static int reach_other(struct meeting *m, unsigned i)
{
	const struct bench_device *s = m->pair->ends[i], *owner = m->pair->ends[!i];
	int r = -ENOTSUP;

	m->ends[!i].own = &owner->local;
	result_of(m->pair, i, m->pattern)->by_ipc = true;
	if (s->set == owner->set || owner->set->caps & DEVICE_EXPORT_IPC)
		r = bench_device_reach_by(s, owner, &owner->local, EXPORT_IPC, &m->ends[i].other);
	if (r == 0 || verify_loses_sets(r))
		return r;
	m->ends[!i].own = &owner->window;
	result_of(m->pair, i, m->pattern)->by_ipc = false;
	return bench_device_reach(s, owner, &owner->window, &m->ends[i].other);
}

/*
 * A turn of a simulated device may cost a time slice of everybody else, and a launch has many of
 * them.
 */
static uint64_t limit_of(const struct bench_device *s)
{
	return bench_device_info(s)->threads > 1 ? s->limit_us : 4 * s->limit_us;
}

static void common_args(struct meeting *m, unsigned i)
{
	struct end *e = &m->ends[i];
	const struct bench_device *s = e->device;

	m->blame[i] = i;
	e->args = (struct exchange_args){
		.produce = e->own->at + MEETING_DATA_AT,
		.consume = e->other.at + MEETING_DATA_AT,
		.places = MEETING_PLACES,
		.stride = m->stride,
		.produce_tag = pattern_tag_of(m->pair->ends[!i], s, m->pattern),
		.consume_tag = pattern_tag_of(s, m->pair->ends[!i], m->pattern),
		.post = e->other.at + MEETING_FLAGS_AT,
		.poll = e->own->at + MEETING_FLAGS_AT,
		.state = s->scratch.at + STATES_AT,
		.report = s->scratch.at + REPORT_AT,
		.abort = s->abort.at,
		.limit_ns = 1000 * device_kernel_limit_us(bench_device_info(s), limit_of(s)),
	};
}

int meeting_open(const struct pattern_pair *p, enum pattern pattern, struct meeting *ret)
{
	struct meeting m = {.pair = p, .pattern = pattern, .blocks = blocks_of(p)};
	uint64_t a = p->ends[0]->local.memory.size, b = p->ends[1]->local.memory.size;
	int r = 0;

	m.stride = ((a < b ? a : b) - MEETING_DATA_AT) / MEETING_PLACES / 16 * 16;
	for (unsigned i = 0; i < 2; i++)
		m.ends[i].device = p->ends[i];
	for (unsigned i = 0; r == 0 && i < 2; i++)
		r = reach_other(&m, i);
	for (unsigned i = 0; r == 0 && i < 2; i++)
		common_args(&m, i);
	*ret = m;
	return r;
}

void meeting_close(struct meeting *m, int r)
{
	for (unsigned i = 0; i < 2 && !verify_loses_sets(r); i++)
		bench_device_free(m->ends[i].device, &m->ends[i].other);
}

int meeting_reset(struct meeting *m)
{
	static const unsigned char zeros[MEETING_DATA_AT];
	const struct exchange_state states[MEETING_BLOCKS_MAX] = {0};
	const struct check_report empty = {.first_wrong = CHECK_NONE};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < 2; i++) {
		const struct bench_device *s = m->ends[i].device;

		r = s->set->ops->write(s->set, &m->ends[i].own->memory, 0, zeros, sizeof(zeros));
		if (r == 0)
			r = s->set->ops->write(s->set, &s->scratch.memory, STATES_AT, states,
					       sizeof(states));
		if (r == 0)
			r = s->set->ops->write(s->set, &s->scratch.memory, REPORT_AT, &empty,
					       sizeof(empty));
	}
	return r;
}

int meeting_launch(struct meeting *m, unsigned end, uint64_t rounds, uint64_t bytes)
{
	struct exchange_args args = m->ends[end].args;

	args.rounds = rounds;
	args.bytes = bytes < m->stride ? bytes : m->stride;
	m->words[end] += rounds * args.bytes / sizeof(u64);
	return bench_device_launch(m->ends[end].device, KERNEL_exchange, &args, sizeof(args),
				   m->blocks);
}

/* What an end has come to. */
struct outcome {
	uint64_t count; /* flags that all its blocks saw, two a round */
	bool gave_up;
	uint32_t wrong_round; /* plus one; 0: none */
	struct check_report report;
};

/* The kernels give up at the same limit as the wait, which therefore gets twice as long. */
static int look_at(const struct meeting *m, unsigned end, struct outcome *ret)
{
	const struct bench_device *s = m->ends[end].device;
	struct exchange_state states[MEETING_BLOCKS_MAX];
	struct outcome o = {.count = UINT64_MAX};
	int r = s->set->ops->wait(s->set, s->stream, 2 * limit_of(s));

	if (r == 0)
		r = s->set->ops->read(s->set, &s->scratch.memory, STATES_AT, states,
				      m->blocks * sizeof(*states));
	if (r == 0)
		r = s->set->ops->read(s->set, &s->scratch.memory, REPORT_AT, &o.report,
				      sizeof(o.report));
	for (unsigned b = 0; r == 0 && b < m->blocks; b++) {
		if (states[b].count < o.count)
			o.count = states[b].count;
		if (states[b].wrong_round &&
		    (!o.wrong_round || states[b].wrong_round < o.wrong_round))
			o.wrong_round = states[b].wrong_round;
		o.gave_up |= states[b].end > WAIT_DONE;
	}
	*ret = o;
	return r;
}

/*
 * Who has seen the fewest flags waits for one that the other has stored: the other's way is at
 * fault. Where both have seen as many, each has stored one that the other did not see.
 */
static void judge_flags(const struct meeting *m, const struct outcome *o, uint64_t rounds,
			const char *says)
{
	if (!o[0].gave_up && !o[1].gave_up)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (o[i].count <= o[!i].count)
			found_stall(m, !i, o[i].count / 2, rounds, says);
}

static void judge_data(const struct meeting *m, unsigned end, const struct outcome *o,
		       uint64_t rounds, const char *says)
{
	const struct exchange_args *a = &m->ends[end].args;
	u64 tag = pattern_tag_round_on(a->consume_tag, o->wrong_round - 1);
	char where[96];

	if (!a->consume || !m->words[end])
		return;
	result_of(m->pair, m->blame[end], m->pattern)->rounds += o->count / 2;
	snprintf(where, sizeof(where), "%s%sround %u of %" PRIu64, says, *says ? ", " : "",
		 o->wrong_round, rounds);
	pattern_found(m->pair, m->blame[end], m->pattern, &o->report, m->words[end], tag, where);
}

/*
 * Kernels that wait give up at 1. A set that is lost cannot be written to, which changes nothing.
 */
static void set_abort(const struct meeting *m, u32 word)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct bench_device *s = m->ends[i].device;

		s->set->ops->write(s->set, &s->abort.memory, 0, &word, sizeof(word));
	}
}

/*
 * After an error at one end, what runs at the other would wait for it until the limit. An end that
 * was killed from outside explains a hang at the other.
 */
static int give_up(const struct meeting *m, int error)
{
	char sentence[BENCH_SENTENCE];
	struct outcome ignored;

	bench_sentence(sentence);
	set_abort(m, 1);
	for (unsigned i = 0; i < 2; i++) {
		if (look_at(m, i, &ignored) != -EOWNERDEAD || error == -EOWNERDEAD)
			continue;
		error = -EOWNERDEAD;
		bench_sentence(sentence);
	}
	set_abort(m, 0);
	return err_set(-error, "%s", sentence);
}

int meeting_end(struct meeting *m, int r, uint64_t rounds, const char *says)
{
	struct outcome o[2] = {0};

	for (unsigned i = 0; r == 0 && i < 2; i++)
		r = look_at(m, i, &o[i]);
	if (r < 0)
		return give_up(m, r);
	for (unsigned i = 0; i < 2; i++)
		judge_data(m, i, &o[i], rounds, says);
	judge_flags(m, o, rounds, says);
	return 0;
}

/* ---- all of them ---- */

bool pattern_all_done(const struct pair_result *r, unsigned wanted)
{
	for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++)
		if (wanted & PATTERN_BIT(k) && !r->patterns[k].done && !r->patterns[k].not_offered)
			return false;
	return true;
}

static int run_once(const struct pattern_pair *p, enum pattern k, unsigned from)
{
	const struct pattern_row *row = &pattern_rows[k];
	double begun = clock_s();
	int r = row->run(p, from);
	bool cannot = r == -ENOTSUP;

	if (cannot)
		r = 0;
	for (unsigned i = 0; i < 2; i++) {
		if (row->one_way && i != from)
			continue;
		if (cannot && row->when == PATTERN_INFORMATION)
			say(p->results[i], "%.100s, not offered: %.130s", row->title, err_msg());
		result_of(p, i, k)->ms = 1e3 * (clock_s() - begun);
		result_of(p, i, k)->done = r == 0 && !cannot;
		result_of(p, i, k)->not_offered = cannot;
		if (r < 0)
			found_error(p->results[i], k, r);
	}
	return r;
}

static bool is_right(const struct pattern_pair *p)
{
	return p->results[0]->state == PAIR_RIGHT && p->results[1]->state == PAIR_RIGHT;
}

/* What lands elsewhere may spoil what the next one needs: the first that fails is the last. */
void pattern_run(const struct pattern_pair *p)
{
	for (unsigned i = 0; is_right(p) && i < 2; i++)
		p->results[i]->sentence[0] = '\0'; /* an earlier run's, of these patterns */
	for (int k = PATTERN_NONE + 1; is_right(p) && k < PATTERN_N; k++) {
		if (!(p->wanted & PATTERN_BIT(k)))
			continue;
		for (unsigned from = 0; from < (pattern_rows[k].one_way ? 2 : 1); from++) {
			if (verify_loses_sets(run_once(p, (enum pattern)k, from)))
				return;
		}
	}
}
