/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a module or an object file has P2P through BAR1 on every chip: by its functions' names. */
#pragma once

#include <stdbool.h>

struct arena;

struct probe {
	const char
		*file; /* that was read: the one that was named, or what compression made of it */
	unsigned real,
		stubs;    /* of how many of the five functions it has the real one, and the stub */
	const char *mark; /* of onehop in .modinfo, "unlock 1"; NULL: none */
	bool every_chip;  /* all are real, and no stub is left for a chip */
};

/*
 * A module, compressed or not, or an object file. Where nothing is at `path`, what xz, zstd or gzip
 * would have made of it is read: what DKMS leaves is known before it is built, but for that. Below the
 * folder `dir_fd`, or AT_FDCWD. 0 or a negative errno with a sentence; -ENOENT: nothing is there;
 * -EINVAL: it is no such file.
 */
int probe_file(int dir_fd, const char *path, struct arena *a, struct probe *ret);
