/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a fix writes has room where it goes, as far as that is known before anything is written. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fix/fix_impl.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* The plan, its log and their folder, and the list of what is in force. */
#define JOURNAL_FILES 4

/* What the fix needs on one file system. */
struct need {
	struct need *next;
	struct host_room room;
	uint64_t bytes;
};

static struct need *need_at(struct fix_host *h, struct arena *a, struct need **all,
			    const char *path)
{
	struct host_room room;
	struct need *n = *all;

	if (host_find_room(h, path, &room) < 0)
		return NULL;
	while (n && strcmp(n->room.mount, room.mount) != 0)
		n = n->next;
	if (n)
		return n;
	n = arena_alloc(a, 1, sizeof(*n));
	*n = (struct need){.next = *all, .room = room};
	*all = n;
	return n;
}

/* A file takes whole blocks. */
static void add_file(struct need *n, uint64_t size)
{
	if (n)
		n->bytes += (size + n->room.block) / n->room.block * n->room.block;
}

/* What a program will make is about what it made before, where that is all that is known. */
static const struct bytes *made_by(const struct step *s)
{
	return s->foreseen.data                            ? &s->foreseen
	       : s->kind == STEP_GENERATED && !s->new.data ? &s->old
							   : &s->new;
}

/* A file is made next to the one that it replaces, and the journal has a copy of both. */
static void add_steps(struct fix_host *h, struct arena *a, struct need **all,
		      const struct step *steps, size_t n)
{
	struct need *journal = need_at(h, a, all, JOURNAL_FOLDER);

	for (size_t i = 0; i < n; i++) {
		const struct step *s = &steps[i];
		const struct bytes *made = made_by(s);

		if (!step_has_content(s) || !step_does(s))
			continue;
		if (made->data)
			add_file(need_at(h, a, all, s->target), made->size);
		add_file(journal, made->data ? made->size : 0);
		add_file(journal, s->old.data ? s->old.size : 0);
	}
}

/* What the plan needs, of each file system that it writes to. */
static struct need *find_needs(struct fix_host *h, struct plan *p)
{
	struct need *all = NULL, *journal = need_at(h, p->arena, &all, JOURNAL_FOLDER);

	add_steps(h, p->arena, &all, p->steps, p->step_n);
	for (int i = 0; i < JOURNAL_FILES; i++)
		add_file(journal, 1);
	return plan_first_step(p) ? all : NULL;
}

/* "/boot has 4 KiB free, and WHO needs about 20 KiB there: remove WHAT first" */
static char *lack(struct arena *a, const struct need *n, const char *who)
{
	return arena_printf(
		a, "%s has %llu KiB free, and %s needs about %llu KiB there: remove %s first",
		n->room.mount, (unsigned long long)n->room.free / 1024, who,
		(unsigned long long)(n->bytes + 1023) / 1024, n->room.remove);
}

void fix_foresee_room(struct fix_host *h, struct plan *p)
{
	for (const struct need *n = find_needs(h, p); n; n = n->next)
		if (n->room.free < n->bytes)
			*ARENA_PUSH(p->arena, p->notes, p->note_n) =
				arena_printf(p->arena, "%s. A fix that does not fit is rolled back",
					     lack(p->arena, n, "this fix"));
}

int fix_check_room(struct fix_host *h, struct plan *p)
{
	for (const struct need *n = find_needs(h, p); n; n = n->next)
		if (n->room.free < n->bytes)
			return err_set(ENOSPC, "%s", lack(p->arena, n, "confirming it"));
	return 0;
}
