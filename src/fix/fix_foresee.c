/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What making a file again would change, and what it would drop: lines that are in it, and that its program does not
 * make from the files as they are now (fix_lines.c).
 */
#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "fix/fix_impl.h"
#include "fix/step_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Not where the file itself is: nothing there is touched before it is asked for. */
#define FORESEEN JOURNAL_FOLDER "/foreseen"

static int remove_foreseen(struct fix_host *h)
{
	int r = host_remove(h, FORESEEN);

	return r < 0 ? r : host_remove(h, FORESEEN ".new");
}

/*
 * What the program makes of the files as they are. *ret NULL: it makes none, which the step itself reports when it is
 * carried out. The caller frees.
 */
static int make_foreseen(struct fix_host *h, const struct step *s, const char *const *argv,
			 char **ret, size_t *ret_size)
{
	AUTO_STRBUF struct strbuf output = {0};
	int r = remove_foreseen(h);

	if (r < 0)
		return r;
	if (step_run_filled(h, s, argv, FORESEEN, &output) == 0)
		host_read(h, FORESEEN, ret, ret_size);
	return remove_foreseen(h);
}

static int foresee(struct fix_host *h, const struct plan *p, struct step *s,
		   const char *const *argv, const struct bytes *present)
{
	AUTO_FREE char *data = NULL;
	struct bytes made = {0};
	int r = make_foreseen(h, s, argv, &data, &made.size);

	made.data = data;
	if (r == 0 && data)
		s->dropped = fix_lost_lines(p, s, present, &made, false);
	return r;
}

/* ---- what it would make ---- */

/* What a step before it will write: the content, then a folder to which that of the file is moved aside meanwhile. */
#define STAGE         JOURNAL_FOLDER "/foreseen.d"
#define STAGED        STAGE "/file-%zu"
#define WORDS_OF_FILE 8

/*
 * In a mount namespace of its own the program sees a copy of the folder "$3" with the content of "$1" as its file
 * "$4"; nobody else does, and nothing is left of it when the program ends, however it ends.
 */
static const char pretend[] =
	"exec 3<\"$1\"; mount --bind \"$3\" \"$2\"; mount -t tmpfs -o mode=755 onehop \"$3\"; "
	"cp -a \"$2/.\" \"$3\"; umount \"$2\"; mkdir -p \"$(dirname \"$3/$4\")\"; "
	"cat <&3 >\"$3/$4\"; exec 3<&-; shift 4; exec \"$@\"";

static const char *const own_mounts[] = {"unshare", "--mount", "--propagation", "private"};

/* Steps of an array up to the one that makes a file. */
struct before {
	const struct step *steps;
	size_t n;
};

/* What it is made from: the files between this step and the one of the same target that undoing runs. */
static const struct step **files_before(struct arena *a, const struct before *b,
					const struct step *s, size_t *ret_n)
{
	const struct step **files = NULL;

	*ret_n = 0;
	for (size_t i = b->n; i-- > 0 && !step_same_target(&b->steps[i], s);)
		if (b->steps[i].kind == STEP_FILE && strchr(b->steps[i].target, '/') &&
		    b->steps[i].new.data)
			*ARENA_PUSH(a, files, *ret_n) = &b->steps[i];
	return files;
}

/* The length of the part of a path that is a folder already; 0: only the root is. */
static size_t folder_there(struct fix_host *h, const char *path)
{
	AUTO_FREE char *folder = xstrdup(path);
	struct stat st;

	for (char *slash; (slash = strrchr(folder, '/'));) {
		*slash = '\0';
		if (host_stat(h, folder, &st) == 0)
			return strlen(folder);
	}
	return 0;
}

static const char *in_root(struct arena *a, const struct fix_host *h, const char *path)
{
	return arena_printf(a, "%s%s%s", h->root, h->root[strlen(h->root) - 1] == '/' ? "" : "/",
			    path);
}

/* The words that make a program see what the step will write, before those of that program. */
static void add_pretence(struct fix_host *h, struct arena *a, const struct step *file, size_t i,
			 const char **words, size_t *n)
{
	const size_t there = folder_there(h, file->target);
	const char *const add[WORDS_OF_FILE] = {
		"sh",
		"-ec",
		pretend,
		"onehop",
		in_root(a, h, arena_printf(a, STAGED, i)),
		in_root(a, h, STAGE),
		in_root(a, h, arena_strndup(a, file->target, there)),
		arena_strdup(a, file->target + there + (there > 0)),
	};

	for (size_t k = 0; k < WORDS_OF_FILE; k++)
		words[(*n)++] = add[k];
}

