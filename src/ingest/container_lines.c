/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables that are passed to programs elsewhere than in a shell: to a container (docker run -e,
 * compose, kubectl), and to the ranks of a job (mpirun -x, srun --export).
 */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/observed.h"
#include "machine/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 256 };

/* ---- command lines ---- */

/* Programs that start others with variables, and the options that pass them. */
static const struct launcher {
	const char *program;
	const char *options[4]; /* with '=' at the end: the variable follows in the same word */
} launchers[] = {
	{"docker", {"-e", "--env", "--env="}},
	{"podman", {"-e", "--env", "--env="}},
	{"podman-hpc", {"-e", "--env", "--env="}},
	{"nerdctl", {"-e", "--env", "--env="}},
	{"enroot", {"-e", "--env", "--env="}},
	{"apptainer", {"--env", "--env="}},
	{"singularity", {"--env", "--env="}},
	{"kubectl", {"--env", "--env="}},
	{"mpirun", {"-x", "-genv"}},
	{"mpiexec", {"-x", "-genv", "-env"}},
	{"srun", {"--export", "--export="}},
};

/*
 * "$ sudo docker run ..." and "root@box:~# docker run ...": the command without what is in front.
 */
static const char *behind_prompt(const char *s)
{
	const char *mark = strpbrk(s, "$#");

	if (mark && mark[1] == ' ' && !memchr(s, ' ', (size_t)(mark - s)))
		s = mark + 1 + strspn(mark + 1, " ");
	return text_starts_with(s, "sudo ") ? s + strlen("sudo ") : s;
}

static const struct launcher *launcher_at(const struct text_line *l)
{
	const char *s = behind_prompt(line_text(l));
	size_t n = strcspn(s, " ");

	for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
		if (strlen(launchers[i].program) == n && strncmp(s, launchers[i].program, n) == 0 &&
		    s[n])
			return &launchers[i];
	return NULL;
}

/* The word's part behind an option that holds its variable; NULL: it is another word. */
static const char *joined(const struct launcher *l, const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(l->options) && l->options[i]; i++)
		if (text_ends_with(l->options[i], "=") && text_starts_with(word, l->options[i]))
			return word + strlen(l->options[i]);
	return NULL;
}

static bool is_option(const struct launcher *l, const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(l->options) && l->options[i]; i++)
		if (strcmp(word, l->options[i]) == 0)
			return true;
	return false;
}

/* A word that may be NAME=VALUE, without the quotes around it or its value. */
static char *unquoted(struct arena *a, const char *word)
{
	char *copy = arena_strdup(a, word), *to = copy;

	for (const char *s = copy; *s; s++)
		if (*s != '"' && *s != '\'')
			*to++ = *s;
	*to = '\0';
	return copy;
}

/* Which GPUs one program gets: it says nothing of the machine, and another program gets others. */
static bool is_choice_of_devices(const char *s)
{
	return text_starts_with(s, "CUDA_VISIBLE_DEVICES=") ||
	       text_starts_with(s, "NVIDIA_VISIBLE_DEVICES=");
}

/* Only variables of libraries that onehop knows: others may hold secrets. */
static bool is_wanted(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return n && s[n] == '=' && !strchr(s, '$') &&
	       (library_of_variable(s) < LIBRARY_N || is_choice_of_devices(s));
}

typedef void found_variable(const char *variable, void *to);

/* "ALL,NCCL_DEBUG=INFO,NCCL_P2P_LEVEL=SYS" of srun; of the others there is one. */
static void each_of_list(struct arena *a, const char *word, found_variable *found, void *to)
{
	char *rest = unquoted(a, word), *item;

	if (is_wanted(rest) && !strstr(rest, ",NCCL_") && !text_starts_with(rest, "ALL,")) {
		found(rest, to);
		return;
	}
	while ((item = strsep(&rest, ",")))
		if (is_wanted(item))
			found(item, to);
}

/* The variables of one line of a command; `launcher`: of its first line. */
static void each_variable(struct arena *a, const struct launcher *launcher,
			  const struct text_line *l, found_variable *found, void *to)
{
	const char *words[WORDS_MAX];
	size_t n = line_words(a, l, words, WORDS_MAX);

	for (size_t i = 0; i < n; i++) {
		const bool named = is_option(launcher, words[i]);
		const char *value = joined(launcher, words[i]);

		if (!value && named && i + 1 < n)
			value = words[++i];
		if (value)
			each_of_list(a, value, found, to);
	}
}

static void count_variable(const char *variable, void *to)
{
	(void)variable;
	++*(size_t *)to;
}

/* Lines that end with a backslash go on. */
size_t launch_match(struct part *p, const struct text_line *lines, size_t n)
{
	const struct launcher *launcher = launcher_at(&lines[0]);
	struct arena *a;
	size_t end = 1, variables = 0;

	if (!launcher)
		return 0;
	while (end < n && text_ends_with(lines[end - 1].text, "\\"))
		end++;
	a = arena_new();
	for (size_t i = 0; i < end; i++)
		each_variable(a, launcher, &lines[i], count_variable, &variables);
	arena_free(a);
	snprintf(p->about, sizeof(p->about), "%zu %s", variables,
		 text_plural(variables, "variable", "variables"));
	return variables ? end : 0;
}

