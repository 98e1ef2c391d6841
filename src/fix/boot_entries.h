/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of the boot partitions (machine/boot_entry.h), and which of them start this system. */
#pragma once

#include "machine/boot_entry.h"

struct arena;
struct source;

/* The end of the ID of a copy that onehop keeps while it replaces an entry: never one to be edited. */
#define BOOT_ENTRY_KEPT ".onehop-old"

enum boot_entry_kind {
	ENTRY_OURS,   /* starts this system, and its command line can be edited */
	ENTRY_RESCUE, /* starts this system to repair it: stays as it is */
	ENTRY_SEALED, /* starts this system, or may; its command line is not in the entry */
	/* starts this system, with a kernel and no options: it has no parameters, or those of an image of its own */
	ENTRY_BARE,
	ENTRY_OTHERS, /* starts another system or program, or its owner is unknown */
};

struct boot_entry {
	enum boot_entry_kind kind;
	const char *path; /* below the root, "boot/efi/loader/entries/6.1.conf" */
	const char *name; /* the file's own name, the end of path */
	const char *text; /* up to a zero byte, as systemd-boot reads it */
	bool has_zero; /* such a byte is in the file, so no boot loader's tool wrote it as it is */
	/*
	 * Made by kernel-install for this system: named after its machine ID, or its token and root=, and the
	 * version that it says, and starting the kernel that is kept below that name. A person's copy of an
	 * entry starts the kernel of that entry. Rescue entries are among them.
	 */
	bool made;
	const char *why_not; /* a clause: why it cannot be replaced ("is a link"); NULL: it can */
};

struct boot_entries {
	struct boot_entry *items;
	size_t n;
	bool folder; /* there is a folder of such entries */
	/* the first folder or file that could not be read, "/boot/efi/..."; NULL: none */
	const char *unread;
	int error; /* why: the negative errno */
};

/*
 * The entries of all boot partitions that are mounted (/boot, /efi, /boot/efi), in the arena.
 * `running` is a command line that starts this system, as that of the running kernel; NULL: none is
 * known. An entry belongs to the system by machine-id, else by its name or systemd.machine_id=,
 * else by root=, else by sort-key. One with its machine ID and another root= than that is
 * another's: a copy of the system, a snapshot. root= is compared by device as far as /dev/disk
 * tells. A partition that is mounted twice is read once.
 */
void boot_entries_read(struct source *s, struct arena *a, const char *running,
		       struct boot_entries *ret);
/*
 * The same where the system may have had another machine ID or token before, as a disk image has before it is
 * cloned: `earlier`, as boot_own_names gave them then; NULL: nobody noted it. Entries of those names are its own too,
 * as far as root= says.
 */
void boot_entries_read_since(struct source *s, struct arena *a, const char *running,
			     const char *const *earlier, struct boot_entries *ret);
/* UTF-8 without control characters: the journal can hold it. */
bool boot_name_is_text(const char *name);
/* What kernel-install's names of entries begin with: the machine ID and the token, as far as there are; NULL-ended. NULL: there is neither. */
const char *const *boot_own_names(struct source *s, struct arena *a);
/* Its machine ID, as kernel-install takes it, in the arena; NULL: it has none. */
const char *boot_machine_id(struct source *s, struct arena *a);