static int stage(struct fix_host *h, const struct step *const *files, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		AUTO_FREE char *path = xprintf(STAGED, i);

		r = host_replace(h, path, files[i]->new.data, files[i]->new.size, 0600);
	}
	return r;
}

/* Also what a run that was killed has left. */
static void unstage(struct fix_host *h)
{
	char **names = NULL;
	size_t n = 0;

	if (host_list(h, STAGE, &names, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *path = xprintf(STAGE "/%s", names[i]);

		host_remove(h, path);
	}
	source_free_names(names, n);
	host_remove_folder(h, STAGE);
}

/* What the program makes then; the caller frees. */
static int make_pretended(struct fix_host *h, struct arena *a, const struct before *b,
			  const struct step *s, char **ret, size_t *ret_size)
{
	size_t n, word_n = ARRAY_LEN(own_mounts), program_n = 0;
	const struct step *const *files = files_before(a, b, s, &n);
	AUTO_STRBUF struct strbuf output = {0};
	const char **words;
	int r = remove_foreseen(h);

	while (s->argv[program_n])
		program_n++;
	words = arena_alloc(a, word_n + n * WORDS_OF_FILE + program_n + 1, sizeof(*words));
	memcpy(words, own_mounts, sizeof(own_mounts));
	for (size_t i = n; i-- > 0;) /* the earlier step's first */
		add_pretence(h, a, files[i], i, words, &word_n);
	memcpy(words + word_n, s->argv, program_n * sizeof(*words));
	if (r == 0)
		r = stage(h, files, n);
	if (r == 0)
		r = step_run_filled(h, s, words, FORESEEN, &output);
	if (r == 0)
		r = host_read(h, FORESEEN, ret, ret_size);
	if (r == -ENOENT)
		err_set(ENOENT, "%s made no file", s->argv[0]);
	unstage(h);
	remove_foreseen(h);
	return r;
}

/* Whether it drops lines is asked of the files as they are only if it may: what the fix changes is not lost. */
static int foresee_new(struct fix_host *h, struct plan *p, const struct before *b, struct step *s)
{
	AUTO_FREE char *data = NULL;
	char *copy;
	size_t size = 0;

	if (make_pretended(h, p->arena, b, s, &data, &size) < 0) {
		s->unforeseen = arena_strdup(p->arena, err_msg());
		return foresee(h, p, s, s->argv, &s->old);
	}
	copy = arena_alloc(p->arena, size + 1, 1);
	if (data)
		memcpy(copy, data, size);
	s->foreseen = (struct bytes){copy, size};
	if (step_check_made(s, false, copy, size) < 0)
		s->fails = arena_strdup(p->arena, err_msg());
	if (!fix_lost_lines(p, s, &s->old, &s->foreseen, false))
		return 0;
	return foresee(h, p, s, s->argv, &s->old);
}

/* What is not as it was planned for is reported by fix_apply. */
static int foresee_step(struct fix_host *h, struct plan *p, const struct before *b, struct step *s)
{
	enum step_state state;
	int r = step_read_state(h, s, &state, NULL);

	if (r < 0 || state != STEP_IS_OLD || !s->old.data)
		return r;
	return foresee_new(h, p, b, s);
}

static int foresee_steps(const struct fix_run *run, struct plan *p, struct step *steps, size_t n,
			 int *lock)
{
	int r = 0;

	for (size_t i = 0; r == 0 && !run->host->image && i < n; i++) {
		const struct before before = {steps, i};

		if (steps[i].kind != STEP_GENERATED || !steps[i].argv)
			continue;
		if (*lock < 0)
			r = journal_lock(run->host, run->wait_s, lock);
		if (r == 0)
			r = foresee_step(run->host, p, &before, &steps[i]);
		if (r < 0 && !steps[i].unforeseen)
			steps[i].unforeseen = arena_strdup(p->arena, err_msg());
	}
	return r;
}

int fix_foresee(const struct fix_run *run, struct plan *p)
{
	int lock = -1;
	int r = foresee_steps(run, p, p->steps, p->step_n, &lock);

	if (r == 0)
		r = foresee_steps(run, p, p->on_confirm, p->on_confirm_n, &lock);
	journal_unlock(lock);
	fix_foresee_room(run->host, p);
	return r;
}

/* ---- the same of a confirmation ---- */

static bool is_listed(const char *const *list, const char *line)
{
	while (list && *list && strcmp(*list, line) != 0)
		list++;
	return list && *list;
}

/* Of the trial that the plan begins. */
static struct step *one_shot_of(struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].kind == STEP_ONE_SHOT)
			return &p->steps[i];
	return NULL;
}

