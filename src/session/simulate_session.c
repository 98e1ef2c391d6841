// SPDX-License-Identifier: Apache-2.0
#include "session/simulate_session.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "result/figures.h"
#include "session/paths_of.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what does not apply ---- */

/* Options that concern a run. */
static int check_choice(const struct collective_choice *o)
{
	const struct {
		const char *name;
		bool used;
	} options[] = {
		{"--device", o->devices.device != NULL},
		{"--memory", o->devices.memory != NULL},
		{"--include-busy", o->devices.include_busy},
		{"--nccl", o->library != NULL},
		{"--processes", o->processes},
		{"--alone", o->alone},
		{"--once", o->once},
		{"--budget", o->budget_s != 0},
		{"--deadline", o->deadline_s != 0},
		{"--no-verify", o->no_verify},
		{"--warmup", o->warmup != 0},
		{"--iterations", o->iterations != 0},
		{"--in-place", o->in_place},
		{"--op barrier", o->op == NCCL_BARRIER + 1},
		{"--against nccl-symmetric", o->against == AGAINST_SYMMETRIC},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].used)
			return err_set(EINVAL, "%s cannot be used with --simulate: nothing runs",
				       options[i].name);
	return 0;
}

/* ---- ranks and paths ---- */

static int refuse_too_few(const struct machine *m)
{
	if (m->gpu_n > 1)
		return err_set(ENODEV, "only one GPU is chosen, and a collective needs 2 or more");
	return err_set(ENODEV, "%s has %s NVIDIA GPU, and a collective needs 2 or more%s",
		       machine_place(m), m->gpu_n == 1 ? "only one" : "no",
		       m->recorded ? "" : "; --from FILE reads a recording of another machine");
}

static int choose_ranks(struct simulate_session *s, const struct collective_choice *o,
			size_t *ret_n)
{
	const struct machine *m = s->machine;
	AUTO_FREE bool *wanted = xcalloc(m->gpu_n + 1, sizeof(*wanted));
	const size_t most = o->count > 0 ? (size_t)o->count : m->gpu_n;
	int r = name_gpus(m, "--gpus", o->devices.gpus, wanted);

	*ret_n = 0;
	for (size_t i = 0; r == 0 && i < m->gpu_n; i++) {
		if (!wanted[i] || *ret_n == most)
			continue;
		if (*ret_n == SIMULATED_RANKS_MAX)
			return err_set(EINVAL,
				       "a simulation has at most %d ranks; choose GPUs with -g or "
				       "--gpus",
				       SIMULATED_RANKS_MAX);
		s->gpus[(*ret_n)++] = i;
	}
	if (r == 0 && *ret_n < 2 && o->count <= 0)
		return refuse_too_few(m);
	if (r == 0 && *ret_n < most && o->count > 0)
		return err_set(EINVAL, "too few GPUs: %zu, but %zu requested", *ret_n, most);
	return r;
}

/* The last that was measured one way by a write; 0: none. */
static double measured_gbps(const struct machine *m, size_t from, size_t to)
{
	double gbps = 0;

	for (size_t k = 0; k < m->observed_n; k++) {
		const struct observed *o = &m->observed[k];

		if (o->kind == OBSERVED_BANDWIDTH && !o->pulled && o->value > 0 &&
		    o->initiator == (int)from && o->target == (int)to)
			gbps = o->value;
	}
	return gbps;
}

/*
 * Rates between GPUs are measured by copies. Over NVLink those are faster than a kernel's stores,
 * and what is expected there is the rate of stores.
 */
static void use_measured(struct simulate_session *s, size_t n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < n; j++) {
			const size_t from = s->gpus[i], to = s->gpus[j];
			const double gbps = i == j ? 0 : measured_gbps(s->machine, from, to);

			/* Copies without P2P say nothing about the links. */
			if (gbps <= 0 || !(s->reach[i] >> j & 1) ||
			    path_is_nvlink(topology_path(s->topology, from, to)))
				continue;
			paths_pair(s->paths, i, j)->expected_gbps = gbps;
			s->measured++;
		}
}

static void add_pair(struct simulated_pairs *ret, size_t from, size_t to, enum pair_verdict verdict)
{
	if (!ret->n++)
		*ret = (struct simulated_pairs){1, from, to, verdict};
}

static void find_blocked(struct simulate_session *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			const struct path *p = topology_path(s->topology, s->gpus[i], s->gpus[j]);

			if (i == j)
				continue;
			if (p->verdict != PAIR_BLOCKED)
				s->reach[i] |= 1u << j;
			if (p->verdict != PAIR_DIRECT)
				add_pair(p->verdict == PAIR_BLOCKED ? &s->blocked : &s->unsure,
					 s->gpus[i], s->gpus[j], p->verdict);
		}
}

static enum shared shared_of(const struct path *p)
{
	static const enum shared shared[PATH_CLASS_N] = {
		[PATH_PIX] = SHARED_ROOT_PORT, [PATH_PXB] = SHARED_ROOT_PORT,
		[PATH_PHB] = SHARED_NODE,      [PATH_NODE] = SHARED_NODE,
		[PATH_SYS] = SHARED_NOTHING,
	};

	return path_is_nvlink(p) ? SHARED_NVLINK : shared[p->class];
}

