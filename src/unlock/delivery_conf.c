/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/delivery_conf.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <string.h>

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

bool dkms_is_plain(const char *name)
{
	return *name && *name != '-' && *name != '.' && !name[strspn(name, NAME_CHARS "-.+~")];
}

/* ---- values ---- */

/* Scalars that another value may refer to. */
struct scope {
	struct arena *a;
	struct variable {
		const char *name, *value; /* value NULL: not known */
	} * variables;
	size_t n;
};

static struct variable *find_variable(const struct scope *s, const char *name, size_t n)
{
	for (size_t i = 0; i < s->n; i++)
		if (strlen(s->variables[i].name) == n && memcmp(s->variables[i].name, name, n) == 0)
			return &s->variables[i];
	return NULL;
}

/* "$NAME" or "${NAME}" at p, which is behind the $. Its length, 0: something else. */
static size_t expand(const struct scope *s, const char *p, struct strbuf *out)
{
	bool braces = *p == '{';
	size_t n = strspn(p + braces, NAME_CHARS);
	const struct variable *v = find_variable(s, p + braces, n);

	if (!n || (braces && p[1 + n] != '}') || !v || !v->value)
		return 0;
	strbuf_puts(out, v->value);
	return n + (braces ? 2 : 0);
}

/*
 * One word of bash from p on; *ret_end is behind it. False: its value is unknown, and
 * *ret_end is where reading stopped.
 */
static bool read_word(const struct scope *s, const char *p, struct strbuf *out,
		      const char **ret_end)
{
	char quote = '\0';

	for (; *p && (quote || !strchr(" \t\n;)", *p)); p++) {
		*ret_end = p;
		if (*p == quote) {
			quote = '\0';
		} else if (!quote && (*p == '"' || *p == '\'')) {
			quote = *p;
		} else if (*p == '$' && quote != '\'') {
			size_t n = expand(s, p + 1, out);

			if (!n)
				return false;
			p += n;
		} else if (quote != '\'' && strchr("`\\", *p)) {
			return false;
		} else if (!quote && strchr("(<>&|*?[{~#", *p)) {
			return false;
		} else {
			strbuf_putc(out, *p);
		}
	}
	*ret_end = p;
	return !quote;
}

/* ---- what is assigned ---- */

static void set_module(struct arena *a, struct dkms_conf *c, size_t i, size_t member,
		       const char *value)
{
	if (i >= DKMS_MODULES)
		return;
	*(const char **)((char *)&c->modules[i] + member) = arena_strdup(a, value ? value : "?");
	if (i >= c->module_n)
		c->module_n = i + 1;
}

static void set_patch(struct arena *a, struct dkms_conf *c, const char *value)
{
	if (value && *value)
		*ARENA_PUSH(a, c->patches, c->patch_n) = arena_strdup(a, value);
}

static const struct {
	const char *name;
	size_t member;
} arrays[] = {
	{"BUILT_MODULE_NAME", offsetof(struct dkms_module, built)},
	{"BUILT_MODULE_LOCATION", offsetof(struct dkms_module, location)},
	{"DEST_MODULE_NAME", offsetof(struct dkms_module, dest)},
};

static const struct {
	const char *name;
	size_t member;
} scalars[] = {
	{"PACKAGE_NAME", offsetof(struct dkms_conf, name)},
	{"PACKAGE_VERSION", offsetof(struct dkms_conf, version)},
	{"mok_certificate", offsetof(struct dkms_conf, certificate)},
};

static bool is_name(const char *name, size_t n, const char *wanted)
{
	return strlen(wanted) == n && memcmp(name, wanted, n) == 0;
}

static void assign_item(struct scope *s, struct dkms_conf *c, const char *name, size_t n, size_t i,
			const char *value)
{
	if (is_name(name, n, "PATCH"))
		set_patch(s->a, c, value);
	for (size_t k = 0; k < sizeof(arrays) / sizeof(arrays[0]); k++)
		if (is_name(name, n, arrays[k].name))
			set_module(s->a, c, i, arrays[k].member, value);
}

static void assign_scalar(struct scope *s, struct dkms_conf *c, const char *name, size_t n,
			  const char *value)
{
	struct variable *v = find_variable(s, name, n);

	if (!v) {
		v = ARENA_PUSH(s->a, s->variables, s->n);
		v->name = arena_strndup(s->a, name, n);
	}
	v->value = value ? arena_strdup(s->a, value) : NULL;
	for (size_t k = 0; k < sizeof(scalars) / sizeof(scalars[0]); k++)
		if (is_name(name, n, scalars[k].name))
			*(const char **)((char *)c + scalars[k].member) = v->value;
	assign_item(s, c, name, n, 0, value); /* bash: the array's first */
}

/* "[12]" at p: its length; 0: none. A subscript that is no number is beyond all that is kept. */
static size_t read_subscript(const char *p, size_t *ret)
{
	size_t n, digits;

	*ret = 0;
	if (*p != '[')
		return 0;
	n = strcspn(p, "]\n");
	digits = strspn(p + 1, "0123456789");
	if (p[n] != ']')
		return 0;
	*ret = digits == n - 1 && digits && digits < 4 ? 0 : DKMS_MODULES;
	for (size_t i = 1; i <= digits && *ret < DKMS_MODULES; i++)
		*ret = *ret * 10 + (size_t)(p[i] - '0');
	return n + 1;
}

/* "(one two)": an array as a whole. Where reading stopped. */
static const char *read_list(struct scope *s, struct dkms_conf *c, const char *name, size_t n,
			     const char *p)
{
	for (size_t i = 0;; i++) {
		AUTO_STRBUF struct strbuf value = {0};

		p += strspn(p, " \t\n");
		if (!*p || *p == ')' || *p == ';' || !read_word(s, p, &value, &p))
			return p;
		assign_item(s, c, name, n, i, strbuf_str(&value));
	}
}

/* A line that assigns; where its value ends, or p itself. */
static const char *read_assignment(struct scope *s, struct dkms_conf *c, const char *p)
{
	size_t n = strspn(p, NAME_CHARS), index, subscript = read_subscript(p + n, &index);
	AUTO_STRBUF struct strbuf value = {0};
	const char *at = p + n + subscript;
	bool known;

	at += *at == '+';
	if (!n || *at != '=')
		return p;
	if (at[1] == '(')
		return read_list(s, c, p, n, at + 2);
	known = read_word(s, at + 1, &value, &at);
	if (subscript)
		assign_item(s, c, p, n, index, known ? strbuf_str(&value) : NULL);
	else
		assign_scalar(s, c, p, n, known ? strbuf_str(&value) : NULL);
	return at;
}

void dkms_conf_read(const char *text, struct arena *a, struct dkms_conf *ret)
{
	struct scope s = {.a = a};

	for (const char *p = text; *p; p += *p == '\n') {
		p += strspn(p, " \t");
		if (text_starts_with(p, "export "))
			p += strlen("export ");
		p = read_assignment(&s, ret, p);
		p += strcspn(p, "\n");
	}
}

const char *dkms_conf_dest(const struct dkms_conf *c, const char *built)
{
	for (size_t i = 0; i < c->module_n; i++) {
		const struct dkms_module *m = &c->modules[i];

		if (m->built && strcmp(m->built, built) == 0)
			return m->dest && *m->dest ? m->dest : m->built;
	}
	return NULL;
}
