/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/shell_script.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/text.h"
#include "machine/machine.h"
#include "machine/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	SETTINGS_MAX = 1024,
	HEREDOCS_MAX = 16,    /* of one line */
	EXPANSION_MAX = 1024, /* bytes searched for the end of `${` and the like */
};

/* One word of a command, without its quotes. */
struct word {
	struct strbuf text;
	size_t equals; /* the first '=' that is not quoted; SIZE_MAX: none */
	bool expands;  /* holds a variable or the output of a command */
	bool any;      /* there is a word: '' is an empty one */
	unsigned line;
};

/* A text that starts at the next line and ends at a line that is `end` alone. */
struct heredoc {
	char *end;   /* malloc'ed */
	bool tabbed; /* `<<-`: tabs in front of lines do not count */
};

struct script {
	struct arena *arena;
	bool (*wanted)(const char *name);
	const char *p, *end;
	unsigned line;
	struct word word;
	/*
	 * The first word of the current command, as long as it determines the meaning of the next
	 * ones.
	 */
	enum command { COMMAND_OTHER, COMMAND_UNSET, COMMAND_SETENV, COMMAND_QUIET } command;
	bool first; /* the next word is the first of its command, or only assignments came before it */
	const char *setenv_name;
	struct heredoc heredocs[HEREDOCS_MAX]; /* of this line, in their order */
	size_t heredoc_n;
	bool no_heredocs; /* one was never closed, so << means something else here */
	struct script_setting *settings;
	size_t n;
};

/* ---- what is set ---- */

static void forget(struct script *s, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->settings[i].name, name) != 0)
			s->settings[kept++] = s->settings[i];
	s->n = kept;
}

static void keep(struct script *s, const char *name, const char *value, size_t n)
{
	struct script_setting *at;

	if (!s->wanted(name))
		return;
	forget(s, name);
	if (s->n >= SETTINGS_MAX)
		return;
	at = &s->settings[s->n++];
	at->name = arena_strdup(s->arena, name);
	at->value = value ? arena_strndup(s->arena, value, n) : NULL;
	at->line = s->word.line;
}

static bool is_name(const char *text, size_t n)
{
	if (!n || isdigit((unsigned char)*text))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return true;
}

#define NAME_MAX_LEN 128

/* NAME=VALUE in n bytes. */
static void assign(struct script *s, const char *text, size_t n, bool expands)
{
	const char *equals = memchr(text, '=', n);
	size_t name_n = equals ? (size_t)(equals - text) : 0;
	char name[NAME_MAX_LEN];

	if (!equals || name_n >= sizeof(name) || !is_name(text, name_n))
		return;
	text_copy(name, sizeof(name), text, name_n);
	keep(s, name, expands ? NULL : equals + 1, n - name_n - 1);
}

/* NAME=VALUE,NAME=VALUE; a value cannot hold a comma there. */
static void assign_list(struct script *s, const char *list, bool expands)
{
	for (size_t n; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		assign(s, list, n, expands);
	}
}

/* ---- words ---- */

/* The meaning of a word by its start; one or more assignments follow it. */
static const struct {
	const char *start;
	bool list;
} options[] = {
	{"--export=", true},
	{"--env=", false},
	{"-e", false},
	{"-x", false},
};

static void take_option(struct script *s, const char *text, bool expands)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		size_t n = strlen(options[i].start);

		if (!text_starts_with(text, options[i].start))
			continue;
		if (options[i].list)
			assign_list(s, text + n, expands);
		else
			assign(s, text + n, strlen(text + n), expands);
		return;
	}
}

static void take_setenv(struct script *s, const char *text)
{
	if (!s->setenv_name) {
		s->setenv_name = arena_strdup(s->arena, text);
		return;
	}
	keep(s, s->setenv_name, s->word.expands ? NULL : text, strlen(text));
	s->command = COMMAND_OTHER;
}

static enum command command_of(const char *text)
{
	/* Commands that set nothing, whatever their arguments look like. */
	static const char *const quiet[] = {":",      "[",    "[[",    "test",  "echo", "printf",
					    "logger", "grep", "egrep", "fgrep", "sed",  "awk"};

