/* SPDX-License-Identifier: Apache-2.0 */
/* A small strict validator for docs/json-schema. */
#include "json_schema.h"

#include "base/cleanup.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILES 4

struct validator {
	struct strbuf *trouble;
	struct {
		char name[64];
		json_t *root;
	} files[MAX_FILES]; /* opened so far */
};

static bool check(struct validator *v, json_t *file, json_t *schema, json_t *value,
		  const char *where);

static bool fails(struct validator *v, const char *where, const char *what)
{
	strbuf_printf(v->trouble, "%s: %s", where, what);
	return false;
}

static json_t *open_file(struct validator *v, const char *name)
{
	char path[128];
	json_error_t error;
	int i;

	for (i = 0; i < MAX_FILES - 1 && v->files[i].root; i++) {
		if (strcmp(v->files[i].name, name) == 0)
			return v->files[i].root;
	}
	snprintf(path, sizeof(path), "docs/json-schema/%s", name);
	snprintf(v->files[i].name, sizeof(v->files[i].name), "%s", name);
	v->files[i].root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	return v->files[i].root;
}

/* "common.schema.json#/$defs/gpu" or "#/$defs/gpu" */
static bool check_ref(struct validator *v, json_t *file, const char *ref, json_t *value,
		      const char *where)
{
	const char *hash = strchr(ref, '#');
	char name[64];
	json_t *target;

	if (!hash || strncmp(hash, "#/$defs/", 8) != 0)
		return fails(v, where, "a $ref of another kind");
	snprintf(name, sizeof(name), "%.*s", (int)(hash - ref), ref);
	if (*name)
		file = open_file(v, name);
	target = json_object_get(json_object_get(file, "$defs"), hash + 8);
	return target ? check(v, file, target, value, where) : fails(v, where, ref);
}

static bool is_type(const json_t *value, const char *type)
{
	return (strcmp(type, "object") == 0 && json_is_object(value)) ||
	       (strcmp(type, "array") == 0 && json_is_array(value)) ||
	       (strcmp(type, "string") == 0 && json_is_string(value)) ||
	       (strcmp(type, "integer") == 0 && json_is_integer(value)) ||
	       (strcmp(type, "number") == 0 && json_is_number(value)) ||
	       (strcmp(type, "boolean") == 0 && json_is_boolean(value)) ||
	       (strcmp(type, "null") == 0 && json_is_null(value));
}

static bool check_type(struct validator *v, json_t *type, json_t *value, const char *where)
{
	json_t *one;
	size_t i;

	if (json_is_string(type))
		return is_type(value, json_string_value(type)) || fails(v, where, "wrong type");
	json_array_foreach (type, i, one) {
		if (is_type(value, json_string_value(one)))
			return true;
	}
	return fails(v, where, "wrong type");
}

static bool check_enum(struct validator *v, json_t *words, json_t *value, const char *where)
{
	json_t *one;
	size_t i;

	json_array_foreach (words, i, one) {
		if (json_equal(one, value))
			return true;
	}
	return fails(v, where, "none of the values allowed");
}

static bool check_members(struct validator *v, json_t *file, json_t *schema, json_t *value,
			  const char *where)
{
	json_t *properties = json_object_get(schema, "properties"), *member, *name;
	json_t *others =
		json_object_get(schema, "additionalProperties"); /* in ours always a schema */
	const char *key;
	char inner[512];
	size_t i;

	json_array_foreach (json_object_get(schema, "required"), i, name) {
		if (!json_object_get(value, json_string_value(name)))
			return fails(v, where, json_string_value(name));
	}
	json_object_foreach (value, key, member) {
		json_t *sub = json_object_get(properties, key);

		snprintf(inner, sizeof(inner), "%.400s.%s", where, key);
		if (!sub)
			sub = others;
		if (!sub)
			return fails(v, inner, "not in the schema");
		if (!check(v, file, sub, member, inner))
			return false;
	}
	return true;
}

static bool check_items(struct validator *v, json_t *file, json_t *schema, json_t *value,
			const char *where)
{
	json_t *items = json_object_get(schema, "items"), *one;
	char inner[512];
	size_t i;

	json_array_foreach (value, i, one) {
		snprintf(inner, sizeof(inner), "%.400s[%zu]", where, i);
		if (!items || !check(v, file, items, one, inner))
			return false;
	}
	return true;
}

static bool check_keywords(struct validator *v, json_t *schema, const char *where)
{
	static const char known[] =
		" $schema $id $defs $ref title description type enum const required properties "
		"additionalProperties items ";
	json_t *unused;
	const char *key;
	char word[64];

	json_object_foreach (schema, key, unused) {
		snprintf(word, sizeof(word), " %s ", key);
		if (!strstr(known, word))
			return fails(v, where, key);
	}
	return true;
}

static bool check(struct validator *v, json_t *file, json_t *schema, json_t *value,
		  const char *where)
{
	json_t *ref = json_object_get(schema, "$ref"), *type = json_object_get(schema, "type");
	json_t *words = json_object_get(schema, "enum"), *word = json_object_get(schema, "const");

	if (!check_keywords(v, schema, where))
		return false;
	if (ref)
		return check_ref(v, file, json_string_value(ref), value, where);
	if (type && !check_type(v, type, value, where))
		return false;
	if (words && !check_enum(v, words, value, where))
		return false;
	if (word && !json_equal(word, value))
		return fails(v, where, "not the constant");
	if (json_is_object(value))
		return check_members(v, file, schema, value, where);
	return !json_is_array(value) || check_items(v, file, schema, value, where);
}

void json_schema_check(json_t *value, const char *name, struct strbuf *trouble)
{
	struct validator v = {.trouble = trouble};
	json_t *root = open_file(&v, name);

	if (root)
		check(&v, root, root, value, "$");
	else
		fails(&v, name, "cannot be read");
	for (int i = 0; i < MAX_FILES; i++)
		json_decref(v.files[i].root);
}
