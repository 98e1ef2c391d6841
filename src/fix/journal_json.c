/* SPDX-License-Identifier: Apache-2.0 */
/* plan.json: a plan as JSON and back. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "base/strbuf.h"
#include "fix/journal_impl.h"
#include "fix/sha256.h"
#include "machine/pci.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "onehop-fix"

/* ---- members of a step that are alike ---- */

static const struct {
	const char *key;
	size_t offset; /* of a const char * */
} texts[] = {
	{"target", offsetof(struct step, target)},
	{"old_sha256", offsetof(struct step, old_sha256)},
	{"new_sha256", offsetof(struct step, new_sha256)},
	{"at", offsetof(struct step, at)},
	{"place", offsetof(struct step, place)},
	{"made", offsetof(struct step, made)},
	{"expect", offsetof(struct step, expect)},
	{"expect_not", offsetof(struct step, expect_not)},
	{"argv_if", offsetof(struct step, argv_if)},
	{"undo_if", offsetof(struct step, undo_if)},
	{"link", offsetof(struct step, link)},
	{"what", offsetof(struct step, what)},
};

/* Lists that the file has as one text, as the first release wrote it. */
static const struct {
	const char *key;
	size_t offset; /* of a struct texts */
	const char *separator;
} lists[] = {
	{"why", offsetof(struct step, why), "; "},
	{"rules", offsetof(struct step, rules), ", "},
	{"cost", offsetof(struct step, cost), "; "},
	{"below", offsetof(struct step, below), " "},
};

static const struct {
	const char *key;
	size_t offset; /* of a const char *const * */
} commands[] = {
	{"argv", offsetof(struct step, argv)},
	{"undo_argv", offsetof(struct step, undo_argv)},
	{"check_argv", offsetof(struct step, check_argv)},
	{"dropped", offsetof(struct step, dropped)},
	{"known", offsetof(struct step, known)},
	{"known_images", offsetof(struct step, known_images)},
	{"own_names", offsetof(struct step, own_names)},
};

static const struct {
	const char *key;
	size_t offset; /* of a bool */
} flags[] = {
	{"reboot", offsetof(struct step, reboot)},
	{"again_at_boot", offsetof(struct step, again_at_boot)},
	{"passing", offsetof(struct step, passing)},
	{"for_boot", offsetof(struct step, for_boot)},
	{"trial", offsetof(struct step, trial)},
	{"needed_by_undo", offsetof(struct step, needed_by_undo)},
	{"to_do", offsetof(struct step, to_do)},
};

#define SUM     "plan_sha256" /* of the document as it is with "" there */
#define WRITTEN JSON_INDENT(2)

#define N(table)             (sizeof(table) / sizeof(*(table)))
#define MEMBER(s, type, off) (*(type *)((char *)(s) + (off)))

/* ---- writing ---- */

struct writer {
	bool bad; /* something is not a string */
};

static void set(struct writer *w, json_t *o, const char *key, json_t *value)
{
	w->bad |= json_object_set_new(o, key, value) < 0; /* a broken text is NULL */
}

static void set_text(struct writer *w, json_t *o, const char *key, const char *s)
{
	if (s)
		set(w, o, key, json_string(s));
}

static void set_joined(struct writer *w, json_t *o, const char *key, const struct texts *l,
		       const char *separator)
{
	AUTO_STRBUF struct strbuf joined = {0};

	texts_join(l, separator, &joined);
	set_text(w, o, key, strbuf_str(&joined));
}

static void set_list(struct writer *w, json_t *o, const char *key, const char *const *list,
		     size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		w->bad |= json_array_append_new(a, json_string(list[i])) < 0;
	set(w, o, key, a);
}

static void set_command(struct writer *w, json_t *o, const char *key, const char *const *argv)
{
	size_t n = 0;

	if (!argv)
		return;
	while (argv[n])
		n++;
	set_list(w, o, key, argv, n);
}

/* Contents are in files of their own: only their size is here. */
static void set_bytes(struct writer *w, json_t *o, const char *key, const struct step *s,
		      const struct bytes *b)
{
	if (b->data && step_has_content(s))
		set(w, o, key, json_integer((json_int_t)b->size));
	else
		set_text(w, o, key, b->data);
}

