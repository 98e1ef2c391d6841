/* SPDX-License-Identifier: Apache-2.0 */
/* The boot menu that a grub.cfg makes: which entry GRUB starts by itself, and a copy of it. */
#pragma once

#include "base/alloc.h"

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/*
 * The lines of a grub.cfg that 10_linux and its like have made: the entries that get GRUB_CMDLINE_LINUX and
 * its like. Without grub-mkconfig's marks it is all of the text. The caller frees.
 */
char *grub_own_entries(const char *text);
/*
 * The locale that grub-mkconfig made a grub.cfg in, as "set lang=" there shows: titles of entries are in its language.
 * NULL: none. The caller frees.
 */
char *grub_locale(const char *text);

/* One entry of the menu; offsets are into the grub.cfg. */
struct grub_item {
	const char *title, *id; /* id NULL: none */
	long parent;            /* index of the submenu that it is in; -1: none */
	bool submenu;
	bool maybe; /* in an "if", or a file that is sourced: whether it is there is unknown */
	size_t begin, end; /* of all of it, "menuentry" to "}" */
	size_t body;       /* behind "{" */
};

struct grub_menu {
	const char *text;
	struct grub_item *entries; /* in the order of the file */
	size_t n;
	const char *choice; /* of "set default=", next_entry aside; NULL: none, or several */
	bool sets_default;  /* somewhere in it */
	bool leaves;        /* a command outside of entries ends the reading of the file */
	bool blscfg;        /* entries come from files of their own */
	bool clears_next;   /* loads next_entry, and clears it before that entry is started */
	size_t custom;      /* where custom.cfg is sourced; 0: nowhere */
};

/* All that it names is the arena's. False: braces or quotes do not match. */
bool grub_menu_parse(struct arena *a, const char *text, struct grub_menu *ret);
/*
 * The entry that `choice` names: numbers, identifiers or titles with ">" between, as GRUB reads
 * them; "" is the first. NULL with *ret_why, one clause: there is none, or nobody can tell.
 */
const struct grub_item *grub_menu_find(struct arena *a, const struct grub_menu *m,
				       const char *choice, const char **ret_why);
/* The number of a top-level entry that can be started if another cannot; -1: there is none. */
long grub_menu_fallback(const struct grub_menu *m, const struct grub_item *e);

/* The words of the entry's only "linux" command; NULL: it has none, or several. */
const char *grub_item_line(struct arena *a, const struct grub_menu *m, const struct grub_item *e);
/*
 * The entry once more under another name, with words behind those that its kernel gets (before a
 * "--"), and without what makes it the saved default. grub_item_line is not NULL.
 */
void grub_item_copy(const struct grub_menu *m, const struct grub_item *e, const char *title,
		    const char *id, const char *words, struct strbuf *out);
