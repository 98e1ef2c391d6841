/* SPDX-License-Identifier: Apache-2.0 */
/* Files of onehop that are there although no fix that can be read has made them. */
#include "base/alloc.h"
#include "fix/fix_impl.h"
#include "fix/own_files.h"
#include "machine/boot_entry.h"

#include <string.h>
#include <sys/stat.h>

static const char *const own_files[] = {
	FILE_GRUB,
	FILE_MODPROBE,
	FILE_LIMITS,
	FILE_MANAGER,
	FOLDER_UNITS UNIT_ACS,
	FOLDER_UNITS UNIT_PEERMEM,
	FOLDER_UNITS UNIT_PERSISTENCE,
	FOLDER_UNITS UNIT_TRIAL,
};

static bool is_of_a_fix(const struct journal_entry *entries, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; !journal_is_over(&entries[i]) && k < entries[i].plan->step_n;
		     k++)
			if (entries[i].plan->steps[k].target &&
			    strcmp(entries[i].plan->steps[k].target, path) == 0)
				return true;
	return false;
}

size_t fix_left_files(struct fix_host *h, const struct journal_entry *entries, size_t n,
		      struct arena *a, const char ***ret)
{
	const char **all = NULL;
	size_t all_n = 0, found = 0;

	for (size_t i = 0; i < sizeof(own_files) / sizeof(own_files[0]); i++)
		*ARENA_PUSH(a, all, all_n) = own_files[i];
	for (size_t i = 0; boot_partitions[i]; i++)
		*ARENA_PUSH(a, all, all_n) =
			arena_printf(a, "%s/loader/entries/" BOOT_ENTRY_TRIAL, boot_partitions[i]);
	for (size_t i = 0; i < all_n; i++) {
		struct stat st;

		if (host_stat(h, all[i], &st) == 0 && !is_of_a_fix(entries, n, all[i]))
			all[found++] = all[i];
	}
	*ret = all;
	return found;
}