static void find_near(struct simulate_session *s, size_t n)
{
	const struct machine *m = s->machine;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			const size_t a = s->gpus[i], b = s->gpus[j];

			s->near[i * n + j] =
				i == j ? NEAR_NVLINK
				       : nearness_of(shared_of(topology_path(s->topology, a, b)),
						     topology_socket(m, m->gpus[a].pci),
						     topology_socket(m, m->gpus[b].pci));
		}
}

static int make_paths(struct simulate_session *s, const struct collective_choice *o)
{
	size_t n;
	int r = choose_ranks(s, o, &n);

	if (r < 0)
		return r;
	s->topology = topology_new(s->machine);
	r = paths_of(s->topology, s->gpus, n, &s->paths);
	if (r < 0)
		return r;
	find_near(s, n);
	find_blocked(s, n);
	use_measured(s, n);
	return 0;
}

/* ---- results ---- */

static struct figure *add_figure(struct figures *f, const struct metric *m, uint64_t bytes,
				 double value)
{
	struct figure *row = figures_add(f, m->name, -1, -1, value);

	row->bytes = bytes;
	row->samples = 0; /* nothing was measured */
	return row;
}

static void add_arm(struct figures *f, const struct simulated_arm *arm, bool staged)
{
	const struct collective_plan *p = &arm->simulation.plan;
	const char *op = nccl_op_words[p->op];

	for (size_t i = 0; i < arm->row_n; i++) {
		const struct simulated_row *row = &arm->rows[i];

		if (row->bytes == 0)
			continue;
		add_figure(f, metric_of_collective(op, false, staged), row->bytes, row->own.time_us)
			->algorithm = algorithm_word(row->choice.algorithm);
		add_figure(f, metric_of_collective(op, true, staged), row->bytes,
			   row->own.busbw_gbps)
			->algorithm = algorithm_word(row->choice.algorithm);
		if (row->nccl.time_us <= 0)
			continue;
		add_figure(f, metric_against_nccl(op, METRIC_AGAINST_TIME, staged), row->bytes,
			   row->nccl.time_us);
		add_figure(f, metric_against_nccl(op, METRIC_AGAINST_RATIO, staged), row->bytes,
			   row->own.time_us / row->nccl.time_us);
	}
}

static bool has_p2p(const struct simulation *s)
{
	const struct simulated_paths p = simulated_paths(s);

	return p.direct || p.mixed;
}

const char *simulate_session_rates(const struct simulate_session *s,
				   char buf[static SIMULATED_RATES_SIZE])
{
	const unsigned n = s->paths->device_n;

	if (!s->measured)
		return "as expected of the links";
	snprintf(buf, SIMULATED_RATES_SIZE,
		 "measured for %u of %u ordered pairs, else as expected of the links", s->measured,
		 n * (n - 1));
	return buf;
}

static void make_figures(struct simulate_session *s)
{
	char rates[SIMULATED_RATES_SIZE];
	const struct simulation *x = &s->arms[0].simulation;
	struct figures *f = figures_new("", "onehop bench collective --simulate");

	f->note = arena_printf(
		f->arena, "a model of the links, not a measurement: %u %s, %s%s%s%s%s%s, rates %s",
		s->paths->device_n, text_plural(s->paths->device_n, "rank", "ranks"),
		nccl_type_words[x->plan.type], nccl_op_reduces(x->plan.op) ? " " : "",
		nccl_op_reduces(x->plan.op) ? nccl_reduce_op_words[x->plan.redop] : "",
		x->plan.graph ? ", in a graph" : "", has_p2p(x) ? "" : ", without P2P",
		s->unsure.n ? ", P2P assumed where it is not certain" : "",
		simulate_session_rates(s, rates));
	for (unsigned i = 0; i < s->paths->device_n; i++) {
		const struct gpu *g = &s->machine->gpus[s->gpus[i]];

		figures_add_gpu(f, g->pci->name, fact_str_or(g->model, ""), -1);
	}
	for (size_t i = 0; i < 2; i++)
		if (s->arms[i].row_n)
			add_arm(f, &s->arms[i], i > 0);
	s->figures = f;
}

/* ---- the run ---- */

static int run_arm(struct simulate_session *s, size_t i, bool p2p, const struct collective_plan *p)
{
	struct simulated_arm *arm = &s->arms[i];

	arm->simulation = (struct simulation){.paths = s->paths,
					      .nccl = p->against,
					      .near = s->near,
					      .plan = *p};
	if (p2p)
		memcpy(arm->simulation.reach, s->reach, sizeof(s->reach));
	return simulate(&arm->simulation, &arm->rows, &arm->row_n);
}

int simulate_session_run(struct simulate_session *s, const struct machine *m,
			 const struct collective_choice *o)
{
	struct collective_plan plan = {0};
	int r = check_choice(o);

	*s = (struct simulate_session){.machine = m};
	if (r == 0)
		r = collective_choice_plan(o, false, 0, &plan);
	if (r == 0)
		r = make_paths(s, o);
	if (r == 0)
		r = run_arm(s, 0, true, &plan);
	if (r == 0 && o->p2p_off && has_p2p(&s->arms[0].simulation))
		r = run_arm(s, 1, false, &plan);
	if (r == 0)
		make_figures(s);
	return r;
}

void simulate_session_done(struct simulate_session *s)
{
	for (size_t i = 0; i < 2; i++)
		free(s->arms[i].rows);
	figures_free(s->figures);
	paths_free(s->paths);
	if (s->topology)
		topology_free(s->topology);
	*s = (struct simulate_session){0};
}
