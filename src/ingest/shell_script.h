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
 * The variables, of those that `wanted` accepts, that are set at the end of the script, in the
 * order of their lines: `export A=1`, `A=1 command`, `mpirun -x A=1`, `docker run -e A=1`, `srun
 * --export=ALL,A=1` (also behind #SBATCH), `setenv A 1`. The last assignment counts, and `unset A`
 * removes A. Branches and loops are not evaluated: their assignments always count. Any bytes are
 * accepted; texts are allocated in the arena. Exported for tests.
 */
void shell_script_parse(struct arena *arena, const char *text, size_t size,
			bool (*wanted)(const char *name), struct script_setting **ret,
			size_t *ret_n);

/*
 * The same for a file, with the names that communication libraries read; texts are owned by the
 * machine. 0 or a negative errno with a sentence: unreadable, not a text, too large.
 */
int shell_script_read(struct machine *m, const char *path, struct script_setting **ret,
		      size_t *ret_n);

/*
 * The machine's settings become those of the script, instead of those of this shell's environment,
 * plus those in files. Variables without a value are left out.
 */
void shell_script_settings(struct machine *m, const char *path,
			   const struct script_setting *settings, size_t n);
