/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench nccl: collectives by NCCL, checked and timed; and the hidden command that calls it. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "bench/nccl_bench.h"
#include "bench/statistics.h"
#include "cli/device_options.h"
#include "cli/progress.h"
#include "ingest/nccl_log.h"
#include "ingest/observe.h"
#include "report/document.h"
#include "report/report.h"
#include "report/report_nccl.h"
#include "result/figures_json.h"
#include "session/stop.h"
#include "session/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
	DEFAULT_ITERATIONS = 20, /* as nccl-tests */
	DEFAULT_DEADLINE_S = 60, /* loading and connecting eight GPUs may take ten */
	DEFAULT_BUDGET_S = 20,
};

/* clang-format off */
static const char *const formats[] = {"nccl-tests", NULL};
/* clang-format on */

struct nccl_options {
	struct common_options common;
	struct device_options devices;
	const char *library;
	const char *min, *max, *step, *root;
	int op, type, redop, format; /* choices */
	int count, factor, iterations, warmup, graph, budget_s, deadline_s;
	bool once, no_verify, processes, p2p_off, alone;
};

/* clang-format off */
#define O(member) offsetof(struct nccl_options, member)
static const struct option nccl_table[] = {
	{"op", 0, OPTION_CHOICE, O(op), "NAME", "the operation (all-reduce)", nccl_op_words, 0, 0, 0},
	{"min", 'b', OPTION_TEXT, O(min), "SIZE", "from this size on (8); K, M, G are binary", NULL, 0, 0, 0},
	{"max", 'e', OPTION_TEXT, O(max), "SIZE", "up to this size (128M; on the host back end 1M)", NULL, 0, 0, 0},
	{"factor", 'f', OPTION_NUMBER, O(factor), "N", "each size so many times the one before (2)", NULL, 0, 0, 0},
	{"step", 'i', OPTION_TEXT, O(step), "SIZE", "each size so much more than the one before", NULL, 0, 0, 0},
	{"iterations", 'n', OPTION_NUMBER, O(iterations), "N", "operations in a batch (20)", NULL, 0, 0, 0},
	{"warmup", 'w', OPTION_NUMBER, O(warmup), "N", "operations of each doubled size before all (1)", NULL, 0, 0, 0},
	{"type", 'd', OPTION_CHOICE, O(type), "TYPE", "of the elements (float)", nccl_type_words, 0, 0, 0},
	{"redop", 'o', OPTION_CHOICE, O(redop), "OP", "what a reduction does (sum)", nccl_reduce_op_words, 0, 0, 0},
	{"root", 'r', OPTION_TEXT, O(root), "RANK", "of a broadcast or reduce (0)", NULL, 0, 0, 0},
	{"graph", 'G', OPTION_NUMBER, O(graph), "N", "capture a batch in a CUDA graph and launch it N times", NULL, 0, 0, 0},
	{"no-verify", 0, OPTION_FLAG, O(no_verify), NULL, "do not check results", NULL, 0, 0, 0},
	DEVICE_OPTIONS(struct nccl_options),
	{"count", 'g', OPTION_NUMBER, O(count), "N", "the first N of them; below a launcher, of each process (1)", NULL, 0, 0, 0},
	{"processes", 0, OPTION_FLAG, O(processes), NULL, "a process for each GPU instead of one for all", NULL, 0, 0, 0},
	{"alone", 0, OPTION_FLAG, O(alone), NULL, "do not join other processes of mpirun, srun or torchrun", NULL, 0, 0, 0},
	{"p2p-off", 0, OPTION_FLAG, O(p2p_off), NULL, "once more without P2P: what P2P brings", NULL, 0, 0, 0},
	{"nccl", 0, OPTION_FILE, O(library), "FILE", "this libnccl.so.2 instead of the one that is found", NULL, 0, 0, 0},
	{"once", 0, OPTION_FLAG, O(once), NULL, "one batch each, as nccl-tests, instead of until it is settled", NULL, 0, 0, 0},
	{"budget", 0, OPTION_NUMBER, O(budget_s), "SECONDS", "for all timed batches together (20)", NULL, 0, 0, 0},
	{"deadline", 0, OPTION_NUMBER, O(deadline_s), "SECONDS", "a step that takes longer hangs and is killed (60)", NULL, 0, 0, 0},
	{"format", 0, OPTION_CHOICE, O(format), "NAME", "nccl-tests: exactly its lines", formats, 0, 0, 0},
	COMMON_VERBOSE(struct nccl_options),
	FIGURES_JSON(struct nccl_options),
	COMMON_COLOR(struct nccl_options),
	COMMON_WIDTH(struct nccl_options),
	COMMON_HELP(struct nccl_options),
	OPTIONS_END,
};
#undef O
/* clang-format on */