	for (size_t i = 0; i < ARRAY_LEN(quiet); i++)
		if (strcmp(text, quiet[i]) == 0)
			return COMMAND_QUIET;
	return strcmp(text, "unset") == 0    ? COMMAND_UNSET
	       : strcmp(text, "setenv") == 0 ? COMMAND_SETENV
					     : COMMAND_OTHER;
}

static void take_word(struct script *s)
{
	const char *text = strbuf_str(&s->word.text);
	bool assigns = s->word.equals != SIZE_MAX;

	if (s->first) {
		s->command = command_of(text);
		s->setenv_name = NULL;
	} else if (s->command == COMMAND_UNSET) {
		forget(s, text);
	} else if (s->command == COMMAND_SETENV) {
		take_setenv(s, text);
	}
	if (assigns && s->command != COMMAND_QUIET) {
		if (*text == '-')
			take_option(s, text, s->word.expands);
		else
			assign(s, text, s->word.text.len, s->word.expands);
	}
	s->first = s->first && assigns;
}

static void end_word(struct script *s)
{
	if (s->word.any)
		take_word(s);
	s->word.text.len = 0;
	if (s->word.text.text)
		*s->word.text.text = '\0';
	s->word.equals = SIZE_MAX;
	s->word.expands = s->word.any = false;
}

static void end_command(struct script *s)
{
	end_word(s);
	s->first = true;
}

static void add(struct script *s, char c)
{
	if (!s->word.any)
		s->word.line = s->line;
	s->word.any = true;
	if (c)
		strbuf_putc(&s->word.text, c);
	if (c == '\n')
		s->line++;
}

/* ---- bytes ---- */

/* The character that closes the bracket or back quote at `open`; NULL: none does. */
static const char *closing(const struct script *s, const char *open)
{
	char from = *open, to = from == '(' ? ')' : from == '{' ? '}' : '`';
	unsigned depth = 1;

	for (const char *p = open + 1; p < s->end && p - open < EXPANSION_MAX; p++) {
		if (*p == to && !--depth)
			return p;
		depth += *p == from && from != '`';
	}
	return NULL;
}

/* Skips bytes that are not evaluated. */
static void skip_to(struct script *s, const char *p)
{
	for (; s->p < p; s->p++)
		s->line += *s->p == '\n';
}

/*
 * What closes the `${...}`, `$(...)` or back quotes that begin at p; NULL: none do, or nothing
 * closes them.
 */
static const char *expansion_end(const struct script *s, const char *p)
{
	const char *open = *p == '$' ? p + 1 : p;

	if (open >= s->end || !(*open == '`' || (*p == '$' && (*open == '(' || *open == '{'))))
		return NULL;
	return closing(s, open);
}

/* `$NAME`, `${...}`, `$(...)`, back quotes: at the first byte of it. */
static void expand(struct script *s)
{
	const char *close = expansion_end(s, s->p);

	add(s, '\0');
	s->word.expands = true;
	skip_to(s, close ? close + 1 : s->p + 1);
}

static void single_quoted(struct script *s, const char *close)
{
	add(s, '\0');
	for (s->p++; s->p < close; s->p++)
		add(s, *s->p);
	s->p++;
}

/* Until the next double quote that is not escaped. */
static const char *double_close(const struct script *s)
{
	for (const char *p = s->p + 1; p < s->end; p++) {
		const char *expanded = expansion_end(s, p);

		if (expanded) /* "$(dirname "$0")" has quotes of its own */
			p = expanded;
		else if (*p == '\\')
			p++;
		else if (*p == '"')
			return p;
	}
	return NULL;
}

static void double_quoted(struct script *s, const char *close)
{
	add(s, '\0');
	s->p++;
	while (s->p < close) {
		if (*s->p == '$' || *s->p == '`') {
			expand(s);
			continue;
		}
		if (*s->p == '\\' && s->p + 1 < close && strchr("\"\\$`", s->p[1]))
			s->p++;
		add(s, *s->p++);
	}
	/* An expansion may have skipped the apparent end. */
	if (s->p == close)
		s->p++;
}