struct claiming {
	struct claims *claims;
	struct claim_at at;
};

static void claim_variable(const char *variable, void *to)
{
	const struct claiming *c = to;
	const char *equals = strchr(variable, '=');

	if (is_choice_of_devices(variable))
		return;
	claim(c->claims, c->at, equals + 1, "environment/%.*s", (int)(equals - variable), variable);
}

void launch_decode(const struct part *p, struct claims *c)
{
	const struct launcher *launcher = launcher_at(&p->lines[0]);
	struct arena *a = arena_new();

	for (size_t i = 0; i < p->n; i++) {
		struct claiming to = {c, CLAIM_AT(p, &p->lines[i])};

		each_variable(a, launcher, &p->lines[i], claim_variable, &to);
	}
	arena_free(a);
}

/* "all" chooses nothing. */
static void note_choice(const char *variable, void *to)
{
	if (is_choice_of_devices(variable) && strcmp(strchr(variable, '='), "=all") != 0)
		*(bool *)to = true;
}

static void write_variable(const char *variable, void *to)
{
	strbuf_printf(to, " %s", variable);
}

/*
 * The rest of the command names folders, images and users. Written as the same launcher with one
 * option for each variable, which is read as the whole line is.
 */
const char *launch_keep(const struct part *p, const struct text_line *l, struct arena *a)
{
	const struct launcher *launcher = launcher_at(&p->lines[0]);
	AUTO_STRBUF struct strbuf variables = {0}, out = {0};
	char *rest, *variable;

	each_variable(a, launcher, l, write_variable, &variables);
	if (l == p->lines)
		strbuf_puts(&out, launcher->program);
	rest = arena_strdup(a, strbuf_str(&variables));
	while ((variable = strsep(&rest, " ")))
		if (*variable)
			strbuf_printf(&out, " %s %s", launcher->options[0], variable);
	if (text_ends_with(l->text, "\\"))
		strbuf_puts(&out, " \\");
	return arena_strdup(a, strbuf_str(&out));
}

/* Two containers, each with GPUs of its own, cannot open each other's memory. */
void launch_observe(const struct part *p, struct machine *m)
{
	struct arena *a = arena_new();
	const struct launcher *launcher = launcher_at(&p->lines[0]);
	bool chosen = false;

	for (size_t i = 0; i < p->n; i++)
		each_variable(a, launcher, &p->lines[i], note_choice, &chosen);
	arena_free(a);
	if (!chosen)
		return;
	observed_add(m, OBSERVED_MESSAGE, -1, -1,
		     arena_printf(m->arena, "%s:%u", p->file, p->lines[0].number))
		->message = MESSAGE_CHOSEN_GPUS;
}

/* ---- compose, kubectl ---- */

/*
 * " NCCL_DEBUG: INFO", "NCCL_DEBUG: INFO": one word, so that prose about a variable does not count.
 */
static const char *map_variable(struct arena *a, const struct text_line *l)
{
	const char *s = line_text(l);
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	const char *value = s + n + (s[n] == ':');
	char *variable;

	value += strspn(value, " ");
	if (!n || s[n] != ':' || s[n + 1] != ' ' || !*value || strchr(value, ' '))
		return NULL;
	variable = unquoted(a, arena_printf(a, "%.*s=%s", (int)n, s, value));
	return is_wanted(variable) ? variable : NULL;
}

/* "- name: NCCL_DEBUG" and below it "value: INFO" */
static const char *listed_variable(struct arena *a, const struct text_line *lines, size_t n)
{
	const char *s = line_text(&lines[0]), *value;
	char *variable;

	if (!text_starts_with(s, "- name: ") || n < 2)
		return NULL;
	value = line_value(&lines[1], "value");
	if (!value || !*value || strchr(value, ' '))
		return NULL;
	variable = unquoted(a, arena_printf(a, "%s=%s", s + strlen("- name: "), value));
	return is_wanted(variable) ? variable : NULL;
}

/* One variable: the number of its lines; 0: there is none. */
static size_t manifest_variable(struct arena *a, const struct text_line *lines, size_t n,
				const char **ret)
{
	*ret = map_variable(a, &lines[0]);
	if (*ret)
		return 1;
	*ret = listed_variable(a, lines, n);
	return *ret ? 2 : 0;
}

size_t manifest_match(struct part *p, const struct text_line *lines, size_t n)
{
	struct arena *a = arena_new();
	size_t end = 0, variables = 0, more;
	const char *variable;

	while (end < n && (more = manifest_variable(a, lines + end, n - end, &variable))) {
		end += more;
		variables++;
	}
	arena_free(a);
	snprintf(p->about, sizeof(p->about), "%zu %s", variables,
		 text_plural(variables, "variable", "variables"));
	return end;
}

void manifest_decode(const struct part *p, struct claims *c)
{
	struct arena *a = arena_new();
	const char *variable;

	for (size_t i = 0; i < p->n;) {
		struct claiming to = {c, CLAIM_AT(p, &p->lines[i])};
		size_t more = manifest_variable(a, p->lines + i, p->n - i, &variable);

		claim_variable(variable, &to);
		i += more;
	}
	arena_free(a);
}