/* One run of the command. */
struct session {
	const struct nccl_options *options;
	struct devices devices;
	struct nccl_run run;
	bool quiet; /* another process prints */
	bool silent_table;
	bool keeps_log;          /* the user did not ask NCCL for one of their own */
	struct strbuf log;       /* NCCL's, of the arm that runs */
	struct nccl_arm arms[2]; /* with P2P, without */
	struct nccl_arm *arm;
	struct progress progress;
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
		return err_set(EINVAL, "--root wants a rank, not '%s'", text);
	*ret = (int)root;
	return 0;
}

/* Choices are numbered from 1, 0 is none. */
static int choice(int value, int otherwise)
{
	return value ? value - 1 : otherwise;
}

static int make_plan(const struct nccl_options *o, const struct devices *d, struct nccl_plan *p)
{
	bool host = devices_are_stand_ins(d);
	int r;

	*p = (struct nccl_plan){
		.op = (enum nccl_op)choice(o->op, NCCL_ALL_REDUCE),
		.type = (enum element_type)choice(o->type, ELEMENT_FLOAT32),
		.redop = (enum reduce_op)choice(o->redop, REDUCE_SUM),
		.factor = (uint64_t)(o->step ? 0 : or_default(o->factor, 2)),
		.iterations = (unsigned)or_default(o->iterations, DEFAULT_ITERATIONS),
		.warmup = (unsigned)or_default(o->warmup, 1),
		.graph = (unsigned)o->graph,
		.check = !o->no_verify,
		.relative = o->once ? 0 : STOPPING_RELATIVE,
		.budget_s = or_default(o->budget_s, DEFAULT_BUDGET_S),
		.memory_bytes = d->memory_bytes,
	};
	r = parse_size("--min", o->min, 8, &p->min_bytes);
	if (r == 0)
		r = parse_size("--max", o->max, host ? 1u << 20 : 128u << 20, &p->max_bytes);
	if (r == 0)
		r = parse_size("--step", o->step, 0, &p->step);
	if (r == 0)
		r = parse_root(o->root, &p->root);
	/* -b 1M alone means that size and larger ones; -e 4 alone what there is below. */
	if (r == 0 && !o->max && p->max_bytes < p->min_bytes)
		p->max_bytes = p->min_bytes;
	if (r == 0 && !o->min && p->min_bytes > p->max_bytes)
		p->min_bytes = p->max_bytes;
	return r < 0 ? r : nccl_plan_check(p);
}

/* ---- which devices ---- */

/*
 * Below a launcher each process takes its share by its rank on the host; unless it sees no more
 * than its share, then the launcher has given it out already. Stand-ins are each process's own.
 */
static int take_share(const struct nccl_options *o, const struct ranks *ranks,
		      struct device_request *r)
{
	bool host = r->kind == DEVICE_HOST;
	size_t share = (size_t)or_default(o->count, ranks->size > 1 && !host ? 1 : (int)r->n);
	size_t first = r->n > share && !host ? (size_t)ranks->local_rank * share : 0;

