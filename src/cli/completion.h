/* SPDX-License-Identifier: Apache-2.0 */
/* What the completions of all shells are made of. */
#pragma once

#include "cli/command.h"
#include "cli/words.h"

/* How a shell writes what may be an option's value. */
struct completion_values {
	const char *file;
	const char *choices, *choices_end;                       /* around the words */
	const char *other;                                       /* neither; NULL: nothing */
	void (*add_words)(struct strbuf *out, enum words words); /* that the program lists */
};

void completion_add_value(struct strbuf *out, const struct option *o,
			  const struct completion_values *values);

/* Characters of the name's first word. */
size_t completion_first_word(const struct command *c);
/* Whether the name has two words, and no row before this one has the same first word. */
bool completion_opens_group(const struct command *const *c);
/* What is offered as the first word. */
bool completion_is_offered(const struct command *const *c);
/* The second words of the group that the row opens. */
void completion_add_group(struct strbuf *out, const struct command *opener);
