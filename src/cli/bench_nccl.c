/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench nccl: collectives by NCCL, checked and timed. */
#include "cli/collectives.h"
#include "report/report_nccl.h"

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
	COLLECTIVE_SIZES(struct bench_nccl_options),
	COLLECTIVE_RUN(struct bench_nccl_options, "for all timed batches together (20)"),
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

/* ---- what it prints ---- */

static void add_row(struct strbuf *out, const struct nccl_arm *arm, const struct nccl_row *row,
		    bool verbose)
{
	(void)verbose;
	report_nccl_row(out, &arm->result.plan, row);
}

static void add_foot(struct strbuf *out, const struct nccl_arm *arm)
{
	report_nccl_foot(out, &arm->result);
}

static void add_verdict(struct document *out, const struct nccl_session *s, bool verbose)
{
	report_nccl_verdict(out, &s->arms[0], verbose);
	if (s->arms[1].result.row_n)
		report_nccl_p2p(out, &s->arms[0].result, &s->arms[1]);
}

/* The gain of P2P comes after the table; nccl-tests' lines alone are for scripts. */
static int run_bench_nccl(const void *options, const char *const *args)
{
	const struct bench_nccl_options *o = options;
	const struct collectives_print print = {.lines_only = o->format,
						.both_arms = o->format,
						.common = &o->common,
						.head = report_nccl_head,
						.row = add_row,
						.foot = add_foot,
						.verdict = add_verdict};

	(void)args;
	if (o->format && o->common.json)
		return fail(EXIT_REFUSED, "--format and --json exclude each other");
	return collectives_run(&o->request, &print);
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
