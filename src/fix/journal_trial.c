/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a trial boot: the running command line, the boot, and the boot loader's file say. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "fix/journal_impl.h"

#include <string.h>

/* Boot loaders put words with a semicolon into quotes, which the kernel takes off. */
static void drop_quotes(char *text)
{
	char *to = text;

	for (const char *c = text; *c; c++)
		if (*c != '"')
			*to++ = *c;
	*to = '\0';
}

/* Each parameter that the fix wants is on the running line. */
static bool runs(struct fix_host *h, const struct plan *p)
{
	AUTO_FREE char *line = NULL;
	size_t size;

	if (host_read(h, "proc/cmdline", &line, &size) < 0)
		return false;
	drop_quotes(line);
	for (char *c = line; *c; c++)
		if (*c == '\n')
			*c = ' ';
	for (size_t i = 0; i < p->wanted_n; i++)
		if (strcmp(p->wanted[i].kind, "kernel-parameter") == 0 &&
		    !text_has_word(line, p->wanted[i].value))
			return false;
	return true;
}

/* Another boot that did not go through the boot loader, as by kexec, leaves it set. */
static bool is_set(struct fix_host *h, const struct journal_entry *e)
{
	for (size_t i = 0; i < e->plan->step_n; i++) {
		enum step_state state;

		if (e->plan->steps[i].kind == STEP_ONE_SHOT &&
		    step_read_state(h, &e->plan->steps[i], &state, NULL) == 0 &&
		    state == STEP_IS_NEW)
			return true;
	}
	return false;
}

void journal_note_trial(struct fix_host *h, struct journal_entry *e)
{
	char boot_id[40];

	if (e->damage || !e->was_on_trial)
		return;
	e->has_words = runs(h, e->plan);
	if (e->state != FIX_ON_TRIAL)
		return;
	journal_boot_id(h, boot_id);
	e->displaced = !h->image && *boot_id && strcmp(boot_id, e->boot_id) == 0 && !is_set(h, e);
	if (!*boot_id || strcmp(boot_id, e->boot_id) == 0)
		e->trial = TRIAL_WAITS;
	else if (e->has_words)
		e->trial = TRIAL_RUNS;
	else
		e->trial = is_set(h, e) ? TRIAL_WAITS : TRIAL_OVER;
}

bool journal_undo_needs_reboot(const struct journal_entry *e)
{
	for (size_t i = 0; i < e->plan->step_n; i++)
		if (e->plan->steps[i].reboot && (!e->plan->steps[i].trial || e->has_words))
			return true;
	return false;
}

bool journal_undo_is_pending(const struct journal_entry *e, const char *boot_id)
{
	return !e->damage && e->state == FIX_UNDONE && *boot_id &&
	       strcmp(e->last_boot_id, boot_id) == 0 && strcmp(e->boot_id, boot_id) != 0 &&
	       journal_undo_needs_reboot(e);
}
