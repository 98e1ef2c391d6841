/* SPDX-License-Identifier: Apache-2.0 */
#include "fix/grub_menu.h"

#include "base/strbuf.h"
#include "base/text.h"

#include <string.h>

/* ---- whose part ---- */

/* "### BEGIN /etc/grub.d/10_linux ###"; also 10_linux_zfs, 20_linux_xen. */
static bool begins_own(const char *line, size_t n)
{
	static const char begin[] = "### BEGIN /etc/grub.d/", name[] = "_linux";

	return n > strlen(begin) && strncmp(line, begin, strlen(begin)) == 0 &&
	       memmem(line, n, name, strlen(name));
}

char *grub_own_entries(const char *text)
{
	static const char end[] = "### END ";
	struct strbuf own = {0};
	bool inside = false, any = false;
	size_t n = 0;

	for (const char *line = NULL; text_next_line(&line, &n, text);) {
		inside = begins_own(line, n) ||
			 (inside && (n < strlen(end) || strncmp(line, end, strlen(end)) != 0));
		any |= inside;
		if (inside)
			strbuf_printf(&own, "%.*s\n", (int)n, line);
	}
	if (!any)
		strbuf_puts(&own, text);
	return own.text;
}

/* ---- its language ---- */

/* "set lang=" has the variable LANG up to its ".": the rest of it was the character set. */
char *grub_locale(const char *text)
{
	static const char set[] = "set lang=";
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-@";
	size_t n = 0;

	for (const char *line = NULL; text_next_line(&line, &n, text);) {
		const char *at = line + strspn(line, " \t"), *lang = at + strlen(set);
		size_t length;

		if (strncmp(at, set, strlen(set)) != 0)
			continue;
		length = strspn(lang, allowed);
		if (length == 0 || lang + length != line + n)
			return NULL;
		return xprintf("%.*s%s", (int)length, lang,
			       memchr(lang, '@', length) ? "" : ".UTF-8");
	}
	return NULL;
}

/* ---- words of GRUB's script ---- */

struct word {
	size_t begin, end; /* as it is written */
	const char *text;  /* without quotes */
	bool command;      /* the first of a command */
	bool ends;         /* of a line or by ';': no word, and text is "" */
};

struct scanner {
	struct arena *a;
	const char *text;
	size_t at;
	bool command; /* the next word is the first of a command */
	bool bad;     /* a quote without its end */
};

/* After these the next word begins a command. */
static bool opens_command(const char *word)
{
	static const char *const all[] = {"{",  "}",     "if", "then", "else",  "elif",
					  "fi", "while", "do", "done", "until", "!"};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strcmp(word, all[i]) == 0)
			return true;
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct scanner *s)
{
	for (;; s->at++) {
		if (s->text[s->at] == '\\' && s->text[s->at + 1] == '\n')
			s->at++;
		else if (s->text[s->at] == '#')
			s->at += strcspn(s->text + s->at, "\n") - 1;
		else if (!is_blank(s->text[s->at]))
			return;
	}
}

/* What a quote holds, into b; the scanner is behind its end then. */
static void take_quoted(struct scanner *s, struct strbuf *b)
{
	const char quote = s->text[s->at++];

	for (; s->text[s->at] && s->text[s->at] != quote; s->at++) {
		if (quote == '"' && s->text[s->at] == '\\' && s->text[s->at + 1])
			s->at++;
		strbuf_putc(b, s->text[s->at]);
	}
	s->bad |= !s->text[s->at];
	s->at += s->text[s->at] != '\0';
}

static const char *take_text(struct scanner *s)
{
	AUTO_STRBUF struct strbuf b = {0};

	while (s->text[s->at] && !is_blank(s->text[s->at]) && !strchr("\n;", s->text[s->at])) {
		if (s->text[s->at] == '\'' || s->text[s->at] == '"') {
			take_quoted(s, &b);
			continue;
		}
		if (s->text[s->at] == '\\' && s->text[s->at + 1])
			s->at++;
		strbuf_putc(&b, s->text[s->at++]);
	}
	return arena_strdup(s->a, strbuf_str(&b));
}

