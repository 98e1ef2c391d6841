/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `lspci -t`, -tv and -tn: which bridge each function is below.
 *
 *   -+-[0000:80]-+-00.0
 *    \-[0000:00]-+-01.1-[01-04]----00.0-[02-04]--+-00.0-[03]----00.0
 *                |                               \-01.0-[04]--
 *
 * A branch continues in the column where it began.
 */
#include "ingest/claims.h"
#include "ingest/part_kinds.h"

#include "base/array.h"
#include "base/text.h"
#include "machine/pci.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

/* "-[0000:00]-" at the start, or behind "-+" or "\". */
static const char *root_at(const char *s)
{
	unsigned domain, bus;
	int end = 0;

	s += strspn(s, " -+|\\");
	return sscanf(s, "[%8x:%2x]%n", &domain, &bus, &end) == 2 && end ? s : NULL;
}

static bool is_tree_line(const struct text_line *l)
{
	const char *s = line_text(l);

	return (*s == '|' || *s == '\\' || *s == '+' || *s == '-') &&
	       (strstr(s, "+-") || strstr(s, "\\-") || strchr(s, '|') || root_at(s));
}

/*
 * The characters in front of the name that -v prints behind a function, "00.0 NVIDIA Corporation
 * ...".
 */
static size_t drawn_length(const char *s)
{
	for (const char *dot = s; (dot = strchr(dot, '.')); dot++)
		if (isxdigit((unsigned char)dot[1]) && dot[2] == ' ' && dot[3] == ' ')
			return (size_t)(dot - s);
	return strlen(s);
}

/*
 * "| +-01.0" and "+-01.1-[41]--+-00.0": a line below it goes on in the column of its last mark.
 */
static bool goes_on(const struct text_line *l)
{
	const char *s = line_text(l);
	const size_t n = drawn_length(s);

	return memchr(s, '|', n) || memmem(s, n, "+-", 2);
}

size_t lspci_tree_match(struct part *p, const struct text_line *lines, size_t n)
{
	const char *s = line_text(&lines[0]);
	size_t end = 1;

	if (*s != '-' || !root_at(s))
		return 0;
	while (end < n && is_tree_line(&lines[end]))
		end++;
	p->ended = !goes_on(&lines[end - 1]);
	p->cut_at = p->ended ? 0 : lines[end - 1].number;
	return end;
}

/* A bus whose functions a column of the tree lists. */
struct level {
	size_t column; /* of the mark before its functions */
	unsigned domain, bus;
	char bridge[PCI_ADDRESS_LEN]; /* "": a root bus */
};

struct tree {
	const struct part *part;
	struct claims *claims;
	struct level levels[MOST_DEPTH];
	size_t n;
};

/* The level whose branch has a mark in this column. */
static struct level *level_at(struct tree *t, size_t column)
{
	while (t->n && t->levels[t->n - 1].column > column)
		t->n--;
	return t->n && t->levels[t->n - 1].column == column ? &t->levels[t->n - 1] : NULL;
}

static void push(struct tree *t, size_t column, unsigned domain, unsigned bus, const char *bridge)
{
	struct level *l;

	while (t->n && t->levels[t->n - 1].column >= column)
		t->n--;
	if (t->n == MOST_DEPTH)
		return;
	l = &t->levels[t->n++];
	*l = (struct level){.column = column, .domain = domain, .bus = bus};
	text_copy(l->bridge, sizeof(l->bridge), bridge, strlen(bridge));
}

/* In sysfs's words: "pci0000:40". */
static void claim_root(struct claims *c, struct claim_at at, const struct level *l,
		       const char *name)
{
	char root[32];

	snprintf(root, sizeof(root), "pci%04x:%02x", l->domain, l->bus);
	claim(c, at, root, "sys/bus/pci/devices/%s/stated/root", name);
}

/*
 * "  NVIDIA Corporation AD102 [GeForce RTX 4090]" of -tv: a GPU is the first function of its device; the list of names tells
 * it from NVIDIA's other devices.
 */
