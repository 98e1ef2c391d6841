/* SPDX-License-Identifier: Apache-2.0 */
#include "session/collective_session.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "bench/statistics.h"
#include "ingest/nccl_log.h"
#include "ingest/observe.h"
#include "result/figures.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	DEFAULT_ITERATIONS = 20, /* as nccl-tests */
	DEFAULT_DEADLINE_S = 60, /* loading and connecting eight GPUs may take ten */
	DEFAULT_BUDGET_S = 20,
	DEFAULT_BUDGET_AGAINST_S = 60, /* 30 batches of two engines */
};

/* ---- what to run ---- */

static int or_default(int value, int otherwise)
{
	return value ? value : otherwise;
}

static int parse_size(const char *option, const char *text, uint64_t otherwise, uint64_t *ret)
{
	*ret = otherwise;
	return text ? parse_bytes(option, text, ret) : 0;
}

static int parse_root(const char *text, int *ret)
{
	uint64_t root = 0;

	if (text && (text_to_u64(text, &root) < 0 || root > INT_MAX))
		return err_set(EINVAL, "--root must be a rank, not '%s'", text);
	*ret = (int)root;
	return 0;
}

/* Choices are numbered from 1, 0 is none. */
static int choice(int value, int otherwise)
{
	return value ? value - 1 : otherwise;
}

static int check_barrier(const struct collective_choice *o)
{
	if (o->min || o->max || o->step || o->factor || o->type || o->redop || o->root ||
	    o->in_place)
		return err_set(
			EINVAL,
			"a barrier has no data: no size, type, reduction, root or place can be given");
	return 0;
}

int collective_choice_plan(const struct collective_choice *o, bool small, uint64_t memory_bytes,
			   struct collective_plan *p)
{
	int r;

	*p = (struct collective_plan){
		.engine = o->engine,
		.against = o->against,
		.rival = ENGINE_NCCL,
		.symmetric = o->against == AGAINST_SYMMETRIC,
		.skip = {o->one_place && o->in_place, o->one_place && !o->in_place},
		.op = (enum nccl_op)choice(o->op, NCCL_ALL_REDUCE),
		.type = (enum element_type)choice(o->type, ELEMENT_FLOAT32),
		.redop = (enum reduce_op)choice(o->redop, REDUCE_SUM),
		.factor = (uint64_t)(o->step ? 0 : or_default(o->factor, 2)),
		.iterations = (unsigned)or_default(o->iterations, DEFAULT_ITERATIONS),
		.warmup = (unsigned)or_default(o->warmup, 1),
		.graph = (unsigned)o->graph,
		.check = !o->no_verify,
		.relative = o->once ? 0 : STOPPING_RELATIVE,
		.budget_s = or_default(o->budget_s,
				       o->against ? DEFAULT_BUDGET_AGAINST_S : DEFAULT_BUDGET_S),
		.memory_bytes = memory_bytes,
	};
	r = p->op == NCCL_BARRIER ? check_barrier(o) : 0;
	if (r == 0)
		r = parse_size("--min", o->min, 8, &p->min_bytes);
	if (r == 0)
		r = parse_size("--max", o->max, small ? 1u << 20 : 128u << 20, &p->max_bytes);
	if (r == 0)
		r = parse_size("--step", o->step, 0, &p->step);
	if (r == 0)
		r = parse_root(o->root, &p->root);
	/* -b 1M alone means that size and larger ones; -e 4 alone what there is below. */
	if (r == 0 && !o->max && p->max_bytes < p->min_bytes)
		p->max_bytes = p->min_bytes;
	if (r == 0 && !o->min && p->min_bytes > p->max_bytes)
		p->min_bytes = p->max_bytes;
	if (p->op == NCCL_BARRIER)
		p->min_bytes = p->max_bytes = 8; /* once: it has no size */
	return r < 0 ? r : collective_plan_check(p);
}

/* ---- which devices ---- */

/*
 * Below a launcher each process takes its share by its rank on the host; unless it sees no more
 * than its share, then the launcher has given it out already. Simulated devices are each process's
 * own.
 */
static int take_share(const struct collective_choice *o, const struct ranks *ranks,
		      struct device_request *r)
{
	bool host = r->kind == DEVICE_HOST;
	size_t share = (size_t)or_default(o->count, ranks->size > 1 && !host ? 1 : (int)r->n);
	size_t first = r->n > share && !host ? (size_t)ranks->local_rank * share : 0;

	if (first + share > r->n)
		return err_set(ENODEV, "too few usable devices: %zu, but %zu requested%s", r->n,
			       first + share,
			       ranks->size > 1 ? " by the processes of this host" : "");
	r->n = share;
	for (size_t i = 0; i < share; i++) {
		r->ordinal[i] = r->ordinal[first + i];
		r->number[i] = r->number[first + i] + (host ? ranks->rank * (int)share : 0);
	}
	return 0;
}