static void set_value(struct writer *w, json_t *o, const char *key, const struct step *s,
		      unsigned value)
{
	AUTO_STRBUF struct strbuf text = {0};

	step_value_text(s, value, &text);
	if (step_has_value(s))
		set_text(w, o, key, text.text);
}

static json_t *step_to_json(struct writer *w, const struct step *s)
{
	json_t *o = json_object();

	set_text(w, o, "kind", step_kind_word(s->kind));
	for (size_t i = 0; i < N(texts); i++)
		set_text(w, o, texts[i].key, MEMBER(s, const char *const, texts[i].offset));
	for (size_t i = 0; i < N(lists); i++) {
		const struct texts *l = &MEMBER(s, const struct texts, lists[i].offset);

		if (l->n)
			set_joined(w, o, lists[i].key, l, lists[i].separator);
	}
	for (size_t i = 0; i < N(commands); i++)
		set_command(w, o, commands[i].key,
			    MEMBER(s, const char *const *const, commands[i].offset));
	set_value(w, o, "old", s, s->value.old);
	set_value(w, o, "new", s, s->value.new);
	set_bytes(w, o, "old", s, &s->old);
	if (s->kind != STEP_GENERATED) /* known later, if at all: the file new-N says so */
		set_bytes(w, o, "new", s, &s->new);
	set(w, o, "mask", json_integer(s->mask));
	set(w, o, "identity", json_integer(s->identity));
	set(w, o, "mode", json_integer(s->mode));
	set(w, o, "deadline_s", json_integer(s->deadline_s));
	for (size_t i = 0; i < N(flags); i++)
		set(w, o, flags[i].key, json_boolean(MEMBER(s, const bool, flags[i].offset)));
	return o;
}

static json_t *manual_to_json(struct writer *w, const struct plan_manual *m)
{
	json_t *o = json_object();

	set_text(w, o, "what", m->what);
	set_text(w, o, "how", m->how);
	set_joined(w, o, "rules", &m->rules, ", ");
	return o;
}

static json_t *wanted_to_json(struct writer *w, const struct plan_wanted *wanted)
{
	json_t *o = json_object();

	set_text(w, o, "kind", wanted->kind);
	set_text(w, o, "value", wanted->value);
	return o;
}

static json_t *rows_to_json(struct writer *w, const struct plan_wanted *rows, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, wanted_to_json(w, &rows[i]));
	return a;
}

static json_t *entry_to_json(struct writer *w, const struct journal_entry *e)
{
	const struct plan *p = e->plan;
	json_t *o = json_pack("{s:s, s:i, s:s, s:i, s:s, s:s}", "schema", SCHEMA, "version",
			      plan_has_trial(p) ? JOURNAL_VERSION : JOURNAL_VERSION_PLAIN, SUM, "",
			      "number", (int)e->number, "date", e->date, "boot_id", e->boot_id);
	json_t *steps = json_array(), *manual = json_array();

	for (size_t i = 0; i < p->step_n; i++)
		json_array_append_new(steps, step_to_json(w, &p->steps[i]));
	for (size_t i = 0; i < p->manual_n; i++)
		json_array_append_new(manual, manual_to_json(w, &p->manual[i]));
	set(w, o, "steps", steps);
	set(w, o, "manual", manual);
	set(w, o, "wanted", rows_to_json(w, p->wanted, p->wanted_n));
	set_list(w, o, "notes", p->notes, p->note_n);
	set_list(w, o, "way_back", p->way_back, p->way_back_n);
	set_list(w, o, "builds_on", p->builds_on, p->builds_on_n);
	if (p->baseline_n)
		set(w, o, "baseline", rows_to_json(w, p->baseline, p->baseline_n));
	return o;
}

/* Of the document without its own sum, as it is written; false: it cannot be written. */
static bool sum_of_plan(json_t *o, char ret[static SHA256_TEXT])
{
	AUTO_FREE char *text = NULL;

	json_object_set_new(o, SUM, json_string(""));
	text = json_dumps(o, WRITTEN);
	if (text)
		sha256(text, strlen(text), ret);
	return text != NULL;
}

