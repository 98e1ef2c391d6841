/* SPDX-License-Identifier: Apache-2.0 */
/* onehop compare: two results of a test or benchmark, side by side. */
#include "cli/command.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "ingest/figures_open.h"
#include "report/report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct compare_options {
	struct common_options common;
	const char *pair;
};

/* clang-format off */
#define AT(member) offsetof(struct compare_options, member)
static const struct option compare_table[] = {
	OPT_TEXT("pair", pair, "I,J",
		"show every figure of this ordered pair of GPUs, as the first file numbers them"),
	COMMON_VERBOSE(struct compare_options),
	COMMON_JSON(struct compare_options),
	COMMON_CSV(struct compare_options),
	COMMON_PAGE(struct compare_options),
	COMMON_COLOR(struct compare_options),
	COMMON_WIDTH(struct compare_options),
	COMMON_HELP(struct compare_options),
	OPTIONS_END,
};
/* clang-format on */

/* "1,0": two different GPUs among n. */
static int parse_pair(const char *text, size_t n, int *ret)
{
	char *end;

	for (int i = 0; i < 2; i++) {
		unsigned long v = strtoul(text, &end, 10);

		if (end == text || *text == '-' || v >= n || *end != (i ? '\0' : ','))
			return err_set(
				EINVAL,
				"--pair must name two of %zu GPUs, as in --pair 1,0, not '%s'", n,
				text);
		ret[i] = (int)v;
		text = end + 1;
	}
	return 0;
}

static enum exit_code code_of(const struct comparison *c)
{
	if (!c->kind_n && !c->failed_after)
		return EXIT_NOT_JUDGED;
	return c->counts[TREND_WORSE] || c->slow_after.slow || c->failed_after ? EXIT_FINDING
									       : EXIT_OK;
}

static int print_comparison(const struct comparison *c, const struct compare_options *o)
{
	AUTO_STRBUF struct strbuf csv = {0};
	int pair[2];
	struct document *out;

	if (o->pair && parse_pair(o->pair, c->before->gpu_n, pair) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (o->common.json)
		return print_json(report_compare_json(c), code_of(c));
	if (prints_data(&o->common)) {
		report_compare_csv(&csv, c);
		return print_text(&csv, code_of(c));
	}
	out = new_document(&o->common);
	report_compare(out, c, o->pair ? pair : NULL, o->common.verbose);
	return show_document(out, &o->common, code_of(c));
}

static int run_compare(const void *options, const char *const *args)
{
	struct figures *before = NULL, *after = NULL;
	struct comparison *c;
	int r;

	if (figures_open(args[0], &before) < 0 || figures_open(args[1], &after) < 0) {
		r = fail(EXIT_NOT_JUDGED, "%s", err_msg());
	} else {
		c = comparison_new(before, after);
		r = print_comparison(c, options);
		comparison_free(c);
	}
	figures_free(before);
	figures_free(after);
	return r;
}

const struct command command_compare = {
	.name = "compare",
	.args = "BEFORE AFTER",
	.words = WORDS_FILES,
	.summary = "show what improved and what regressed between two results",
	.about = "BEFORE and AFTER are JSON of onehop test or bench, or the output of "
		 "p2pBandwidthLatencyTest, nccl-tests (also -J) or nvbandwidth -j; - is standard "
		 "input. Exit status 1: something got worse beyond noise, a check of data in "
		 "AFTER failed, or a pair of AFTER is slow.",
	.options = compare_table,
	.size = sizeof(struct compare_options),
	.min_args = 2,
	.max_args = 2,
	.run = run_compare,
};
