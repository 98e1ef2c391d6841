/* SPDX-License-Identifier: Apache-2.0 */
/* Era, counts and edits of a tree: all is checked before anything is planned. */
#include "unlock/unlock_impl.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/text.h"
#include "unlock/anchor.h"

#include <stdlib.h>
#include <string.h>

/* ---- places ---- */

/* How often a pattern is in a function, or in a file; -1: there is no such function, or several. */
static int count_in(const struct source_file *f, const char *function, const char *text,
		    struct place *ret_place)
{
	struct scope scope = scope_all(&f->lexed);
	struct pattern *p;
	size_t n;

	if (function && function_find(&f->lexed, function, &scope) != 1)
		return -1;
	p = pattern_new(text);
	n = pattern_count(p, &f->lexed, scope, ret_place);
	pattern_free(p);
	return (int)n;
}

/* ---- refusals ---- */

/*
 * What it means that a place is not as expected: in a release that was tried, that the tree was changed;
 * in another, that this release differs. `newest` fits, as far as is known. The caller frees.
 */
static char *what_differs(const struct unlock *u, const char *newest, const char *changed)
{
	if (!u->version || u->tried)
		return xstrdup(changed);
	if (era_is_before_all(u->version))
		return xprintf("release %s is too old for the edits: install driver %s or later",
			       u->version, era_names[0].name);
	return xprintf("the edits are untested with release %s and do not fit it; the newest "
		       "release that is known to fit is %s",
		       u->version, newest);
}

/* ---- the era ---- */

static bool has_feature(const struct sources *s, const struct feature *f)
{
	struct source_file *file = sources_get(s, f->file);

	return file && count_in(file, f->function, f->pattern, NULL) > 0;
}

static int refuse_unknown_era(const struct unlock *u, unsigned has)
{
	AUTO_STRBUF struct strbuf b = {0};
	AUTO_FREE char *differs = what_differs(u, era_names[ERA_N - 1].last, "was it changed?");

	if (era_is_before_all(u->version))
		return err_set(EINVAL, "%s: %s", u->tree.dir, differs);
	for (size_t i = 0; i < feature_n; i++)
		strbuf_printf(&b, "%s%s %s", i ? ", " : "", has & 1u << i ? "has" : "lacks",
			      features[i].what);
	return err_set(EINVAL, "%s is of no known kind (%s): %s", u->tree.dir, strbuf_str(&b),
		       differs);
}

static int find_era(struct unlock *u, const struct sources *s)
{
	unsigned has = 0;

	for (size_t i = 0; i < feature_n; i++)
		has |= has_feature(s, &features[i]) ? 1u << i : 0;
	for (unsigned era = 0; era < ERA_N; era++) {
		unsigned want = 0;

		for (size_t i = 0; i < feature_n; i++)
			want |= features[i].eras & 1u << era ? 1u << i : 0;
		if (want == has) {
			u->era = (enum era)era;
			return 0;
		}
	}
	return refuse_unknown_era(u, has);
}

/* ---- counts ---- */

static bool row_applies(const struct unlock *u, const struct anchor *a, unsigned eras)
{
	if ((a->eras & eras) != eras)
		return false;
	return u->conditions & 1u << a->when;
}

static int refuse_function(const struct unlock *u, const struct anchor *a)
{
	AUTO_FREE char *differs =
		what_differs(u, era_names[u->era].last, "this is not a release of NVIDIA's");

	return err_set(EINVAL, "%s: %s: expected one function %s in %s, found none or several: %s",
		       u->tree.dir, a->id, a->function, name_in_tree(&u->tree, a->file), differs);
}

static int refuse_missing_file(const struct unlock *u, const struct anchor *a)
{
	AUTO_FREE char *differs =
		what_differs(u, era_names[u->era].last, "unpack the release again");

	return err_set(EINVAL, "%s has no %s: expected for %s: %s", u->tree.dir,
		       name_in_tree(&u->tree, a->file), a->id, differs);
}

