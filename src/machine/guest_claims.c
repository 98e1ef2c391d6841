/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files have vfio-pci take devices at the next boot: what kernel command lines are made from,
 * lists of modules that are loaded early, and driverctl's overrides. What modprobe.d says is in
 * `modprobe`.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
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
	if (line_loads_vfio(line))
		claim(f, GUEST_MODULE, "");
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

	while ((word = strsep(&line, " \t\n=\"'()")))
		if (module_is_vfio(word))
			claim(f, GUEST_MODULE, "");
}

static void take_mkinitcpio(const struct claim_file *f, char *line)
{
	if (text_starts_with(line, "MODULES"))
		take_words(f, line);
}

/* add_drivers only adds modules to the image; it does not load them. */
static void take_dracut(const struct claim_file *f, char *line)
{
	if (text_starts_with(line, "force_drivers"))
		take_words(f, line);
	else if (text_starts_with(line, "kernel_cmdline"))
		take_parameter(f, line);
}

/* ---- files ---- */

typedef void line_taker(const struct claim_file *f, char *line);

static void take_copy(const struct claim_file *f, const char *line, line_taker *take)
{
	char *copy = text_trim(arena_strdup(f->r->m->arena, line));

	if (*copy && *copy != '#')
		take(f, copy);
}

static void take_lines(struct reader *r, struct fact_str text, line_taker *take)
{
	const struct claim_file f = {r, arena_printf(r->m->arena, "/%s", text.from)};
	const char *line = NULL;
	size_t n;

	while (fact_known(text) && text_next_line(&line, &n, text.value)) {
		AUTO_FREE char *copy = xstrndup(line, n);

		take_copy(&f, copy, take);
	}
}

/* Where a shell script is: in quotes, within "(...)". */
struct shell {
	char quote; /* '\0': none is open */
	bool list;
};

static void see_char(struct shell *s, char c)
{
	if (s->quote)
		s->quote = c == s->quote ? '\0' : s->quote;
	else if (c == '"' || c == '\'')
		s->quote = c;
	else if (c == '(' || c == ')')
		s->list = c == '(';
}

static bool begins_comment(const struct shell *s, const char *text, const char *at)
{
	return *at == '#' && !s->quote && (at == text || strchr(" \t\n(", at[-1]));
}

/*
 * The next line as a shell reads it: it continues within quotes, within a list and after a
 * backslash; comments are dropped.
 */
static const char *next_shell_line(const char *text, const char *at, struct strbuf *ret)
{
	struct shell s = {0};

	for (; *at && (*at != '\n' || s.quote || s.list); at++) {
		if (begins_comment(&s, text, at)) {
			at += strcspn(at, "\n");
			at--;
		} else if (at[0] == '\\' && at[1] && s.quote != '\'') {
			if (*++at != '\n')
				strbuf_putc(ret, *at);
		} else {
			see_char(&s, *at);
			strbuf_putc(ret, *at);
		}
	}
	return *at ? at + 1 : at;
}

static void take_script(struct reader *r, struct fact_str text, line_taker *take)
{
	const struct claim_file f = {r, arena_printf(r->m->arena, "/%s", text.from)};

	for (const char *at = fact_known(text) ? text.value : ""; *at;) {
		AUTO_STRBUF struct strbuf line = {0};

		at = next_shell_line(text.value, at, &line);
		take_copy(&f, strbuf_str(&line), take);
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

/* Where words about vfio-pci are found. */
struct place {
	const char *path, *suffix; /* suffix: of the names in a folder; NULL: path is a file */
	line_taker *take;          /* NULL: its words are those of a kernel command line */
	bool script;               /* lines as a shell reads them */
};

static void take_file(struct reader *r, const char *path, const struct place *p)
{
	const struct fact_str text = read_text(r, "%s", path);

	if (!p->take)
		take_words_of(r, text);
	else if (p->script)
		take_script(r, text, p->take);
	else
		take_lines(r, text, p->take);
}

/* Of boot entries systemd-boot's rule for names counts: *.CONF is one too. */
static bool is_read(const struct place *p, const char *name, const char *path)
{
	return text_ends_with(name, p->suffix) ||
	       (!p->take && boot_text_of(path) == BOOT_TEXT_ENTRY);
}

static void take_folder(struct reader *r, const struct place *p)
{
	char **names = NULL;
	size_t n = 0;

	read_list(r, &names, &n, "%s", p->path);
	for (size_t i = 0; i < n; i++) {
		const char *path = arena_printf(r->m->arena, "%s/%s", p->path, names[i]);

		if (is_read(p, names[i], path))
			take_file(r, path, p);
	}
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

static const struct place places[] = {
	{"etc/default/grub", NULL, take_parameter, false},
	{"etc/default/grub.d", ".cfg", take_parameter, false},
	{"etc/kernel/cmdline", NULL, NULL, false},
	{"usr/lib/kernel/cmdline", NULL, NULL, false},
	{"etc/cmdline.d", ".conf", NULL, false},
	{"etc/kernelstub/configuration", NULL, take_parameter, false},
	{"boot/loader/entries", ".conf", NULL, false},
	{"efi/loader/entries", ".conf", NULL, false},
	{"boot/efi/loader/entries", ".conf", NULL, false},
	{"boot/refind_linux.conf", NULL, take_parameter, false},
	{"etc/initramfs-tools/modules", NULL, take_module, false},
	{"etc/modules", NULL, take_module, false},
	{"etc/modules-load.d", ".conf", take_module, false},
	{"usr/local/lib/modules-load.d", ".conf", take_module, false},
	{"usr/lib/modules-load.d", ".conf", take_module, false},
	{"etc/dracut.conf", NULL, take_dracut, true},
	{"etc/dracut.conf.d", ".conf", take_dracut, true},
	{"usr/lib/dracut/dracut.conf.d", ".conf", take_dracut, true},
	{"etc/mkinitcpio.conf", NULL, take_mkinitcpio, true},
	{"etc/mkinitcpio.conf.d", ".conf", take_mkinitcpio, true},
};

void guest_claims_read(struct reader *r)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (places[i].suffix)
			take_folder(r, &places[i]);
		else
			take_file(r, places[i].path, &places[i]);
	take_overrides(r);
}