/*
 * Below a launcher the others use GPUs already when this one looks, and one holds the lock for all.
 */
static int choose_devices(struct collective_session *s)
{
	const struct collective_choice *o = s->o;
	struct device_options devices = o->devices;
	bool one = s->run.ranks.size == 1, nccl = o->engine != ENGINE_ONEHOP || o->against;
	int r;

	devices.include_busy |= !one;
	r = devices_choose(&devices, o->from, 0, &s->devices);
	if (r == 0 && devices_are_simulated(&s->devices) && nccl && !o->library)
		r = err_set(
			EINVAL,
			"NCCL needs GPUs; --device host works only with a stand-in for its library (--nccl PATH)");
	if (r == 0 && (one || s->run.ranks.local_rank == 0))
		r = devices_lock(&s->devices);
	return r;
}

/* libonehop's ranks share memory, which only processes of one host can. */
static int check_hosts(const struct collective_choice *o, const struct ranks *ranks)
{
	if (o->engine == ENGINE_ONEHOP && ranks->hosts == HOSTS_SEVERAL)
		return err_set(
			EINVAL,
			"libonehop connects the GPUs of one host only, but %s started processes "
			"on several; --alone measures each by itself",
			ranks->launcher);
	return ranks_can_meet(ranks);
}

int collective_session_begin(struct collective_session *s, const struct collective_choice *o,
			     const struct session_ear *ear, const struct collective_view *view)
{
	struct collective_run *run = &s->run;
	int r = 0;

	*s = (struct collective_session){.o = o, .ear = ear, .view = view, .devices = DEVICES_NONE};
	*run = (struct collective_run){
		.ranks = {.size = 1, .hosts = HOSTS_ONE},
		.library = o->library,
		.shim = o->shim,
		.processes = o->processes,
		.limit_s = or_default(o->deadline_s, DEFAULT_DEADLINE_S),
		.stop_fd = -1,
	};
	if (!o->alone)
		r = ranks_read(environ, &run->ranks);
	if (r == 0)
		r = check_hosts(o, &run->ranks);
	if (r == 0 && o->processes && run->ranks.size > 1)
		r = err_set(EINVAL,
			    "--processes cannot be used here: %s has already started a total of %d",
			    run->ranks.launcher, run->ranks.size);
	if (r == 0)
		r = choose_devices(s);
	if (r == 0)
		r = collective_choice_plan(o, devices_are_simulated(&s->devices),
					   s->devices.memory_bytes, &run->plan);
	return r;
}

/* ---- as it comes ---- */

/* The run without P2P, where there is one, times as much again. */
static double places_left(struct collective_session *s, const struct collective_step *step)
{
	if (step->left > s->places)
		s->places = step->left;
	return step->left + (s->o->p2p_off && !s->arm->off ? s->places : 0.0);
}

static void hear_step(void *context, const struct collective_step *step)
{
	struct collective_session *s = context;
	AUTO_STRBUF struct strbuf b = {0};

	if (s->quiet)
		return;
	strbuf_printf(&b, "%s%s", s->arm->off ? "without P2P: " : "", step->text);
	if (step->bytes)
		strbuf_printf(&b, ", %llu bytes%s", (unsigned long long)step->bytes,
			      step->in_place ? " in place" : "");
	if (step->left)
		session_tell_left(s->ear, &s->pace, places_left(s, step), "%s", strbuf_str(&b));
	else
		session_tell(s->ear, SESSION_RUNS, "%s", strbuf_str(&b));
}

static void hear_rank(void *context, const struct collective_rank *rank)
{
	struct collective_session *s = context;
	struct collective_result *arm = &s->arm->result;

	if (s->run.ranks.size == 1 && (size_t)rank->rank < s->run.devices.n &&
	    devices_check(&s->devices, (size_t)rank->rank, rank->ordinal, rank->pci) < 0)
		session_tell(s->ear, SESSION_NOTE, "%s", err_msg());
	arm->ranks = xrealloc(arm->ranks, arm->rank_n + 1, sizeof(*arm->ranks));
	arm->ranks[arm->rank_n++] = *rank;
}

static void hear_start(void *context, const struct collective_start *start)
{
	struct collective_session *s = context;

	s->arm->result.start = *start;
	if (!s->quiet)
		s->view->start(s->view->context, s->arm);
}

static void hear_row(void *context, const struct collective_row *row)
{
	struct collective_session *s = context;
	struct collective_result *arm = &s->arm->result;

	arm->rows = xrealloc(arm->rows, arm->row_n + 1, sizeof(*arm->rows));
	arm->rows[arm->row_n++] = *row;
	if (!s->quiet)
		s->view->row(s->view->context, s->arm, row);
}

