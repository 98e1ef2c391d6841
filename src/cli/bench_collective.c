/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onehop bench collective: libonehop's collectives, checked and timed, compared with NCCL's on
 * request.
 */
#include "cli/collectives.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "report/document.h"
#include "report/report_collective.h"

#include <errno.h>

/* Numbered from 1: enum collective_against. */
static const char *const rivals[] = {"nccl", "nccl-symmetric", NULL};

struct bench_collective_options {
	struct common_options common;
	struct collective_choice request;
};

/* clang-format off */
#define AT(member) offsetof(struct bench_collective_options, member)
static const struct option collective_table[] = {
	OPT_CHOICE("op", request.op, "NAME", nccl_own_op_words, "the operation (all-reduce)"),
	OPT_CHOICE("against", request.against, "NAME", rivals,
		"nccl: measure NCCL too, a batch of each in turn, and print the ratio; nccl-symmetric: with the buffers in its symmetric "
		"windows (nccl-tests' -R 2)"),
	OPT_FLAG("in-place", request.in_place, "input and output in the same memory"),
	COLLECTIVE_SIZES(struct bench_collective_options),
	COLLECTIVE_RUN(struct bench_collective_options, "for all timed batches together (20; with --against 60)"),
	OPT_FLAG("simulate", request.simulate,
		"predict the times from a model of the links instead of measuring; with --from or of this host"),
	COMMON_FROM(struct bench_collective_options),
	COMMON_HOST(struct bench_collective_options),
	COMMON_OBSERVED(struct bench_collective_options),
	COMMON_VERBOSE(struct bench_collective_options),
	FIGURES_JSON(struct bench_collective_options),
	COMMON_CSV(struct bench_collective_options),
	COMMON_PAGE(struct bench_collective_options),
	COMMON_COLOR(struct bench_collective_options),
	COMMON_WIDTH(struct bench_collective_options),
	COMMON_HELP(struct bench_collective_options),
	OPTIONS_END,
};
#undef AT
/* clang-format on */

/* ---- a model ---- */

static int print_model(const struct simulate_session *s, const struct common_options *o,
		       bool p2p_off)
{
	AUTO_STRBUF struct strbuf table = {0};
	struct document *out;
	int code;

	if (prints_data(o))
		return print_figures(s->figures, o, EXIT_OK);
	for (size_t i = 0; i < 2; i++)
		if (s->arms[i].row_n)
			report_simulated_table(&table, s, &s->arms[i], o->verbose);
	code = page_replaces_text(o) ? EXIT_OK : print_text(&table, EXIT_OK);
	if (code != EXIT_OK)
		return code;
	out = new_document(o);
	document_title(out, "Collectives, a model");
	add_page_figures(out, s->figures);
	report_simulated_basis(out, s);
	if (p2p_off)
		report_simulated_p2p(out, s);
	return show_document(out, o, EXIT_OK);
}

static int run_model(const struct bench_collective_options *o,
		     const struct collective_choice *choice)
{
	struct simulate_session s;
	struct machine *m;
	int code, r;

	if (machine_choice_read(&o->common.machine, MACHINE_ALL, &m) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	r = simulate_session_run(&s, m, choice);
	if (r < 0)
		code = fail(r == -ENODEV ? EXIT_NOT_JUDGED : EXIT_REFUSED, "%s", err_msg());
	else
		code = print_model(&s, &o->common, choice->p2p_off);
	simulate_session_done(&s);
	machine_free(m);
	return code;
}

/* ---- the command ---- */

/* What only a model takes. */
static const char *only_for_models(const struct bench_collective_options *o)
{
	if (o->common.machine.from.n)
		return "--from";
	if (o->common.machine.host)
		return "--host";
	return o->common.machine.observed.n ? "--observed"
	       : o->common.machine.no_store ? "--no-observed"
					    : NULL;
}

static int run_bench_collective(const void *options, const char *const *args)
{
	const struct bench_collective_options *o = options;
	struct collective_choice choice = o->request;

	(void)args;
	choice.engine = ENGINE_ONEHOP;
	if (choice.op)
		choice.op = (int)nccl_own_op((unsigned)choice.op - 1) + 1;
	if (choice.simulate)
		return run_model(o, &choice);
	if (only_for_models(o))
		return fail(EXIT_REFUSED, "%s needs --simulate%s", only_for_models(o),
			    o->common.machine.from.n ? ": a recording has no GPUs to use" : "");
	return collectives_compare(choice, &o->common);
}

const struct command command_bench_collective = {
	.name = "bench collective",
	.args = "",
	.summary = "time libonehop's collectives, check their results, and compare them with NCCL",
	.about = "Prints a table like nccl-tests': time and bandwidth of each size, the algorithm "
		 "that libonehop chose, and how many elements were wrong. With --against nccl both "
		 "run in turn in one process, and each size gets the ratio of their times with its "
		 "95 % interval. The operations run in a separate process, which is killed if it "
		 "hangs. With --simulate nothing runs: a model of the links predicts the times, of "
		 "this machine or of a recorded one.",
	.options = collective_table,
	.size = sizeof(struct bench_collective_options),
	.run = run_bench_collective,
};