	if (first + share > r->n)
		return err_set(ENODEV, "%zu devices can be used here, and %zu are wanted%s", r->n,
			       first + share,
			       ranks->size > 1 ? " by the processes of this host" : "");
	r->n = share;
	for (size_t i = 0; i < share; i++) {
		r->ordinal[i] = r->ordinal[first + i];
		r->number[i] = r->number[first + i] + (host ? ranks->rank * (int)share : 0);
	}
	return 0;
}

/* Below a launcher the others use GPUs already when this one looks, and one holds the lock for all. */
static int choose_devices(struct session *s)
{
	const struct nccl_options *o = s->options;
	struct device_options devices = o->devices;
	bool one = s->run.ranks.size == 1;
	int r;

	devices.include_busy |= !one;
	r = devices_choose(&devices, o->common.from, 0, &s->devices);
	if (r == 0 && devices_are_stand_ins(&s->devices) && !o->library)
		r = err_set(EINVAL, "NCCL needs GPUs; --device host is for a stand-in of its "
				    "library, to be named by --nccl");
	if (r == 0 && (one || s->run.ranks.local_rank == 0))
		r = devices_lock(&s->devices);
	return r;
}

static int make_run(struct session *s)
{
	const struct nccl_options *o = s->options;
	struct nccl_run *run = &s->run;
	int r = 0;

	*run = (struct nccl_run){
		.ranks = {.size = 1, .hosts = HOSTS_ONE},
		.library = o->library,
		.processes = o->processes,
		.limit_s = or_default(o->deadline_s, DEFAULT_DEADLINE_S),
		.stop_fd = -1,
	};
	if (!o->alone)
		r = ranks_read(environ, &run->ranks);
	if (r == 0)
		r = ranks_can_meet(&run->ranks);
	if (r == 0 && o->processes && run->ranks.size > 1)
		r = err_set(EINVAL, "--processes is for one process, and %s has started %d",
			    run->ranks.launcher, run->ranks.size);
	if (r == 0 && o->format && o->common.json)
		r = err_set(EINVAL, "--format and --json exclude each other");
	if (r == 0)
		r = choose_devices(s);
	if (r == 0)
		r = make_plan(o, &s->devices, &run->plan);
	return r;
}

/* ---- as it comes ---- */

static void hear_step(void *context, const struct nccl_step *step)
{
	struct session *s = context;
	const char *arm = s->arm == &s->arms[1] ? "without P2P: " : "";

	if (s->quiet)
		return;
	if (step->bytes)
		progress_show(&s->progress, "%s%s, %llu bytes%s", arm, step->text,
			      (unsigned long long)step->bytes, step->in_place ? " in place" : "");
	else
		progress_show(&s->progress, "%s%s", arm, step->text);
}

static void hear_rank(void *context, const struct nccl_rank *rank)
{
	struct session *s = context;
	struct nccl_result *arm = &s->arm->result;

	progress_end(&s->progress);
	if (s->run.ranks.size == 1 && (size_t)rank->rank < s->run.devices.n &&
	    devices_check(&s->devices, (size_t)rank->rank, rank->ordinal, rank->pci) < 0)
		fail(EXIT_WELL, "%s", err_msg());
	arm->ranks = xrealloc(arm->ranks, arm->rank_n + 1, sizeof(*arm->ranks));
	arm->ranks[arm->rank_n++] = *rank;
}

static void print_lines(struct session *s, const struct strbuf *b)
{
	progress_end(&s->progress);
	if (!s->silent_table)
		print_text(b, EXIT_WELL);
}

static void hear_start(void *context, const struct nccl_start *start)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct session *s = context;

	s->arm->result.start = *start;
	report_nccl_head(&b, s->arm);
	print_lines(s, &b);
}

static void hear_row(void *context, const struct nccl_row *row)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct session *s = context;
	struct nccl_result *arm = &s->arm->result;

	arm->rows = xrealloc(arm->rows, arm->row_n + 1, sizeof(*arm->rows));
	arm->rows[arm->row_n++] = *row;
	report_nccl_row(&b, &arm->plan, row);
	print_lines(s, &b);
}

