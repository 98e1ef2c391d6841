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

/*
 * Opens a file of the folder for reading, and never waits: a file proper, of this user or of root,
 * that nobody else may write. Else whoever owns the folder decides what is believed. A descriptor,
 * or a negative errno with a sentence, which begins with the path and a colon if it is about what
 * the file is.
 */
int state_open(const char *path);
/* The same with these flags of open(2), whoever it belongs to. */
int state_open_regular(const char *path, int flags);
/* -EINVAL with that sentence. */
int state_not_regular(const char *path);