/* False: there is no more. */
static bool next_word(struct scanner *s, struct word *ret)
{
	skip_blanks(s);
	*ret = (struct word){.begin = s->at, .text = "", .command = s->command};
	if (!s->text[s->at] || s->bad)
		return false;
	ret->ends = strchr("\n;", s->text[s->at]) != NULL;
	if (ret->ends)
		s->at++;
	else
		ret->text = take_text(s);
	ret->end = s->at;
	s->command = ret->ends || (ret->command && opens_command(ret->text)) ||
		     strcmp(ret->text, "{") == 0;
	return true;
}

/* ---- the menu ---- */

struct frame {
	long entry; /* whose braces these are; -1: a function's */
};

struct parser {
	struct scanner s;
	struct grub_menu *m;
	struct frame *frames;
	size_t depth;
	unsigned ifs;
	size_t choices;
	bool uses_next; /* next_entry is the default, if it is set */
};

static long parent_of(const struct parser *p)
{
	return p->depth ? p->frames[p->depth - 1].entry : -1;
}

/* Of the menu itself, or of a submenu: no entry's commands, and no function's. */
static bool is_in_menu(const struct parser *p)
{
	return !p->depth || (parent_of(p) >= 0 && p->m->entries[parent_of(p)].submenu);
}

static struct grub_item *add_entry(struct parser *p, const struct word *w)
{
	struct grub_item *e = ARENA_PUSH(p->s.a, p->m->entries, p->m->n);

	*e = (struct grub_item){.begin = w->begin, .parent = parent_of(p), .maybe = p->ifs > 0};
	return e;
}

static bool is_id_option(const char *word)
{
	return strcmp(word, "$menuentry_id_option") == 0 || strcmp(word, "--id") == 0;
}

/* The words up to "{". */
static bool take_header(struct parser *p, struct grub_item *e)
{
	bool id_follows = false, value_follows = false;
	struct word w;

	while (next_word(&p->s, &w) && !w.ends) {
		if (strcmp(w.text, "{") == 0) {
			e->body = w.end;
			return e->title != NULL;
		}
		if (id_follows)
			e->id = w.text;
		else if (!value_follows && !is_id_option(w.text) && *w.text != '-' && !e->title)
			e->title = w.text;
		id_follows = is_id_option(w.text);
		value_follows = text_starts_with(w.text, "--") && !strchr(w.text, '=') &&
				strcmp(w.text, "--unrestricted") != 0;
	}
	return false;
}

static bool push(struct parser *p, long entry)
{
	ARENA_PUSH(p->s.a, p->frames, p->depth)->entry = entry;
	return true;
}

static bool take_entry(struct parser *p, const struct word *w)
{
	const long index = (long)p->m->n;
	struct grub_item *e = add_entry(p, w);

	e->submenu = strcmp(w->text, "submenu") == 0;
	return take_header(p, e) && push(p, index);
}

/* "function NAME {" */
static bool take_function(struct parser *p)
{
	struct word w;

	while (next_word(&p->s, &w))
		if (strcmp(w.text, "{") == 0)
			return push(p, -1);
	return false;
}

static bool take_end(struct parser *p, const struct word *w)
{
	long entry;

	if (!p->depth)
		return false;
	entry = p->frames[--p->depth].entry;
	if (entry >= 0)
		p->m->entries[entry].end = w->end;
	return true;
}

/* What is sourced may hold entries; custom.cfg is where onehop's own goes. */
static void take_source(struct parser *p, const struct word *command)
{
	struct word w;

	if (!next_word(&p->s, &w) || w.ends)
		return;
	if (text_ends_with(w.text, "/custom.cfg"))
		p->m->custom = command->begin;
	else
		add_entry(p, command)->maybe = true;
}

/* "default=..." */
static void take_assignment(struct parser *p, const char *word)
{
	if (!text_starts_with(word, "default="))
		return;
	word += strlen("default=");
	p->m->sets_default = true;
	if (strcmp(word, "${next_entry}") == 0)
		p->uses_next = true;
	else if (!p->choices || !p->m->choice || strcmp(p->m->choice, word) != 0)
		p->m->choice = p->choices++ ? NULL : word;
}