/* An unclosed quote is an ordinary byte. */
static bool quoted(struct script *s)
{
	const char *close = *s->p == '\''  ? memchr(s->p + 1, '\'', (size_t)(s->end - s->p - 1))
			    : *s->p == '"' ? double_close(s)
					   : NULL;

	if (!close)
		return false;
	if (*s->p == '\'')
		single_quoted(s, close);
	else
		double_quoted(s, close);
	return true;
}

/* ---- lines ---- */

static const char *line_end(const struct script *s, const char *p)
{
	const char *newline = memchr(p, '\n', (size_t)(s->end - p));

	return newline ? newline : s->end;
}

/* The start of the line after its end; NULL: it never ends. */
static const char *heredoc_end(const struct script *s, const struct heredoc *h)
{
	size_t n = strlen(h->end);

	for (const char *p = s->p, *end; p < s->end; p = end + 1) {
		const char *start = p;

		end = line_end(s, p);
		while (h->tabbed && start < end && *start == '\t')
			start++;
		if ((size_t)(end - start) == n && memcmp(start, h->end, n) == 0)
			return end < s->end ? end + 1 : end;
	}
	return NULL;
}

static void forget_heredocs(struct script *s)
{
	for (size_t i = 0; i < s->heredoc_n; i++)
		free(s->heredocs[i].end);
	s->heredoc_n = 0;
}

/*
 * After one that never ends, no others are searched: the time would grow with the square of the
 * text.
 */
static void skip_heredocs(struct script *s)
{
	for (size_t i = 0; i < s->heredoc_n && !s->no_heredocs; i++) {
		const char *end = heredoc_end(s, &s->heredocs[i]);

		if (end)
			skip_to(s, end);
		else
			s->no_heredocs = true;
	}
	forget_heredocs(s);
}

/*
 * The word behind `<<`, its quotes taken off, as the shell reads any word: END.1, 'END OF FILE',
 * E"O"F, \EOF. Returns where it ends.
 */
static const char *heredoc_word(const struct script *s, const char *p, struct strbuf *word)
{
	const char *end = p < s->end ? line_end(s, p) : s->end;

	while (p < end && !strchr(" \t\r;&|()<>", *p)) {
		const char *close =
			*p == '\'' || *p == '"' ? memchr(p + 1, *p, (size_t)(end - p - 1)) : NULL;

		if (close) {
			strbuf_add(word, p + 1, (size_t)(close - p - 1));
			p = close + 1;
			continue;
		}
		p += *p == '\\' && p + 1 < end;
		strbuf_putc(word, *p++);
	}
	return p;
}

/* `<<WORD`, `<<-'WORD'`; `<<<` is something else. */
static void start_heredoc(struct script *s)
{
	AUTO_STRBUF struct strbuf word = {0};
	const char *p = s->p + 2, *start;
	bool tabbed;

	if (s->no_heredocs || p >= s->end || *p == '<') {
		s->p = p + (p < s->end);
		return;
	}
	tabbed = *p == '-';
	p += tabbed;
	while (p < s->end && (*p == ' ' || *p == '\t'))
		p++;
	start = p;
	p = heredoc_word(s, p, &word);
	if (p > start && s->heredoc_n < HEREDOCS_MAX)
		s->heredocs[s->heredoc_n++] = (struct heredoc){xstrdup(strbuf_str(&word)), tabbed};
	s->p = p;
}

static void newline(struct script *s)
{
	end_command(s);
	s->p++;
	s->line++;
	if (s->heredoc_n)
		skip_heredocs(s);
}

/* Slurm reads its options from comments. */
static void comment(struct script *s)
{
	static const char mark[] = "#SBATCH";
	size_t n = strlen(mark);

	if ((size_t)(s->end - s->p) > n && memcmp(s->p, mark, n) == 0)
		s->p += n;
	else
		s->p = line_end(s, s->p);
}

static bool starts_heredoc(const struct script *s)
{
	return *s->p == '<' && s->p + 1 < s->end && s->p[1] == '<';
}

