/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line that grub-mkconfig makes of /etc/default/grub and its drop-ins. They are read as a shell reads
 * them, as far as they assign texts: the last assignment counts, and may name what was before it. A file that does
 * anything else about these variables is for a shell alone.
 */
#include "fix/make_plan_impl.h"

#include <ctype.h>
#include <string.h>

#define NAME "GRUB_CMDLINE_LINUX"

/* The first is on the line of every entry; the recovery entry goes without the second. */
static const char *const names[] = {NAME, NAME "_DEFAULT"};

struct assigned {
	struct planner *p;
	const char *values[ARRAY_LEN(names)]; /* "" until it is assigned */
	bool unclear;
};

/* The length of the name that begins there; 0: none. */
static size_t name_length(const char *s)
{
	size_t n = 0;

	while (s[n] == '_' || isalpha((unsigned char)s[n]) || (n && isdigit((unsigned char)s[n])))
		n++;
	return n;
}

/* Which of the variables; ARRAY_LEN(names): another. */
static size_t find(const char *name, size_t n)
{
	size_t i = 0;

	while (i < ARRAY_LEN(names) && !(strlen(names[i]) == n && memcmp(names[i], name, n) == 0))
		i++;
	return i;
}

/* "$NAME" and "${NAME}" of these two; *s is behind it then. False: anything else. */
static bool expand(const struct assigned *a, const char **s, struct strbuf *out)
{
	const bool braces = (*s)[1] == '{';
	const char *name = *s + 1 + braces;
	const size_t n = name_length(name), i = find(name, n);

	if (i == ARRAY_LEN(names) || (braces && name[n] != '}'))
		return false;
	strbuf_puts(out, a->values[i]);
	*s = name + n + braces;
	return true;
}

/* In double quotes a backslash stands for itself but before these. */
static bool is_escape(const char *s, char quote)
{
	return *s == '\\' && s[1] && (!quote || strchr("$`\"\\", s[1]));
}

/* The next part of a value outside of single quotes; *s is behind it. False: not a text. */
static bool take_part(const struct assigned *a, const char **s, char *quote, struct strbuf *out)
{
	const char c = **s;

	if (c == '$')
		return expand(a, s, out);
	if (c == '`' || (!*quote && strchr(";&|<>()", c)))
		return false;
	if (c == '"')
		*quote = *quote ? '\0' : c;
	else if (c == '\'' && !*quote)
		*quote = c;
	else if (is_escape(*s, *quote))
		strbuf_putc(out, *++*s);
	else
		strbuf_putc(out, c);
	++*s;
	return true;
}

/* The value that begins there; *s is behind it. False: not a text. */
static bool read_value(const struct assigned *a, const char **s, struct strbuf *out)
{
	char quote = '\0';

	while (**s && (quote || !isspace((unsigned char)**s))) {
		if (quote != '\'') {
			if (!take_part(a, s, &quote, out))
				return false;
		} else {
			if (**s == quote)
				quote = '\0';
			else
				strbuf_putc(out, **s);
			++*s;
		}
	}
	return !quote;
}

/* Nothing but a comment follows. */
static bool is_end(const char *s)
{
	s += strspn(s, " \t");
	return !*s || *s == '#';
}

static void assign(struct assigned *a, size_t i, const char *value)
{
	AUTO_STRBUF struct strbuf text = {0};

	if (read_value(a, &value, &text) && is_end(value))
		a->values[i] = arena_strdup(a->p->a, strbuf_str(&text));
	else
		a->unclear = true;
}

/* Whether what follows such a line is done is for a shell to say. */
static bool is_condition(const char *line)
{
	static const char *const words[] = {"if", "case", "for", "while", "until", "[", "{"};
	const size_t n = strcspn(line, " \t");

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i]) == n && memcmp(line, words[i], n) == 0)
			return true;
	return strstr(line, "()") != NULL;
}

static void read_line(struct assigned *a, const char *line, bool *conditional)
{
	static const char export[] = "export ";
	size_t n, i;

	line += strspn(line, " \t");
	if (*line == '#')
		return;
	*conditional |= is_condition(line);
	if (text_starts_with(line, export))
		line += strlen(export) + strspn(line + strlen(export), " \t");
	n = name_length(line);
	i = find(line, n);
	if (i < ARRAY_LEN(names) && line[n] == '=' && !*conditional)
		assign(a, i, line + n + 1);
	else if (name_length(line) && line[n] == '=' && i == ARRAY_LEN(names))
		return; /* another variable, which no value that is read here may name */
	else
		a->unclear |= strstr(line, NAME) != NULL;
}

static void read_file(void *context, const char *path)
{
	struct assigned *a = context;
	enum there there;
	const char *text = plan_read(a->p, &there, path), *line = NULL;
	bool conditional = false;
	size_t n;

	while (text && text_next_line(&line, &n, text))
		read_line(a, arena_strndup(a->p->a, line, n), &conditional);
	a->unclear |= !text && there == THERE_UNKNOWN;
}

const char *plan_grub_line(struct planner *p)
{
	struct assigned a = {.p = p, .values = {"", ""}};

	plan_each_grub_file(p, read_file, &a);
	return a.unclear ? NULL : arena_printf(p->a, "%s %s", a.values[0], a.values[1]);
}
