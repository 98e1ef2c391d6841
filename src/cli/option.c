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
		return err_set(EINVAL, "%s must be a whole number from 1 to %d, not '%s'", name,
			       INT_MAX, value);
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

const struct option *option_find(const struct option *options, const char *name, size_t n,
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
		AUTO_FREE char *meant =
			spelled(option_find(p->options, nearest, strlen(nearest), 2));

		return err_set(EINVAL, "unknown option '%s'; did you mean %s?", name, meant);
	}
	return err_set(EINVAL, "unknown option '%s'", name);
}

/*
 * The name of a long option, which is then no value of the one before it: `--html --markdown` lacks
 * the file.
 */
static bool is_option(const struct parser *p, const char *word)
{
	return strncmp(word, "--", 2) == 0 &&
	       option_find(p->options, word + 2, strcspn(word + 2, "="), 2);
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
	const struct option *o = option_find(p->options, name, n, dashes);

	if (o)
		return take_option(p, o, equals ? equals + 1 : NULL);
	return dashes == 1 ? take_letters(p, word) : unknown_option(p, word);
}

static bool has_option(const struct parser *p, const char *name)
{
	return option_find(p->options, name, strlen(name), 2) != NULL;
}

/* How a recording is named, with the option that --from needs; "": there is no --from. */
static const char *from_hint(const struct parser *p)
{
	static const struct {
		const char *option, *hint;
	} hints[] = {
		{"simulate", " (to read a recording or text: --simulate --from FILE)"},
		{"device", " (to read a recording or text: --device host --from FILE)"},
		{"from", " (to read a recording or text: --from FILE)"},
	};

	for (size_t i = 0; has_option(p, "from") && i < sizeof(hints) / sizeof(hints[0]); i++)
		if (has_option(p, hints[i].option))
			return hints[i].hint;
	return "";
}

static int take_argument(struct parser *p, const char *word)
{
	p->args[p->arg_n] = word;
	if (p->arg_n == p->max_args)
		return err_set(E2BIG, "unexpected argument '%s'%s", word, from_hint(p));
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
