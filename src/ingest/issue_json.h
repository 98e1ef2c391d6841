/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of GitHub as JSON: an issue and its comments, as the API and `gh issue view --json` give
 * them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* What one person wrote, in Markdown. */
struct issue_post {
	const char *name;   /* "issue", "comment 3" */
	const char *author; /* "": not shown */
	const char *text;
};

struct issue_posts {
	struct issue_post *items; /* in the order of the page */
	size_t n;
	bool has_issue; /* the first one is the issue itself */
	size_t issues;  /* that the page has; of further ones nothing is listed */
	unsigned comments;
};

/* Whether a text that begins like this may be JSON at all. */
bool issue_json_begins(const char *text, size_t n);
/* What the start of such a page shows; for messages. */
bool issue_json_recognise(const char *text, size_t size);
/*
 * False: it is something else. Several values may follow each other, as `gh api --paginate` prints
 * them.
 */
bool issue_json_read(const char *text, size_t size, struct arena *a, struct issue_posts *ret);
/*
 * Whose texts describe the machine: of the one who opened the issue, or of the first who shows an
 * output where only comments are given. `shows` says whether a text has any.
 */
const char *issue_author(const struct issue_posts *p, bool (*shows)(const char *text, size_t size));
