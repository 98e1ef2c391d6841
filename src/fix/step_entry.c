/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that add an entry of onehop's own to a boot partition. The name is the fix's, whatever the file holds:
 * a check of FAT after a power cut may leave it empty, and then it has to go all the same.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "fix/step_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int read_state_entry(struct fix_host *h, const struct step *s, enum step_state *ret,
			    char **ret_now)
{
	AUTO_FREE char *folder = xstrndup(s->target, (size_t)(strrchr(s->target, '/') - s->target));
	struct stat st;

	if (host_stat(h, folder, &st) == -ENOENT)
		return step_not_mounted(folder);
	return step_file_ops.read_state(h, s, ret, ret_now);
}

static int apply_entry(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	(void)output;
	return host_replace_entry(h, s->target, "", s->new.data);
}

static int undo_entry(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	(void)output;
	return host_remove_entry(h, s->target);
}

static int settle_entry(struct fix_host *h, const struct step *s)
{
	return step_file_ops.settle(h, s);
}

static int tidy_entry(struct fix_host *h, const struct step *s)
{
	return step_file_ops.tidy(h, s);
}

const struct step_ops step_entry_ops = {
	.word = "entry",
	.in_image = true,
	.by_parts = true,
	.read_state = read_state_entry,
	.apply = apply_entry,
	.undo = undo_entry,
	.settle = settle_entry,
	.tidy = tidy_entry,
};
