/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onehop env: what to set for NCCL, UCX, Open MPI, NVSHMEM and Gloo on this machine, and what is
 * set wrong.
 */
#include "cli/command.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "report/report_env.h"
#include "session/advice_session.h"
#include "session/tune_session.h"

#include <string.h>

struct env_options {
	struct common_options common;
	const char *script, *explain;
	int format, rankfile;
	bool shell, shim;
};

enum { FORMAT_JSON = 1 };
static const char *const formats[] = {"json", "conf", "k8s", NULL};
/* By --format, without it for --shell. */
static void (*const format_as[])(const struct advice *a,
				 struct strbuf *out) = {format_env_shell, NULL, format_env_conf,
							format_env_k8s};

static const char *const launchers[] = {"mpirun", "srun", NULL};
static int (*const format_ranks[])(const struct topology *t,
				   struct strbuf *out) = {NULL, format_env_mpirun, format_env_srun};

/* clang-format off */
#define AT(member) offsetof(struct env_options, member)
static const struct option env_table[] = {
	COMMON_FROM(struct env_options),
	COMMON_HOST(struct env_options),
	COMMON_PID(struct env_options),
	OPT_FILE("script", script, "FILE",
		"check what this shell or Slurm script sets, without running it, instead of "
		"this shell's environment"),
	COMMON_OBSERVED(struct env_options),
	OPT_FLAG("shell", shell, "print only export lines: eval \"$(onehop env --shell)\""),
	OPT_FLAG("shim", shim,
		"print how to let libonehop run some of NCCL's collectives on this machine, and which"),
	OPT_CHOICE("format", format, "FORMAT", formats,
		"print json, the lines of /etc/nccl.conf (conf; NCCL's alone), or env of a Kubernetes "
		"container (k8s)"),
	OPT_CHOICE("rankfile", rankfile, "LAUNCHER", launchers,
		"print a rank file for mpirun, or srun's option, that binds the process of "
		"each GPU to the nearest CPUs"),
	OPT_TEXT("explain", explain, "NAME",
		"explain what a variable does, when it is needed, and when it does harm",
		.words = WORDS_VARIABLES),
	COMMON_JSON(struct env_options),
	COMMON_COLOR(struct env_options),
	COMMON_WIDTH(struct env_options),
	COMMON_VERBOSE(struct env_options),
	COMMON_HELP(struct env_options),
	OPTIONS_END,
};
/* clang-format on */

/* It prints one thing at a time. */
#define ENV_FORMS "shell shim format rankfile explain json"

static const struct option_rule env_rules[] = {
	{ENV_FORMS, .not_with = ENV_FORMS},
	{"script", .not_with = "pid", .why = ": one environment counts"},
	{0},
};

/* ---- one variable ---- */

static int explain(const struct env_options *o)
{
	const struct variable *v = variable_named(o->explain);
	struct document *out;

	if (!v)
		return fail(EXIT_REFUSED, "--explain: %s", err_msg());
	out = document_new();
	report_variable(out, v);
	return show_document(out, &o->common, EXIT_OK);
}

/* ---- this machine ---- */

static int print_advice(const struct advice_session *s, const struct env_options *o)
{
	const struct env_unread unread = {o->script, s->settings, s->setting_n};
	enum exit_code code = verdict_code(advice_verdict(s->diagnosis, s->advice));
	struct document *out;

	if (o->common.json || o->format == FORMAT_JSON)
		return print_json(report_env_json(s->diagnosis, s->advice, &unread), code);
	out = document_new();
	report_env(out, s->diagnosis, s->advice, &unread, o->common.verbose);
	return show_document(out, &o->common, code);
}

/* For programs, which take what is printed: status 1 would only stop them. */
static int print_form(const struct advice *a, const struct env_options *o)
{
	AUTO_STRBUF struct strbuf b = {0};

	format_as[o->format](a, &b);
	return print_text(&b, EXIT_OK);
}

static int print_ranks(const struct topology *t, const struct env_options *o)
{
	AUTO_STRBUF struct strbuf b = {0};
	int r = format_ranks[o->rankfile](t, &b);

	return r < 0 ? fail(EXIT_NOT_JUDGED, "%s", err_msg()) : print_text(&b, EXIT_OK);
}

static int print_shim(const struct topology *t, const struct env_options *o)
{
	struct tune_use tuned = {0};
	struct document *out;

	if (t->gpu_n < 2)
		return fail(
			EXIT_NOT_JUDGED,
			"%s has fewer than two NVIDIA GPUs, so the shim would pass on every call",
			machine_place(t->machine));
	if (!o->common.machine.no_store)
		tune_find_of(t, &tuned); /* a table that cannot be read says why in it */
	out = document_new();
	report_env_shim(out, t, &tuned);
	return show_document(out, &o->common, EXIT_OK);
}

static int print_session(const struct advice_session *s, const struct env_options *o)
{
	if (o->rankfile)
		return print_ranks(s->topology, o);
	if (o->shim)
		return print_shim(s->topology, o);
	return o->shell || o->format > FORMAT_JSON ? print_form(s->advice, o) : print_advice(s, o);
}

static int run_env(const void *options, const char *const *args)
{
	const struct env_options *o = options;
	struct advice_session s;
	enum ending end;
	int r;

	(void)args;
	if (o->explain)
		return explain(o);
	end = advice_session_begin(&s, &o->common.machine, o->script);
	r = end == ENDED_WELL ? print_session(&s, o) : fail(ending_code(end), "%s", err_msg());
	advice_session_done(&s);
	return r;
}

const struct command command_env = {
	.name = "env",
	.args = "",
	.summary = "show what to set for NCCL, UCX, Open MPI, NVSHMEM and Gloo, and which "
		   "settings are wrong",
	.about = "Lists only the variables that a finding of onehop check requires on this "
		 "machine, each with that finding and, if there is one, a measurement; "
		 "\"nothing to set\" where the defaults are right. Then the settings that are "
		 "wrong: in the environment, in nccl.conf, in a process (--pid) or a script "
		 "(--script). Then the NIC nearest to each GPU.",
	.options = env_table,
	.rules = env_rules,
	.size = sizeof(struct env_options),
	.run = run_env,
};
