/* SPDX-License-Identifier: Apache-2.0 */
/* onehop log: what a debug log of NCCL says of the way between each two GPUs. */
#include "cli/command.h"

#include "base/err.h"
#include "ingest/nccl_log.h"
#include "report/report.h"

struct log_options {
	struct common_options common;
};

/* clang-format off */
static const struct option log_table[] = {
	COMMON_VERBOSE(struct log_options),
	COMMON_JSON(struct log_options),
	COMMON_COLOR(struct log_options),
	COMMON_WIDTH(struct log_options),
	COMMON_HELP(struct log_options),
	OPTIONS_END,
};
/* clang-format on */

/*
 * Without connections, NCCL's own check of all pairs decides; a run that failed counts as failed
 * either way.
 */
static enum exit_code code_of(const struct nccl_log *l)
{
	struct nccl_log_counts c;

	nccl_log_count(l, &c);
	if (l->failure_n || c.p2p < c.pairs || (!c.pairs && l->check.direct == 0))
		return EXIT_FINDING;
	return c.pairs || c.across || l->check.direct == 1 ? EXIT_OK : EXIT_NOT_JUDGED;
}

static int run_log(const void *options, const char *const *args)
{
	const struct log_options *o = options;
	struct nccl_log *l;
	struct document *out;
	int r;

	if (nccl_log_open(args[0], &l) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	if (o->common.json) {
		r = print_json(report_log_json(l), code_of(l));
	} else {
		out = document_new();
		report_log(out, l, o->common.verbose);
		r = show_document(out, &o->common, code_of(l));
	}
	nccl_log_free(l);
	return r;
}

const struct command command_log = {
	.name = "log",
	.args = "FILE",
	.words = WORDS_FILES,
	.summary = "show how NCCL connected the GPUs, and why not by P2P",
	.about = "FILE is the log that NCCL 2.18 to 2.30 writes with NCCL_DEBUG=INFO, of one "
		 "or several hosts; - is standard input. Exit status 1: the run failed, or a "
		 "pair within a host does not use P2P.",
	.options = log_table,
	.size = sizeof(struct log_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_log,
};
