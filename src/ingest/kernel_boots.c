/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the boots that one kernel log shows. */
#include "ingest/part_kinds.h"

#include "base/alloc.h"
#include "base/text.h"
#include "machine/kernel_log.h"
#include "machine/machine.h"
#include "machine/observed.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_SIZE = 64, VALUE_SIZE = 200, MOST_FACTS = 128 };

struct boot_fact {
	char key[KEY_SIZE], value[VALUE_SIZE];
	unsigned line;
};

/* Of one boot, each key once. */
struct one_boot {
	struct boot_fact facts[MOST_FACTS];
	size_t n;
};

/* ---- lines ---- */

static void put(struct boot_fact *ret, const char *key, const char *s, size_t n)
{
	text_copy(ret->key, sizeof(ret->key), key, strlen(key));
	text_copy(ret->value, sizeof(ret->value), s, n);
}

static bool copy_word(struct boot_fact *ret, const char *key, const char *s)
{
	put(ret, key, s, strcspn(s, " "));
	return *ret->value != '\0';
}

static bool read_cmdline(const char *s, struct boot_fact *ret)
{
	static const char key[] = "Kernel command line: ";

	if (!text_starts_with(s, key))
		return false;
	s += strlen(key);
	put(ret, "the kernel's command line", s, strlen(s));
	return true;
}

/* "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build ..." */
static bool read_driver(const char *s, struct boot_fact *ret)
{
	const char *version;

	if (!text_starts_with(s, "NVRM: loading NVIDIA UNIX"))
		return false;
	for (version = s; (version = strchr(version, ' ')); version++)
		if (isdigit((unsigned char)version[1]) && strspn(version + 1, "0123456789.") > 4)
			return copy_word(ret, "NVIDIA's driver", version + 1);
	return false;
}

/*
 * "pci 0000:01:00.0: BAR 1 [mem 0x380000000000-0x3807ffffffff 64bit pref]"; before Linux 6.8
 * "reg 0x14: [mem ...". BAR 1 is the one through which GPUs see each other's memory.
 */
static bool read_bar1(const char *s, struct boot_fact *ret)
{
	enum { SMALLEST_MIB = 16 };
	uint64_t first, last;
	size_t n;

	if (!text_starts_with(s, "pci "))
		return false;
	s += strlen("pci ");
	n = strspn(s, "0123456789abcdef:.");
	if (n < 7 || n > 24 || s[n - 1] != ':')
		return false;
	if ((sscanf(s + n - 1, ": BAR 1 [mem 0x%" SCNx64 "-0x%" SCNx64, &first, &last) != 2 &&
	     sscanf(s + n - 1, ": reg 0x14: [mem 0x%" SCNx64 "-0x%" SCNx64, &first, &last) != 2) ||
	    last < first || (last - first) >> 20 < SMALLEST_MIB - 1)
		return false;
	snprintf(ret->key, sizeof(ret->key), "BAR 1 of %.*s", (int)(n - 1), s);
	snprintf(ret->value, sizeof(ret->value), "%" PRIu64 " MiB", (last - first + 1) >> 20);
	return true;
}

/* "pci 0000:22:00.0: Configured ACS to 0x11": pci=config_acs= of Linux 6.11. */
static bool read_acs(const char *s, struct boot_fact *ret)
{
	const char *mark = strstr(s, ": Configured ACS to ");
	char key[KEY_SIZE];

	if (!text_starts_with(s, "pci ") || !mark || mark - s > 24)
		return false;
	snprintf(key, sizeof(key), "ACS of %.*s", (int)(mark - s - 4), s + 4);
	return copy_word(ret, key, mark + strlen(": Configured ACS to "));
}

static bool read_release(const char *s, struct boot_fact *ret)
{
	static const char key[] = "Linux version ";

	return text_starts_with(s, key) && copy_word(ret, "the kernel", s + strlen(key));
}

/* "DMI: Supermicro SYS-421GE-TNRT/X13DEG-OA, BIOS 2.1 10/30/2023" */
static bool read_firmware(const char *s, struct boot_fact *ret)
{
	static const char key[] = "DMI: ";
	const char *bios = text_starts_with(s, key) ? strstr(s, ", BIOS ") : NULL;

	if (!bios)
		return false;
	bios += strlen(", ");
	put(ret, "the firmware", bios, strlen(bios));
	return true;
}

static bool read_fact(const struct text_line *l, struct boot_fact *ret)
{
	static bool (*const readers[])(const char *s, struct boot_fact *ret) = {
		read_release, read_cmdline, read_driver, read_bar1, read_acs, read_firmware,
	};
	const char *message = kernel_log_message(line_text(l));

	/* Most lines begin otherwise. */
	if (!strchr("LKNpD", *message))
		return false;
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
		if (readers[i](message, ret)) {
			ret->line = l->number;
			return true;
		}
	return false;
}

bool kernel_line_is_of_boot(const struct text_line *l)
{
	struct boot_fact f;

	return read_fact(l, &f);
}

/* ---- boots ---- */

static const struct boot_fact *find_fact(const struct one_boot *b, const char *key)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->facts[i].key, key) == 0)
			return &b->facts[i];
	return NULL;
}

static void add_difference(const struct part *p, struct machine *m, const struct boot_fact *was,
			   const struct boot_fact *is)
{
	struct observed *o = observed_add(m, OBSERVED_MESSAGE, -1, -1,
					  arena_printf(m->arena, "%s:%u", p->file, is->line));

	o->message = MESSAGE_BOOT_DIFFERS;
	o->text = arena_printf(m->arena, "%s: '%s' at line %u, '%s' at line %u", is->key,
			       was->value, was->line, is->value, is->line);
}

static void compare(const struct part *p, struct machine *m, const struct one_boot *was,
		    const struct one_boot *is)
{
	for (size_t i = 0; i < is->n; i++) {
		const struct boot_fact *old = find_fact(was, is->facts[i].key);

		if (old && strcmp(old->value, is->facts[i].value) != 0)
			add_difference(p, m, old, &is->facts[i]);
	}
}

/*
 * The last boot and the one before it; what only one of them shows may have been left out of the
 * text.
 */
void kernel_lines_observe(const struct part *p, struct machine *m)
{
	struct arena *a = arena_new();
	struct one_boot *was = arena_alloc(a, 1, sizeof(*was)),
			*is = arena_alloc(a, 1, sizeof(*is));

	for (size_t i = 0; i < p->n; i++) {
		struct boot_fact f;

		if (!read_fact(&p->lines[i], &f))
			continue;
		if (kernel_line_is_first(&p->lines[i]) && is->n) {
			*was = *is;
			is->n = 0;
		}
		if (!find_fact(is, f.key) && is->n < MOST_FACTS)
			is->facts[is->n++] = f;
	}
	compare(p, m, was, is);
	arena_free(a);
}
