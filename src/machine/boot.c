/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files that show which tool manages the kernel command line, and GRUB's boot entries. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/boot_entry.h"
#include "machine/read.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define ENTRIES "boot/loader/entries"

static struct fact_int read_program(struct reader *r, const char *name)
{
	static const char *const folders[] = {"usr/sbin", "usr/bin", "sbin"};
	struct fact_int there = fact_int(0, name);

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		struct fact_int here = read_exists(r, "%s/%s", folders[i], name);

		if (fact_is(here, 1))
			return here;
		if (fact_unknown(here))
			there = here;
	}
	return there;
}

/*
 * A text file of the boot loader or its tools. If it is a pipe or very large, the user has to look
 * at it.
 */
static struct fact_str read_boot_text(struct reader *r, const char *path)
{
	const size_t first = r->m->trouble_n;
	const struct fact_str text = read_text(r, "%s", path);

	for (size_t i = first; i < r->m->trouble_n; i++)
		r->m->troubles[i].remedy =
			arena_printf(r->m->arena,
				     "check it with `ls -l /%s`: it should be a small text file",
				     path);
	return text;
}

/* ---- entries ---- */

/* "$kernelopts" of an entry; NULL if unknown. */
static const char *grub_variable(struct reader *r, const char *name)
{
	static const char *const files[] = {"boot/grub2/grubenv", "boot/grub/grubenv"};
	const char *key = arena_printf(r->m->arena, "%s=", name);

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		const struct fact_str text = read_boot_text(r, files[i]);
		const char *value;
		size_t n;

		if (fact_known(text) && text_after(text.value, key, &value, &n))
			return arena_strndup(r->m->arena, value, n);
	}
	return NULL;
}

/* Words in GRUB variables belong to the entry too. */
static void add_variables(struct reader *r, struct grub_entry *e, const char *words,
			  struct strbuf *options)
{
	for (const char *at = strchr(words, '$'); at; at = strchr(at + 1, '$')) {
		const char *name = arena_strndup(r->m->arena, at + 1, strcspn(at + 1, " "));
		const char *value = grub_variable(r, name);

		if (value)
			strbuf_printf(options, " %s", value);
		else if (strcmp(name, "kernelopts") == 0)
			e->unread = "$kernelopts";
	}
}

/* Boot loaders skip anything that is not a regular file. */
static bool is_file(struct reader *r, const char *path)
{
	AUTO_FREE char *text = NULL;
	size_t size;

	return source_read(r->s, &text, &size, "%s", path) != -EINVAL;
}

static void read_entry(struct reader *r, const char *name)
{
	struct machine *m = r->m;
	const char *path = arena_printf(m->arena, ENTRIES "/%s", name);
	AUTO_STRBUF struct strbuf options = {0};
	AUTO_FREE char *words = NULL;
	struct grub_entry *e;
	struct fact_str text;

	if (!is_file(r, path))
		return;
	e = ARENA_PUSH(m->arena, m->boot.entries, m->boot.entry_n);
	text = read_boot_text(r, path);
	words = boot_text_words(fact_str_or(text, ""), BOOT_TEXT_ENTRY);
	e->file = arena_printf(m->arena, "/%s", path);
	if (!fact_known(text))
		e->unread = e->file;
	strbuf_puts(&options, words);
	add_variables(r, e, words, &options);
	e->options = arena_strdup(m->arena, strbuf_str(&options));
}

static void read_entries(struct reader *r)
{
	char **names = NULL;
	size_t n = 0;

	read_list(r, &names, &n, ENTRIES);
	for (size_t i = 0; i < n; i++)
		if (boot_entry_id(names[i]) &&
		    text_ends_with(names[i], ".conf")) /* GRUB: not .CONF */
			read_entry(r, names[i]);
	source_free_names(names, n);
}

/* ---- kernelstub ---- */

/* "user", or the program's default if that is missing. */
static const json_t *user_options(const json_t *doc)
{
	const json_t *user = json_object_get(doc, "user");

	return json_object_get(user ? user : json_object_get(doc, "default"), "kernel_options");
}

static struct fact_str read_kernelstub(struct reader *r)
{
	const struct fact_str text = read_boot_text(r, "etc/kernelstub/configuration");
	json_t *doc = fact_known(text) ? json_loads(text.value, 0, NULL) : NULL;
	const json_t *options = user_options(doc);
	AUTO_STRBUF struct strbuf words = {0};
	struct fact_str fact = text;

	/* A list since revision 3; a text before that, and in some vendors' packages. */
	strbuf_puts(&words, json_is_string(options) ? json_string_value(options) : "");
	for (size_t i = 0; i < json_array_size(options); i++) {
		const char *word = json_string_value(json_array_get(options, i));

		strbuf_printf(&words, "%s%s", words.len ? " " : "", word ? word : "");
	}
	if (json_is_array(options) || json_is_string(options))
		fact.value = arena_strdup(r->m->arena, strbuf_str(&words));
	else if (fact_known(text))
		fact = fact_str_unknown(
			arena_printf(r->m->arena, "no kernel_options in /%s", text.from));
	json_decref(doc);
	return fact;
}

static struct fact_int read_entries_folder(struct reader *r)
{
	struct fact_int there = fact_int(0, "loader/entries");

	for (size_t i = 0; boot_partitions[i] && !fact_is(there, 1); i++)
		there = read_exists(r, "%s/loader/entries", boot_partitions[i]);
	return there;
}

void boot_read(struct reader *r)
{
	static const char *const programs[BOOT_PROGRAM_N] = {
		[BOOT_GRUB_MKCONFIG] = "grub-mkconfig",
		[BOOT_GRUB2_MKCONFIG] = "grub2-mkconfig",
		[BOOT_PROXMOX_TOOL] = "proxmox-boot-tool",
		[BOOT_KERNELSTUB] = "kernelstub",
	};
	struct boot *b = &r->m->boot;

	for (size_t i = 0; i < BOOT_PROGRAM_N; i++)
		b->programs[i] = read_program(r, programs[i]);
	b->kernel_line = read_exists(r, "etc/kernel/cmdline");
	b->entries_folder = read_entries_folder(r);
	b->proxmox_partitions = read_exists(r, "etc/kernel/proxmox-boot-uuids");
	b->ostree = read_exists(r, "run/ostree-booted");
	b->kernelstub = read_kernelstub(r);
	read_entries(r);
}