int journal_plan_text(const struct journal_entry *e, char **ret)
{
	struct writer w = {false};
	json_t *o = entry_to_json(&w, e);
	AUTO_FREE char *text = NULL;
	char sum[SHA256_TEXT];

	if (o && sum_of_plan(o, sum)) {
		json_object_set_new(o, SUM, json_string(sum));
		text = json_dumps(o, WRITTEN);
	}
	json_decref(o);
	if (!text || w.bad)
		return err_set(EINVAL,
			       "the plan cannot be written down: a name in it is not UTF-8");
	*ret = xprintf("%s\n", text);
	return 0;
}

/* ---- reading ---- */

/* The first member that is wrong makes the whole no good. */
struct reader {
	struct arena *arena;
	const char *where;
	int bad;
};

static void wrong(struct reader *r, const char *key, const char *why)
{
	if (!r->bad)
		r->bad = err_set(EPROTO, "%s: \"%s\" %s", r->where, key, why);
}

/* NULL: it is not there. */
static const char *get_text(struct reader *r, const json_t *o, const char *key)
{
	const json_t *value = json_object_get(o, key);

	if (value && !json_is_string(value))
		wrong(r, key, "is not a string");
	return json_is_string(value) ? arena_strdup(r->arena, json_string_value(value)) : NULL;
}

static const char *need_text(struct reader *r, const json_t *o, const char *key)
{
	const char *s = get_text(r, o, key);

	if (!s)
		wrong(r, key, "is missing");
	return s ? s : "";
}

static json_int_t get_number(struct reader *r, const json_t *o, const char *key, json_int_t most)
{
	const json_t *value = json_object_get(o, key);
	json_int_t n = json_integer_value(value);

	if (!json_is_integer(value) || n < 0 || n > most) {
		wrong(r, key, "is not a number in the allowed range");
		return 0;
	}
	return n;
}

/* Journals of before lack some of them. */
static bool get_flag(struct reader *r, const json_t *o, const char *key)
{
	const json_t *value = json_object_get(o, key);

	if (value && !json_is_boolean(value))
		wrong(r, key, "is neither true nor false");
	return json_is_true(value);
}

static const json_t *need_array(struct reader *r, const json_t *o, const char *key)
{
	const json_t *a = json_object_get(o, key);

	if (!json_is_array(a))
		wrong(r, key, "is not a list");
	return a; /* of something that is not an array, the size is 0 */
}

/* NULL-ended. */
static const char **get_list(struct reader *r, const json_t *a, const char *key, size_t *ret_n)
{
	size_t n = json_array_size(a);
	const char **list = arena_alloc(r->arena, n + 1, sizeof(*list));

	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(a, i));

		if (!s)
			wrong(r, key, "holds something that is not a string");
		list[i] = arena_strdup(r->arena, s ? s : "");
	}
	*ret_n = n;
	return list;
}

static const char *const *get_command(struct reader *r, const json_t *o, const char *key)
{
	const json_t *a = json_object_get(o, key);
	const char **list;
	size_t n;

	if (!a)
		return NULL;
	list = get_list(r, a, key, &n);
	if (n == 0)
		wrong(r, key, "is not a program with its arguments");
	return list;
}

static void get_bytes(struct reader *r, const json_t *o, const char *key, const struct step *s,
		      struct bytes *ret)
{
	if (!json_object_get(o, key))
		return;
	ret->data = "";
	if (step_has_content(s)) {
		ret->size = (size_t)get_number(r, o, key, INT_MAX);
		return;
	}
	ret->data = need_text(r, o, key);
	ret->size = strlen(ret->data);
}

static unsigned get_value(struct reader *r, const json_t *o, const char *key, const struct step *s)
{
	const char *text = need_text(r, o, key);
	unsigned value = 0;

	if (!r->bad && step_value_parse(s, text, &value) < 0)
		wrong(r, key, "is not a value");
	return value;
}

static bool is_path(const char *s)
{
	return s && *s && s[0] != '.' && path_is_clean(s);
}

/* Journals of before had none. */
static void check_sum(struct reader *r, const char *key, const char *sum)
{
	if (sum && strlen(sum) != SHA256_TEXT - 1)
		wrong(r, key, "is not a SHA-256");
}

