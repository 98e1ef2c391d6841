/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/line_keeper.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "change/change.h"
#include "machine/distribution.h"

#include <string.h>

/* ---- what is here ---- */

static bool has_program(const struct line_host *h, enum boot_program p)
{
	return fact_is(h->b->programs[p], 1);
}

bool line_is_grub(const struct line_host *h)
{
	return h->image ? has_program(h, BOOT_GRUB_MKCONFIG) || has_program(h, BOOT_GRUB2_MKCONFIG)
			: fact_is(h->k->boot_loader, BOOT_GRUB);
}

bool line_is_systemd_boot(const struct line_host *h)
{
	return h->image ? !line_is_grub(h) && (fact_is(h->b->kernel_line, 1) ||
					       fact_is(h->b->entries_folder, 1))
			: fact_is(h->k->boot_loader, BOOT_SYSTEMD_BOOT);
}

static bool is_nixos(const struct line_host *h)
{
	return distribution_of(h->k) == DISTRIBUTION_NIXOS;
}

static bool is_transactional(const struct line_host *h)
{
	return distribution_of(h->k) == DISTRIBUTION_TRANSACTIONAL;
}

static bool is_uki(const struct line_host *h)
{
	return !h->image && fact_is(h->k->boot_loader, BOOT_UKI);
}

/* Of a system that is not running its entries tell: each starts one of its trees. */
static bool starts_trees(const struct boot *b)
{
	for (size_t i = 0; i < b->entry_n; i++)
		if (text_has_word(b->entries[i].options, "ostree="))
			return true;
	return false;
}

static bool is_ostree(const struct line_host *h)
{
	if (h->image)
		return starts_trees(h->b);
	return fact_is(h->b->ostree, 1) || text_has_word(fact_str_or(h->k->cmdline, ""), "ostree=");
}

/* Proxmox installs GRUB's programs also where systemd-boot starts it. */
static bool has_proxmox_unseen(const struct line_host *h)
{
	return h->image && line_is_grub(h) && has_program(h, BOOT_PROXMOX_TOOL) &&
	       fact_is(h->b->proxmox_partitions, 1);
}

static bool has_proxmox_entries(const struct line_host *h)
{
	return line_is_systemd_boot(h) && has_program(h, BOOT_PROXMOX_TOOL);
}

/* Pop!_OS has it; assumed if the file could not be read. */
static bool has_kernelstub(const struct line_host *h)
{
	return line_is_systemd_boot(h) &&
	       (has_program(h, BOOT_KERNELSTUB) || (fact_unknown(h->b->programs[BOOT_KERNELSTUB]) &&
						    fact_str_is(h->k->distribution_id, "pop")));
}

static bool has_grubby(const struct line_host *h)
{
	return line_is_grub(h) && fact_is(h->k->grubby, 1);
}

static bool has_proxmox_grub(const struct line_host *h)
{
	return line_is_grub(h) && has_program(h, BOOT_PROXMOX_TOOL) &&
	       fact_is(h->b->proxmox_partitions, 1);
}

static bool is_any(const struct line_host *h)
{
	(void)h;
	return true;
}

/* ---- advice ---- */

struct advice {
	const struct line_host *h;
	const char *const *words;
	size_t n;
	struct strbuf *out;
};

/* All words, each preceded by `before`. */
static void put_words(const struct advice *a, const char *before, bool quote)
{
	for (size_t i = 0; i < a->n; i++) {
		strbuf_printf(a->out, "%s%s", i ? " " : "", before);
		if (quote)
			strbuf_shell_word(a->out, a->words[i]);
		else
			strbuf_puts(a->out, a->words[i]);
	}
}

static bool needs_quotes(const struct advice *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (strchr(a->words[i], ';'))
			return true;
	return false;
}

static void advise_nixos(const struct advice *a)
{
	strbuf_puts(a->out, "add to boot.kernelParams of the system's configuration "
			    "(/etc/nixos/configuration.nix), each in double quotes: ");
	for (size_t i = 0; i < a->n; i++)
		strbuf_printf(a->out, "%s\"%s\"", i ? " " : "", a->words[i]);
	strbuf_puts(a->out, "; then `nixos-rebuild boot`, and reboot");
}

