/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onehop unlock: what a machine needs for P2P, the edit of the driver's sources, and its
 * installation.
 */
#include "cli/deliver.h"
#include "cli/unlock_need.h"
#include "cli/unlock_tree.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "report/report_support.h"
#include "report/report_unlock_delivery.h"
#include "unlock/download.h"

#include <fcntl.h>

struct unlock_command_options {
	struct common_options common;
	const char *sources, *mirror, *kernel, *tree, *probe;
	bool download, image, apply, by_hand, diff, explain, revert, support;
};

/* clang-format off */
#define AT(member) offsetof(struct unlock_command_options, member)
static const struct option unlock_table[] = {
	OPT_FILE("sources", sources, "DIR",
		"show how the driver's sources in DIR would be edited, built and installed, and which module options would be set"),
	OPT_FLAG("download", download,
		"the same with the sources of the installed release, which --apply downloads from NVIDIA's public repository and verifies"),
	OPT_TEXT("mirror", mirror, "URL", "with --download: use this mirror of the repository"),
	OPT_FLAG("apply", apply,
		"with --sources or --download: build and install the driver; alone: set the module options, if only they are missing; onehop undo reverts both. With --tree: edit the tree"),
	OPT_TEXT("kernel", kernel, "RELEASE", "build for this kernel instead of the running one"),
	OPT_FLAG("image", image,
		"prepare a system image, as in a chroot: judge no cards, and set the options for all"),
	OPT_FLAG("by-hand", by_hand, "also print the commands to do it manually"),
	OPT_FLAG("support", support,
		"print which cards support P2P with which driver (docs/support.md)"),
	OPT_FILE("probe", probe, "FILE",
		"check one file: does this nvidia module or object file have BAR1 P2P for every chip, or this nvidia_uvm module the gate for managed memory?"),
	OPT_FILE("tree", tree, "DIR",
		"only edit (or show, or restore) this source tree of NVIDIA's open kernel modules"),
	OPT_FLAG("explain", explain,
		"with --tree: show each edit, its reason, and how often each place was found"),
	OPT_FLAG("diff", diff,
		"with --tree: print the hashes of the files and the edits as a unified diff"),
	OPT_FLAG("revert", revert, "with --tree: restore the files as released"),
	COMMON_FROM(struct unlock_command_options),
	COMMON_HOST(struct unlock_command_options),
	COMMON_OBSERVED(struct unlock_command_options),
	COMMON_JSON(struct unlock_command_options),
	COMMON_COLOR(struct unlock_command_options),
	COMMON_WIDTH(struct unlock_command_options),
	OPT_FLAG("verbose", common.verbose,
		"with --download or --sources: show whole files and how each step is undone", .letter = 'v'),
	COMMON_HELP(struct unlock_command_options),
	OPTIONS_END,
};
/* clang-format on */

#define OF_TREE   "diff explain apply revert" /* what is done with a tree */
#define OF_SYSTEM "sources download probe"    /* what reads this system */

static const struct option_rule unlock_rules[] = {
	{OF_TREE, .not_with = OF_TREE},
	{OF_SYSTEM " tree", .not_with = OF_SYSTEM " tree"},
	{"mirror", .needs = "download"},
	{"tree", .not_with = "from", .why = ": a tree is judged without a machine"},
	{"from", .not_with = OF_SYSTEM, .why = ": that reads this system"},
	{"apply", .not_with = "from", .why = ": run it on the machine itself"},
	{"explain diff revert", .needs = "tree"},
	{"kernel image", .needs = "download sources",
	 .why = " DIR with the driver's release from " PUBLIC_REPOSITORY},
	{"probe", .not_with = "apply"},
	{"support", .not_with = OF_SYSTEM " tree apply by-hand from json",
	 .why = ": it prints a text about all cards"},
	{"by-hand", .not_with = OF_SYSTEM " tree apply"},
	{0},
};

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
		r = show_document(d, &o->common, code);
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

static enum unlock_mode mode_of(const struct unlock_command_options *o)
{
	return o->diff      ? UNLOCK_DIFF
	       : o->explain ? UNLOCK_EXPLAIN
	       : o->apply   ? UNLOCK_APPLY
	       : o->revert  ? UNLOCK_REVERT
			    : UNLOCK_PLAN;
}

static int run_unlock(const void *options, const char *const *args)
{
	const struct unlock_command_options *o = options;
	const struct deliver_choice d = {.sources = o->sources,
					 .download = o->download,
					 .mirror = o->mirror,
					 .kernel = o->kernel,
					 .image = o->image,
					 .apply = o->apply};

	(void)args;
	if (o->mirror && !download_is_url(o->mirror))
		return fail(EXIT_REFUSED,
			    "--mirror must be the URL of a repository, https://... or http://...");
	if (o->support)
		return print_support();
	if (o->tree)
		return unlock_tree(o->tree, mode_of(o), &o->common);
	if (o->probe)
		return run_probe(o);
	return o->sources || o->download || o->apply ? deliver(&d, &o->common)
						     : unlock_need(&o->common, o->by_hand);
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
	.rules = unlock_rules,
	.size = sizeof(struct unlock_command_options),
	.run = run_unlock,
};
