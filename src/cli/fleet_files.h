/* SPDX-License-Identifier: Apache-2.0 */
/* The files with results of hosts: which there are, and each as a part of a fleet. */
#pragma once

#include "fleet/fleet.h"

#include <time.h>

/* A file, or a folder that is a recording, and the host that it is about. */
struct fleet_file {
	const char *path, *host;
	time_t changed;
};

struct fleet_files {
	struct arena *arena;
	struct fleet_file *items; /* older ones first, so that newer ones replace them */
	size_t n;
};

/* Those named, and those of the folders named. 0, or a negative errno with a sentence. */
int fleet_files_find(struct fleet_files *l, const char *const *paths);
/* A file that cannot be read is named, and the others are compared. */
void fleet_files_read(struct fleet *f, const struct fleet_files *l);
