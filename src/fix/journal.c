/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/date.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/journal_impl.h"
#include "fix/sha256.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define FIXES JOURNAL_FOLDER "/fixes"
#define LOCK  JOURNAL_FOLDER "/lock"

#define AUTO_NAMES CLEANUP(names_done)

struct names {
	char **names;
	size_t n;
};

static void names_done(struct names *l)
{
	source_free_names(l->names, l->n);
}

/* ---- the lock ---- */

int journal_lock(struct fix_host *h, unsigned wait_s, int *ret_fd)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	double end = clock_s() + wait_s;
	AUTO_CLOSE int fd = -1;
	int r = host_check_mounted(h, JOURNAL_FOLDER);

	if (r == 0)
		r = host_open_own(h, LOCK, &fd);
	if (r < 0)
		return r;
	while ((r = file_lock(fd)) < 0) {
		if (r != -EBUSY)
			return err_sys(-r, "lock /%s", LOCK);
		if (clock_s() >= end)
			return err_set(EBUSY,
				       "another onehop is changing this system: it holds /%s",
				       LOCK);
		nanosleep(&pause, NULL);
	}
	/* Programs inherit it: one that outlives a killed run keeps the next one from starting. */
	if (fcntl(fd, F_SETFD, 0) < 0)
		return err_sys(errno, "lock /%s", LOCK);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

void journal_unlock(int fd)
{
	if (fd < 0)
		return;
	flock(fd, LOCK_UN); /* also for a daemon that a program left, and that inherited it */
	close(fd);
}

void journal_boot_id(struct fix_host *h, char ret[static 40])
{
	AUTO_FREE char *text = NULL;
	size_t size;

	ret[0] = '\0';
	if (h->image || host_read(h, "proc/sys/kernel/random/boot_id", &text, &size) < 0)
		return;
	snprintf(ret, 40, "%s", text_trim(text));
}

/* ---- names ---- */

static char *path_of(unsigned number, const char *name)
{
	return xprintf("%s/%u/%s", FIXES, number, name);
}

static char *content_path(unsigned number, const char *which, size_t step)
{
	return xprintf("%s/%u/%s-%zu", FIXES, number, which, step);
}

/* Folders of other names are not onehop's. */
static bool is_number(const char *name, unsigned *ret)
{
	uint64_t n;

	if (!*name || *name == '0' || name[strspn(name, "0123456789")])
		return false;
	if (text_to_u64(name, &n) < 0 || n >= INT_MAX)
		return false;
	*ret = (unsigned)n;
	return true;
}