static void check_step(struct reader *r, const struct step *s)
{
	struct pci_address address;
	bool device = step_has_value(s);
	bool text = s->kind == STEP_ATTRIBUTE || s->kind == STEP_ONE_SHOT;
	bool file = step_has_content(s) || text;

	if (device && (!s->target || pci_address_parse(s->target, &address) < 0))
		wrong(r, "target", "is not a device address");
	if (file && !is_path(s->target))
		wrong(r, "target", "is not a path below the root");
	if ((s->argv_if && !is_path(s->argv_if)) || (s->undo_if && !is_path(s->undo_if)))
		wrong(r, s->undo_if ? "undo_if" : "argv_if", "is not a path below the root");
	if (s->link && !is_path(s->link))
		wrong(r, "link", "is not a path below the root");
	if (step_has_content(s)) {
		check_sum(r, "old_sha256", s->old_sha256);
		check_sum(r, "new_sha256", s->new_sha256);
	}
	if ((device || s->kind == STEP_ONE_SHOT || s->kind == STEP_OPTIONS) && !s->at)
		wrong(r, "at", "is missing");
	if (s->kind == STEP_WORDS && (!s->target || !s->at || !s->argv || !s->undo_argv))
		wrong(r, "argv", "is missing");
	if ((s->kind == STEP_OPTIONS || s->kind == STEP_BLOCK || s->kind == STEP_ENTRY) &&
	    !s->new.data)
		wrong(r, "new", "is missing");
	if ((text || s->kind == STEP_WORDS) && (!s->old.data || !s->new.data))
		wrong(r, s->old.data ? "new" : "old", "is missing");
	if (s->kind == STEP_ONE_SHOT && (!s->argv || !s->undo_argv))
		wrong(r, s->argv ? "undo_argv" : "argv", "is missing");
	if (s->made &&
	    (!is_path(s->made) || !s->target || strncmp(s->target, s->made, strlen(s->made)) != 0 ||
	     s->target[strlen(s->made)] != '/'))
		wrong(r, "made", "is not a folder above the target");
}

static void read_step(struct reader *r, const json_t *o, struct step *s)
{
	const char *kind = need_text(r, o, "kind");

	if (!r->bad && step_kind_parse(kind, &s->kind) < 0)
		wrong(r, "kind", "is unknown");
	for (size_t i = 0; i < N(texts); i++)
		MEMBER(s, const char *, texts[i].offset) = get_text(r, o, texts[i].key);
	for (size_t i = 0; i < N(lists); i++)
		MEMBER(s, struct texts, lists[i].offset) =
			texts_split(r->arena, get_text(r, o, lists[i].key), lists[i].separator);
	for (size_t i = 0; i < N(commands); i++)
		MEMBER(s, const char *const *, commands[i].offset) =
			get_command(r, o, commands[i].key);
	if (step_has_value(s)) {
		s->value.old = get_value(r, o, "old", s);
		s->value.new = get_value(r, o, "new", s);
	} else {
		get_bytes(r, o, "old", s, &s->old);
		get_bytes(r, o, "new", s, &s->new);
	}
	s->mask = (uint16_t)get_number(r, o, "mask", UINT16_MAX);
	s->identity = (uint32_t)get_number(r, o, "identity", UINT32_MAX);
	s->mode = (unsigned)get_number(r, o, "mode", 07777);
	s->deadline_s = (unsigned)get_number(r, o, "deadline_s", 86400);
	for (size_t i = 0; i < N(flags); i++)
		MEMBER(s, bool, flags[i].offset) = get_flag(r, o, flags[i].key);
	s->what = s->what ? s->what : "";
	check_step(r, s);
}

static void read_steps(struct reader *r, const json_t *doc, struct plan *p)
{
	const json_t *a = need_array(r, doc, "steps");
	size_t n = json_array_size(a);

	p->steps = arena_alloc(r->arena, n, sizeof(*p->steps));
	p->step_n = n;
	for (size_t i = 0; i < n && !r->bad; i++) {
		read_step(r, json_array_get(a, i), &p->steps[i]);
		if (r->bad)
			err_wrap(r->bad, "step %zu", i);
	}
}