/* "set default=..." */
static void take_set(struct parser *p)
{
	struct word w;

	if (next_word(&p->s, &w) && !w.ends)
		take_assignment(p, w.text);
}

/* What follows in the file is not read. */
static bool leaves(const char *command)
{
	static const char *const all[] = {"return", "exit", "configfile", "normal_exit"};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strcmp(command, all[i]) == 0)
			return true;
	return false;
}

static void take_save(struct parser *p)
{
	struct word w;

	while (next_word(&p->s, &w) && !w.ends)
		p->m->clears_next |= p->uses_next && strcmp(w.text, "next_entry") == 0;
}

/* False: it makes no sense. */
static bool take_command(struct parser *p, const struct word *w)
{
	const char *t = w->text;

	if (strcmp(t, "menuentry") == 0 || strcmp(t, "submenu") == 0)
		return take_entry(p, w);
	if (strcmp(t, "function") == 0)
		return take_function(p);
	if (strcmp(t, "}") == 0)
		return take_end(p, w);
	if (strcmp(t, "if") == 0 || strcmp(t, "while") == 0 || strcmp(t, "until") == 0)
		p->ifs++;
	if ((strcmp(t, "fi") == 0 || strcmp(t, "done") == 0) && p->ifs-- == 0)
		return false;
	if (strcmp(t, "set") == 0)
		take_set(p);
	else
		take_assignment(p, t);
	p->m->leaves |= !p->depth && leaves(t);
	if (strcmp(t, "save_env") == 0 && !p->depth)
		take_save(p);
	if (is_in_menu(p) && (strcmp(t, "source") == 0 || strcmp(t, ".") == 0))
		take_source(p, w);
	p->m->blscfg |= strcmp(t, "blscfg") == 0;
	return true;
}

bool grub_menu_parse(struct arena *a, const char *text, struct grub_menu *ret)
{
	struct grub_menu m = {.text = text};
	struct parser p = {.s = {.a = a, .text = text, .command = true}, .m = &m};
	struct word w;

	while (next_word(&p.s, &w))
		if (w.command && !w.ends && !take_command(&p, &w))
			return false;
	if (p.s.bad || p.depth || p.ifs)
		return false;
	m.clears_next = m.clears_next && strstr(text, "load_env");
	*ret = m;
	return true;
}

/* ---- the one that is chosen ---- */

static bool is_number(const char *s)
{
	return *s && !s[strspn(s, "0123456789")];
}

static bool is_named(const struct grub_item *e, const char *name)
{
	return (e->id && strcmp(e->id, name) == 0) || (e->title && strcmp(e->title, name) == 0);
}

static const struct grub_item *find_below(const struct grub_menu *m, long parent, const char *name,
					  const char **ret_why)
{
	uint64_t left = 0;
	const bool number = is_number(name) && text_to_u64(name, &left) == 0;

	*ret_why = "there is no such entry";
	for (size_t i = 0; i < m->n; i++) {
		const struct grub_item *e = &m->entries[i];

		if (e->parent != parent)
			continue;
		if (e->maybe && (number || is_named(e, name))) {
			*ret_why = "its place in the menu depends on what GRUB finds";
			return NULL;
		}
		if (number ? left-- == 0 : is_named(e, name))
			return e;
	}
	return NULL;
}

/* The part up to a single ">"; ">>" stands for one. *rest: behind it, NULL: it was the last. */
static const char *next_part(struct arena *a, const char *choice, const char **rest)
{
	AUTO_STRBUF struct strbuf b = {0};

	for (*rest = NULL; *choice; choice++) {
		if (*choice == '>' && choice[1] != '>') {
			*rest = choice + 1;
			break;
		}
		choice += *choice == '>';
		strbuf_putc(&b, *choice);
	}
	return arena_strdup(a, strbuf_str(&b));
}

