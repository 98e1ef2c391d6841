/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench nccl: collectives by NCCL, checked and timed. */
#include "cli/command.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/device_options.h"
#include "cli/progress.h"
#include "report/document.h"
#include "report/report_nccl.h"
#include "result/figures_json.h"
#include "session/nccl_session.h"

#include <errno.h>

static const char *const formats[] = {"nccl-tests", NULL};

struct bench_nccl_options {
	struct common_options common;
	struct nccl_choice request;
	int format;
};

/* clang-format off */
#define O(member) offsetof(struct bench_nccl_options, member)
static const struct option nccl_table[] = {
	{"op", 0, OPTION_CHOICE, O(request.op), "NAME", "the operation (all-reduce)", nccl_op_words, 0, 0, 0},
	{"min", 'b', OPTION_TEXT, O(request.min), "SIZE", "from this size on (8); K, M, G are binary", NULL, 0, 0, 0},
	{"max", 'e', OPTION_TEXT, O(request.max), "SIZE", "up to this size (128M; 1M with simulated devices)", NULL, 0, 0, 0},
	{"factor", 'f', OPTION_NUMBER, O(request.factor), "N", "multiply the size by this each time (2)", NULL, 0, 0, 0},
	{"step", 'i', OPTION_TEXT, O(request.step), "SIZE", "increase the size by this each time", NULL, 0, 0, 0},
	{"iterations", 'n', OPTION_NUMBER, O(request.iterations), "N", "operations in a batch (20)", NULL, 0, 0, 0},
	{"warmup", 'w', OPTION_NUMBER, O(request.warmup), "N", "warm-up operations of each doubled size before the measurement (1)", NULL, 0, 0, 0},
	{"type", 'd', OPTION_CHOICE, O(request.type), "TYPE", "type of the elements (float)", nccl_type_words, 0, 0, 0},
	{"redop", 'o', OPTION_CHOICE, O(request.redop), "OP", "reduction operation (sum)", nccl_reduce_op_words, 0, 0, 0},
	{"root", 'r', OPTION_TEXT, O(request.root), "RANK", "root rank of a broadcast or reduce (0)", NULL, 0, 0, 0},
	{"graph", 'G', OPTION_NUMBER, O(request.graph), "N", "capture a batch in a CUDA graph and launch it N times", NULL, 0, 0, 0},
	{"no-verify", 0, OPTION_FLAG, O(request.no_verify), NULL, "do not check results", NULL, 0, 0, 0},
	DEVICE_OPTIONS(struct bench_nccl_options),
	{"count", 'g', OPTION_NUMBER, O(request.count), "N", "use the first N of them; under a launcher, of each process (1)", NULL, 0, 0, 0},
	{"processes", 0, OPTION_FLAG, O(request.processes), NULL, "use one process per GPU instead of one for all", NULL, 0, 0, 0},
	{"alone", 0, OPTION_FLAG, O(request.alone), NULL, "do not join other processes of mpirun, srun or torchrun", NULL, 0, 0, 0},
	{"p2p-off", 0, OPTION_FLAG, O(request.p2p_off), NULL, "also measure without P2P, to show what P2P gains", NULL, 0, 0, 0},
	{"nccl", 0, OPTION_FILE, O(request.library), "FILE", "use this libnccl.so.2 instead of the one that is found", NULL, 0, 0, 0},
	{"once", 0, OPTION_FLAG, O(request.once), NULL, "measure one batch each, like nccl-tests, instead of until the result is "
		"stable", NULL, 0, 0, 0},
	{"budget", 0, OPTION_NUMBER, O(request.budget_s), "SECONDS", "for all timed batches together (20)", NULL, 0, 0, 0},
	{"deadline", 0, OPTION_NUMBER, O(request.deadline_s), "SECONDS", "kill a step that takes longer (60)", NULL, 0, 0, 0},
	{"format", 0, OPTION_CHOICE, O(format), "NAME", "nccl-tests: exactly its output", formats, 0, 0, 0},
	COMMON_VERBOSE(struct bench_nccl_options),
	FIGURES_JSON(struct bench_nccl_options),
	COMMON_COLOR(struct bench_nccl_options),
	COMMON_WIDTH(struct bench_nccl_options),
	COMMON_HELP(struct bench_nccl_options),
	OPTIONS_END,
};
#undef O
/* clang-format on */

