/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts as JSON: a fact that is known is a member with its value. Where facts were read, or why
 * they are unknown, is said once for all objects that were read alike: in the document's list of
 * origins, which each object refers to by number. For report_json*.c only.
 */
#pragma once

#include "machine/fact.h"

#include <jansson.h>
#include <stddef.h>

enum field_kind { FIELD_INT, FIELD_FLAG, FIELD_STR, FIELD_WORD, FIELD_NAMED };

/*
 * A fact in a struct: the member `name` of the JSON object. A table of them ends with a name of
 * NULL.
 */
struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	const char *const *words; /* FIELD_WORD */
	size_t word_n;
	const char *(*name_of)(int64_t value); /* FIELD_NAMED */
};

/* A list of a document, whose entries are stated once and referred to by their number. */
struct json_shared {
	json_t *list;
	json_t *numbers; /* of each entry, by its key */
};

void json_shared_start(struct json_shared *s);
/* Returns the list, which the caller owns, and frees the rest. */
json_t *json_shared_finish(struct json_shared *s);
/* The number of the entry that was added with that key; NULL: there is none. A new reference. */
json_t *json_shared_number(const struct json_shared *s, const char *key);
/* Takes the entry, and returns its number. */
json_t *json_shared_add(struct json_shared *s, const char *key, json_t *entry);

/*
 * Where the facts of a document were read: for each kind of object an entry, which names sources.
 */
struct json_origins {
	struct json_shared entries, sources;
};

void json_origins_start(struct json_origins *o);
/* Adds `facts` and `sources` to the document, and frees the rest. */
void json_origins_finish(struct json_origins *o, json_t *document);

/*
 * Adds what is known of the facts of the table to an object, and as `facts` the number of their
 * origins, each {"known": {...}, "absent": {...}, "unknown": {...}} with numbers of sources. In a
 * source {MEMBER} stands for what that member of the object holds, so that many objects have the
 * same origins; `own` are the members that may occur there, ended by NULL (NULL: none). Returns the
 * object.
 */
json_t *json_add_facts(json_t *object, struct json_origins *origins, const struct field *fields,
		       const void *of, const char *const *own);
