/* SPDX-License-Identifier: Apache-2.0 */
/* What should be different on a machine, as data: rules propose changes, fix/ turns them into steps. */
#pragma once

#include "base/texts.h"

struct arena;

/* What the members of a change hold is said at each kind; those that are not named hold nothing. */
enum change_kind {
	CHANGE_ACS,              /* target: port "0000:22:00.0"; value: its ACS control register */
	CHANGE_KERNEL_PARAMETER, /* target: "iommu=pt", a whole word of the kernel's command line */
	CHANGE_MODULE_OPTION,    /* target: module; name: option; new: its value */
	/* target: "nvidia"; name: key; new: its value, in NVreg_RegistryDwords */
	CHANGE_REGISTRY_DWORD,
	CHANGE_MODULE_BLACKLIST, /* target: module that must not load by itself */
	CHANGE_MODULE_LOAD,      /* target: module, loaded now and at each boot */
	CHANGE_MODULE_UNLOAD,    /* target: module, unloaded and kept from loading */
	CHANGE_BAR_SIZE,         /* target: device; bar: index of the BAR; value: its size in MiB */
	CHANGE_MEMLOCK,          /* memory that processes may lock: without a limit */
	CHANGE_NCCL_SETTING,     /* name: variable; new: its value, in NCCL's system-wide file */
	CHANGE_PERSISTENCE,      /* the driver keeps GPUs started while nobody uses them */
	CHANGE_BY_HAND,          /* target: what a person has to change; new: how, one sentence */
	CHANGE_KIND_N
};

/* When a change is in force: now and until the next boot, from the next boot on, or both. */
enum change_lifetime { CHANGE_NOW = 1 << 0, CHANGE_KEPT = 1 << 1, CHANGE_LASTING = 3 };

struct change {
	enum change_kind kind;
	unsigned lifetime; /* enum change_lifetime: what is wanted */
	const char *target, *name, *new;
	struct {
		unsigned old, new;
	} value;
	unsigned bar;
	struct texts rules;  /* ids of the rules that propose it */
	struct texts reason; /* what it is for: sentences without full stops */
	struct texts cost;   /* what is given up; the same; none: nothing */
	bool stated;         /* BY_HAND: the reason names the target itself */
	bool opt_in;         /* only possibly a help: made only if its rule is named */
};

/* In an arena; add with change_add. */
struct change_set {
	struct arena *arena;
	struct change *items;
	size_t n;
};

/*
 * Copies it with its texts. Equal ones (kind, target, name, bar, new value) become one: the rules are joined,
 * `apart` and cost stay only if both have them.
 */
void change_add(struct change_set *set, const struct change *c);

/*
 * A line for /etc/default/grub, or a file of its folder, that adds words to the kernel's command line:
 * GRUB_LINE_START, the words each as strbuf_shell_word quotes it, GRUB_LINE_END. The shell that reads
 * the file takes the outer quotes off and GRUB's script the inner ones, so the kernel gets the bare
 * word; it would keep quotes that begin behind the '=' of "pci=disable_acs_redir=".
 */
#define GRUB_VARIABLE   "GRUB_CMDLINE_LINUX_DEFAULT"
#define GRUB_LINE_START GRUB_VARIABLE "=\"$" GRUB_VARIABLE " "
#define GRUB_LINE_END   "\""

const char *change_kind_word(enum change_kind k); /* "acs", "kernel-parameter", ... */
