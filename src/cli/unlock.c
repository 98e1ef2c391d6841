/* SPDX-License-Identifier: Apache-2.0 */
/* onehop unlock: what a machine needs for P2P, the edit of the driver's sources, and its installation. */
#include "cli/deliver.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/machine.h"
#include "report/report_support.h"
#include "report/report_unlock.h"
#include "report/report_unlock_delivery.h"
#include "unlock/download.h"
#include "unlock/requirements.h"

#include <errno.h>
#include <fcntl.h>

struct unlock_command_options {
	struct common_options common;
	const char *sources, *mirror, *kernel, *tree, *probe;
	bool download, image, apply, by_hand, diff, explain, revert, support;
	struct observed_options observed;
};

/* clang-format off */
#define AT(member) offsetof(struct unlock_command_options, member)
static const struct option unlock_table[] = {
	{"sources", 0, OPTION_FILE, AT(sources), "DIR",
		"show how the driver's sources in DIR would be edited, built and installed, and which module options would be set", NULL, 0, 0, 0},
	{"download", 0, OPTION_FLAG, AT(download), NULL,
		"the same with the sources of the installed release, which --apply downloads from NVIDIA's public repository and verifies", NULL, 0, 0, 0},
	{"mirror", 0, OPTION_TEXT, AT(mirror), "URL",
		"with --download: use this mirror of the repository", NULL, 0, 0, 0},
	{"apply", 0, OPTION_FLAG, AT(apply), NULL,
		"with --sources or --download: build and install the driver; alone: set the module options, if only they are missing; onehop undo reverts both. With --tree: edit the tree", NULL, 0, 0, 0},
	{"kernel", 0, OPTION_TEXT, AT(kernel), "RELEASE",
		"build for this kernel instead of the running one", NULL, 0, 0, 0},
	{"image", 0, OPTION_FLAG, AT(image), NULL,
		"prepare a system image, as in a chroot: judge no cards, and set the options for all", NULL, 0, 0, 0},
	{"by-hand", 0, OPTION_FLAG, AT(by_hand), NULL,
		"also print the commands to do it manually", NULL, 0, 0, 0},
	{"support", 0, OPTION_FLAG, AT(support), NULL,
		"print which cards support P2P with which driver (docs/support.md)", NULL, 0, 0, 0},
	{"probe", 0, OPTION_FILE, AT(probe), "FILE",
		"check one file: does this nvidia module or object file have BAR1 P2P for every chip, or this nvidia_uvm module the gate for managed memory?", NULL, 0, 0, 0},
	{"tree", 0, OPTION_FILE, AT(tree), "DIR",
		"only edit (or show, or restore) this source tree of NVIDIA's open kernel modules", NULL, 0, 0, 0},
	{"explain", 0, OPTION_FLAG, AT(explain), NULL,
		"with --tree: show each edit, its reason, and how often each place was found", NULL, 0, 0, 0},
	{"diff", 0, OPTION_FLAG, AT(diff), NULL,
		"with --tree: print the hashes of the files and the edits as a unified diff", NULL, 0, 0, 0},
	{"revert", 0, OPTION_FLAG, AT(revert), NULL,
		"with --tree: restore the files as released", NULL, 0, 0, 0},
	COMMON_FROM(struct unlock_command_options),
	COMMON_OBSERVED(struct unlock_command_options),
	COMMON_JSON(struct unlock_command_options),
	COMMON_COLOR(struct unlock_command_options),
	COMMON_WIDTH(struct unlock_command_options),
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL,
		"with --download or --sources: show whole files and how each step is undone", NULL, 0, 0, 0},
	COMMON_HELP(struct unlock_command_options),
	OPTIONS_END,
};
/* clang-format on */

