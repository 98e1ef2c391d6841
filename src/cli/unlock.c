/* SPDX-License-Identifier: Apache-2.0 */
/* onehop unlock: what a machine needs, and edits to a tree of NVIDIA's open kernel modules. */
#include "cli/command.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "machine/machine.h"
#include "report/report_unlock.h"

#include <errno.h>

struct unlock_command_options {
	struct common_options common;
	const char *tree, *headers;
	bool diff, explain, apply, revert;
};

/* clang-format off */
#define AT(member) offsetof(struct unlock_command_options, member)
static const struct option unlock_table[] = {
	{"tree", 0, OPTION_FILE, AT(tree), "DIR",
		"the sources of a release of NVIDIA's open kernel modules", NULL, 0, 0, 0},
	{"headers", 0, OPTION_FILE, AT(headers), "DIR",
		"headers of the kernel that the modules are for, as in /lib/modules/RELEASE/build", NULL, 0, 0, 0},
	{"explain", 0, OPTION_FLAG, AT(explain), NULL,
		"show each edit, why it is made, and how often each place was found", NULL, 0, 0, 0},
	{"diff", 0, OPTION_FLAG, AT(diff), NULL,
		"print the edits as a unified diff, behind the hashes of the files", NULL, 0, 0, 0},
	{"apply", 0, OPTION_FLAG, AT(apply), NULL,
		"edit the tree", NULL, 0, 0, 0},
	{"revert", 0, OPTION_FLAG, AT(revert), NULL,
		"bring every byte of the tree back", NULL, 0, 0, 0},
	COMMON_FROM(struct unlock_command_options),
	COMMON_JSON(struct unlock_command_options),
	COMMON_COLOR(struct unlock_command_options),
	COMMON_WIDTH(struct unlock_command_options),
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
			       "--diff, --explain, --apply and --revert exclude each other");
	if (o->tree && o->common.from)
		return err_set(EINVAL, "--tree and --from exclude each other: a tree is judged "
				       "without a machine");
	if (!o->tree && (n || o->headers))
		return err_set(EINVAL, "--headers, --explain, --diff, --apply and --revert want "
				       "--tree DIR");
	return 0;
}

static int run_mode(const struct unlock_command_options *o, enum unlock_mode mode,
		    struct unlock **ret)
{
	const struct unlock_options options = {.headers = o->headers};

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

/* A plan with something to do is a finding, as that of `onehop fix`. */
static enum exit_code success(const struct unlock *u, enum unlock_mode mode)
{
	bool due = u->state != UNLOCK_PATCHED || u->other_edits;

	return mode == UNLOCK_PLAN && due ? EXIT_FINDING : EXIT_WELL;
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

#define NEED_PARTS                                                                                 \
	(MACHINE_PCI | MACHINE_CONFIG_SPACE | MACHINE_GPUS | MACHINE_NVML | MACHINE_NVML_P2P |     \
	 MACHINE_NVML_STATE | MACHINE_NVML_LINKS | MACHINE_HOST | MACHINE_MODULE_FILE)

static int print_need(const struct machine *m, const struct machine_need *n,
		      const struct common_options *common)
{
	bool well = n->need == NEED_NOTHING || n->need == NEED_IN_FORCE;
	enum exit_code code = !n->judged ? EXIT_NOT_JUDGED : well ? EXIT_WELL : EXIT_FINDING;
	struct document *d;
	int r;

	if (common->json)
		return print_json(report_unlock_need_json(m, n), code);
	d = document_new();
	report_unlock_need(d, m, n);
	r = print_document(d, common, code);
	document_free(d);
	return r;
}

static int run_need(const struct common_options *common)
{
	struct machine *m;
	int r;

	if (load_machine(common, NEED_PARTS, &m) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	r = print_need(m, machine_need(m), common);
	machine_free(m);
	return r;
}

static int run_unlock(const void *options, const char *const *args)
{
	const struct unlock_command_options *o = options;
	struct unlock *u = NULL;
	enum unlock_mode mode;
	int r;

	(void)args;
	if (choose_mode(o, &mode) < 0)
		return fail(EXIT_REFUSED, "%s (see: onehop unlock --help)", err_msg());
	if (!o->tree)
		return run_need(&o->common);
	r = run_mode(o, mode, &u);
	if (r < 0)
		return fail(failure(r, mode), "%s", err_msg());
	r = print_unlock(u, mode, &o->common);
	unlock_close(u);
	return r;
}

const struct command command_unlock = {
	.name = "unlock",
	.args = "[--tree DIR]",
	.summary =
		"PCIe peer-to-peer on GeForce cards: what is needed, and the driver edited for it",
	.about = "Without --tree: says what each card of the machine needs for peer-to-peer over "
		 "PCIe (nothing, module options, an edited driver, or what would have to change "
		 "first), whether it is in force, and the commands. With --tree: edits the sources "
		 "of a release of NVIDIA's open kernel modules so that cards whose driver refuses "
		 "it "
		 "can reach each other's memory through BAR1. Places are found by structure, and "
		 "all "
		 "are checked before a byte is written; any tree that is not as released is "
		 "refused. "
		 "Without --apply nothing is changed. Exit status 1: there is something to do.",
	.options = unlock_table,
	.size = sizeof(struct unlock_command_options),
	.run = run_unlock,
};
