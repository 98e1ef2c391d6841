/* SPDX-License-Identifier: Apache-2.0 */
/* The option parser and its "did you mean". */
#include "cli/option.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

struct parser {
	const struct option *options;
	char *const *words;
	size_t n, at; /* at: the word after the one in hand */
	void *values;
	const char **args;
	size_t max_args, arg_n;
};

/* ---- values ---- */

/* "--from", "-p2p": as people write it. */
static char *spelled(const struct option *o)
{
	return xprintf("%s%s", o->one_dash ? "-" : "--", o->name);
}

static int set_number(const struct option *o, const char *value, int *ret)
{
	AUTO_FREE char *name = spelled(o);
	uint64_t number;

	if (text_to_u64(value, &number) < 0 || number < 1 || number > INT_MAX)
		return err_set(EINVAL, "%s must be a number from 1 on, not '%s'", name, value);
	*ret = (int)number;
	return 0;
}

static int set_choice(const struct option *o, const char *value, int *ret)
{
	AUTO_STRBUF struct strbuf known = {0};
	AUTO_FREE char *name = spelled(o);

	for (int i = 0; o->choices[i]; i++) {
		if (strcmp(o->choices[i], value) == 0) {
			*ret = i + 1;
			return 0;
		}
		strbuf_printf(&known, "%s%s", i ? ", " : "", o->choices[i]);
	}
	return err_set(EINVAL, "%s must be one of %s, not '%s'", name, strbuf_str(&known), value);
}

static int add_to_list(const struct option *o, const char *value, struct texts *list)
{
	int index, r = o->choices ? set_choice(o, value, &index) : 0;

	if (r < 0)
		return r;
	list->items = xrealloc(list->items, list->n + 1, sizeof(*list->items));
	list->items[list->n++] = value;
	return 0;
}

static int set_value(const struct option *o, const char *value, void *values)
{
	void *member = (char *)values + o->offset;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)member = true;
		return 0;
	case OPTION_TEXT:
	case OPTION_FILE:
		*(const char **)member = value;
		return 0;
	case OPTION_NUMBER:
		return set_number(o, value, member);
	case OPTION_CHOICE:
		return set_choice(o, value, member);
	case OPTION_LIST:
		return add_to_list(o, value, member);
	}
	return 0;
}

/* ---- words ---- */

/* The row that n characters name; `dashes` is how many precede them. */
static const struct option *find_long(const struct option *options, const char *name, size_t n,
				      size_t dashes)
{
	for (const struct option *o = options; o->name; o++) {
		if (strlen(o->name) == n && strncmp(o->name, name, n) == 0 &&
		    (dashes == 2 || o->one_dash))
			return o;
	}
	return NULL;
}

static const struct option *find_letter(const struct parser *p, char letter)
{
	for (const struct option *o = p->options; o->name; o++) {
		if (o->letter == letter)
			return o;
	}
	return NULL;
}

static int unknown_option(const struct parser *p, const char *word)
{
	AUTO_FREE char *name = xstrndup(word, strcspn(word, "="));
	AUTO_FREE const char **names = NULL;
	const char *nearest;
	size_t n = 0;

	for (const struct option *o = p->options; o->name; o++) {
		names = xrealloc(names, n + 1, sizeof(*names));
		names[n++] = o->hidden ? NULL : o->name;
	}
	nearest = nearest_name(name + strspn(name, "-"), names, n);
	if (nearest) {
		AUTO_FREE char *meant = spelled(find_long(p->options, nearest, strlen(nearest), 2));

		return err_set(EINVAL, "unknown option '%s'; did you mean %s?", name, meant);
	}
	return err_set(EINVAL, "unknown option '%s'", name);
}

/* The name of a long option, which is then no value of the one before it: `--html --markdown` lacks the file. */
static bool is_option(const struct parser *p, const char *word)
{
	return strncmp(word, "--", 2) == 0 &&
	       find_long(p->options, word + 2, strcspn(word + 2, "="), 2);
}

/* `inline_value` is what follows '=', NULL: nothing did. */
static int take_option(struct parser *p, const struct option *o, const char *inline_value)
{
	AUTO_FREE char *name = spelled(o);
	const char *value = inline_value;

	if (o->kind == OPTION_FLAG && inline_value)
		return err_set(EINVAL, "%s takes no value", name);
	if (o->kind == OPTION_FLAG)
		return set_value(o, NULL, p->values);
	if (!value && o->optional)
		value = o->choices[0];
	else if (!value && p->at < p->n && !is_option(p, p->words[p->at]))
		value = p->words[p->at++];
	if (!value || !*value)
		return err_set(EINVAL, "%s needs a value: %s %s", name, name, o->arg);
	return set_value(o, value, p->values);
}

/* -v, or several letters behind one dash, the last of which may want a value. */
static int take_letters(struct parser *p, const char *word)
{
	for (const char *s = word + 1; *s; s++) {
		const struct option *o = find_letter(p, *s);
		int r;

		if (!o || (o->kind != OPTION_FLAG && s[1]))
			return unknown_option(p, word);
		r = take_option(p, o, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_dashed(struct parser *p, const char *word)
{
	size_t dashes = word[1] == '-' ? 2 : 1;
	const char *name = word + dashes, *equals = strchr(name, '=');
	size_t n = equals ? (size_t)(equals - name) : strlen(name);
	const struct option *o = find_long(p->options, name, n, dashes);

	if (o)
		return take_option(p, o, equals ? equals + 1 : NULL);
	return dashes == 1 ? take_letters(p, word) : unknown_option(p, word);
}

static int take_argument(struct parser *p, const char *word)
{
	p->args[p->arg_n] = word;
	if (p->arg_n == p->max_args)
		return err_set(E2BIG, "unexpected argument '%s'%s", word,
			       find_long(p->options, "from", strlen("from"), 2)
				       ? " (to read a recording or text: --from FILE)"
				       : "");
	p->arg_n++;
	return 0;
}

int options_parse(const struct option *options, char *const *words, size_t n, void *values,
		  const char **args, size_t max_args)
{
	struct parser p = {options, words, n, 0, values, args, max_args, 0};
	bool only_arguments = false;

	while (p.at < p.n) {
		const char *word = p.words[p.at++];
		bool dashed = word[0] == '-' && word[1]; /* "-" alone is a name */
		int r = 0;

		if (!only_arguments && strcmp(word, "--") == 0)
			only_arguments = true;
		else if (!only_arguments && dashed)
			r = take_dashed(&p, word);
		else
			r = take_argument(&p, word);
		if (r < 0)
			return r;
	}
	return (int)p.arg_n;
}

/* ---- what was given ---- */

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
	const struct option *o = find_long(options, name, n, 2);

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

		known = find_long(options, name, n, 2) != NULL;
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