static void hear_log(void *context, const char *text, size_t n)
{
	strbuf_add(&((struct collective_session *)context)->log, text, n);
}

/* All processes' together; a log that cannot be read is none. */
static void read_log(struct collective_session *s)
{
	struct strbuf *b = &s->log;

	if (b->len > 0 && nccl_log_parse(b->text, b->len, "NCCL's log", &s->arm->log) < 0)
		s->arm->log = NULL;
	strbuf_done(b);
	*b = (struct strbuf){0};
}

/* ---- an arm ---- */

/*
 * What the ranks' processes get. TUNING and COLL are left out: they write a line for each
 * operation, within the timed part.
 */
static int run_arm(struct collective_session *s, size_t i)
{
	static char level[] = "NCCL_DEBUG=INFO", off[] = "NCCL_P2P_DISABLE=1";
	static char subsystems[] = "NCCL_DEBUG_SUBSYS=INIT,ENV,P2P,SHM,NET,GRAPH";
	static char file[] = "NCCL_DEBUG_FILE=" NCCL_LOG_FILE;
	const struct nccl_listener listener = {s,         hear_rank, hear_start,
					       hear_step, hear_row,  hear_log};
	char *variables[5] = {0};
	size_t n = 0;
	int r;

	if (i == 1)
		variables[n++] = off;
	if (s->keeps_log) {
		variables[n++] = level;
		variables[n++] = subsystems;
		variables[n++] = file;
	}
	s->arm = &s->arms[i];
	s->arm->off = i == 1;
	s->arm->choice = collective_plan_uses(&s->run.plan, ENGINE_ONEHOP) ? &s->choice : NULL;
	s->run.plan.no_p2p = i == 1;
	s->arm->result.plan = s->run.plan;
	s->arm->process_gpus = s->run.processes ? 1 : s->run.devices.n;
	s->arm->device = devices_are_simulated(&s->devices) ? SIMULATED_TEXT : "CUDA";
	s->arm->machine = s->run.ranks.hosts == HOSTS_ONE ? s->devices.machine : NULL;
	s->arm->several_logs = s->run.ranks.size > 1;
	s->run.variables = variables;
	s->run.arm = (unsigned)i;
	r = collective_run(&s->run, &listener);
	s->run.variables = NULL;
	read_log(s);
	if (!s->quiet && s->arm->result.start.ranks)
		s->view->end(s->view->context, s->arm);
	return r;
}

/* ---- together ---- */

/*
 * Of the run's devices in the order of ranks; rank 0's process has it for all. A damaged table is
 * as none.
 */
static void find_choice(struct collective_session *s)
{
	const unsigned n = (unsigned)s->run.devices.n * (unsigned)s->run.ranks.size;

	if (s->quiet || !collective_plan_uses(&s->run.plan, ENGINE_ONEHOP))
		return;
	if (tune_find(&s->devices, n, &s->choice) < 0)
		session_tell(s->ear, SESSION_NOTE, "%s", err_msg());
	s->run.tuned = s->choice.found ? &s->choice.table : NULL;
}

/* What there is, also after an error. */
static void keep(struct collective_session *s)
{
	const struct collective_arm *on = &s->arms[0];
	const struct collective_result *off = &s->arms[1].result;

	if (s->quiet || !on->result.start.ranks)
		return;
	s->figures = collective_figures(&on->result, off->row_n ? off : NULL, on->device);
	if (on->log)
		nccl_log_add_figures(on->log, s->figures);
	session_keep(s->ear, &s->devices, on->machine, s->figures);
}

int collective_session_run(struct collective_session *s)
{
	const char *level = getenv("NCCL_DEBUG");
	int r;

	s->run.devices = s->devices.request;
	r = take_share(s->o, &s->run.ranks, &s->run.devices);
	if (r < 0)
		return r;
	s->run.stop_fd = s->devices.stop_fd;
	s->quiet = s->run.ranks.rank != 0;
	s->keeps_log = collective_plan_uses(&s->run.plan, ENGINE_NCCL) && !(level && *level);
	find_choice(s);
	r = run_arm(s, 0);
	if (r == 0 && s->o->p2p_off)
		r = run_arm(s, 1);
	keep(s);
	return r;
}

void collective_session_done(struct collective_session *s)
{
	for (size_t i = 0; i < 2; i++) {
		free(s->arms[i].result.ranks);
		free(s->arms[i].result.rows);
		nccl_log_free(s->arms[i].log);
	}
	figures_free(s->figures);
	devices_done(&s->devices);
}
