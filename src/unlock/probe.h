/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an edit made of a module or an object file, by its functions' names: P2P through BAR1 on every
 * chip in nvidia, the gate for managed memory in nvidia_uvm.
 */
#pragma once

#include <stdbool.h>

struct arena;

enum probe_kind {
	PROBE_CORE, /* nvidia, its core, or what is neither */
	PROBE_UVM,
};

struct probe {
	enum probe_kind kind;
	/* that was read: the one that was named, or what compression made of it */
	const char *file;
	/* of how many of the five functions it has the real one, and the stub */
	unsigned real, stubs;
	const char *mark; /* of onehop in .modinfo, "unlock 2", "managed 1"; NULL: none */
	bool every_chip;  /* PROBE_CORE: all are real, and no stub is left for a chip */
	bool gate;        /* PROBE_UVM: managed memory is kept away from BAR1 peers before Hopper */
};

/* It has what an edit of this module is for. */
bool probe_is_good(const struct probe *p);

/*
 * A module, compressed or not, or an object file. Where nothing is at `path`, what xz, zstd or gzip
 * would have made of it is read: what DKMS leaves is known before it is built, but for that. Below the
 * folder `dir_fd`, or AT_FDCWD. 0 or a negative errno with a sentence; -ENOENT: nothing is there;
 * -EINVAL: the file is neither.
 */
int probe_file(int dir_fd, const char *path, struct arena *a, struct probe *ret);