static void advise_uki(const struct advice *a)
{
	strbuf_puts(a->out, "the command line is inside the signed kernel image (UKI): add to "
			    "/etc/kernel/cmdline, without quotes, ");
	put_words(a, "", false);
	strbuf_puts(a->out, "; rebuild and sign the image as before, and reboot");
}

static void advise_ostree(const struct advice *a)
{
	strbuf_puts(a->out, "`rpm-ostree kargs ");
	put_words(a, "--append-if-missing=", true);
	strbuf_puts(a->out, "`, and reboot");
}

static void advise_proxmox_entries(const struct advice *a)
{
	strbuf_puts(a->out, "add to /etc/kernel/cmdline, without quotes, ");
	put_words(a, "", false);
	strbuf_puts(a->out, "; then `proxmox-boot-tool refresh`, and reboot");
}

static void advise_kernelstub(const struct advice *a)
{
	AUTO_STRBUF struct strbuf words = {0};
	const struct advice list = {a->h, a->words, a->n, &words};

	put_words(&list, "", false);
	strbuf_puts(a->out, "`kernelstub -a ");
	strbuf_shell_word(a->out, strbuf_str(&words));
	strbuf_puts(a->out, "`, and reboot");
}

static void advise_entries(const struct advice *a)
{
	strbuf_puts(
		a->out,
		"add to the options line of the entry in loader/entries on the EFI or boot "
		"partition, and to /etc/kernel/cmdline if that exists (or to the source that the "
		"program uses to write these entries), without quotes, ");
	put_words(a, "", false);
	strbuf_puts(a->out, "; then reboot");
}

static void advise_grubby(const struct advice *a)
{
	AUTO_STRBUF struct strbuf words = {0};
	const struct advice list = {a->h, a->words, a->n, &words};

	put_words(&list, "", false);
	strbuf_printf(
		a->out,
		"check `grubby --info=ALL` first, because grubby replaces another %.*s= of an "
		"entry; then `grubby --update-kernel=ALL --args=",
		(int)strcspn(a->words[0], "="), a->words[0]);
	strbuf_shell_word(a->out, strbuf_str(&words));
	strbuf_puts(a->out, "`, and reboot");
}

/* The line for /etc/default/grub, and what makes grub.cfg of it. */
static void advise_grub_line(const struct advice *a, const char *commands)
{
	strbuf_printf(a->out, "as the last line of /etc/default/grub%s: `" GRUB_LINE_START,
		      needs_quotes(a)
			      ? ", with these quotes (GRUB and shells end a command at a bare ;)"
			      : "");
	put_words(a, "", true);
	strbuf_printf(a->out, GRUB_LINE_END "`, then %s, and reboot", commands);
}

static void advise_proxmox_grub(const struct advice *a)
{
	advise_grub_line(a, "`proxmox-boot-tool refresh`");
}

static void advise_proxmox_unseen(const struct advice *a)
{
	strbuf_puts(a->out,
		    "in that system, `proxmox-boot-tool status` shows its boot loader: with "
		    "systemd-boot (uefi), add to /etc/kernel/cmdline, without quotes, ");
	put_words(a, "", false);
	strbuf_puts(a->out, "; with GRUB, ");
	advise_proxmox_grub(a);
}

#define GRUB_1 "`grub-mkconfig -o /boot/grub/grub.cfg`"
#define GRUB_2 "`grub2-mkconfig -o /boot/grub2/grub.cfg`"

static void advise_grub(const struct advice *a)
{
	const bool one = has_program(a->h, BOOT_GRUB_MKCONFIG);
	const bool two = has_program(a->h, BOOT_GRUB2_MKCONFIG);

	advise_grub_line(a, one == two ? "`update-grub` (Debian, Ubuntu) or " GRUB_2
			    : one      ? GRUB_1
				       : GRUB_2);
}

static void advise_transactional(const struct advice *a)
{
	if (!line_is_systemd_boot(a->h)) {
		advise_grub_line(a, "`transactional-update grub.cfg`");
		return;
	}
	strbuf_puts(a->out, "in /etc/kernel/cmdline, without quotes, ");
	put_words(a, "", false);
	strbuf_puts(a->out, "; then `sdbootutil update-all-entries`, and reboot");
}

