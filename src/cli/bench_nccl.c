/* SPDX-License-Identifier: Apache-2.0 */
/* onehop bench nccl: collectives by NCCL, checked and timed. */
#include "cli/collectives.h"
#include "report/report_nccl.h"
#include "report/shim_path.h"

#define FORMAT_NCCL_TESTS "nccl-tests"
static const char *const formats[] = {FORMAT_NCCL_TESTS, FORMAT_CSV, NULL};

struct bench_nccl_options {
	struct common_options common;
	struct collective_choice request;
};

/* clang-format off */
#define AT(member) offsetof(struct bench_nccl_options, member)
static const struct option nccl_table[] = {
	OPT_CHOICE("op", request.op, "NAME", nccl_call_words, "the operation (all-reduce)"),
	OPT_FLAG("shim", request.with_shim,
		"measure NCCL with libonehop's shim and without it, a batch of each in turn, and print the ratio"),
	OPT_FILE("shim-library", request.shim, "FILE",
		"use this drop-in/libnccl.so.2 of the shim instead of the installed one"),
	COLLECTIVE_SIZES(struct bench_nccl_options),
	COLLECTIVE_RUN(struct bench_nccl_options, "for all timed batches together (20; with --shim 60)"),
	COMMON_FORMAT(struct bench_nccl_options, formats, "nccl-tests: exactly its output; csv: the figures for a spreadsheet"),
	COMMON_VERBOSE(struct bench_nccl_options),
	FIGURES_JSON(struct bench_nccl_options),
	COMMON_PAGE(struct bench_nccl_options),
	COMMON_COLOR(struct bench_nccl_options),
	COMMON_WIDTH(struct bench_nccl_options),
	COMMON_HELP(struct bench_nccl_options),
	OPTIONS_END,
};
/* clang-format on */

static const struct option_rule nccl_rules[] = {
	{"shim-library", .needs = "shim"},
	{0},
};

static int run_shim(const struct bench_nccl_options *o)
{
	struct collective_choice choice = o->request;

	choice.engine = ENGINE_SHIM;
	choice.against = AGAINST_NCCL;
	choice.shim = choice.shim ? choice.shim : SHIM_DROP_IN;
	return collectives_compare(choice, &o->common);
}

/* The gain of P2P comes after the table; nccl-tests' lines alone are for scripts. */
static int run_bench_nccl(const void *options, const char *const *args)
{
	const struct bench_nccl_options *o = options;
	bool as_nccl_tests = format_is(&o->common, FORMAT_NCCL_TESTS);
	const struct collectives_print print = {.lines_only = as_nccl_tests,
						.both_arms = as_nccl_tests,
						.common = &o->common,
						.layout = &nccl_layout};

	(void)args;
	if (as_nccl_tests && o->request.with_shim)
		return fail(EXIT_REFUSED,
			    "--shim prints ratios, for which nccl-tests has no columns: without "
			    "--format nccl-tests");
	return o->request.with_shim ? run_shim(o) : collectives_run(&o->request, &print);
}

const struct command command_bench_nccl = {
	.name = "bench nccl",
	.args = "",
	.summary = "time NCCL's collectives, check their results, and show what P2P gains",
	.about = "Prints the table of nccl-tests, timed in the same way, with results checked "
		 "on the GPU that owns them; then how NCCL connected the ranks and why not by "
		 "P2P. With --shim a batch with the shim and one without run in turn in "
		 "one process, and each size gets the ratio of their times with its 95 % "
		 "interval. Under mpirun, srun or torchrun each process is part of one run; across "
		 "hosts set ONEHOP_ADDR=HOST:PORT of rank 0 for all. NCCL runs in a separate "
		 "process, which is killed if it hangs.",
	.options = nccl_table,
	.rules = nccl_rules,
	.size = sizeof(struct bench_nccl_options),
	.run = run_bench_nccl,
};
