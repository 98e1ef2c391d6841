/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/part_hosts.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/text.h"
#include "ingest/part.h"

#include <string.h>

enum { HOST_SIZE = 256 };

/* ---- names ---- */

/* Twelve hexadecimal digits are a container's id, which says nothing about the host. */
static bool names_host(const char *name)
{
	static const char *const others[] = {"", "localhost", "(none)", "toolbox", "toolbx"};

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (strcmp(name, others[i]) == 0)
			return false;
	return !(strlen(name) == 12 && strspn(name, "0123456789abcdef") == 12);
}

/* The first word of "gpu7.example.org": some tools print the full name. */
static void first_word(char buf[HOST_SIZE], const char *name)
{
	text_copy(buf, HOST_SIZE, name, strcspn(name, "."));
}

const char *text_hosts_find(const struct text_hosts *h, const char *name)
{
	char word[HOST_SIZE];

	first_word(word, name);
	for (size_t i = 0; i < h->n; i++)
		if (strcmp(h->items[i].name, word) == 0)
			return h->items[i].name;
	return NULL;
}

void text_hosts_add(struct arena *a, struct text_hosts *h, const char *name, const char *file,
		    unsigned line)
{
	char word[HOST_SIZE];

	first_word(word, name);
	if (!names_host(word) || text_hosts_find(h, word))
		return;
	if (h->n < MOST_TEXT_HOSTS)
		h->items[h->n++] = (struct text_host){arena_strdup(a, word), file, line};
	else
		h->full = true;
}

void text_hosts_of_parts(struct arena *a, struct text_hosts *h, const struct part *parts, size_t n)
{
	char name[HOST_SIZE];

	for (size_t i = 0; i < n; i++)
		if (parts[i].kind->host && parts[i].kind->host(&parts[i], name, sizeof(name)))
			text_hosts_add(a, h, name, parts[i].file, parts[i].lines[0].number);
}

/* ---- what the line above a part shows ---- */

size_t host_name_length(const char *s)
{
	return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-");
}

/* Behind "(base) ", the environments of Python that are in front of a prompt. */
static const char *behind_environments(const char *line)
{
	const char *end;

	while (*line == '(' && (end = strstr(line, ") ")))
		line = end + strlen(") ");
	return line;
}

/*
 * "root@gpu7:~# nvidia-smi", "[alice@gpu7 ~]$ dmesg"; returns the directory, NULL: no such prompt.
 */
static const char *host_of_prompt(const char *line, char buf[HOST_SIZE])
{
	const char *user = behind_environments(line), *at = strchr(user, '@');
	const char *s = at ? at + 1 : user;
	size_t n = at ? host_name_length(s) : 0;

	if (!n || memchr(user, ' ', (size_t)(at - user)) || !strchr(": ", s[n]) ||
	    !(strstr(s + n, "$ ") || strstr(s + n, "# ")))
		return NULL;
	text_copy(buf, HOST_SIZE, s, n);
	return s + n + 1;
}

/*
 * Of somebody with a home there. In a container one is root, in a directory that its image chose.
 */
static bool names_machine(const char *line, const char *directory)
{
	const char *user = behind_environments(line);

	return *directory == '~' || !text_starts_with(user + (*user == '['), "root@");
}

/* "gpu7 | CHANGED | rc=0 >>": what Ansible prints above the output of a host. */
static bool host_of_ansible(const char *line, char buf[HOST_SIZE])
{
	size_t n = host_name_length(line);

	if (!n || !text_starts_with(line + n, " | ") || !strstr(line + n, " | rc=") ||
	    !strstr(line + n, " >>"))
		return false;
	text_copy(buf, HOST_SIZE, line, n);
	return true;
}

bool host_is_sibling(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	if (strcmp(a, b) == 0 || !strpbrk(a, digits) || !strpbrk(b, digits))
		return false;
	for (;;) {
		a += strspn(a, digits);
		b += strspn(b, digits);
		if (*a != *b || !*a)
			return *a == *b;
		a++;
		b++;
	}
}

static void add_if_sibling(struct arena *a, struct text_hosts *to, const struct text_host *x,
			   const struct text_hosts *others)
{
	for (size_t i = 0; i < others->n; i++)
		if (host_is_sibling(x->name, others->items[i].name)) {
			text_hosts_add(a, to, x->name, x->file, x->line);
			return;
		}
}

void text_hosts_in_prompts(struct arena *a, struct prompt_hosts *h, const struct part *parts,
			   size_t n)
{
	char name[HOST_SIZE];

	for (size_t i = 0; i < n; i++) {
		const struct part *p = &parts[i];
		const char *directory = host_of_prompt(p->command, name);

		if (!directory)
			continue;
		text_hosts_add(a, &h->all, name, p->file, p->lines[0].number);
		if (names_machine(p->command, directory))
			text_hosts_add(a, &h->machines, name, p->file, p->lines[0].number);
	}
}

static void add_all(struct arena *a, struct text_hosts *to, const struct text_hosts *hosts)
{
	for (size_t i = 0; i < hosts->n; i++)
		text_hosts_add(a, to, hosts->items[i].name, hosts->items[i].file,
			       hosts->items[i].line);
}

void text_hosts_add_prompts(struct arena *a, struct text_hosts *h,
			    const struct prompt_hosts *prompts)
{
	const struct text_hosts named = *h, *all = &prompts->all;

	for (size_t i = 0; i < all->n; i++) {
		add_if_sibling(a, h, &all->items[i], all);
		add_if_sibling(a, h, &all->items[i], &named);
	}
	if (prompts->machines.n > 1)
		add_all(a, h, &prompts->machines);
}

/* ---- parts ---- */

/* What the part and the line above it show; NULL: neither names one of the hosts. */
static const char *own_host(const struct text_hosts *h, const struct part *p)
{
	char name[HOST_SIZE];

	if (p->kind->host && p->kind->host(p, name, sizeof(name)) && text_hosts_find(h, name))
		return text_hosts_find(h, name);
	if (host_of_prompt(p->command, name) || host_of_ansible(p->command, name))
		return text_hosts_find(h, name);
	return NULL;
}

/* The prompt above is of another machine, perhaps of a container. */
static bool is_foreign(const struct text_hosts *h, const struct part *p)
{
	char name[HOST_SIZE];

	return (host_of_prompt(p->command, name) || host_of_ansible(p->command, name)) &&
	       !text_hosts_find(h, name);
}

/* The only host that the text names; NULL: none, or several. */
static const char *only_host(const struct part *parts, size_t n)
{
	const char *only = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!parts[i].host)
			continue;
		if (only && only != parts[i].host)
			return NULL;
		only = parts[i].host;
	}
	return only;
}

void part_hosts_assign(const struct text_hosts *h, const char *host, struct part *parts, size_t n)
{
	const char *only;

	for (size_t i = 0; i < n; i++)
		parts[i].host = host ? text_hosts_find(h, host) : own_host(h, &parts[i]);
	only = only_host(parts, n);
	for (size_t i = 0; only && i < n; i++)
		if (!parts[i].host && !is_foreign(h, &parts[i]))
			parts[i].host = only;
}