const struct grub_item *grub_menu_find(struct arena *a, const struct grub_menu *m,
				       const char *choice, const char **ret_why)
{
	const struct grub_item *e = NULL;

	for (const char *rest = *choice ? choice : "0"; rest;) {
		const char *part = next_part(a, rest, &rest);

		e = find_below(m, e ? (long)(e - m->entries) : -1, part, ret_why);
		if (!e)
			return NULL;
	}
	if (!e->submenu)
		return e;
	*ret_why = "it names a submenu";
	return NULL;
}

long grub_menu_fallback(const struct grub_menu *m, const struct grub_item *e)
{
	long number = 0, first = -1;

	for (size_t i = 0; i < m->n; i++) {
		const struct grub_item *other = &m->entries[i];

		if (other->parent >= 0)
			continue;
		if (other->maybe)
			break;
		if (other == e)
			return number;
		if (first < 0 && !other->submenu)
			first = number;
		number++;
	}
	return first;
}

/* ---- a copy of it ---- */

static bool is_linux(const char *word)
{
	return strcmp(word, "linux") == 0 || strcmp(word, "linuxefi") == 0 ||
	       strcmp(word, "linux16") == 0;
}

/* Where its only kernel's words end, "--" and what is behind it aside; 0: there is none, or several. */
static size_t find_line(struct arena *a, const struct grub_menu *m, const struct grub_item *e,
			size_t *ret_begin)
{
	struct scanner s = {.a = a, .text = m->text, .at = e->body, .command = true};
	size_t end = 0;
	struct word w;

	while (next_word(&s, &w) && w.end < e->end) {
		bool rest = false;

		if (!w.command || !is_linux(w.text))
			continue;
		if (end)
			return 0;
		*ret_begin = end = w.end;
		while (next_word(&s, &w) && !w.ends) {
			rest |= strcmp(w.text, "--") == 0;
			end = rest ? end : w.end;
		}
	}
	return end;
}

const char *grub_item_line(struct arena *a, const struct grub_menu *m, const struct grub_item *e)
{
	size_t begin = 0, end = find_line(a, m, e, &begin);

	return end ? arena_strndup(a, m->text + begin, end - begin) : NULL;
}

/* The header's words, but for its name and what it is called. */
static void copy_header(struct arena *a, const struct grub_menu *m, const struct grub_item *e,
			const char *title, const char *id, struct strbuf *out)
{
	struct scanner s = {.a = a, .text = m->text, .at = e->begin};
	bool named = false, id_follows = false, has_id = false;
	struct word w;

	while (next_word(&s, &w) && w.end < e->body) {
		strbuf_puts(out, w.begin > e->begin ? " " : "");
		if (id_follows)
			strbuf_shell_word(out, id);
		else if (!named && e->title && strcmp(w.text, e->title) == 0)
			strbuf_shell_word(out, title);
		else
			strbuf_add(out, m->text + w.begin, w.end - w.begin);
		named |= !id_follows && e->title && strcmp(w.text, e->title) == 0;
		id_follows = is_id_option(w.text);
		has_id |= id_follows;
	}
	if (!has_id) {
		strbuf_puts(out, " $menuentry_id_option ");
		strbuf_shell_word(out, id);
	}
	strbuf_puts(out, " {");
}

/* "savedefault": the trial must not become what is started from then on. */
static bool saves(const char *line, size_t n)
{
	AUTO_FREE char *word = xstrndup(line, n);

	return strcmp(text_trim(word), "savedefault") == 0;
}

static void copy_lines(const struct grub_menu *m, size_t from, size_t to, struct strbuf *out)
{
	while (from < to) {
		size_t n = strcspn(m->text + from, "\n") + 1;

		n = n > to - from ? to - from : n;
		if (!saves(m->text + from, n))
			strbuf_add(out, m->text + from, n);
		from += n;
	}
}

void grub_item_copy(const struct grub_menu *m, const struct grub_item *e, const char *title,
		    const char *id, const char *words, struct strbuf *out)
{
	struct arena *a = arena_new();
	size_t begin = 0, end = find_line(a, m, e, &begin);

	copy_header(a, m, e, title, id, out);
	copy_lines(m, e->body, end, out);
	strbuf_printf(out, " %s", words);
	copy_lines(m, end, e->end, out);
	strbuf_putc(out, '\n');
	arena_free(a);
}
