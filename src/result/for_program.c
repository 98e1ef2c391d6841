/* SPDX-License-Identifier: Apache-2.0 */
/* Results in arenas that end the program without memory; libonehop has none of these. */
#include "base/alloc.h"
#include "result/comparison.h"

struct figures *figures_new(const char *name, const char *tool)
{
	return figures_new_in(arena_new(), name, tool);
}

struct comparison *comparison_new(const struct figures *before, const struct figures *after)
{
	return comparison_new_in(arena_new(), before, after);
}