/* Another loader of such entries, or one that does not say who it is. */
static bool has_entries_alone(const struct line_host *h)
{
	return fact_is(h->b->entries_folder, 1) && !has_program(h, BOOT_GRUB_MKCONFIG) &&
	       !has_program(h, BOOT_GRUB2_MKCONFIG);
}

static void advise_unknown(const struct advice *a)
{
	if (has_entries_alone(a->h)) {
		strbuf_puts(a->out,
			    "the boot loader is unknown; if it starts what is in loader/entries, ");
		advise_entries(a);
		return;
	}
	strbuf_puts(a->out, "the boot loader is unknown: add ");
	put_words(a, "", true);
	strbuf_puts(a->out, needs_quotes(a) ? " (with these quotes where a script is read)" : "");
	strbuf_puts(a->out, " to the kernel command line in its configuration; with GRUB, ");
	advise_grub(a);
}

/* ---- the table ---- */

/*
 * The first one found on the host, in this order. A ; ends the command in entries that GRUB makes a
 * script of.
 */
static const struct {
	enum line_keeper keeper;
	const char *word;
	bool (*here)(const struct line_host *h);
	void (*advise)(const struct advice *a);
	const char *lead;
	bool lists; /* a ; in a word survives */
} keepers[] = {
	{KEEPER_NIXOS, "NixOS", is_nixos, advise_nixos, "", true},
	{KEEPER_UKI, "unified kernel image", is_uki, advise_uki, "", true},
	{KEEPER_OSTREE, "rpm-ostree", is_ostree, advise_ostree, "", false},
	{KEEPER_TRANSACTIONAL, "transactional-update", is_transactional, advise_transactional, ", ",
	 true},
	{KEEPER_PROXMOX_UNSEEN, "Proxmox", has_proxmox_unseen, advise_proxmox_unseen, "", true},
	{KEEPER_PROXMOX_ENTRIES, "systemd-boot of Proxmox", has_proxmox_entries,
	 advise_proxmox_entries, "", true},
	{KEEPER_KERNELSTUB, "kernelstub", has_kernelstub, advise_kernelstub, "", true},
	{KEEPER_ENTRIES, "systemd-boot", line_is_systemd_boot, advise_entries, "", true},
	{KEEPER_GRUBBY, "grubby", has_grubby, advise_grubby, ": ", false},
	{KEEPER_PROXMOX_GRUB, "GRUB of Proxmox", has_proxmox_grub, advise_proxmox_grub, ", ", true},
	{KEEPER_GRUB, "GRUB", line_is_grub, advise_grub, ", ", true},
	{KEEPER_UNKNOWN, "unknown", is_any, advise_unknown, "", true},
};

static size_t row_of(enum line_keeper k)
{
	size_t i = 0;

	while (keepers[i].keeper != k)
		i++;
	return i;
}

enum line_keeper line_keeper(const struct line_host *h)
{
	size_t i = 0;

	while (!keepers[i].here(h))
		i++;
	return keepers[i].keeper;
}

const char *line_keeper_word(enum line_keeper k)
{
	return keepers[row_of(k)].word;
}

const char *line_advice_lead(enum line_keeper k)
{
	return keepers[row_of(k)].lead;
}

void line_advice(const struct line_host *h, const char *const *words, size_t n, struct strbuf *out)
{
	const struct advice a = {h, words, n, out};

	keepers[row_of(line_keeper(h))].advise(&a);
	if (!h->image && fact_known(h->k->init_words))
		strbuf_puts(
			out,
			" (before the -- on the command line: what follows it goes to init, not to "
			"the kernel)");
}

/* ---- grubby ---- */

#define LOST "and undo could not restore it"

bool line_same_key(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return n == strcspn(b, "=") && memcmp(a, b, n) == 0;
}

/*
 * How often the words include exactly this one; *ret_other: the first other one with its key, freed
 * by the caller.
 */
static size_t look_at_words(const char *words, const char *word, char **ret_other)
{
	AUTO_FREE char *copy = xstrdup(words);
	char *rest = copy, *item;
	size_t copies = 0;

	/* What follows "--" is for the first program. */
	while ((item = strsep(&rest, " \t\n\"'")) && strcmp(item, "--") != 0)
		if (strcmp(item, word) == 0)
			copies++;
		else if (*item && line_same_key(item, word) && !*ret_other)
			*ret_other = xstrdup(item);
	return copies;
}

