/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onehop test: does what one GPU writes to another's memory arrive, and does it read what is there?
 */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/device_options.h"
#include "cli/progress.h"
#include "report/report_test.h"
#include "session/test_session.h"

#include <stdlib.h>

struct test_options {
	struct common_options common;
	struct test_choice request;
};

/* clang-format off */
#define AT(member) offsetof(struct test_options, member)
static const struct option test_table[] = {
	DEVICE_OPTIONS(struct test_options),
	OPT_NUMBER("deadline", request.deadline_s, "SECONDS",
		"time limit of one transfer: a longer one counts as a hang; 5 by default"),
	OPT_NUMBER("long", request.long_s, "SECONDS",
		"also test all of the last memory, and load all pairs for this time (60: a minute)"),
	OPT_FLAG("atomics", request.atomics,
		"also count atomic additions to other GPUs' memory, for information"),
	OPT_FLAG("compressible", request.compressible,
		"also test memory that a GPU may compress, for information"),
	OPT_FLAG("host-memory", request.host_memory,
		"also test host memory from cuMemCreate, used by two GPUs, for information"),
	OPT_FLAG("resume", request.resume,
		"report what ran when the last test ended (crash, reboot), and test the rest"),
	OPT_FLAG("include-suspects", request.include_suspects,
		"also run what an earlier test ran when the machine stopped"),
	OPT_TEXT("inject", request.inject, "KIND[:I->J]",
		"with --device host:N, inject a fault: mirror, displace, stale, torn, lost, "
		"hang, refuse, slow, cached, replay, overtake, reread, remap, ipc-offset, late, hole, "
		"lossy, comptag, packed, host-shift", .words = WORDS_FAULTS),
	COMMON_JSON(struct test_options),
	COMMON_PAGE(struct test_options),
	COMMON_COLOR(struct test_options),
	COMMON_WIDTH(struct test_options),
	OPT_FLAG("verbose", common.verbose, "every pair with all that was checked", .letter = 'v'),
	COMMON_HELP(struct test_options),
	OPTIONS_END,
};
/* clang-format on */

/* The options that change what is tested, besides those that choose devices. */
static const char *const testing[] = {
	"deadline", "memory", "long", "atomics", "compressible", "host-memory", "inject",
};

_Static_assert(ARRAY_LEN(testing) <= TEST_OPTIONS_MAX, "each may be in the journal");

/* Those that were given, the caller's to free. */
static size_t list_given(const struct test_options *o, char *ret[static TEST_OPTIONS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(testing); i++) {
		AUTO_STRBUF struct strbuf b = {0};

		options_given(test_table, o, testing[i], &b);
		if (b.len)
			ret[n++] = xstrdup(b.text + 1);
	}
	return n;
}

static enum exit_code judge(const struct test_session *s)
{
	struct test_counts c;

	test_count(&s->result, &c);
	if (c.wrong || c.locals_wrong || c.arms_wrong)
		return EXIT_FINDING;
	if (s->result.stopped)
		return EXIT_REFUSED;
	if (!c.right && !c.incomplete)
		return EXIT_NOT_JUDGED;
	return c.not_tested || c.incomplete || c.locals_not_tested || c.arms_incomplete
		       ? EXIT_FINDING
		       : EXIT_OK;
}

static int print_session(const struct test_session *s, const struct common_options *o)
{
	const struct test_report r = test_report_of(s, o->verbose);
	struct document *out;

	if (o->json)
		return print_json(report_test_json(&r), judge(s));
	out = new_document(o);
	report_test(out, &r);
	return show_document(out, o, judge(s));
}

static int run_session(struct test_session *s, struct progress *progress,
		       const struct common_options *o)
{
	bool refused;
	int r;

	if (!s->devices.request.n)
		return print_session(s, o);
	progress_begin(progress);
	r = test_session_run(s, &refused);
	progress_end(progress);
	if (r < 0)
		return fail(refused ? EXIT_REFUSED : EXIT_NOT_JUDGED, "%s", err_msg());
	return print_session(s, o);
}

static int run_test(const void *options, const char *const *args)
{
	const struct test_options *o = options;
	struct test_choice request = o->request;
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	char *given[TEST_OPTIONS_MAX];
	struct test_session s;
	int r;

	(void)args;
	request.options = (const char *const *)given;
	request.option_n = list_given(o, given);
	if (test_session_begin(&s, &request, &ear) < 0)
		r = fail(EXIT_REFUSED, "%s", err_msg());
	else
		r = run_session(&s, &progress, &o->common);
	test_session_done(&s);
	for (size_t i = 0; i < request.option_n; i++)
		free(given[i]);
	return r;
}

const struct command command_test = {
	.name = "test",
	.args = "",
	.summary =
		"prove that each GPU reaches the memory of every other, with data that its owner checks",
	.about = "Every GPU writes to and reads from the memory of every other, by copy engine and "
		 "by kernel, at several sizes and places. The owner of the memory checks what "
		 "arrived. Then running kernels pass flags back and forth, pairs use each other's "
		 "memory in ways that are known to fail where copies are correct, and all GPUs sum "
		 "known values. Each GPU is used by a process of its own, which is killed if it "
		 "hangs. Each step is recorded on disk before it runs.",
	.options = test_table,
	.size = sizeof(struct test_options),
	.run = run_test,
};
