/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/issue_json.h"

#include "base/alloc.h"
#include "base/array.h"

#include <jansson.h>
#include <string.h>

bool issue_json_begins(const char *text, size_t n)
{
	size_t at = 0;

	while (at < n && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	return at < n && (text[at] == '{' || text[at] == '[');
}

bool issue_json_recognise(const char *text, size_t size)
{
	static const char *const marks[] = {"\"issue_url\"", "\"comments\"", "\"comments_url\""};

	if (!issue_json_begins(text, size) || !memmem(text, size, "\"body\"", strlen("\"body\"")))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (memmem(text, size, marks[i], strlen(marks[i])))
			return true;
	return false;
}

/* ---- posts ---- */

struct reader {
	struct arena *arena;
	struct issue_posts *posts;
};

/* "user" in the API, "author" in `gh` and GraphQL. */
static const char *author_of(const json_t *o)
{
	const char *login = json_string_value(json_object_get(json_object_get(o, "user"), "login"));

	login = login ? login
		      : json_string_value(json_object_get(json_object_get(o, "author"), "login"));
	return login ? login : "";
}

static bool is_issue(const json_t *o)
{
	return json_object_get(o, "body") &&
	       (json_object_get(o, "title") || json_object_get(o, "comments"));
}

static bool is_comment(const json_t *o)
{
	return json_is_string(json_object_get(o, "body")) &&
	       (json_object_get(o, "user") || json_object_get(o, "author") ||
		json_object_get(o, "issue_url"));
}

static void add_post(struct reader *r, const char *name, const json_t *o)
{
	const json_t *body = json_object_get(o, "body");

	*ARENA_PUSH(r->arena, r->posts->items, r->posts->n) = (struct issue_post){
		.name = name,
		.author = arena_strdup(r->arena, author_of(o)),
		.text = arena_strndup(r->arena, json_is_string(body) ? json_string_value(body) : "",
				      json_string_length(body)),
	};
}

/* False: its comments are not of this issue. */
static bool read_post(struct reader *r, const json_t *o)
{
	if (is_issue(o)) {
		if (r->posts->issues++)
			return false;
		r->posts->has_issue = !r->posts->n;
		add_post(r, "issue", o);
	} else if (is_comment(o)) {
		add_post(r, arena_printf(r->arena, "comment %u", ++r->posts->comments), o);
	}
	return true;
}

/* Where posts are: in the API, in what webhooks get, in GraphQL. */
static const char *const containers[] = {"issue",      "comments", "comment", "items",
					 "nodes",      "edges",    "node",    "data",
					 "repository", "issues",   "event"};

static void walk(struct reader *r, const json_t *v, unsigned depth)
{
	enum { DEEPEST = 16 };
	const json_t *item;
	size_t i;

	if (depth == DEEPEST)
		return;
	json_array_foreach (v, i, item)
		walk(r, item, depth + 1);
	if (!json_is_object(v) || !read_post(r, v))
		return;
	for (i = 0; i < ARRAY_LEN(containers); i++)
		walk(r, json_object_get(v, containers[i]), depth + 1);
}

bool issue_json_read(const char *text, size_t size, struct arena *a, struct issue_posts *ret)
{
	struct reader r = {a, ret};
	size_t at = 0;

	*ret = (struct issue_posts){0};
	while (issue_json_begins(text + at, size - at)) {
		json_error_t e;
		json_t *v = json_loadb(text + at, size - at,
				       JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &e);

		if (!v)
			return false;
		walk(&r, v, 0);
		json_decref(v);
		at += (size_t)e.position;
	}
	return ret->n > 0;
}

const char *issue_author(const struct issue_posts *p, bool (*shows)(const char *text, size_t size))
{
	if (p->has_issue)
		return p->items[0].author;
	for (size_t i = 0; i < p->n; i++)
		if (shows(p->items[i].text, strlen(p->items[i].text)))
			return p->items[i].author;
	return "";
}