static int compare_numbers(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static int only_root(void)
{
	return err_set(EACCES, "only root may read which fixes were made: /%s", FIXES);
}

/* Ascending; the caller frees. */
static int list_numbers(struct fix_host *h, unsigned **ret, size_t *ret_n)
{
	AUTO_NAMES struct names l = {0};
	unsigned *numbers, number;
	size_t n = 0;
	int r = host_check_mounted(h, JOURNAL_FOLDER);

	if (r == 0)
		r = host_list(h, FIXES, &l.names, &l.n);
	if (r == -EACCES)
		return only_root();
	if (r < 0 && r != -ENOENT)
		return r;
	numbers = xcalloc(l.n, sizeof(*numbers));
	for (size_t i = 0; i < l.n; i++)
		if (is_number(l.names[i], &number))
			numbers[n++] = number;
	qsort(numbers, n, sizeof(*numbers), compare_numbers);
	*ret = numbers;
	*ret_n = n;
	return 0;
}

/* ---- reading ---- */

int journal_parse(const char *plan, size_t plan_size, const char *log, size_t log_size,
		  const char *where, struct journal_entry *ret)
{
	AUTO_FREE char *file = xprintf("%s/plan.json", where);
	struct journal_entry e = {.state = FIX_APPLYING};
	int r = journal_plan_parse(plan, plan_size, file, &e);

	if (r < 0)
		return r;
	snprintf(e.last_boot_id, sizeof(e.last_boot_id), "%s", e.boot_id);
	e.marks = arena_alloc(e.plan->arena, e.plan->step_n, sizeof(*e.marks));
	e.errors = arena_alloc(e.plan->arena, e.plan->step_n, sizeof(*e.errors));
	e.no_log = journal_log_whole(log, log_size) == 0;
	r = journal_log_parse(log, log_size, where, &e);
	if (r < 0) {
		journal_free_entry(&e);
		return r;
	}
	*ret = e;
	return 0;
}

void journal_free_entry(struct journal_entry *e)
{
	plan_free(e->plan);
}

void journal_free(struct journal_entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		journal_free_entry(&entries[i]);
	free(entries);
}

/* Into b; *ret_size: as long as it is on disk. */
static int read_content(struct fix_host *h, const struct journal_entry *e, const char *which,
			size_t step, struct bytes *b)
{
	AUTO_FREE char *path = content_path(e->number, which, step), *data = NULL;
	size_t size;
	char *copy;
	int r = host_read(h, path, &data, &size);

	if (r < 0)
		return r;
	copy = arena_alloc(e->plan->arena, size + 1, 1);
	memcpy(copy, data, size);
	b->data = copy;
	b->size = size;
	return 0;
}

static bool is_content_of(const struct bytes *b, const char *sum)
{
	char now[SHA256_TEXT];

	sha256(b->data, b->size, now);
	return strcmp(now, sum) == 0;
}

/* A copy that the plan says is there. `sum` NULL: not noted. */
static int need_content(struct fix_host *h, const struct journal_entry *e, const char *which,
			size_t step, struct bytes *b, const char *sum)
{
	size_t size = b->size;
	int r;

	if (!b->data)
		return 0;
	r = read_content(h, e, which, step, b);
	if (r == -ENOENT || (r == 0 && b->size != size))
		return err_set(EPROTO, "/%s/%u: the copy %s-%zu %s", FIXES, e->number, which, step,
			       r < 0 ? "is missing" : "has another length than the plan says");
	if (r == 0 && sum && !is_content_of(b, sum))
		return err_set(
			EPROTO,
			"/%s/%u: the copy %s-%zu is damaged: its SHA-256 is not the one in the plan",
			FIXES, e->number, which, step);
	return r;
}

static int read_contents(struct fix_host *h, const struct journal_entry *e)
{
	for (size_t i = 0; i < e->plan->step_n; i++) {
		struct step *s = &e->plan->steps[i];
		int r;

		if (!step_has_content(s))
			continue;
		r = need_content(h, e, "old", i, &s->old, s->old_sha256);
		if (r == 0 && s->kind == STEP_GENERATED) {
			r = read_content(h, e, "new", i, &s->new);
			r = r == -ENOENT ? 0 : r; /* it was never made */
		} else if (r == 0) {
			r = need_content(h, e, "new", i, &s->new, s->new_sha256);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_log(struct fix_host *h, unsigned number, char **ret, size_t *ret_size)
{
	AUTO_FREE char *path = path_of(number, "log.jsonl");
	int r = host_read(h, path, ret, ret_size);

	if (r != -ENOENT)
		return r;
	*ret = xstrdup("");
	*ret_size = 0;
	return 0;
}

static void leave_contents(const struct journal_entry *e)
{
	assert(e->plan != NULL);
	for (size_t i = 0; i < e->plan->step_n; i++)
		if (step_has_content(&e->plan->steps[i]))
			e->plan->steps[i].old.size = e->plan->steps[i].new.size = 0;
}

/* Without a plan nothing was begun: what the log has then is its first line, or less. */
static int check_not_begun(struct fix_host *h, unsigned number)
{
	AUTO_FREE char *log = NULL;
	size_t size;
	int r = read_log(h, number, &log, &size);

	if (r == 0 && memchr(log, '\n', size) != memrchr(log, '\n', size))
		return err_set(
			EPROTO,
			"/%s/%u has a log but no plan: put its plan.json back, from which it can "
			"be undone, or move that folder away",
			FIXES, number);
	return r;
}

/* By a person, because the marks are unknown; onehop undo then finds everything old. */
static void say_log_is_lost(struct journal_entry *e)
{
	e->damage = -EPROTO;
	e->damaged = arena_printf(
		e->plan->arena,
		"/%s/%u has lost its log, so what it did is unknown; the old files are "
		"old-* in that folder: restore them yourself, then onehop undo %u",
		FIXES, e->number, e->number);
}

/* What a program made is copied after the step's first line is on disk: without that line, some are lost. */
static int check_log_whole(struct fix_host *h, const struct journal_entry *e)
{
	for (size_t i = 0; !e->no_log && i < e->plan->step_n; i++) {
		AUTO_FREE char *copy = content_path(e->number, "new", i);
		struct stat st;

		if (e->plan->steps[i].kind == STEP_GENERATED && e->marks[i] == MARK_NONE &&
		    host_stat(h, copy, &st) == 0)
			return err_set(
				EPROTO,
				"/%s/%u/log.jsonl has lost lines: /%s is there, but no line of its step; "
				"the old files are old-* in that folder: restore them yourself, then "
				"onehop undo --forget %u",
				FIXES, e->number, copy, e->number);
	}
	return 0;
}

/* 1: an entry; 0: no plan, so nothing was begun. */
static int read_entry(struct fix_host *h, unsigned number, bool contents, struct journal_entry *ret)
{
	AUTO_FREE char *path = path_of(number, "plan.json"), *plan = NULL, *log = NULL;
	AUTO_FREE char *where = xprintf("/%s/%u", FIXES, number);
	size_t plan_size, log_size;
	struct journal_entry e = {0};
	int r = host_read(h, path, &plan, &plan_size);

	if (r < 0)
		return r == -ENOENT ? check_not_begun(h, number) : r;
	r = read_log(h, number, &log, &log_size);
	if (r == 0)
		r = journal_parse(plan, plan_size, log, log_size, where, &e);
	if (r < 0)
		return r;
	if (e.number != number)
		r = err_set(EPROTO, "%s/plan.json is the plan of fix %u", where, e.number);
	else if (contents)
		r = read_contents(h, &e);
	else
		leave_contents(&e);
	if (r == 0)
		r = check_log_whole(h, &e);
	if (r < 0) {
		journal_free_entry(&e);
		return r;
	}
	journal_amend(&e);
	if (e.no_log)
		say_log_is_lost(&e);
	journal_note_trial(h, &e);
	*ret = e;
	return 1;
}

/* Of what could not be read, with the sentence that says why. */
static void damaged_entry(struct fix_host *h, unsigned number, int damage,
			  struct journal_entry *ret)
{
	AUTO_FREE char *log = NULL;
	size_t size;
	struct journal_entry e = {.number = number, .damage = damage, .plan = plan_new()};

	e.damaged = arena_strdup(e.plan->arena, err_msg());
	if (read_log(h, number, &log, &size) == 0)
		journal_log_glance(log, size, &e);
	*ret = e;
}

static int read_all(struct fix_host *h, bool contents, struct journal_entry **ret, size_t *ret_n)
{
	AUTO_FREE unsigned *numbers = NULL;
	struct journal_entry *entries;
	size_t n, found = 0;
	int r = list_numbers(h, &numbers, &n);

	if (r < 0)
		return r;
	entries = xcalloc(n, sizeof(*entries));
	for (size_t i = 0; i < n; i++) {
		r = read_entry(h, numbers[i], contents, &entries[found]);
		if (r == -EACCES) {
			journal_free(entries, found);
			return only_root();
		}
		if (r < 0)
			damaged_entry(h, numbers[i], r, &entries[found]);
		found += r != 0;
	}
	*ret = entries;
	*ret_n = found;
	return 0;
}

int journal_read(struct fix_host *h, struct journal_entry **ret, size_t *ret_n)
{
	return read_all(h, true, ret, ret_n);
}

int journal_list(struct fix_host *h, struct journal_entry **ret, size_t *ret_n)
{
	return read_all(h, false, ret, ret_n);
}

bool journal_is_over(const struct journal_entry *e)
{
	return e->state == FIX_UNDONE || e->state == FIX_FORGOTTEN;
}

bool journal_is_unfinished(const struct journal_entry *e)
{
	return !e->damage &&
	       (e->state == FIX_APPLYING || e->state == FIX_UNDOING || e->trial == TRIAL_OVER);
}

/* ---- what was left ---- */

/* What was never begun. */
static int remove_fix(struct fix_host *h, unsigned number)
{
	AUTO_FREE char *folder = xprintf("%s/%u", FIXES, number);
	AUTO_FREE char *plan = path_of(number, "plan.json");
	AUTO_NAMES struct names l = {0};
	/* First: with it there, all else has to be there too. */
	int r = host_remove(h, plan);

	if (r >= 0)
		r = host_list(h, folder, &l.names, &l.n);
	for (size_t i = 0; r >= 0 && i < l.n; i++) {
		AUTO_FREE char *path = xprintf("%s/%s", folder, l.names[i]);

		r = host_remove(h, path);
	}
	return r < 0 ? r : host_remove_folder(h, folder);
}

/* A log that cannot be read is damaged, which journal_read tells. */
static int cut_torn_line(struct fix_host *h, unsigned number)
{
	AUTO_FREE char *path = path_of(number, "log.jsonl"), *log = NULL;
	size_t size, whole;

	if (read_log(h, number, &log, &size) < 0)
		return 0;
	whole = journal_log_whole(log, size);
	return whole == size ? 0 : host_replace(h, path, log, whole, 0600);
}

static int close_fix(struct fix_host *h, unsigned number)
{
	AUTO_FREE char *folder = xprintf("%s/%u", FIXES, number);
	AUTO_NAMES struct names l = {0};
	int r = host_list(h, folder, &l.names, &l.n);

	for (size_t i = 0; r >= 0 && i < l.n; i++) {
		AUTO_FREE char *path = xprintf("%s/%s", folder, l.names[i]);

		r = host_close_to_others(h, path);
	}
	return r < 0 ? r : host_close_to_others(h, folder);
}

/* Once: all is closed when the folder above it is. If it cannot be, the rest is undone nevertheless. */
static void close_to_others(struct fix_host *h, const unsigned *numbers, size_t n)
{
	struct stat st;
	int r = host_stat(h, FIXES, &st);

	if (r < 0 || !(st.st_mode & 077))
		return;
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = close_fix(h, numbers[i]);
	if (r >= 0)
		host_close_to_others(h, FIXES);
}

int journal_sweep(struct fix_host *h)
{
	AUTO_FREE unsigned *numbers = NULL;
	size_t n;
	int r = list_numbers(h, &numbers, &n);

	if (r >= 0)
		close_to_others(h, numbers, n);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		AUTO_FREE char *plan = path_of(numbers[i], "plan.json");
		struct stat st;

		if (host_stat(h, plan, &st) == -ENOENT)
			r = check_not_begun(h, numbers[i]) < 0 ? 0 : remove_fix(h, numbers[i]);
		else
			r = cut_torn_line(h, numbers[i]);
	}
	return r;
}

/* ---- writing ---- */

static int write_content(struct fix_host *h, const struct journal_entry *e, const char *which,
			 size_t step, const struct bytes *b)
{
	AUTO_FREE char *path = content_path(e->number, which, step);

	return b->data ? host_replace(h, path, b->data, b->size, 0600) : 0;
}

static int write_contents(struct fix_host *h, const struct journal_entry *e, size_t first)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < e->plan->step_n; i++) {
		const struct step *s = &e->plan->steps[i];

		if (!step_has_content(s))
			continue;
		r = write_content(h, e, "old", i, &s->old);
		if (r == 0 && s->kind != STEP_GENERATED)
			r = write_content(h, e, "new", i, &s->new);
	}
	return r;
}

static int append(struct fix_host *h, struct journal_entry *e, const char *text)
{
	AUTO_FREE char *path = path_of(e->number, "log.jsonl");
	char chain[JOURNAL_CHAIN];
	AUTO_FREE char *line = journal_line(e->chain, text, chain);
	int r = host_append(h, path, line, strlen(line));

	if (r < 0)
		return r;
	memcpy(e->chain, chain, sizeof(chain));
	e->has_chain = true;
	return 0;
}

/* The fix is there once plan.json is: it comes last. */
static int write_entry(struct fix_host *h, struct journal_entry *e)
{
	AUTO_FREE char *folder = xprintf("%s/%u", FIXES, e->number), *text = NULL;
	AUTO_FREE char *path = path_of(e->number, "plan.json");
	AUTO_FREE char *begun = journal_state_text(FIX_APPLYING, e->boot_id);
	int r = journal_plan_text(e, &text);

	if (r == 0)
		r = write_contents(h, e, 0);
	if (r == 0)
		r = append(h, e, begun);
	if (r == 0)
		r = host_close_to_others(h, folder);
	if (r == 0)
		r = host_close_to_others(h, FIXES);
	return r < 0 ? r : host_replace(h, path, text, strlen(text), 0600);
}

static const char *sum_of(struct arena *a, const struct bytes *b)
{
	char sum[SHA256_TEXT];

	if (!b->data)
		return NULL;
	sha256(b->data, b->size, sum);
	return arena_strdup(a, sum);
}

/* Of the steps from `first` on. */
static void note_sums(struct plan *p, size_t first)
{
	for (size_t i = first; i < p->step_n; i++) {
		struct step *s = &p->steps[i];

		if (!step_has_content(s))
			continue;
		s->old_sha256 = sum_of(p->arena, &s->old);
		if (s->kind != STEP_GENERATED) /* that is known later */
			s->new_sha256 = sum_of(p->arena, &s->new);
	}
}

/* Both lists, of items of `size`, in one; without `more`, zeros follow the first. */
static void *joined(struct arena *a, const void *items, size_t n, const void *more, size_t more_n,
		    size_t size)
{
	char *all = arena_alloc(a, n + more_n, size);

	if (n)
		memcpy(all, items, n * size);
	if (more && more_n)
		memcpy(all + n * size, more, more_n * size);
	return all;
}

int journal_extend(struct fix_host *h, struct journal_entry *e, const struct plan *p)
{
	AUTO_FREE char *path = path_of(e->number, "plan.json"), *text = NULL;
	struct plan *own = e->plan;
	const size_t first = own->step_n;
	int r;

	e->marks = joined(own->arena, e->marks, first, NULL, p->step_n, sizeof(*e->marks));
	e->errors = joined(own->arena, e->errors, first, NULL, p->step_n, sizeof(*e->errors));
	own->steps = joined(own->arena, own->steps, first, p->steps, p->step_n, sizeof(*p->steps));
	own->step_n += p->step_n;
	e->added_at = first;
	own->builds_on = joined(own->arena, own->builds_on, own->builds_on_n, p->builds_on,
				p->builds_on_n, sizeof(*p->builds_on));
	own->builds_on_n += p->builds_on_n;
	note_sums(own, first);
	r = journal_plan_text(e, &text);
	if (r == 0) /* copies of steps that no plan has yet harm nobody */
		r = write_contents(h, e, first);
	return r < 0 ? r : host_replace(h, path, text, strlen(text), 0600);
}

int journal_begin(struct fix_host *h, struct plan *p, struct journal_entry *ret)
{
	AUTO_FREE unsigned *numbers = NULL;
	struct journal_entry e = {.state = FIX_APPLYING, .plan = p};
	size_t n;
	int r = list_numbers(h, &numbers, &n);

	if (r < 0)
		return r;
	e.number = n ? numbers[n - 1] + 1 : 1;
	date_now(e.date);
	journal_boot_id(h, e.boot_id);
	memcpy(e.last_boot_id, e.boot_id, sizeof(e.boot_id));
	e.marks = arena_alloc(p->arena, p->step_n, sizeof(*e.marks));
	e.errors = arena_alloc(p->arena, p->step_n, sizeof(*e.errors));
	note_sums(p, 0);
	r = write_entry(h, &e);
	if (r < 0) {
		AUTO_FREE char *why = xstrdup(err_msg());

		remove_fix(h, e.number); /* as far as it can be: it has no plan */
		return err_set(-r, "%s", why);
	}
	*ret = e;
	return 0;
}

int journal_mark(struct fix_host *h, struct journal_entry *e, size_t step, enum step_mark mark,
		 const char *text, const char *output)
{
	AUTO_FREE char *what = journal_mark_text(e, step, mark, text, output);

	journal_note_mark(e, step, mark, text);
	return append(h, e, what);
}

int journal_state(struct fix_host *h, struct journal_entry *e, enum fix_state state)
{
	char boot_id[40];
	AUTO_FREE char *what = NULL;

	journal_boot_id(h, boot_id);
	what = journal_state_text(state, boot_id);
	journal_note_state(e, state, boot_id);
	return append(h, e, what);
}

int journal_new_content(struct fix_host *h, const struct journal_entry *e, size_t step)
{
	return write_content(h, e, "new", step, &e->plan->steps[step].new);
}

/* Each try of an undo may find something else: none of it is replaced. */
static char *found_path(unsigned number, size_t step, unsigned copy)
{
	AUTO_FREE char *first = content_path(number, "found", step);

	return copy == 1 ? TAKE_PTR(first) : xprintf("%s.%u", first, copy);
}

int journal_found_content(struct fix_host *h, const struct journal_entry *e, size_t step,
			  const struct bytes *found, char **ret_path)
{
	for (unsigned copy = 1;; copy++) {
		AUTO_FREE char *path = found_path(e->number, step, copy), *data = NULL;
		size_t size;
		int r = host_read(h, path, &data, &size);

		if (r == -ENOENT)
			r = host_replace(h, path, found->data, found->size, 0600);
		else if (r == 0 && (size != found->size || memcmp(data, found->data, size) != 0))
			continue;
		if (r == 0)
			*ret_path = TAKE_PTR(path);
		return r < 0 ? r : data == NULL;
	}
}
