/* SPDX-License-Identifier: Apache-2.0 */
/* What journal*.c share. */
#pragma once

#include "fix/journal.h"

#include <jansson.h>

/* The text of plan.json; the caller frees. -EINVAL with a sentence: something in it is not a string. */
int journal_plan_text(const struct journal_entry *e, char **ret);
/* The plan with its number, date and boot; `where` is for sentences. */
int journal_plan_parse(const char *text, size_t size, const char *where, struct journal_entry *ret);

/* The text of a line of the log, without what chains it to the one before; the caller frees. */
char *journal_mark_text(const struct journal_entry *e, size_t step, enum step_mark mark,
			const char *text, const char *output);
char *journal_state_text(enum fix_state state, const char *boot_id);
/* The line of that text, with its newline, behind the line with the sum `before`, and its sum; the caller frees. */
char *journal_line(const char *before, const char *text, char ret[static JOURNAL_CHAIN]);
/* Puts what the log says into the entry. */
int journal_log_parse(const char *text, size_t size, const char *where, struct journal_entry *e);
/* Date and state, without a plan and past lines that onehop did not write. */
void journal_log_glance(const char *text, size_t size, struct journal_entry *e);
/* The entry itself, after a line of the log. */
void journal_note_mark(struct journal_entry *e, size_t step, enum step_mark mark, const char *text);
void journal_note_state(struct journal_entry *e, enum fix_state state, const char *boot_id);
/* How much of it is whole lines: less than `size` if the last was torn. */
size_t journal_log_whole(const char *text, size_t size);

/* How far a fix on trial is: what runs, and what the boot loader is to start next. */
void journal_note_trial(struct fix_host *h, struct journal_entry *e);

/* Of an entry of an earlier release, whose contents are read: its steps as they are undone today. */
void journal_amend(struct journal_entry *e);