static int choose_mode(const struct unlock_command_options *o, enum unlock_mode *ret)
{
	const struct {
		bool wanted;
		enum unlock_mode mode;
	} modes[] = {
		{o->diff, UNLOCK_DIFF},
		{o->explain, UNLOCK_EXPLAIN},
		{o->apply, UNLOCK_APPLY},
		{o->revert, UNLOCK_REVERT},
	};
	size_t n = 0;

	*ret = UNLOCK_PLAN;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (modes[i].wanted) {
			*ret = modes[i].mode;
			n++;
		}
	}
	if (n > 1)
		return err_set(EINVAL,
			       "--diff, --explain, --apply and --revert cannot be combined");
	return 0;
}

static int check_options(const struct unlock_command_options *o)
{
	const bool status = !o->tree && !o->sources && !o->download && !o->probe;
	const struct {
		bool wrong;
		const char *why;
	} rules[] = {
		{!!o->tree + !!o->sources + o->download + !!o->probe > 1,
		 "--sources, --download, --tree and --probe cannot be combined"},
		{o->mirror && !o->download, "--mirror needs --download"},
		{o->mirror && !download_is_url(o->mirror),
		 "--mirror must be the URL of a repository, https://... or http://..."},
		{o->tree && o->common.from.n,
		 "--tree and --from cannot be combined: a tree is judged without a machine"},
		{o->common.from.n && !status,
		 "--from cannot be combined with --sources, --download or --probe, which read this system"},
		{o->common.from.n && o->apply,
		 "--apply cannot be used with --from: run it on the machine itself"},
		{!o->tree && (o->explain || o->diff || o->revert),
		 "--explain, --diff and --revert need --tree DIR"},
		{!o->sources && !o->download && (o->kernel || o->image),
		 "--kernel and --image need --download, or --sources DIR with the driver's release from " PUBLIC_REPOSITORY},
		{o->probe && o->apply, "--probe and --apply cannot be combined"},
		{o->support &&
			 (!status || o->apply || o->by_hand || o->common.from.n || o->common.json),
		 "--support cannot be combined with other options: it prints a text about all cards"},
		{o->by_hand && (!status || o->apply),
		 "--by-hand cannot be combined with --sources, --download, --tree, --probe or --apply"},
	};

	const struct {
		const char *option, *value;
	} names[] = {{"--tree", o->tree},
		     {"--sources", o->sources},
		     {"--probe", o->probe},
		     {"--kernel", o->kernel}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].value && !*names[i].value)
			return err_set(EINVAL, "%s needs a name", names[i].option);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].wrong)
			return err_set(EINVAL, "%s", rules[i].why);
	return 0;
}

static int run_mode(const struct unlock_command_options *o, enum unlock_mode mode,
		    struct unlock **ret)
{
	const struct unlock_options options = {0};

	if (mode == UNLOCK_APPLY)
		return unlock_apply(o->tree, &options, ret);
	if (mode == UNLOCK_REVERT)
		return unlock_revert(o->tree, &options, ret);
	return unlock_open(o->tree, &options, ret);
}

static enum exit_code failure(int r, enum unlock_mode mode)
{
	if (r == -EINVAL || r == -EBUSY || r == -ELOOP || r == -EFBIG)
		return EXIT_REFUSED;
	return mode >= UNLOCK_APPLY ? EXIT_NOT_CHANGED : EXIT_NOT_JUDGED;
}

/* A plan with something to do exits with 1, as in `onehop fix`. */
static enum exit_code success(const struct unlock *u, enum unlock_mode mode)
{
	bool due = u->state != UNLOCK_PATCHED || u->other_edits;

	return mode == UNLOCK_PLAN && due ? EXIT_FINDING : EXIT_OK;
}

static int print_unlock(const struct unlock *u, enum unlock_mode mode,
			const struct common_options *common)
{
	enum exit_code code = success(u, mode);
	AUTO_STRBUF struct strbuf diff = {0};
	struct document *d;
	int r;

	if (common->json)
		return print_json(report_unlock_json(u, mode), code);
	if (mode == UNLOCK_DIFF) {
		unlock_diff(u, &diff);
		return print_text(&diff, code);
	}
	d = document_new();
	report_unlock(d, u, mode);
	r = print_document(d, common, code);
	document_free(d);
	return r;
}

/* ---- a machine ---- */

