/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the Boot Loader Specification as text: keys, and the words of their command line. */
#include "machine/boot_entry.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/acs_parameter.h"

#include <string.h>
#include <strings.h>

const char *const boot_partitions[] = {"boot", "efi", "boot/efi", NULL};

#define SUFFIX ".conf"

/* A part of a text. */
struct piece {
	const char *start, *end;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_piece(const struct piece *p, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(p->end - p->start) == n && memcmp(p->start, word, n) == 0;
}

static void trim(struct piece *p)
{
	while (p->start < p->end && is_blank(*p->start))
		p->start++;
	while (p->end > p->start && is_blank(p->end[-1]))
		p->end--;
}

/* ---- lines ---- */

/*
 * The next line, without the blanks around it; a carriage return ends one too. *at: "" at the end.
 */
static bool next_line(const char **at, struct piece *ret)
{
	const char *s = *at;

	if (!*s)
		return false;
	ret->start = s;
	s += strcspn(s, "\r\n");
	ret->end = s;
	*at = *s ? s + 1 : s;
	trim(ret);
	return true;
}

/* systemd-boot ignores a key without a value. Quotes around the whole value are not part of it. */
static bool split_line(const struct piece *line, struct piece *key, struct piece *value)
{
	const char *s = line->start;

	while (s < line->end && !is_blank(*s))
		s++;
	if (s == line->end || *line->start == '#')
		return false;
	*key = (struct piece){line->start, s};
	*value = (struct piece){s, line->end};
	trim(value);
	if (value->end - value->start >= 2 && *value->start == '"' && value->end[-1] == '"') {
		value->start++;
		value->end--;
	}
	return true;
}

bool boot_entry_get(const char *text, const char *key, const char **ret, size_t *ret_n)
{
	struct piece line, k, value;

	while (next_line(&text, &line)) {
		if (!split_line(&line, &k, &value) || !is_piece(&k, key))
			continue;
		*ret = value.start;
		*ret_n = (size_t)(value.end - value.start);
		return true;
	}
	return false;
}

void boot_entry_drop(const char *text, const char *key, struct strbuf *ret)
{
	struct piece line, k, value;

	for (const char *start = text; next_line(&text, &line); start = text)
		if (!split_line(&line, &k, &value) || !is_piece(&k, key))
			strbuf_add(ret, start, (size_t)(text - start));
}

/* ---- the parts of a text that hold words ---- */

static bool next_span(const char **at, enum boot_text form, struct piece *ret)
{
	struct piece line, key;

	while (next_line(at, &line)) {
		if (form == BOOT_TEXT_ENTRY) {
			if (split_line(&line, &key, ret) && is_piece(&key, "options"))
				return true;
		} else if (line.start < line.end && *line.start != '#') {
			*ret = line;
			return true;
		}
	}
	return false;
}

/* A walk over all words of a text. */
struct walk {
	const char *at; /* behind the span */
	enum boot_text form;
	struct piece span; /* start: what is left of it */
	const char *line;  /* where the span's first word may be */
};

/* Blanks within quotes do not end a word. */
static bool next_in_span(struct walk *w, struct piece *ret)
{
	const char *s = w->span.start;
	bool quoted = false;

	while (s < w->span.end && is_blank(*s))
		s++;
	ret->start = s;
	for (; s < w->span.end && (quoted || !is_blank(*s)); s++)
		quoted ^= *s == '"';
	ret->end = w->span.start = s;
	return ret->start < ret->end;
}

static bool next_word(struct walk *w, struct piece *ret)
{
	while (!w->span.start || !next_in_span(w, ret)) {
		if (!next_span(&w->at, w->form, &w->span))
			return false;
		w->line = w->span.start;
	}
	return true;
}

/* Quotes are ignored because the kernel removes them. */
static bool is_word(const struct piece *p, const char *word)
{
	for (const char *s = p->start; s < p->end; s++)
		if (*s != '"' && *s != *word++)
			return false;
	return !*word;
}

/* ---- words ---- */

enum boot_text boot_text_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	static const char folder[] = "loader/entries";
	size_t n = slash ? (size_t)(slash - path) : 0;

	if (n >= strlen(folder) && memcmp(slash - strlen(folder), folder, strlen(folder)) == 0 &&
	    boot_entry_id(slash + 1))
		return BOOT_TEXT_ENTRY;
	return BOOT_TEXT_LINE;
}

bool boot_text_has(const char *text, enum boot_text form, const char *word)
{
	struct walk w = {.at = text, .form = form};
	struct piece p;

	while (next_word(&w, &p) && !is_piece(&p, "--"))
		if (is_word(&p, word))
			return true;
	return false;
}

/* A line of its own, with the text's own line ends. */
static void add_line(const char *text, const char *word, struct strbuf *ret)
{
	size_t n = strlen(text);
	const char *end = strstr(text, "\r\n") ? "\r\n" : "\n";

	strbuf_printf(ret, "%s%s%s%s", text, n && text[n - 1] != '\n' ? end : "", word, end);
}

/* An unclosed quote: to the kernel everything after it is one word. */
static bool is_open(const struct piece *p)
{
	bool open = false;

	for (const char *s = p->start; s < p->end; s++)
		open ^= *s == '"';
	return open;
}

