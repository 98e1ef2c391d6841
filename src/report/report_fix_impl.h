/* SPDX-License-Identifier: Apache-2.0 */
/* What the reports about fixes share; for report_fix*.c and report_history.c only. */
#pragma once

#include "base/texts.h"
#include "report/report_fix.h"

struct strbuf;

#define FIX_TEXT_COLUMN 4 /* behind "12. " */

/* Old and new content or value, and the command that is run. */
void add_step_change(struct document *out, const struct step *s, bool verbose);
/*
 * Of a step that its title tells: only the difference that it makes to what the boot loader reads.
 */
void add_step_made(struct document *out, const struct step *s, bool verbose);
/* The command that undoing it runs, if there is one. */
void add_step_undo(struct document *out, const struct step *s);
/* "now, until the next reboot"; NULL: now and from then on. */
const char *step_in_force(const struct step *s);
/* "2.  Write /etc/nccl.conf", from the step's own words. */
void add_step_title(struct document *out, size_t number, const char *title);
/* No trial boot is planned, and root may find that there can be one. */
bool trial_is_unknown(const struct plan_report *r);
/* " --root /mnt", which has to be said again; nothing for NULL. */
void add_root_words(struct strbuf *b, const char *root);
/* Reasons of one step that are printed before "and N more like these": 500 ports have 500. */
#define MAX_REASONS 6
/* "one; another; and 12 more like these" */
void add_texts(struct strbuf *b, const struct texts *l, size_t max);