/* ---- the table, as it comes ---- */

struct screen {
	const struct bench_nccl_options *o;
	struct progress *progress;
};

/* The gain of P2P comes after it; nccl-tests' lines alone are for scripts. */
static void print_lines(const struct screen *s, const struct nccl_arm *arm, const struct strbuf *b)
{
	progress_end(s->progress);
	if (!s->o->common.json && (!arm->off || s->o->format))
		print_text(b, EXIT_OK);
}

static void show_head(void *context, const struct nccl_arm *arm)
{
	AUTO_STRBUF struct strbuf b = {0};

	report_nccl_head(&b, arm);
	print_lines(context, arm, &b);
}

static void show_row(void *context, const struct nccl_arm *arm, const struct nccl_row *row)
{
	AUTO_STRBUF struct strbuf b = {0};

	report_nccl_row(&b, &arm->result.plan, row);
	print_lines(context, arm, &b);
}

static void show_foot(void *context, const struct nccl_arm *arm)
{
	AUTO_STRBUF struct strbuf b = {0};

	report_nccl_foot(&b, &arm->result);
	print_lines(context, arm, &b);
}

/* ---- the end ---- */

static void print_verdict(const struct nccl_session *s, const struct common_options *o)
{
	struct document *d = document_new();

	report_nccl_verdict(d, &s->arms[0], o->verbose);
	if (s->arms[1].result.row_n)
		report_nccl_p2p(d, &s->arms[0].result, &s->arms[1]);
	print_document(d, o, EXIT_OK);
	document_free(d);
}

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

static int fail_rank(const struct nccl_session *s, int err)
{
	if (s->run.ranks.size > 1)
		return fail(code_of(err), "process %d: %s", s->run.ranks.rank, err_msg());
	return fail(code_of(err), "%s", err_msg());
}

static int run_session(struct nccl_session *s, const struct screen *screen)
{
	const struct bench_nccl_options *o = screen->o;
	int r, code = EXIT_OK;

	if (!s->devices.request.n)
		return devices_none(&s->devices, false);
	if (s->run.ranks.rank == 0)
		devices_tell(&s->devices);
	progress_begin(screen->progress);
	r = nccl_session_run(s);
	progress_end(screen->progress);
	if (r < 0)
		code = fail_rank(s, r);
	else if (nccl_wrong(&s->arms[0].result) > 0 || nccl_wrong(&s->arms[1].result) > 0)
		code = EXIT_FINDING;
	if (s->figures && o->common.json)
		return print_json(figures_to_json(s->figures), (enum exit_code)code);
	if (s->figures && !o->format)
		print_verdict(s, &o->common);
	return code;
}

static int run_bench_nccl(const void *options, const char *const *args)
{
	const struct bench_nccl_options *o = options;
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	struct screen screen = {o, &progress};
	const struct nccl_view view = {&screen, show_head, show_row, show_foot};
	struct nccl_session s;
	int r;

	(void)args;
	if (o->format && o->common.json)
		return fail(EXIT_REFUSED, "--format and --json exclude each other");
	if (nccl_session_begin(&s, &o->request, &ear, &view) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = run_session(&s, &screen);
	nccl_session_done(&s);
	return r;
}

const struct command command_bench_nccl = {
	.name = "bench nccl",
	.args = "",
	.summary = "time NCCL's collectives, check their results, and show what P2P gains",
	.about = "Prints the table of nccl-tests, timed in the same way, with results checked "
		 "on the GPU that owns them; then how NCCL connected the ranks and why not by "
		 "P2P. Under mpirun, srun or torchrun each process is part of one run; across "
		 "hosts set ONEHOP_ADDR=HOST:PORT of rank 0 for all. NCCL runs in a separate "
		 "process, which is killed if it hangs.",
	.options = nccl_table,
	.size = sizeof(struct bench_nccl_options),
	.run = run_bench_nccl,
};