/* ---- NCCL's log ---- */

static void hear_log(void *context, const char *text, size_t n)
{
	strbuf_add(&((struct session *)context)->log, text, n);
}

/* All processes' together; a log that cannot be read is none. */
static void read_log(struct session *s)
{
	struct strbuf *b = &s->log;

	if (b->len > 0 && nccl_log_parse(b->text, b->len, "NCCL's log", &s->arm->log) < 0)
		s->arm->log = NULL;
	strbuf_done(b);
	*b = (struct strbuf){0};
}

/* ---- an arm ---- */

/*
 * What the ranks' processes get. TUNING and COLL are left out: they write a line for each operation,
 * within the timed part.
 */
static int run_arm(struct session *s, size_t i)
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
	s->arm->result.plan = s->run.plan;
	s->arm->process_gpus = s->run.processes ? 1 : s->run.devices.n;
	s->arm->device = devices_are_stand_ins(&s->devices) ? STAND_INS_TEXT : "CUDA";
	s->arm->machine = s->run.ranks.hosts == HOSTS_ONE ? s->devices.machine : NULL;
	s->arm->several_logs = s->run.ranks.size > 1;
	s->run.variables = variables;
	s->run.arm = (unsigned)i;
	r = nccl_run(&s->run, &listener);
	s->run.variables = NULL;
	progress_end(&s->progress);
	read_log(s);
	return r;
}

static void free_session(struct session *s)
{
	for (size_t i = 0; i < 2; i++) {
		free(s->arms[i].result.ranks);
		free(s->arms[i].result.rows);
		nccl_log_free(s->arms[i].log);
	}
	devices_done(&s->devices);
}

/* ---- printing ---- */

static int print_foot(struct session *s)
{
	AUTO_STRBUF struct strbuf b = {0};

	report_nccl_foot(&b, &s->arm->result);
	return print_text(&b, EXIT_WELL);
}

static void print_verdict(struct session *s)
{
	const struct nccl_options *o = s->options;
	struct document *d = document_new();

	report_nccl_verdict(d, &s->arms[0], o->common.verbose);
	if (s->arms[1].result.row_n)
		report_nccl_p2p(d, &s->arms[0].result, &s->arms[1]);
	print_document(d, &o->common, EXIT_WELL);
	document_free(d);
}

static struct figures *make_figures(const struct session *s)
{
	const struct nccl_arm *on = &s->arms[0];
	const struct nccl_result *off = &s->arms[1].result;
	struct figures *f = nccl_figures(&on->result, off->row_n ? off : NULL, on->device);

	if (on->log)
		nccl_log_add_figures(on->log, f);
	figures_stamp(f, on->machine);
	return f;
}

/* What there is, also after an error. Stand-ins and several hosts say nothing of this machine. */
static int print_results(struct session *s, enum exit_code code)
{
	struct figures *f;
	int r = (int)code;

	if (s->quiet || !s->arms[0].result.start.ranks)
		return r;
	f = make_figures(s);
	if (s->options->common.json)
		r = print_json(figures_to_json(f), code);
	else if (!s->options->format)
		print_verdict(s);
	if (s->arms[0].machine && !devices_are_stand_ins(&s->devices) && store_keep(f) < 0)
		fail(EXIT_WELL, "the results are not kept for onehop check: %s", err_msg());
	figures_free(f);
	return r;
}

/* ---- together ---- */