static int refuse_count(const struct unlock *u, const struct anchor *a, int found)
{
	AUTO_FREE char *differs =
		what_differs(u, era_names[u->era].last,
			     (unsigned)found > a->count || a->text == NULL
				     ? "someone, or another patch, has already changed the tree"
				     : "the tree was changed, or is not a release of NVIDIA's");

	return err_set(EINVAL, "%s: %s: expected %u in %s%s%s, found %d: %s", u->tree.dir, a->id,
		       a->count, a->function ? a->function : "", a->function ? " of " : "",
		       name_in_tree(&u->tree, a->file), found, differs);
}

/* Looks for a row's place; ret_at is where it begins. */
static int check_row(struct unlock *u, const struct sources *s, const struct anchor *a,
		     struct place *ret)
{
	struct source_file *f = sources_get(s, a->file);
	struct unlock_check *c;
	int found;

	if (!f)
		return refuse_missing_file(u, a);
	found = count_in(f, a->function, a->pattern, ret);
	if (found < 0)
		return refuse_function(u, a);
	if ((unsigned)found != a->count)
		return refuse_count(u, a, found);
	c = ARENA_PUSH(u->arena, u->checks, u->check_n);
	*c = (struct unlock_check){a, (unsigned)found};
	return 0;
}

/* ---- edits ---- */

static struct unlock_file *edited_file(struct unlock *u, const struct source_file *f)
{
	struct unlock_file *e;

	for (size_t i = 0; i < u->n; i++) {
		if (strcmp(u->files[i].path, f->path) == 0)
			return &u->files[i];
	}
	e = ARENA_PUSH(u->arena, u->files, u->n);
	e->path = f->path;
	e->is_after = f->is_after;
	memcpy(e->now_hash, f->now_hash, sizeof(e->now_hash));
	e->before = f->before;
	e->before.mode = f->now.mode; /* of what lies in the tree, not of the copy */
	e->before.uid = f->now.uid;
	e->before.gid = f->now.gid;
	return e;
}

/* Newlines get the white space of the line on which the pattern begins. */
static const char *indented(struct unlock *u, const char *text, const char *indent, size_t n)
{
	AUTO_STRBUF struct strbuf b = {0};

	for (const char *p = text; *p; p++) {
		strbuf_putc(&b, *p);
		if (*p == '\n' && p[1] != '\n')
			strbuf_add(&b, indent, n);
	}
	return arena_strdup(u->arena, strbuf_str(&b));
}

static void add_edit(struct unlock *u, const struct source_file *f, const struct anchor *a,
		     const struct place *place)
{
	struct unlock_file *e = edited_file(u, f);
	struct edit edit = {place->from, place->to, NULL};
	size_t indent_n, n = e->n, i;
	const char *indent = indent_of(f->before.data, place->match, &indent_n);

	edit.text = indented(u, a->text, indent, indent_n);
	e->edits = arena_grow(u->arena, e->edits, n, sizeof(*e->edits));
	e->rows = arena_grow(u->arena, e->rows, n, sizeof(*e->rows));
	for (i = n; i > 0 && e->edits[i - 1].from > edit.from; i--) {
		e->edits[i] = e->edits[i - 1];
		e->rows[i] = e->rows[i - 1];
	}
	e->edits[i] = edit;
	e->rows[i] = (struct unlock_edit){a, line_of(f->before.data, edit.from)};
	e->n++;
	u->edit_n++;
}

/* The rows of files below the folder that are for all of the eras. */
static int check_rows(struct unlock *u, struct sources *s, const char *folder, unsigned eras)
{
	for (size_t i = 0; i < anchor_n; i++) {
		const struct anchor *a = &anchors[i];
		struct place place = {0};
		int r;

		if (!row_applies(u, a, eras) || !text_starts_with(a->file, folder))
			continue;
		r = check_row(u, s, a, &place);
		if (r < 0)
			return r;
		if (a->text)
			add_edit(u, sources_get(s, a->file), a, &place);
	}
	return 0;
}