static void claim_gpu_name(struct tree *t, struct claim_at at, const char *name, const char *s)
{
	static const char *const others[] = {"NVSwitch", "Audio",    "USB",
					     "Bridge",   "Ethernet", "Network"};
	const char *open, *close;
	char model[64];

	s += strspn(s, " ");
	open = text_starts_with(s, "NVIDIA Corporation ") ? strchr(s, '[') : NULL;
	close = open ? strchr(open, ']') : NULL;
	if (!close || !text_ends_with(name, ".0") || close - open > 50 ||
	    memchr(open, ':', (size_t)(close - open)))
		return;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (strstr(s, others[i]))
			return;
	snprintf(model, sizeof(model), "NVIDIA %.*s", (int)(close - open - 1), open + 1);
	claim_nvidia(t->claims, at, name);
	claim(t->claims, at, model, "sys/bus/pci/devices/%s/stated/model", name);
}

/*
 * A function on the level's bus: "01.1", perhaps a bridge, "01.1-[01-04]". Returns the rest of the
 * text.
 */
static const char *read_function(struct tree *t, const struct text_line *line,
				 const struct level *level, const char *s)
{
	unsigned device, function, first, last;
	struct claim_at at = CLAIM_AT(t->part, line);
	char address[32], name[PCI_ADDRESS_LEN];
	int end = 0, bus_end = 0, columns = 0;

	if (sscanf(s, "%2x.%1x%n", &device, &function, &end) != 2 || end != 4 || device > 31 ||
	    function > 7)
		return NULL;
	snprintf(address, sizeof(address), "%x:%02x:%02x.%x", level->domain, level->bus, device,
		 function);
	if (!claim_function(t->claims, at, address, name))
		return NULL;
	if (*level->bridge)
		claim(t->claims, at, level->bridge, "sys/bus/pci/devices/%s/stated/parent", name);
	else
		claim_root(t->claims, at, level, name);
	s += end;
	if (sscanf(s, "-[%2x-%2x]%n", &first, &last, &bus_end) != 2 || !bus_end) {
		bus_end = 0;
		last = 0;
		if (sscanf(s, "-[%2x]%n", &first, &bus_end) != 1 || !bus_end) {
			claim_gpu_name(t, at, name, s);
			return s;
		}
		last = first;
	}
	claim_number(t->claims, at, first, "sys/bus/pci/devices/%s/stated/secondary_bus", name);
	claim_number(t->claims, at, last, "sys/bus/pci/devices/%s/stated/subordinate_bus", name);
	claim(t->claims, at, "0x060400", "sys/bus/pci/devices/%s/class", name);
	s += bus_end;
	columns = (int)strspn(s, "-");
	if (!columns)
		return s;
	s += columns;
	if (*s == '+') /* several functions below it: their marks are in this column */
		s++;
	push(t, (size_t)(s - 1 - line->text), level->domain, first, name);
	return s + (*s == '-');
}

/* Reads from a mark to the end of the line: functions, each below the one before it. */
static void read_chain(struct tree *t, const struct text_line *line, const char *s,
		       struct level *level)
{
	while (level && s && *s) {
		size_t before = t->n;
		struct level copy = *level;

		s = read_function(t, line, &copy, s);
		if (!s || t->n == before || !isxdigit((unsigned char)*s))
			return;
		level = &t->levels[t->n - 1];
	}
}

static void read_root(struct tree *t, const struct text_line *line, const char *s)
{
	unsigned domain = 0, bus = 0;

	(void)sscanf(s, "[%8x:%2x]", &domain, &bus);
	s = strchr(s, ']') + 1;
	s += strspn(s, "-");
	if (*s == '+')
		s++;
	t->n = 0;
	push(t, (size_t)(s - 1 - line->text), domain, bus, "");
	if (*s == '-')
		s++;
	if (t->n)
		read_chain(t, line, s, &t->levels[0]);
}

/* "|   +-01.0-[03]----00.0": the first mark of the line that opens a branch. */
static void read_branch(struct tree *t, const struct text_line *line)
{
	const char *s = line->text, *mark;
	struct level *level;

	for (mark = s; *mark && strchr(" |", *mark); mark++)
		;
	if ((*mark != '+' && *mark != '\\') || mark[1] != '-')
		return;
	level = level_at(t, (size_t)(mark - s));
	if (level)
		read_chain(t, line, mark + 2, level);
}

void lspci_tree_decode(const struct part *p, struct claims *c)
{
	struct tree t = {.part = p, .claims = c};

	for (size_t i = 0; i < p->n; i++) {
		const char *root = root_at(p->lines[i].text);

		if (root && (i == 0 || strcspn(line_text(&p->lines[i]), "0123456789") > 0))
			read_root(&t, &p->lines[i], root);
		else
			read_branch(&t, &p->lines[i]);
	}
}
