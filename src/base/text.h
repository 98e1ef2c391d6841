/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers for text: numbers, lines, words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A whole number that fills the string, decimal or 0x hexadecimal, blanks around it allowed.
 * Returns 0, -EINVAL (not a number) or -ERANGE; sets no sentence, the caller knows the thing's
 * name.
 */
int text_to_u64(const char *s, uint64_t *ret);
int text_to_i64(const char *s, int64_t *ret);
/* The same of decimal digits alone, as people give a number to a command. */
int text_to_count(const char *s, uint64_t *ret);

bool text_starts_with(const char *s, const char *prefix);
bool text_starts_with_any(const char *s, const char *const *prefixes, size_t n);
/* "%zu %s", n, text_plural(n, "pair", "pairs"): "1 pair", "2 pairs". */
const char *text_plural(size_t n, const char *one, const char *many);
#define TEXT_ALL_SIZE 32
/* "all 56", "both"; put before a plural. */
const char *text_all(size_t n, char buf[static TEXT_ALL_SIZE]);
bool text_ends_with(const char *s, const char *suffix);
/* Cuts trailing white space and returns the first character that is none. Changes s. */
char *text_trim(char *s);

/*
 * Walks the lines of a text: `for (const char *l = NULL; text_next_line(&l, &n, text); )`.
 * l points into text and is not terminated; n excludes the newline.
 */
bool text_next_line(const char **line, size_t *n, const char *text);
/* Copies at most size-1 bytes of a line; always terminates. */
void text_copy(char *buf, size_t size, const char *s, size_t n);
/* Control characters become '?', in place. */
void text_printable(char *text);
/*
 * The last line with something in it, without white space around it; bytes that would not print
 * become '?'. "" if there is none. For what a program said before it failed.
 */
void text_last_line(const char *text, char *buf, size_t size);
/* True when the blank-separated list holds word; a word `key=` also matches `key=...`. */
bool text_has_word(const char *list, const char *word);
/* Whether a list, joined by `separator`, holds this item of n bytes. The list may be NULL. */
bool text_list_has(const char *list, const char *separator, const char *item, size_t n);
/*
 * The rest of the first line that starts with `prefix`, without white space around it; not
 * terminated. False if there is none. For "key value", "KEY=VALUE" and "key\t: value" files.
 */
bool text_after(const char *text, const char *prefix, const char **ret, size_t *ret_n);

/* "512 B", "64 KiB", "3 GiB": the largest unit of which it is a whole number. */
#define BYTES_TEXT_SIZE 32
const char *bytes_text(uint64_t bytes, char buf[static BYTES_TEXT_SIZE]);

/* FNV-1a of n bytes, going on from that of what was before them; TEXT_HASH_START: nothing was. */
#define TEXT_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t text_hash(uint64_t before, const void *bytes, size_t n);

/* The name among n (NULL: no row) that `word` most likely meant, NULL when none is near. */
const char *nearest_name(const char *word, const char *const *names, size_t n);
