/* SPDX-License-Identifier: Apache-2.0 */
/* Where a user's results are kept from one run to the next. */
#pragma once

/*
 * $XDG_STATE_HOME/onehop, or ~/.local/state/onehop; the caller frees. NULL: neither is set to an
 * absolute path. Nothing is made.
 */
char *state_folder(void);
/* The same, made with its parents, for its owner alone. 0, or a negative errno with a sentence. */
int state_folder_make(char **ret);

/* The variable that it comes from, "XDG_STATE_HOME" or "HOME"; NULL with it. */
const char *state_variable(void);
/* -ENOENT with the sentence for a NULL of state_folder. */
int state_missing(void);
/* -err and "cannot VERB PATH (the folder comes from XDG_STATE_HOME): permission denied". */
int state_refuse(int err, const char *verb, const char *path);