static int run_need(const struct unlock_command_options *o)
{
	struct machine *m;
	int r;

	if (load_observed(&o->common, &o->observed, UNLOCK_PARTS, &m) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	r = show_requirements(m, unlock_requirements(m), &o->common, o->by_hand);
	machine_free(m);
	return r;
}

/* ---- one file ---- */

static int run_probe(const struct unlock_command_options *o)
{
	struct arena *a = arena_new();
	struct probe p = {0};
	struct document *d;
	enum exit_code code;
	int r = probe_file(AT_FDCWD, o->probe, a, &p);

	code = r < 0 ? EXIT_NOT_JUDGED : probe_is_good(&p) ? EXIT_OK : EXIT_FINDING;
	if (r < 0) {
		r = fail(code, "%s", err_msg());
	} else if (o->common.json) {
		r = print_json(report_probe_json(&p), code);
	} else {
		d = document_new();
		report_probe_file(d, &p);
		r = print_document(d, &o->common, code);
		document_free(d);
	}
	arena_free(a);
	return r;
}

static int print_support(void)
{
	AUTO_STRBUF struct strbuf b = {0};

	report_support_markdown(&b);
	return print_text(&b, EXIT_OK);
}

/* ---- the command ---- */

static int say_what_was_done(const struct unlock *u, enum unlock_mode mode)
{
	const char *done = mode == UNLOCK_REVERT ? "reverted" : "edited (--revert restores them)";

	if (!u->replaced)
		return fail(success(u, mode), "%s: nothing had to be changed", u->tree.dir);
	return fail(success(u, mode), "%s was changed: %zu %s %s", u->tree.dir, u->replaced,
		    text_plural(u->replaced, "file", "files"), done);
}

static int run_tree(const struct unlock_command_options *o, enum unlock_mode mode)
{
	struct unlock *u = NULL;
	int r = run_mode(o, mode, &u);

	if (r < 0)
		return fail(failure(r, mode), "%s", err_msg());
	r = print_unlock(u, mode, &o->common);
	/* The status is that of the tree, which is what it was asked to be, even if nobody can be shown that. */
	if (mode >= UNLOCK_APPLY && r != (int)success(u, mode))
		r = say_what_was_done(u, mode);
	unlock_close(u);
	return r;
}

static int run_unlock(const void *options, const char *const *args)
{
	const struct unlock_command_options *o = options;
	const struct deliver_options d = {.common = &o->common,
					  .observed = &o->observed,
					  .sources = o->sources,
					  .download = o->download,
					  .mirror = o->mirror,
					  .kernel = o->kernel,
					  .image = o->image,
					  .apply = o->apply};
	enum unlock_mode mode;

	(void)args;
	if (choose_mode(o, &mode) < 0 || check_options(o) < 0)
		return fail(EXIT_REFUSED, "%s (see: onehop unlock --help)", err_msg());
	if (o->support)
		return print_support();
	if (o->tree)
		return run_tree(o, mode);
	if (o->probe)
		return run_probe(o);
	return o->sources || o->download || o->apply ? deliver(&d) : run_need(o);
}

const struct command command_unlock = {
	.name = "unlock",
	.args = "[--download [--apply] | --sources DIR [--apply] | --apply | --probe FILE | --tree "
		"DIR]",
	.summary =
		"enable PCIe peer-to-peer on GeForce cards: what is missing, and the edited driver",
	.about =
		"Without an option: shows what each card needs for peer-to-peer over PCIe (nothing, module options, an edited driver, or another change first), and whether it is in effect. With --download or --sources: checks whether the edited driver can be installed, and shows each step; with --apply as well, edits and builds the sources and carries out the steps. Each step is recorded in a journal first; if one fails, all are undone. No file of a package is changed, and no module is unloaded. With --tree: only edits sources. All places are checked before anything is written; a tree that differs from the release at one of them is refused. Without --apply and --revert nothing is changed. Exit status 1: there is something to do.",
	.options = unlock_table,
	.size = sizeof(struct unlock_command_options),
	.run = run_unlock,
};