/* The switch is thrown when all else is in place; the mark is set behind it. */
static int order_of(const struct unlock_file *f)
{
	return strcmp(f->path, MARKER_FILE) == 0 ? 2 : strcmp(f->path, SWITCH_FILE) == 0 ? 1 : 0;
}

static int by_order(const void *a, const void *b)
{
	return order_of(a) - order_of(b);
}

static int finish_file(struct unlock *u, struct unlock_file *f)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct lexed x;
	const char *trouble;
	int r;

	edits_apply(f->before.data, f->before.size, f->edits, f->n, &b);
	r = lex(strbuf_str(&b), b.len, &x);
	if (r < 0)
		return r;
	trouble = x.trouble;
	lexed_done(&x);
	if (trouble)
		return err_set(EINVAL, "%s/%s cannot be edited: %s afterwards", u->tree.dir,
			       name_in_tree(&u->tree, f->path), trouble);
	f->after = f->before;
	f->after.data = arena_strndup(u->arena, strbuf_str(&b), b.len);
	f->after.size = b.len;
	f->before.data = arena_strndup(u->arena, f->before.data, f->before.size);
	sha256(f->before.data, f->before.size, f->before_hash);
	sha256(f->after.data, f->after.size, f->after_hash);
	return 0;
}

/* ---- conditions ---- */

static bool is_met(const struct sources *s, const struct condition_test *c)
{
	struct source_file *f = c->file ? sources_get(s, c->file) : NULL;
	bool found = f && count_in(f, c->function, c->pattern, NULL) > 0;

	return !c->file || found == c->is_there;
}

static void find_conditions(struct unlock *u, const struct sources *s)
{
	for (size_t i = 0; i < WHEN_N; i++)
		u->conditions |= is_met(s, &condition_tests[i]) ? 1u << i : 0;
	u->asks_kernel = !(u->conditions & 1u << WHEN_NOT_ASKED);
}

int unlock_plan(struct unlock *u, struct sources *s)
{
	int r = find_era(u, s);

	if (r < 0)
		return r;
	find_conditions(u, s);
	r = check_rows(u, s, "", 1u << u->era);
	if (r < 0)
		return r;
	qsort(u->files, u->n, sizeof(*u->files), by_order);
	for (size_t i = 0; i < u->n && r == 0; i++)
		r = finish_file(u, &u->files[i]);
	return r;
}

/* ---- a package's tree, without the sources of the core ---- */

static int plan_kernel_open(struct unlock *u, struct sources *s)
{
	struct source_file *marked;
	int r = sources_take(u, s);

	if (r < 0)
		return r;
	marked = sources_get(s, MARKER_FILE);
	if (marked && count_in(marked, NULL, MARKER_PATTERN, NULL) != 0)
		return err_set(EINVAL, "%s/%s is edited already: onehop's mark is in it",
			       u->tree.dir, name_in_tree(&u->tree, MARKER_FILE));
	find_conditions(u, s);
	r = check_rows(u, s, KERNEL_OPEN, ALL_ERAS);
	for (size_t i = 0; i < u->n && r == 0; i++)
		r = finish_file(u, &u->files[i]);
	return r;
}

int unlock_diff_kernel_open(const char *dir, int (*read)(void *, const char *, struct tree_file *),
			    void *context, struct strbuf *out)
{
	struct unlock u = {.arena = arena_new(),
			   .tree = {.dir = dir, .fd = -1, .is_package = true}};
	struct sources s = {0};
	int r = 0;

	sources_name_kernel_open(&u, &s);
	for (size_t i = 0; i < s.n && r == 0; i++)
		r = read(context, name_in_tree(&u.tree, s.files[i].path), &s.files[i].before);
	if (r == 0)
		r = plan_kernel_open(&u, &s);
	for (size_t i = 0; i < u.n && r == 0; i++) {
		const struct unlock_file *f = &u.files[i];

		/* not what finish_file kept, which ends at a NUL */
		edits_diff(name_in_tree(&u.tree, f->path), sources_get(&s, f->path)->before.data,
			   f->before.size, f->edits, f->n, out);
	}
	sources_done(&s);
	arena_free(u.arena);
	return r;
}
