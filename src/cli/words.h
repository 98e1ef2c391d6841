/* SPDX-License-Identifier: Apache-2.0 */
/* What the shells complete where a fixed list in the completion file could be wrong. */
#pragma once

#include "cli/option.h"

struct strbuf;

struct word_list {
	const char *name; /* "rules", as the completion files ask for it; NULL: made by the shell */
	bool commas;      /* the value is several words with commas between them */
	/* A line for each word: the word, and where there is one a tab and its description. */
	void (*print)(struct strbuf *out);
};

extern const struct word_list word_lists[WORDS_N];

/* NULL: there is no such list. */
const struct word_list *word_list_find(const char *name);
