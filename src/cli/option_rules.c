/* SPDX-License-Identifier: Apache-2.0 */
/* Which options were given: whether they go together, and how a person would write them again. */
#include "cli/option.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_given(const struct option *o, const void *values)
{
	const void *at = (const char *)values + o->offset;

	switch (o->kind) {
	case OPTION_FLAG:
		return *(const bool *)at;
	case OPTION_NUMBER:
	case OPTION_CHOICE:
		return *(const int *)at != 0;
	case OPTION_TEXT:
	case OPTION_FILE:
		return *(const char *const *)at != NULL;
	case OPTION_LIST:
		return ((const struct texts *)at)->n > 0;
	}
	return false;
}

/* The next name of a list, if it was given; NULL: it was not, or there are no more. */
static const struct option *take_name(const struct option *options, const void *values,
				      const char **names)
{
	const char *name = *names + strspn(*names, " ");
	size_t n = strcspn(name, " ");
	const struct option *o = option_find(options, name, n, 2);

	*names = name + n;
	return o && is_given(o, values) ? o : NULL;
}

/* The first that was given; NULL: none. */
static const struct option *first_given(const struct option *options, const void *values,
					const char *names, const struct option *except)
{
	const struct option *o = NULL;

	while (names && *names && (!o || o == except))
		o = take_name(options, values, &names);
	return o == except ? NULL : o;
}

/* The command has one of these options. */
static bool knows_any(const struct option *options, const char *names)
{
	bool known = false;

	while (*names && !known) {
		const char *name = names + strspn(names, " ");
		size_t n = strcspn(name, " ");

		known = option_find(options, name, n, 2) != NULL;
		names = name + n;
	}
	return known;
}

/* "--html or --markdown" */
static void add_names(struct strbuf *b, const char *names)
{
	for (const char *rest = names; *rest; rest += strspn(rest, " ")) {
		size_t n = strcspn(rest, " ");

		strbuf_printf(b, "%s--%.*s", rest == names ? "" : " or ", (int)n, rest);
		rest += n;
	}
}

static int check_rule(const struct option *options, const void *values,
		      const struct option_rule *rule)
{
	const struct option *o = first_given(options, values, rule->options, NULL);
	const struct option *other = first_given(options, values, rule->not_with, o);
	AUTO_STRBUF struct strbuf needed = {0};

	if (!o)
		return 0;
	if (other)
		return err_set(EINVAL, "--%s cannot be used with --%s%s", o->name, other->name,
			       rule->why ? rule->why : "");
	if (!rule->needs || !knows_any(options, rule->needs) ||
	    first_given(options, values, rule->needs, NULL))
		return 0;
	add_names(&needed, rule->needs);
	return err_set(EINVAL, "--%s needs %s%s", o->name, needed.text, rule->why ? rule->why : "");
}

int options_check(const struct option *options, const void *values, const struct option_rule *rules)
{
	int r = 0;

	for (; r == 0 && rules && rules->options; rules++)
		r = check_rule(options, values, rules);
	return r;
}

static void add_value(const struct option *o, const void *values, struct strbuf *b)
{
	const void *at = (const char *)values + o->offset;

	strbuf_printf(b, " --%s", o->name);
	if (o->kind == OPTION_NUMBER)
		strbuf_printf(b, " %d", *(const int *)at);
	else if (o->kind == OPTION_CHOICE)
		strbuf_printf(b, " %s", o->choices[*(const int *)at - 1]);
	else if (o->kind != OPTION_FLAG) {
		strbuf_putc(b, ' ');
		strbuf_shell_word(b, *(const char *const *)at);
	}
}

static void add_list(const struct option *o, const void *values, struct strbuf *b)
{
	const struct texts *list = (const void *)((const char *)values + o->offset);

	for (size_t i = 0; i < list->n; i++) {
		strbuf_printf(b, " --%s ", o->name);
		strbuf_shell_word(b, list->items[i]);
	}
}

void options_given(const struct option *options, const void *values, const char *names,
		   struct strbuf *b)
{
	while (*names) {
		const struct option *o = take_name(options, values, &names);

		if (o && o->kind == OPTION_LIST)
			add_list(o, values, b);
		else if (o)
			add_value(o, values, b);
	}
}

void options_done(const struct option *options, void *values)
{
	for (const struct option *o = options; o->name; o++) {
		struct texts *list = (void *)((char *)values + o->offset);

		if (o->kind != OPTION_LIST)
			continue;
		free(list->items);
		*list = (struct texts){0};
	}
}
