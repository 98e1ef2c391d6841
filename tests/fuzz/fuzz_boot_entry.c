/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as an entry and as a command line: a word that is added is there, and taken away leaves
 * what was. Any bytes as a unified kernel image.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/boot_entries.h"
#include "machine/boot_image.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORD "iommu=pt"

static void add_and_remove(const char *text, enum boot_text form)
{
	AUTO_STRBUF struct strbuf with = {0}, without = {0};
	AUTO_FREE char *words = boot_text_words(text, form);
	size_t n = strlen(text);

	if (!boot_text_add(text, form, WORD, &with)) {
		if (with.len)
			abort();
		return;
	}
	if (!boot_text_has(strbuf_str(&with), form, WORD) ||
	    !boot_text_remove(strbuf_str(&with), form, WORD, &without))
		abort();
	/* A line of its own ends the line before it. */
	if (strcmp(strbuf_str(&without), text) != 0 && (*words || text_ends_with(text, "\n")) && n)
		abort();
}

/* A text has nothing that it had not before, and the word itself is no change of it. */
static void find_changed(const char *text, enum boot_text form)
{
	AUTO_FREE char *since = boot_text_changed(text, form, WORD, text);
	AUTO_FREE char *any = boot_text_changed(text, form, WORD, NULL);

	if (since || (any && strcmp(any, WORD) == 0))
		abort();
}

static void read_as_entry(const char *text)
{
	static const char id[] = "0123456789abcdef0123456789abcdef\n";
	struct arena *a = arena_new();
	struct source *s = source_new_map("fuzz");
	struct boot_entries b;

	source_put_file(s, "etc/machine-id", id, strlen(id));
	source_put_list(s, "boot/loader/entries", "1.conf\n");
	source_put_file(s, "boot/loader/entries/1.conf", text, strlen(text));
	boot_entries_read(s, a, "root=/dev/sda1 ro", &b);
	if (b.n != 1 || strcmp(b.items[0].text, text) != 0)
		abort();
	source_free(s);
	arena_free(a);
}

/* Without the lines of a key there is no such key, and the others are as they were. */
static void drop_a_key(const char *text)
{
	AUTO_STRBUF struct strbuf left = {0};
	AUTO_FREE char *before = boot_text_words(text, BOOT_TEXT_ENTRY), *after = NULL;
	const char *value;
	size_t n;

	boot_entry_drop(text, "title", &left);
	after = boot_text_words(strbuf_str(&left), BOOT_TEXT_ENTRY);
	if (boot_entry_get(strbuf_str(&left), "title", &value, &n) || strcmp(before, after) != 0)
		abort();
}

/* Words are of one line, and not empty. */
static void read_as_image(const uint8_t *data, size_t size)
{
	AUTO_CLOSE int fd = memfd_create("image", MFD_CLOEXEC);
	AUTO_FREE char *words = NULL;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (boot_image_words(fd, &words) < 0 || (words && (!*words || strpbrk(words, "\r\n"))))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = xstrndup((const char *)data, size);

	add_and_remove(text, BOOT_TEXT_ENTRY);
	add_and_remove(text, BOOT_TEXT_LINE);
	drop_a_key(text);
	find_changed(text, BOOT_TEXT_ENTRY);
	find_changed(text, BOOT_TEXT_LINE);
	read_as_entry(text);
	boot_entry_same(text, WORD);
	if (size)
		read_as_image(data, size);
	return 0;
}
