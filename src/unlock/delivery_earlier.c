/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/delivery_earlier.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "fix/fix.h"

#include <string.h>

/* ---- which fixes ---- */

static bool is_a_file_of(const struct delivery *d, const char *path)
{
	const char *const files[] = {d->core, d->patch_file, d->patch_array_file,
				     d->dkms_conf_file};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i] && strcmp(files[i], path) == 0)
			return true;
	return false;
}

/* It made one of the files, or depends on one: an edit for another kernel. */
static bool brought_in(const struct delivery *d, const struct journal_entry *e)
{
	const struct plan *p = e->plan;

	if (journal_is_over(e))
		return false;
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].kind == STEP_FILE && is_a_file_of(d, p->steps[i].target))
			return true;
	for (size_t i = 0; i < p->builds_on_n; i++)
		if (is_a_file_of(d, p->builds_on[i]))
			return true;
	return false;
}

/* As fix_check_undo, when the later ones of these are undone. */
static int check_undo(struct fix_host *h, const struct delivery *d,
		      const struct journal_entry *entries, size_t n, size_t at)
{
	AUTO_FREE struct journal_entry *then = xcalloc(n, sizeof(*then));
	size_t then_n = 0, ignored;

	for (size_t i = 0; i < n; i++)
		if (i <= at || !brought_in(d, &entries[i]))
			then[then_n++] = entries[i];
	return fix_check_undo(h, then, then_n, entries[at].number, &ignored);
}

/* ---- what is said ---- */

static void add_check(struct delivery *d, enum check_state state, const char *found,
		      const char *remedy, struct arena *a)
{
	*ARENA_PUSH(a, d->checks, d->check_n) =
		(struct delivery_check){"earlier edit", found, state, remedy};
	d->blocked |= state == CHECK_BAD;
}

/* Files without a fix: somebody removed the journal, or put them there. */
static const char *by_hand(const struct delivery *d, struct arena *a)
{
	const struct dkms_tree *t = &d->dkms;

	if (d->way == DELIVER_OWN_DKMS)
		return arena_printf(a, "sudo dkms remove %s/%s --all\nsudo rm -rf /%s\n", t->name,
				    t->version, t->folder);
	return arena_printf(a,
			    "sudo rm -f%s%s /%s /%s\nsudo rm -rf /var/lib/dkms/%s/%s/%s\n"
			    "sudo dkms install --force %s/%s -k %s\n",
			    d->core ? " /" : "", d->core ? d->core : "", d->patch_file,
			    d->patch_array_file, t->name, t->version, d->kernel, t->name,
			    t->version, d->kernel);
}

static void say_taken_back(struct delivery *d, struct arena *a)
{
	AUTO_STRBUF struct strbuf b = {0};

	for (size_t i = 0; d->earlier && i < d->earlier_n; i++)
		strbuf_printf(&b, "%sfix %u", i ? ", " : "", d->earlier[i]);
	add_check(
		d, CHECK_NOTE,
		arena_printf(
			a,
			"%s installed another edit of onehop: it is undone first, which restores the driver's own modules; then this edit is installed",
			strbuf_str(&b)),
		NULL, a);
}

void delivery_check_earlier(struct fix_host *h, struct delivery *d,
			    const struct journal_entry *entries, size_t n, struct arena *a)
{
	unsigned *earlier = NULL;

	if (!d->others || !d->kernel)
		return;
	for (size_t i = n; i-- > 0;) {
		if (!brought_in(d, &entries[i]))
			continue;
		if (check_undo(h, d, entries, n, i) < 0) {
			add_check(d, CHECK_BAD,
				  arena_printf(
					  a,
					  "another edit of onehop has to be undone first, but %s",
					  err_msg()),
				  "onehop history", a);
			return;
		}
		*ARENA_PUSH(a, earlier, d->earlier_n) = entries[i].number;
	}
	d->earlier = earlier;
	if (d->earlier_n)
		say_taken_back(d, a);
	else
		add_check(d, CHECK_BAD,
			  "another edit of onehop is installed, and no known fix installed it",
			  by_hand(d, a), a);
}
