/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the list of changes that `onehop fix` expects to be in force, for `check` to compare. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "machine/boot_entry.h"
#include "machine/efi_variable.h"
#include "machine/read.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define IN_FORCE "var/lib/onehop/in-force"
#define BOOT_ID  "proc/sys/kernel/random/boot_id"

/* Kinds that a newer onehop wrote are skipped. */
static const struct {
	const char *word;
	bool has_value;
} kinds[APPLIED_KIND_N] = {
	[APPLIED_KERNEL_PARAMETER] = {"kernel-parameter", false},
	[APPLIED_MODULE_OPTION] = {"module-option", true},
	[APPLIED_REGISTRY_DWORD] = {"registry-dword", true},
	[APPLIED_MODULE_BLACKLIST] = {"module-blacklist", false},
	[APPLIED_TRIAL] = {"trial", false},
	[APPLIED_UNFINISHED] = {"unfinished", false},
	[APPLIED_UNDONE] = {"undone", false},
	[APPLIED_ACS] = {"acs", true},
};

/* The next word of a line, which is changed; "" behind the last. */
static char *next_word(char **rest)
{
	char *word = *rest;

	word += strspn(word, " \t");
	*rest = word + strcspn(word, " \t");
	if (**rest)
		*(*rest)++ = '\0';
	return word;
}

/* Nothing writes this register again: after a reboot the value is not expected any more. */
#define ACS_NOW "acs-now"

static bool find_kind(const char *word, enum applied_kind *ret)
{
	for (enum applied_kind k = 0; k < APPLIED_KIND_N; k++) {
		if (strcmp(kinds[k].word, word) != 0)
			continue;
		*ret = k;
		return true;
	}
	return false;
}

static struct fact_int same_boot(struct fact_str boot, const char *then)
{
	if (!fact_known(boot))
		return INT_LIKE(boot);
	return fact_int(strcmp(boot.value, then) == 0, boot.from);
}

/* "fix 3 BOOT-ID acs 0000:22:00.0 0011"; false: it is not of that form. */
static bool read_line(struct reader *r, struct fact_str boot, char *line, const char *from)
{
	char *rest = line, *fix = next_word(&rest), *number = next_word(&rest);
	char *then = next_word(&rest), *kind = next_word(&rest);
	struct applied a = {.from = from};
	uint64_t n;

	if (strcmp(fix, "fix") != 0 || text_to_u64(number, &n) < 0 || n > UINT_MAX || !*kind)
		return false;
	if (strcmp(kind, ACS_NOW) == 0)
		a.kind = APPLIED_ACS;
	else if (!find_kind(kind, &a.kind))
		return true;
	a.fix = (unsigned)n;
	a.same_boot = same_boot(boot, then);
	a.target = kinds[a.kind].has_value ? next_word(&rest) : text_trim(rest);
	a.value = kinds[a.kind].has_value ? text_trim(rest) : "";
	if (!*a.target || (kinds[a.kind].has_value && !*a.value))
		return false;
	if ((strcmp(kind, ACS_NOW) == 0 || a.kind == APPLIED_UNDONE) && fact_is(a.same_boot, 0))
		return true;
	*ARENA_PUSH(r->m->arena, r->m->applied, r->m->applied_n) = a;
	return true;
}

/* ---- a trial's one-time entry ---- */

static bool grub_starts_trial(const char *block, size_t size)
{
	const char *value;
	size_t n;

	(void)size;
	return text_after(block, "next_entry=", &value, &n) && n == strlen(GRUB_ENTRY_TRIAL) &&
	       memcmp(value, GRUB_ENTRY_TRIAL, n) == 0;
}

static bool loader_starts_trial(const char *file, size_t size)
{
	AUTO_FREE char *lines = efi_lines(file, size);

	return text_starts_with(lines, BOOT_ENTRY_TRIAL);
}

/* Each boot loader clears its own before it starts the entry. */
static const struct {
	const char *path;
	bool (*starts_trial)(const char *file, size_t size);
} one_shots[] = {
	{"boot/grub2/grubenv", grub_starts_trial},
	{"boot/grub/grubenv", grub_starts_trial},
	{EFI_LOADER_VARIABLE("LoaderEntryOneShot"), loader_starts_trial},
};

/* Known to be unset only if each place could be read. */
static struct fact_int read_trial_set(struct reader *r)
{
	struct fact_int set = fact_int(0, one_shots[0].path);

	for (size_t i = 0; i < ARRAY_LEN(one_shots); i++) {
		const char *path = one_shots[i].path;
		AUTO_FREE char *file = NULL;
		size_t size;
		int e = source_read(r->s, &file, &size, "%s", path);

		if (e == 0 && one_shots[i].starts_trial(file, size))
			return fact_int(1, path);
		if (e < 0 && e != -ENOENT)
			set = fact_int_unknown(read_why(r, e, path));
	}
	return set;
}

static bool has_trial(const struct machine *m)
{
	for (size_t i = 0; i < m->applied_n; i++)
		if (m->applied[i].kind == APPLIED_TRIAL)
			return true;
	return false;
}

/* ---- all ---- */

/* The boot id is read, and recorded, only if something was changed. */
void applied_read(struct reader *r)
{
	struct fact_str text = read_text(r, IN_FORCE), boot;
	struct arena *a = r->m->arena;
	const char *line = NULL;
	unsigned number = 0;
	size_t n;

	r->m->applied_listed = fact_known(text) ? fact_int(1, text.from) : INT_LIKE(text);
	if (!fact_known(text) || !*text.value)
		return;
	boot = read_str(r, BOOT_ID);
	while (text_next_line(&line, &n, text.value)) {
		char *copy = arena_strndup(a, line, n);
		const char *from = arena_printf(a, IN_FORCE ":%u", ++number);

		if (*text_trim(copy) && !read_line(r, boot, text_trim(copy), from))
			read_trouble(r, from, "was not written by onehop fix");
	}
	if (has_trial(r->m))
		r->m->trial_set = read_trial_set(r);
}