static void read_manual(struct reader *r, const json_t *doc, struct plan *p)
{
	const json_t *a = need_array(r, doc, "manual");

	for (size_t i = 0; i < json_array_size(a); i++) {
		const json_t *o = json_array_get(a, i);
		struct plan_manual *m = ARENA_PUSH(r->arena, p->manual, p->manual_n);

		m->what = need_text(r, o, "what");
		m->how = need_text(r, o, "how");
		m->rules = texts_split(r->arena, need_text(r, o, "rules"), ", ");
	}
}

static void read_rows(struct reader *r, const json_t *a, struct plan_wanted **ret, size_t *ret_n)
{
	for (size_t i = 0; i < json_array_size(a); i++) {
		const json_t *o = json_array_get(a, i);
		struct plan_wanted *w = ARENA_PUSH(r->arena, *ret, *ret_n);

		w->kind = need_text(r, o, "kind");
		w->value = need_text(r, o, "value");
	}
}

/* Plans of before it was written down have none. */
static void read_builds_on(struct reader *r, const json_t *doc, struct plan *p)
{
	const json_t *a = json_object_get(doc, "builds_on");

	if (a && !json_is_array(a))
		wrong(r, "builds_on", "is not a list");
	p->builds_on = get_list(r, a, "builds_on", &p->builds_on_n);
	for (size_t i = 0; i < p->builds_on_n; i++)
		if (!is_path(p->builds_on[i]))
			wrong(r, "builds_on", "holds something that is not a path below the root");
}

static void read_entry(struct reader *r, const json_t *doc, struct journal_entry *e)
{
	struct plan *p = e->plan;

	e->number = (unsigned)get_number(r, doc, "number", INT_MAX);
	snprintf(e->date, sizeof(e->date), "%s", need_text(r, doc, "date"));
	snprintf(e->boot_id, sizeof(e->boot_id), "%s", need_text(r, doc, "boot_id"));
	read_steps(r, doc, p);
	read_manual(r, doc, p);
	read_rows(r, need_array(r, doc, "wanted"), &p->wanted, &p->wanted_n);
	/* Of a fix that has no trial there is none. */
	if (json_object_get(doc, "baseline"))
		read_rows(r, need_array(r, doc, "baseline"), &p->baseline, &p->baseline_n);
	p->notes = get_list(r, need_array(r, doc, "notes"), "notes", &p->note_n);
	p->way_back = get_list(r, need_array(r, doc, "way_back"), "way_back", &p->way_back_n);
	read_builds_on(r, doc, p);
}

/* Before anything else of it is believed. */
static void check_version(struct reader *r, const json_t *doc)
{
	const char *schema = json_string_value(json_object_get(doc, "schema"));
	const json_t *version = json_object_get(doc, "version");

	if (!schema || strcmp(schema, SCHEMA) != 0 || !json_is_integer(version))
		wrong(r, "schema", "does not say that this is a plan of onehop");
	else if (json_integer_value(version) > JOURNAL_VERSION)
		r->bad =
			err_set(EPROTO, "%s was written by a newer onehop: use that one", r->where);
	else if (json_integer_value(version) < 1)
		wrong(r, "version", "is not a version number");
}

/* Journals of before had none. What a flipped bit makes of a target or a word may look as right as it did. */
static void check_sum_of_plan(struct reader *r, json_t *doc)
{
	const char *noted = get_text(r, doc, SUM);
	char sum[SHA256_TEXT];

	if (noted && (!sum_of_plan(doc, sum) || strcmp(noted, sum) != 0))
		wrong(r, SUM, "is not that of this plan: the file was damaged, or edited");
}

int journal_plan_parse(const char *text, size_t size, const char *where, struct journal_entry *ret)
{
	struct reader r = {.where = where};
	json_error_t error;
	json_t *doc = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);

	if (!doc)
		return err_set(EPROTO, "%s is not valid JSON: line %d: %s", where, error.line,
			       error.text);
	ret->plan = plan_new();
	r.arena = ret->plan->arena;
	check_version(&r, doc);
	if (!r.bad)
		read_entry(&r, doc, ret);
	if (!r.bad)
		check_sum_of_plan(&r, doc);
	json_decref(doc);
	if (!r.bad)
		return 0;
	plan_free(ret->plan);
	ret->plan = NULL;
	return r.bad;
}
