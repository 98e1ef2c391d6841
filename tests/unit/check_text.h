/* SPDX-License-Identifier: Apache-2.0 */
/* What a text that a program printed holds, for tests. */
#pragma once

/* Fails the test, and shows the text. */
void assert_has(const char *text, const char *part);
void assert_lacks(const char *text, const char *part);
/* The same text however its lines were broken; the caller frees. */
char *flat(const char *text);
/* A command outside of backquotes, which would be wrapped and could not be pasted; NULL: none. */
const char *bare_command(const char *text);
/*
 * The first line of a text written without wrapping that shows where a piece was empty: "()", a
 * label with nothing behind it, two blanks in a sentence. NULL: none. What files hold is not looked
 * at. The caller frees.
 */
char *leftover(const char *text);
/* The whole file, which has to be there; the caller frees. */
char *file_text(const char *path);
