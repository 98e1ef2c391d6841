/* SPDX-License-Identifier: Apache-2.0 */
/* Which tool manages the kernel command line of a host, for planning a change and for advice. */
#pragma once

#include "machine/machine.h"

struct source;
struct strbuf;

enum line_keeper {
	KEEPER_UNKNOWN, /* a boot loader that onehop does not know */
	KEEPER_NIXOS,   /* configuration.nix */
	KEEPER_UKI,     /* inside a signed kernel image */
	KEEPER_OSTREE,
	KEEPER_TRANSACTIONAL, /* transactional-update, of SUSE with a read-only /boot */
	KEEPER_PROXMOX_UNSEEN, /* proxmox-boot-tool of an image: for which loader, its boot partitions show */
	KEEPER_PROXMOX_ENTRIES, /* proxmox-boot-tool, for systemd-boot */
	KEEPER_KERNELSTUB,
	KEEPER_ENTRIES, /* systemd-boot's entries, plain text */
	KEEPER_GRUBBY,
	KEEPER_PROXMOX_GRUB, /* proxmox-boot-tool, for GRUB on boot partitions of its own */
	KEEPER_GRUB,
	KEEPER_N
};

/* `image`: `k` and `b` were read from a mounted system; the running one says nothing about it. */
struct line_host {
	const struct kernel *k;
	const struct boot *b;
	bool image;
};

enum line_keeper line_keeper(const struct line_host *h);
const char *line_keeper_word(enum line_keeper k); /* "rpm-ostree", "GRUB", ... */
bool line_is_grub(const struct line_host *h);
bool line_is_systemd_boot(const struct line_host *h);

/* Why the keeper must not be given this word, one clause; empty if it may. */
void line_why_not(const struct line_host *h, const char *word, struct strbuf *out);

/*
 * How the user adds these words, a sentence without a full stop that ends with the reboot. It
 * continues "the kernel parameter" if line_advice_lead is not "".
 */
void line_advice(const struct line_host *h, const char *const *words, size_t n, struct strbuf *out);
const char *line_advice_lead(enum line_keeper k);

/* ---- grubby ---- */

/* Whether a line has exactly this word among those for the kernel, which end at "--". */
bool line_has_word(const char *line, const char *word);
size_t line_word_copies(const char *line, const char *word); /* how often */
/* Whether two words set the same argument: "pci=noaer" and "pci=realloc". */
bool line_same_key(const char *a, const char *b);
/* Whether every boot entry already has exactly this word, so that grubby is not needed. */
bool grubby_has(const struct boot *b, const char *word);
/*
 * Whether the script among these files looks for an argument anywhere in a line, so that it takes
 * intel_iommu= for iommu=: those of 2018 do (Fedora 29). One that cannot be read counts as a later
 * one.
 */
bool grubby_is_loose(struct source *s);
/*
 * The word that such a script would change in place of this one, which it adds or removes; to free.
 * NULL: none.
 */
char *grubby_mistaken(const char *line, const char *word, bool removes);