static void escape(struct script *s)
{
	if (s->p + 1 >= s->end) {
		s->p++;
	} else if (s->p[1] == '\n') {
		s->line++;
		s->p += 2;
	} else {
		add(s, s->p[1]);
		s->p += 2;
	}
}

static void plain(struct script *s)
{
	if (*s->p == '=' && s->word.equals == SIZE_MAX)
		s->word.equals = s->word.text.len;
	add(s, *s->p++);
}

static void next(struct script *s)
{
	char c = *s->p;

	if (c == '\n') {
		newline(s);
	} else if (c == ' ' || c == '\t' || c == '\r' || !c) {
		end_word(s);
		s->p++;
	} else if (c == '#' && !s->word.any) {
		comment(s);
	} else if (c == '\\') {
		escape(s);
	} else if (starts_heredoc(s)) {
		end_word(s);
		start_heredoc(s);
	} else if (strchr(";&|()<>", c)) {
		end_command(s);
		s->p++;
	} else if (c == '$' || c == '`') {
		expand(s);
	} else if (!quoted(s)) {
		plain(s);
	}
}

void shell_script_parse(struct arena *arena, const char *text, size_t size,
			bool (*wanted)(const char *name), struct script_setting **ret,
			size_t *ret_n)
{
	struct script s = {
		.arena = arena,
		.wanted = wanted,
		.p = text,
		.end = text + size,
		.line = 1,
		.first = true,
		.word = {.equals = SIZE_MAX},
		.settings = arena_alloc(arena, SETTINGS_MAX, sizeof(*s.settings)),
	};

	while (s.p < s.end)
		next(&s);
	end_command(&s);
	strbuf_done(&s.word.text);
	forget_heredocs(&s);
	*ret = s.settings;
	*ret_n = s.n;
}

/* ---- a machine's settings ---- */

static bool is_wanted(const char *name)
{
	return library_of_variable(name) < LIBRARY_N;
}

int shell_script_read(struct machine *m, const char *path, struct script_setting **ret,
		      size_t *ret_n)
{
	AUTO_STRBUF struct strbuf text = {0};
	int r = text_read_file(path, SHELL_SCRIPT_MAX, &text);

	if (r < 0)
		return r;
	if (content_fault(strbuf_str(&text), text.len))
		return content_refuse(text_file_name(path), strbuf_str(&text), text.len,
				      "a shell script");
	shell_script_parse(m->arena, strbuf_str(&text), text.len, is_wanted, ret, ret_n);
	return 0;
}

/* The script's settings come before those of files, because stronger origins come first. */
static void replace_settings(struct machine *m, const char *path, bool nccl,
			     const struct script_setting *script, size_t script_n)
{
	struct setting *old = nccl ? m->nccl.settings : m->settings, *settings;
	size_t old_n = nccl ? m->nccl.setting_n : m->setting_n, n = 0;

	settings = arena_alloc(m->arena, script_n + old_n + 1, sizeof(*settings));
	for (size_t i = 0; i < script_n; i++)
		if (script[i].value &&
		    (library_of_variable(script[i].name) == LIBRARY_NCCL) == nccl)
			settings[n++] = (struct setting){
				.name = script[i].name,
				.value = script[i].value,
				.origin = SETTING_SCRIPT,
				.from = arena_printf(m->arena, "%s:%u", path, script[i].line),
			};
	for (size_t i = 0; i < old_n; i++)
		if (old[i].origin < SETTING_ENVIRONMENT)
			settings[n++] = old[i];
	settings_judge(settings, n);
	*(nccl ? &m->nccl.settings : &m->settings) = settings;
	*(nccl ? &m->nccl.setting_n : &m->setting_n) = n;
}

void shell_script_settings(struct machine *m, const char *path,
			   const struct script_setting *settings, size_t n)
{
	path = arena_strdup(m->arena, text_file_name(path));
	replace_settings(m, path, true, settings, n);
	replace_settings(m, path, false, settings, n);
	m->environment = fact_int(1, path);
}