size_t line_word_copies(const char *line, const char *word)
{
	char *other = NULL;
	size_t copies = look_at_words(line, word, &other);

	free(other);
	return copies;
}

bool line_has_word(const char *line, const char *word)
{
	return line_word_copies(line, word) > 0;
}

/* What the boot entries have. */
struct look {
	size_t with;        /* those that have this very word */
	char *other;        /* another argument of the same key; to free */
	const char *who;    /* the file that has it */
	const char *unread; /* NULL: all of it could be read */
};

static void look_done(struct look *l)
{
	free(l->other);
}

static void look_at_entries(const struct boot *b, const char *word, struct look *l)
{
	for (size_t i = 0; i < b->entry_n; i++) {
		const struct grub_entry *e = &b->entries[i];
		const bool had = l->other != NULL;

		l->with += look_at_words(e->options, word, &l->other) > 0;
		l->who = l->other && !had ? e->file : l->who;
		l->unread = e->unread ? e->unread : l->unread;
	}
	if (!b->entry_n)
		l->unread = "/boot/loader/entries";
}

bool grubby_has(const struct boot *b, const char *word)
{
	CLEANUP(look_done) struct look l = {0};

	look_at_entries(b, word, &l);
	return !l.unread && l.with == b->entry_n;
}

/* Later scripts anchor what they look for at white space. */
static bool is_loose(const char *script)
{
	return strstr(script, "update_args()") && !strstr(script, "[[:space:]])$arg");
}

bool grubby_is_loose(struct source *s)
{
	static const char *const files[] = {"usr/libexec/grubby/grubby-bls", "usr/sbin/grubby",
					    "usr/bin/grubby", "sbin/grubby"};
	bool loose = false;

	for (size_t i = 0; i < ARRAY_LEN(files) && !loose; i++) {
		AUTO_FREE char *text = NULL;
		size_t size;

		loose = source_read(s, &text, &size, "%s", files[i]) == 0 && is_loose(text);
	}
	return loose;
}

char *grubby_mistaken(const char *line, const char *word, bool removes)
{
	const char *value = strrchr(word, '=');
	AUTO_FREE char *text =
		removes || !value ? xstrdup(word) : xstrndup(word, (size_t)(value + 1 - word));
	AUTO_FREE char *copy = xstrdup(line);
	char *rest = copy, *item;

	while ((item = strsep(&rest, " \t\n")))
		if (strcmp(item, word) != 0 && strstr(item, text))
			return xstrdup(item);
	return NULL;
}

/* The entries could not be read: the running command line may show the same. */
static void unread_why_not(const struct line_host *h, const char *word, const char *unread,
			   struct strbuf *out)
{
	AUTO_FREE char *other = NULL;

	if (!h->image)
		look_at_words(fact_str_or(h->k->cmdline, ""), word, &other);
	if (other)
		strbuf_printf(out, "grubby would replace %s of the running command line, " LOST,
			      other);
	else
		strbuf_printf(
			out,
			"%s could not be read: if an entry has another %.*s=, grubby replaces it, " LOST,
			unread, (int)strcspn(word, "="), word);
}

/*
 * --args replaces an argument with the same key, and --remove-args also removes a word that an
 * entry had before.
 */
static void grubby_why_not(const struct line_host *h, const char *word, struct strbuf *out)
{
	CLEANUP(look_done) struct look l = {0};

	look_at_entries(h->b, word, &l);
	if (l.unread)
		unread_why_not(h, word, l.unread, out);
	else if (l.with == h->b->entry_n)
		return;
	else if (l.other)
		strbuf_printf(out, "grubby would replace %s of %s, " LOST, l.other, l.who);
	else if (l.with)
		strbuf_printf(
			out,
			"some boot entries have %s and others do not: undo would remove it from all "
			"of them",
			word);
}

/* ---- why not ---- */

void line_why_not(const struct line_host *h, const char *word, struct strbuf *out)
{
	const size_t row = row_of(line_keeper(h));

	if (strchr(word, ';') && !keepers[row].lists)
		strbuf_puts(
			out,
			"the ; between several ports may not survive in this boot loader's entries");
	else if (keepers[row].keeper == KEEPER_GRUBBY)
		grubby_why_not(h, word, out);
}