static enum exit_code code_of(int err)
{
	static const struct {
		int err;
		enum exit_code code;
	} codes[] = {
		{EINVAL, EXIT_REFUSED},    {ENOENT, EXIT_NOT_JUDGED},
		{ENOSYS, EXIT_NOT_JUDGED}, {ENODEV, EXIT_NOT_JUDGED},
		{EBUSY, EXIT_NOT_JUDGED},  {ENOTSUP, EXIT_NOT_JUDGED},
		{ENOMEM, EXIT_NOT_JUDGED}, {EINTR, EXIT_REFUSED},
		{EACCES, EXIT_NOT_JUDGED}, {EADDRINUSE, EXIT_NOT_JUDGED},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (err == -codes[i].err)
			return codes[i].code;
	return EXIT_FINDING; /* it hung, it died, NCCL failed */
}

static int run_arms(struct session *s)
{
	bool lines = !s->quiet && !s->options->common.json;
	int r;

	s->silent_table = !lines;
	r = run_arm(s, 0);
	if (lines && s->arm->result.start.ranks)
		print_foot(s);
	if (r < 0 || !s->options->p2p_off)
		return r;
	s->silent_table = !lines || !s->options->format;
	r = run_arm(s, 1);
	if (!s->silent_table && s->arm->result.start.ranks)
		print_foot(s);
	return r;
}

static int run_session(struct session *s)
{
	const char *level = getenv("NCCL_DEBUG");
	char rank[32] = "";
	int r, code = EXIT_WELL;

	s->quiet = s->run.ranks.rank != 0;
	s->keeps_log = !(level && *level);
	if (!s->quiet)
		devices_tell(&s->devices);
	progress_begin(&s->progress);
	r = run_arms(s);
	if (s->run.ranks.size > 1)
		snprintf(rank, sizeof(rank), "process %d: ", s->run.ranks.rank);
	if (r < 0)
		code = fail(code_of(r), "%s%s", rank, err_msg());
	else if (nccl_wrong(&s->arms[0].result) > 0 || nccl_wrong(&s->arms[1].result) > 0)
		code = EXIT_FINDING;
	return print_results(s, (enum exit_code)code);
}

static int run_devices(struct session *s)
{
	int r;

	s->run.devices = s->devices.request;
	r = take_share(s->options, &s->run.ranks, &s->run.devices);
	if (r < 0)
		return fail(code_of(r), "%s", err_msg());
	s->run.stop_fd = s->devices.stop_fd;
	return run_session(s);
}

static int run_bench_nccl(const void *options, const char *const *args)
{
	struct session s = {.options = options, .devices = DEVICES_NONE};
	int r = make_run(&s);

	(void)args;
	if (r < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = s.devices.request.n ? run_devices(&s) : devices_none(&s.devices);
	free_session(&s);
	return r;
}

const struct command command_bench_nccl = {
	.name = "bench nccl",
	.args = "",
	.summary = "time NCCL's collectives, check their results, and see what P2P brings",
	.about =
		"Prints the table of nccl-tests, timed as it does, with results checked on the GPU "
		"that owns them, then which way NCCL took between the ranks and why not P2P. Below "
		"mpirun, srun or torchrun each process is a part of one run; across hosts set "
		"ONEHOP_ADDR=HOST:PORT of rank 0 for all. NCCL runs in a process of its own, which "
		"is "
		"killed when it hangs.",
	.options = nccl_table,
	.size = sizeof(struct nccl_options),
	.run = run_bench_nccl,
};

/* ---- the ranks' side ---- */

struct nccl_worker_options {
	struct common_options common;
};

static const struct option nccl_worker_table[] = {COMMON_HELP(struct nccl_worker_options),
						  OPTIONS_END};

/* What fails is said over the socket. */
static int run_nccl_worker(const void *options, const char *const *args)
{
	(void)options;
	(void)args;
	if (nccl_serve(CHILD_SOCKET) == -EPROTO)
		return fail(EXIT_REFUSED, "%s", err_msg());
	return EXIT_WELL;
}

const struct command command_nccl_worker = {
	.name = NCCL_WORKER_COMMAND,
	.args = "",
	.summary = "call NCCL for the onehop that started this",
	.about = "Measures what comes over the socket 3. onehop starts it itself.",
	.options = nccl_worker_table,
	.size = sizeof(struct nccl_worker_options),
	.run = run_nccl_worker,
	.hidden = true,
};
