/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/unlock_tree.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <errno.h>

static int run_mode(const char *dir, enum unlock_mode mode, struct unlock **ret)
{
	const struct unlock_options options = {0};

	if (mode == UNLOCK_APPLY)
		return unlock_apply(dir, &options, ret);
	if (mode == UNLOCK_REVERT)
		return unlock_revert(dir, &options, ret);
	return unlock_open(dir, &options, ret);
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

	if (common->json)
		return print_json(report_unlock_json(u, mode), code);
	if (mode == UNLOCK_DIFF) {
		unlock_diff(u, &diff);
		return print_text(&diff, code);
	}
	d = document_new();
	report_unlock(d, u, mode);
	return show_document(d, common, code);
}

static int say_what_was_done(const struct unlock *u, enum unlock_mode mode)
{
	const char *done = mode == UNLOCK_REVERT ? "reverted" : "edited (--revert restores them)";

	if (!u->replaced)
		return fail(success(u, mode), "%s: nothing had to be changed", u->tree.dir);
	return fail(success(u, mode), "%s was changed: %zu %s %s", u->tree.dir, u->replaced,
		    text_plural(u->replaced, "file", "files"), done);
}

int unlock_tree(const char *dir, enum unlock_mode mode, const struct common_options *common)
{
	struct unlock *u = NULL;
	int r = run_mode(dir, mode, &u);

	if (r < 0)
		return fail(failure(r, mode), "%s", err_msg());
	r = print_unlock(u, mode, common);
	/*
	 * The status is that of the tree, which is what it was asked to be, even if nobody can be
	 * shown that.
	 */
	if (mode >= UNLOCK_APPLY && r != (int)success(u, mode))
		r = say_what_was_done(u, mode);
	unlock_close(u);
	return r;
}
