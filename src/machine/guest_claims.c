/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files have vfio-pci take devices at the next boot: what kernel command lines are made from, lists of
 * modules that are loaded early, and driverctl's overrides. What modprobe.d says is in `modprobe`.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "machine/boot_entry.h"
#include "machine/read.h"
#include "machine/usable.h"

#include <string.h>

struct claim_file {
	struct reader *r;
	const char *from;
};

static void claim(const struct claim_file *f, enum guest_claim_kind kind, const char *text)
{
	struct machine *m = f->r->m;

	*ARENA_PUSH(m->arena, m->guest_claims, m->guest_claim_n) =
		(struct guest_claim){kind, text, f->from};
}

/* ---- one line ---- */

static void take_parameter(const struct claim_file *f, char *line)
{
	if (strstr(line, "vfio-pci.ids=") || strstr(line, "vfio_pci.ids="))
		claim(f, GUEST_PARAMETER, line);
}

/* "vfio-pci ids=10de:2684" of a list with a module in each line. */
static void take_module(const struct claim_file *f, char *line)
{
	const char *name = strsep(&line, " \t");

	if (module_is_vfio(name))
		claim(f, GUEST_MODULE, line ? line : "");
}

/* "MODULES=(vfio_pci vfio)", "force_drivers+=" vfio-pci "": any of the words. */
static void take_words(const struct claim_file *f, char *line)
{
	char *word;

	while ((word = strsep(&line, " \t=\"'()")))
		if (module_is_vfio(word))
			claim(f, GUEST_MODULE, "");
}

static void take_mkinitcpio(const struct claim_file *f, char *line)
{
	if (text_starts_with(line, "MODULES"))
		take_words(f, line);
}

/* Those of add_drivers are there, and not loaded by that. */
static void take_dracut(const struct claim_file *f, char *line)
{
	if (text_starts_with(line, "force_drivers"))
		take_words(f, line);
}

/* ---- files ---- */

typedef void line_taker(const struct claim_file *f, char *line);

static void take_lines(struct reader *r, struct fact_str text, line_taker *take)
{
	const struct claim_file f = {r, arena_printf(r->m->arena, "/%s", text.from)};
	const char *line = NULL;
	size_t n;

	while (fact_known(text) && text_next_line(&line, &n, text.value)) {
		char *copy = text_trim(arena_strndup(r->m->arena, line, n));

		if (*copy && *copy != '#')
			take(&f, copy);
	}
}

/* A boot entry, or the file that later ones are made from: its words in one line. */
static void take_words_of(struct reader *r, struct fact_str text)
{
	const struct claim_file f = {r, arena_printf(r->m->arena, "/%s", text.from)};
	AUTO_FREE char *words =
		fact_known(text) ? boot_text_words(text.value, boot_text_of(text.from)) : NULL;

	if (words)
		take_parameter(&f, arena_strdup(r->m->arena, words));
}

/* NULL: it is one with the words of a kernel command line. */
static void take_file(struct reader *r, const char *path, line_taker *take)
{
	const struct fact_str text = read_text(r, "%s", path);

	if (take)
		take_lines(r, text, take);
	else
		take_words_of(r, text);
}

static void take_folder(struct reader *r, const char *folder, const char *suffix, line_taker *take)
{
	char **names = NULL;
	size_t n = 0;

	read_list(r, &names, &n, "%s", folder);
	for (size_t i = 0; i < n; i++)
		if (text_ends_with(names[i], suffix))
			take_file(r, arena_printf(r->m->arena, "%s/%s", folder, names[i]), take);
	source_free_names(names, n);
}

/* Where driverctl keeps "pci-0000:41:00.0", which holds the name of a driver. */
static void take_overrides(struct reader *r)
{
	static const char folder[] = "etc/driverctl.d", start[] = "pci-";
	char **names = NULL;
	size_t n = 0;

	read_list(r, &names, &n, "%s", folder);
	for (size_t i = 0; i < n; i++) {
		const char *path = arena_printf(r->m->arena, "/%s/%s", folder, names[i]);
		const struct fact_str driver = read_str(r, "%s", path + 1);
		const struct claim_file f = {r, path};

		if (text_starts_with(names[i], start) && fact_known(driver) &&
		    driver_is_for_guests(driver.value))
			claim(&f, GUEST_OVERRIDE,
			      arena_strdup(r->m->arena, names[i] + strlen(start)));
	}
	source_free_names(names, n);
}

/* `suffix`: of the names in a folder; NULL: a file. `take`: as take_file's. */
static const struct {
	const char *path, *suffix;
	line_taker *take;
} places[] = {
	{"etc/default/grub", NULL, take_parameter},
	{"etc/default/grub.d", ".cfg", take_parameter},
	{"etc/kernel/cmdline", NULL, NULL},
	{"etc/kernelstub/configuration", NULL, take_parameter},
	{"boot/loader/entries", ".conf", NULL},
	{"efi/loader/entries", ".conf", NULL},
	{"boot/efi/loader/entries", ".conf", NULL},
	{"boot/refind_linux.conf", NULL, take_parameter},
	{"etc/initramfs-tools/modules", NULL, take_module},
	{"etc/modules", NULL, take_module},
	{"etc/modules-load.d", ".conf", take_module},
	{"etc/dracut.conf", NULL, take_dracut},
	{"etc/dracut.conf.d", ".conf", take_dracut},
	{"etc/mkinitcpio.conf", NULL, take_mkinitcpio},
	{"etc/mkinitcpio.conf.d", ".conf", take_mkinitcpio},
};

void guest_claims_read(struct reader *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (places[i].suffix)
			take_folder(r, places[i].path, places[i].suffix, places[i].take);
		else
			take_file(r, places[i].path, places[i].take);
	take_overrides(r);
}
