/* SPDX-License-Identifier: Apache-2.0 */
/* onehop fix: the plan that would resolve what check finds; --apply carries it out. */
#include "cli/fix.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "diagnose/diagnose.h"

static const char *const iommu_words[] = {"pt", "off", NULL};

/* clang-format off */
#define AT(member) offsetof(struct fix_options, member)
static const struct option fix_table[] = {
	OPT_FLAG("apply", apply, "make the planned changes; without it nothing is changed"),
	OPT_FLAG("dry-run", dry_run, "print the plan and change nothing; this is the default"),
	OPT_FLAG("yes", yes,
		"continue even if regenerating a file loses manual edits", .letter = 'y'),
	COMMON_FROM(struct fix_options),
	COMMON_HOST(struct fix_options),
	COMMON_ROOT(struct fix_options),
	COMMON_OBSERVED(struct fix_options),
	OPT_CHOICE("iommu", request.iommu, "HOW", iommu_words,
		"how to change an IOMMU that translates: pt (pass-through, the default) or off"),
	OPT_FLAG("now", request.now,
		"only changes that take effect now and last until the next boot"),
	OPT_FLAG("kept", request.kept, "only permanent changes"),
	OPT_FLAG("trial", request.trial,
		"try kernel parameters for one boot, until they are confirmed; the default where "
		"no display is connected"),
	OPT_FLAG("no-trial", request.no_trial,
		"set kernel parameters permanently, without a trial boot"),
	OPT_FLAG("confirm", confirm, "keep the kernel parameters that this boot tries"),
	OPT_FLAG("when-healthy", when_healthy,
		"for onehop's own unit: confirm once the system is up and as healthy as before",
		.hidden = true),
	OPT_FLAG("at-boot", at_boot,
		"for onehop's own unit: write the registers of fixes in force again", .hidden = true),
	COMMON_JSON(struct fix_options),
	COMMON_COLOR(struct fix_options),
	COMMON_WIDTH(struct fix_options),
	OPT_FLAG("verbose", common.verbose,
		"show whole files and how each step is undone", .letter = 'v'),
	COMMON_HELP(struct fix_options),
	OPTIONS_END,
};
/* clang-format on */

/* The plan was made before the trial boot. */
#define KEEPS_TRIAL ": it keeps the kernel parameters of the trial as they were planned"

static const struct option_rule fix_rules[] = {
	{"confirm", .not_with = "apply dry-run trial no-trial now kept iommu observed root from",
	 .why = KEEPS_TRIAL},
	{"now", .not_with = "kept"},
	{"trial", .not_with = "no-trial"},
	{"trial", .not_with = "root", .why = ": it sets the next boot of this machine"},
	{"apply", .not_with = "dry-run"},
	{"apply", .not_with = "from", .why = ": run it on the machine itself"},
	{0},
};

/* "onehop fix acs-redirect --iommu off --apply": the command that applies this plan. */
static void add_words(const struct fix_options *o, struct strbuf *b)
{
	strbuf_puts(b, "onehop fix");
	for (size_t i = 0; i < o->request.rule_n; i++)
		strbuf_printf(b, " %s", o->request.rules[i]);
	options_given(fix_table, o, "iommu observed no-observed now kept trial no-trial root", b);
	strbuf_puts(b, " --apply");
}

static int run_fix(const void *options, const char *const *args)
{
	struct fix_options o = *(const struct fix_options *)options;
	AUTO_STRBUF struct strbuf words = {0};

	if (o.at_boot)
		return fix_write_at_boot(&o);
	if (o.confirm && *args)
		return fail(EXIT_REFUSED, "--confirm cannot be used with rules" KEEPS_TRIAL);
	if (o.confirm)
		return fix_confirm_trial(&o);
	o.request.rules = args;
	for (; args[o.request.rule_n]; o.request.rule_n++)
		if (!rule_named(args[o.request.rule_n]))
			return fail(EXIT_REFUSED, "fix: %s", err_msg());
	add_words(&o, &words);
	return fix_plan(&o, words.text);
}

const struct command command_fix = {
	.name = "fix",
	.args = "[RULE]...",
	.words = WORDS_RULES,
	.summary = "plan changes that resolve the findings; --apply makes them",
	.about =
		"Prints the steps that would resolve the findings of check, or only those of the named rules: each change, the old value, the reason and the cost. Without --apply nothing is changed. With --apply each step is journaled first and verified afterwards. If a step fails, all are undone. onehop undo reverts a fix.",
	.options = fix_table,
	.rules = fix_rules,
	.size = sizeof(struct fix_options),
	.max_args = MAX_ARGS,
	.run = run_fix,
};
