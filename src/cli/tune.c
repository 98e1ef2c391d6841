/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onehop tune: which of libonehop's algorithms is the fastest on this machine, kept for its choice.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/state.h"
#include "cli/collectives.h"
#include "cli/progress.h"
#include "report/document.h"
#include "report/report_collective.h"

#include <sys/stat.h>
#include <unistd.h>

struct tune_options {
	struct common_options common;
	struct tune_choice request;
};

/* clang-format off */
#define AT(member) offsetof(struct tune_options, member)
static const struct option tune_table[] = {
	DEVICE_OPTIONS(struct tune_options),
	OPT_NUMBER("budget", request.budget_s, "SECONDS",
		"for the whole run (8); larger sizes are left out when it is used up"),
	OPT_NUMBER("deadline", request.deadline_s, "SECONDS", "kill a step that takes longer (60)"),
	OPT_FLAG("verbose", common.verbose, "all measured times", .letter = 'v'),
	COMMON_JSON(struct tune_options),
	COMMON_COLOR(struct tune_options),
	COMMON_WIDTH(struct tune_options),
	COMMON_HELP(struct tune_options),
	OPTIONS_END,
};
#undef AT
/* clang-format on */

static int print_session(const struct tune_session *s, const struct common_options *o)
{
	struct document *out;

	if (o->json)
		return print_json(report_tune_json(s), EXIT_OK);
	out = document_new();
	report_tune(out, s, o->verbose);
	return show_document(out, o, EXIT_OK);
}

/*
 * Whether the table can be saved, as far as that shows before the measurement. A damaged table is
 * replaced.
 */
static int check_place(const struct tune_session *s)
{
	AUTO_FREE char *folder = NULL, *inside = NULL;
	struct tune_use old;
	struct stat st;
	int r = state_folder_make(&folder);

	if (r < 0)
		return r;
	inside = xprintf("%s/.", folder);
	if (access(inside, W_OK | X_OK) < 0)
		return state_refuse(errno, "write", folder);
	tune_find(&s->devices, (unsigned)s->devices.request.n, &old);
	if (lstat(old.path, &st) == 0 && S_ISDIR(st.st_mode))
		return state_refuse(EISDIR, "write", old.path);
	return 0;
}

static int run_session(struct tune_session *s, struct progress *progress,
		       const struct common_options *o)
{
	int r;

	if (check_place(s) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	devices_tell(&s->devices);
	progress_begin(progress);
	r = tune_session_run(s);
	progress_end(progress);
	return r < 0 ? fail(collectives_code(r), "%s", err_msg()) : print_session(s, o);
}

static int run_tune(const void *options, const char *const *args)
{
	const struct tune_options *o = options;
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	struct tune_session s;
	int r;

	(void)args;
	r = tune_session_begin(&s, &o->request, &ear);
	if (r == 0 && !s.devices.request.n)
		r = devices_none(&s.devices, true);
	else
		r = r < 0 ? fail(EXIT_REFUSED, "%s", err_msg())
			  : run_session(&s, &progress, &o->common);
	tune_session_done(&s);
	return r;
}

const struct command command_tune = {
	.name = "tune",
	.args = "",
	.summary = "measure which algorithm of libonehop's collectives is the fastest here",
	.about =
		"Times every algorithm of every operation of libonehop on these GPUs at sizes from "
		"16 bytes to 64 MiB, with P2P and without, checks all results, and saves the "
		"times in the state folder. onehop bench collective then chooses by them. Without "
		"them, or after the GPUs, the driver or the paths have changed, it chooses by "
		"estimates. The operations run in a separate process, which is killed if it "
		"hangs.",
	.options = tune_table,
	.size = sizeof(struct tune_options),
	.run = run_tune,
};
