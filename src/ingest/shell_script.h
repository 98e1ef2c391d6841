/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that a shell script sets, without running it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct machine;

/* More than any job script needs. */
#define SHELL_SCRIPT_MAX (1u << 20)

struct script_setting {
	const char *name;
	const char *value; /* NULL: it depends on other variables or on what a command prints */
	unsigned line;     /* from 1 */
};

/*
 * What the script leaves set of the names that `wanted` accepts, in the order of their lines: `export A=1`, `A=1
 * command`, `mpirun -x A=1`, `docker run -e A=1`, `srun --export=ALL,A=1` (also behind #SBATCH), `setenv A 1`.
 * Of several the last counts, and `unset A` takes A away. Branches and loops are not followed: what stands in
 * them counts. Any bytes are accepted; texts are the arena's. For tests
 * too.
 */
void shell_script_parse(struct arena *arena, const char *text, size_t size,
			bool (*wanted)(const char *name), struct script_setting **ret,
			size_t *ret_n);

/*
 * The same of a file, of the names that communication libraries read; texts are the machine's. 0 or a negative
 * errno with a sentence: unreadable, not a text, too large.
 */
int shell_script_read(struct machine *m, const char *path, struct script_setting **ret,
		      size_t *ret_n);

/*
 * The machine's settings are what the script sets, in place of those of this shell's environment, and what
 * stands in files. What has no value is left out.
 */
void shell_script_settings(struct machine *m, const char *path,
			   const struct script_setting *settings, size_t n);
