/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_json_facts.h"

#include "report/report_json_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

/* What the table's row says of the object, without the value. */
struct origin {
	enum fact_state state;
	const char *from;
};

static const char *const state_words[] = {
	[FACT_UNKNOWN] = "unknown",
	[FACT_KNOWN] = "known",
	[FACT_ABSENT] = "absent",
};

json_t *json_fact_int(struct fact_int f)
{
	return json_pack("{s:o, s:s, s:o}", "value", json_known_int(f), "state",
			 state_words[f.state], "from", json_text(f.from));
}

json_t *json_known_int(struct fact_int f)
{
	return fact_known(f) ? json_integer(f.value) : json_null();
}

/* ---- values ---- */

/* A word from a table instead of the number; a number that the table lacks stays a number. */
static json_t *word_json(int64_t value, const char *const *words, size_t n)
{
	if (value < 0 || (uint64_t)value >= n || !words[value])
		return json_integer(value);
	return json_string(words[value]);
}

static json_t *value_json(const struct field *f, const void *fact)
{
	int64_t value = f->kind == FIELD_STR ? 0 : ((const struct fact_int *)fact)->value;

	switch (f->kind) {
	case FIELD_INT:
		return json_integer(value);
	case FIELD_FLAG:
		return json_boolean(value != 0);
	case FIELD_STR:
		return json_text(((const struct fact_str *)fact)->value);
	case FIELD_WORD:
		return word_json(value, f->words, f->word_n);
	case FIELD_NAMED:
		return json_text(f->name_of(value));
	}
	return json_null();
}

/* ---- lists whose entries are referred to ---- */

void json_shared_start(struct json_shared *s)
{
	*s = (struct json_shared){json_array(), json_object()};
}

json_t *json_shared_finish(struct json_shared *s)
{
	json_decref(s->numbers);
	return s->list;
}

json_t *json_shared_number(const struct json_shared *s, const char *key)
{
	return json_incref(json_object_get(s->numbers, key));
}

json_t *json_shared_add(struct json_shared *s, const char *key, json_t *entry)
{
	json_t *number = json_integer((json_int_t)json_array_size(s->list));

	/* a key may hold bytes of a file that are not UTF-8 */
	json_object_set_nocheck(s->numbers, key, number);
	json_array_append_new(s->list, entry);
	return number;
}

/* ---- origins ---- */

void json_origins_start(struct json_origins *o)
{
	json_shared_start(&o->entries);
	json_shared_start(&o->sources);
}

void json_origins_finish(struct json_origins *o, json_t *document)
{
	json_object_set_new(document, "facts", json_shared_finish(&o->entries));
	json_object_set_new(document, "sources", json_shared_finish(&o->sources));
}

static struct origin origin_of(const struct field *f, const void *fact)
{
	const struct fact_int *i = fact;
	const struct fact_str *s = fact;

	return f->kind == FIELD_STR ? (struct origin){s->state, s->from}
				    : (struct origin){i->state, i->from};
}

/* Takes the text, and returns it with `with` in each place where `what` was. */
static char *replaced(char *text, const char *what, const char *with)
{
	AUTO_STRBUF struct strbuf b = {0};
	const char *rest = text;

	if (!strstr(text, what))
		return text;
	for (const char *at; (at = strstr(rest, what)); rest = at + strlen(what)) {
		strbuf_add(&b, rest, (size_t)(at - rest));
		strbuf_puts(&b, with);
	}
	strbuf_puts(&b, rest);
	free(text);
	return xstrdup(strbuf_str(&b));
}

/* A name is replaced wherever it is, a number only as a whole part of a path. */
static char *without_own(char *from, const json_t *object, const char *member)
{
	const json_t *value = json_object_get(object, member);
	const char *name = json_string_value(value);
	AUTO_FREE char *part = NULL, *with = NULL;

	if (name && *name) {
		with = xprintf("{%s}", member);
		return replaced(from, name, with);
	}
	if (!json_is_integer(value))
		return from;
	part = xprintf("/%" JSON_INTEGER_FORMAT "/", json_integer_value(value));
	with = xprintf("/{%s}/", member);
	return replaced(from, part, with);
}

static char *from_text(struct origin origin, const json_t *object, const char *const *own)
{
	char *from = origin.from ? xstrdup(origin.from) : NULL;

	for (; from && own && *own; own++)
		from = without_own(from, object, *own);
	return from;
}

static json_t *source_number(struct json_shared *sources, const char *from)
{
	json_t *number = from ? json_shared_number(sources, from) : json_null();

	return number ? number : json_shared_add(sources, from, json_text(from));
}

static json_t *group_of(json_t *entry, const char *name, json_t *(*make)(void))
{
	json_t *group = json_object_get(entry, name);

	if (!group) {
		group = make();
		json_object_set_new(entry, name, group);
	}
	return group;
}

static void add_to_group(json_t *entry, const char *state, const char *fact, json_t *source)
{
	json_object_set_new(group_of(entry, state, json_object), fact, source);
}

/* Of the unknown ones. */
static void add_cut_off(json_t *entry, const char *fact)
{
	json_array_append_new(group_of(entry, "cut_off", json_array), json_string(fact));
}

/* What was not collected has no reason to give, and is in no group. */
static json_t *entry_json(struct json_shared *sources, const struct field *f, const char *of,
			  const json_t *object, const char *const *own)
{
	json_t *entry = json_object();

	for (; f->name; f++) {
		struct origin o = origin_of(f, of + f->offset);
		AUTO_FREE char *from = from_text(o, object, own);

		if (from || o.state != FACT_UNKNOWN)
			add_to_group(entry, state_words[o.state], f->name,
				     source_number(sources, from));
		if (o.state == FACT_UNKNOWN && fact_why_cut(from))
			add_cut_off(entry, f->name);
	}
	return entry;
}

/* Equal for two objects if and only if their entries are. */
static void add_key(struct strbuf *b, const struct field *f, const char *of, const json_t *object,
		    const char *const *own)
{
	for (; f->name; f++) {
		struct origin o = origin_of(f, of + f->offset);
		AUTO_FREE char *from = from_text(o, object, own);

		strbuf_printf(b, "%s %d%s%s\n", f->name, (int)o.state, from ? " " : "",
			      from ? from : "");
	}
}

static json_t *origin_number(struct json_origins *origins, const struct field *fields,
			     const void *of, const json_t *object, const char *const *own)
{
	AUTO_STRBUF struct strbuf key = {0};
	json_t *number;

	add_key(&key, fields, of, object, own);
	number = json_shared_number(&origins->entries, strbuf_str(&key));
	return number ? number
		      : json_shared_add(&origins->entries, strbuf_str(&key),
					entry_json(&origins->sources, fields, of, object, own));
}

json_t *json_add_facts(json_t *object, struct json_origins *origins, const struct field *fields,
		       const void *of, const char *const *own)
{
	for (const struct field *f = fields; f->name; f++) {
		const void *fact = (const char *)of + f->offset;

		if (origin_of(f, fact).state == FACT_KNOWN)
			json_object_set_new(object, f->name, value_json(f, fact));
	}
	json_object_set_new(object, "facts", origin_number(origins, fields, of, object, own));
	return object;
}