bool boot_text_add(const char *text, enum boot_text form, const char *word, struct strbuf *ret)
{
	struct walk w = {.at = text, .form = form};
	struct piece p, last = {0};
	const char *dashes = NULL;

	while (!dashes && next_word(&w, &p)) {
		if (is_piece(&p, "--"))
			dashes = p.start;
		else
			last = p;
	}
	if (is_open(&last) || (form == BOOT_TEXT_ENTRY && !last.end && !dashes))
		return false;
	if (last.end)
		strbuf_printf(ret, "%.*s %s%s", (int)(last.end - text), text, word, last.end);
	else if (dashes)
		strbuf_printf(ret, "%.*s%s %s", (int)(dashes - text), text, word, dashes);
	else
		add_line(text, word, ret);
	return true;
}

/* Without a line that is now empty, and its line end. */
static void drop_line(const char *text, const struct piece *word, struct strbuf *ret)
{
	const char *start = word->start, *end = word->end + strcspn(word->end, "\r\n");

	while (start > text && start[-1] != '\n' && start[-1] != '\r')
		start--;
	end += strncmp(end, "\r\n", 2) == 0 ? 2 : *end != '\0';
	strbuf_printf(ret, "%.*s%s", (int)(start - text), text, end);
}

/* With the blank that boot_text_add added: before the word, or after it if the word comes first. */
static void drop_word(const char *text, struct piece word, bool first, struct strbuf *ret)
{
	if (!first)
		word.start--;
	else if (is_blank(*word.end))
		word.end++;
	strbuf_printf(ret, "%.*s%s", (int)(word.start - text), text, word.end);
}

bool boot_text_remove(const char *text, enum boot_text form, const char *word, struct strbuf *ret)
{
	struct walk w = {.at = text, .form = form};
	struct piece p, found = {0};
	bool first = false, alone = false;

	while (next_word(&w, &p) && !is_piece(&p, "--")) {
		if (!is_piece(&p, word))
			continue;
		found = p;
		first = p.start == w.line;
		alone = first && w.span.start == w.span.end;
	}
	if (!found.start)
		return false;
	if (alone && form == BOOT_TEXT_LINE)
		drop_line(text, &found, ret);
	else
		drop_word(text, found, first, ret);
	return true;
}

/* The piece without its quotes; the caller frees it. */
static char *unquoted(const struct piece *p)
{
	char *word = xstrndup(p->start, (size_t)(p->end - p->start)), *to = word;

	for (const char *s = word; *s; s++)
		if (*s != '"')
			*to++ = *s;
	*to = '\0';
	return word;
}

/* `value` is one of the parts separated by ',' or ';', or several consecutive ones. */
static bool has_part(const char *parts, const char *value)
{
	const size_t n = strlen(value);

	for (const char *at = parts; n && (at = strstr(at, value)); at++)
		if ((at == parts || strchr(",;", at[-1])) && (!at[n] || strchr(",;", at[n])))
			return true;
	return false;
}

/* In a list of ports each one counts: a user may have removed the others. */
static bool is_changed(const struct piece *p, const char *word)
{
	const char *equals = strchr(word, '=');
	AUTO_FREE char *now = unquoted(p);
	const size_t key = equals ? (size_t)(equals - word) + 1 : strlen(word);

	if (is_piece(p, word) || strlen(now) < key || memcmp(now, word, key) != 0)
		return false;
	if (!equals)
		return !now[key];
	return has_part(now + key, word + key) || acs_words_share(now, word);
}

static bool has_piece(const char *text, enum boot_text form, const char *piece)
{
	struct walk w = {.at = text, .form = form};
	struct piece p;

	while (next_word(&w, &p) && !is_piece(&p, "--"))
		if (is_piece(&p, piece))
			return true;
	return false;
}

char *boot_text_changed(const char *text, enum boot_text form, const char *word, const char *before)
{
	struct walk w = {.at = text, .form = form};
	struct piece p;

	while (next_word(&w, &p) && !is_piece(&p, "--")) {
		AUTO_FREE char *piece = xstrndup(p.start, (size_t)(p.end - p.start));

		if (is_changed(&p, word) && !(before && has_piece(before, form, piece)))
			return TAKE_PTR(piece);
	}
	return NULL;
}

char *boot_text_words(const char *text, enum boot_text form)
{
	struct walk w = {.at = text, .form = form};
	AUTO_STRBUF struct strbuf words = {0};
	struct piece p;

	while (next_word(&w, &p))
		strbuf_printf(&words, "%s%.*s", words.len ? " " : "", (int)(p.end - p.start),
			      p.start);
	return xstrdup(strbuf_str(&words));
}

/* ---- names ---- */

/* "+3", "+2-1" at the end of a name of n bytes: where it begins; n: it has none. */
static size_t counter(const char *name, size_t n)
{
	static const char digits[] = "0123456789";
	size_t at = n, tries;

	while (at && name[at - 1] != '+')
		at--;
	if (!at)
		return n;
	tries = strspn(name + at, digits);
	if (!tries)
		return n;
	if (name[at + tries] == '-' && strspn(name + at + tries + 1, digits))
		tries += 1 + strspn(name + at + tries + 1, digits);
	return at + tries == n ? at - 1 : n;
}

/* In any case, as systemd-boot has it: FAT keeps that of who wrote the name. */
size_t boot_entry_id(const char *name)
{
	const size_t n = strlen(name), suffix = strlen(SUFFIX);

	if (*name == '.' || n < suffix || strcasecmp(name + n - suffix, SUFFIX) != 0)
		return 0;
	return counter(name, n - suffix);
}

bool boot_entry_same(const char *a, const char *b)
{
	size_t n = boot_entry_id(a);

	return n && n == boot_entry_id(b) && memcmp(a, b, n) == 0;
}