void fix_note_shown(struct plan *p)
{
	struct step *s = one_shot_of(p);

	for (size_t i = 0; s && i < p->on_confirm_n; i++)
		if (p->on_confirm[i].dropped)
			s->dropped = p->on_confirm[i].dropped;
}

/* Nobody has seen them. */
static const char *const *not_shown(struct arena *a, const char *const *lines,
				    const char *const *shown)
{
	const char **left;
	size_t n = 0;

	while (lines[n])
		n++;
	left = arena_alloc(a, n + 1, sizeof(*left));
	n = 0;
	for (; *lines; lines++)
		if (!is_listed(shown, *lines))
			left[n++] = *lines;
	return n ? left : NULL;
}

int fix_foresee_confirm(const struct fix_run *run, const struct journal_entry *e, struct plan *p)
{
	const struct step *trial = one_shot_of(e->plan);
	int lock = -1, r = foresee_steps(run, p, p->steps, p->step_n, &lock);

	journal_unlock(lock);
	if (r == 0)
		r = fix_check_room(run->host, p);
	for (size_t i = 0; i < p->step_n; i++) {
		struct step *s = &p->steps[i];

		s->foreseen = (struct bytes){0};
		if (s->dropped)
			s->dropped = not_shown(p->arena, s->dropped, trial ? trial->dropped : NULL);
	}
	return r;
}

/* ---- the same of an undo ---- */

/*
 * The program reads the files as they are before the undo, so that what differs is not the fix's, but for what an
 * earlier try has undone.
 */
static int foresee_undo_step(struct fix_host *h, const struct plan *p, struct step *s)
{
	AUTO_FREE char *now = NULL;
	enum step_state state;
	struct bytes present;
	int r = step_read_state(h, s, &state, NULL);

	if (r < 0 || state != STEP_IS_OTHER)
		return r;
	r = host_read(h, s->target, &now, &present.size);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	present.data = now;
	return foresee(h, p, s, s->undo_argv, &present);
}

int fix_foresee_undo(const struct fix_run *run, const struct journal_entry *e)
{
	const struct plan *p = e->plan;
	int lock = -1, r = 0;

	for (size_t i = 0; i < p->step_n; i++)
		p->steps[i].dropped = NULL; /* those that the fix dropped */
	for (size_t i = 0; r == 0 && !run->host->image && i < p->step_n; i++) {
		if (p->steps[i].kind != STEP_GENERATED || !p->steps[i].undo_argv ||
		    e->marks[i] == MARK_NONE || e->marks[i] == MARK_UNDONE)
			continue;
		if (lock < 0)
			r = journal_lock(run->host, run->wait_s, &lock);
		if (r == 0)
			r = foresee_undo_step(run->host, p, &p->steps[i]);
	}
	journal_unlock(lock);
	return r;
}

/* ---- a file that nobody has made again ---- */

static int is_stale(struct fix_host *h, const struct step *s)
{
	AUTO_FREE char *now = NULL, *made = NULL;
	size_t size;
	int r = host_read(h, s->target, &now, &size);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (!step_holds_word(now, s->expect))
		return 0;
	r = h->image ? 0 : make_foreseen(h, s, s->argv, &made, &size);
	return r < 0 ? r : !made || !step_holds_word(made, s->expect);
}

int fix_check_made_again(struct fix_host *h, const struct journal_entry *e)
{
	for (size_t i = 0; i < e->plan->step_n; i++) {
		const struct step *s = &e->plan->steps[i];
		int r = s->kind == STEP_GENERATED && s->argv && s->expect ? is_stale(h, s) : 0;

		if (r < 0)
			return r;
		if (r)
			return err_set(
				EBUSY,
				"fix %u is still applied: /%s still has %s. Make that file again (%s), or: onehop undo %u",
				e->number, s->target, s->expect, s->argv[0], e->number);
	}
	return 0;
}
