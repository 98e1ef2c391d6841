/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the core of an edited tree: what NVIDIA's packages ship as nv-kernel.o_binary. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct strbuf;

/*
 * The core: src/nvidia and src/nvidia-modeset, whose CPU time was measured with 580.142 and gcc 12 on 2 cores. The modules: those
 * of kernel-open for one kernel, a rough estimate.
 */
enum build_part { BUILD_CORE, BUILD_MODULES, BUILD_PART_N };
/* Minutes that a part takes on so many CPUs (0: unknown, as on one), rounded up. */
int build_minutes(enum build_part part, int64_t cpus);

#define BUILD_LOG ".onehop/build.log" /* below the tree: all that was printed */

struct build_progress {
	const char *part; /* "src/nvidia" */
	unsigned files;   /* compiled in it so far */
	double seconds;   /* since this part was begun */
};

struct build_request {
	const char *sources; /* the tree, absolute; it is edited */
	const char *core;    /* absolute: what comes of src/nvidia, and is probed */
	const char *modeset; /* of src/nvidia-modeset; NULL: that is not built */
	unsigned jobs;       /* 0: as many as there are CPUs, and memory for */
	/* About once a second, and once at the end of each part; may be NULL. False: that is
	 * enough, -ECANCELED. */
	bool (*progress)(void *context, const struct build_progress *p);
	void *context;
	struct arena *arena;
};

/*
 * What is built already is left as it is, as make does. 0, or a negative errno with a sentence; then
 * `last` has the log's last lines. -EUCLEAN: it was built, and stubs are left in it.
 */
int build_core(const struct build_request *r, struct strbuf *last);
/* The last lines of a text that is on disk, `max` at most; nothing if it cannot be read. */
void build_last_lines(int dir_fd, const char *path, size_t max, struct strbuf *out);
