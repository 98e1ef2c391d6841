// SPDX-License-Identifier: Apache-2.0
/* The kernels, compiled for the host. */
#include "kernels/native_flaw.h"
#include "kernels/native_team.h"

#include "kernels/all.c"
#include "kernels/collectives.c"

#include <string.h>

_Thread_local struct native_block native_block;

#define NATIVE(name)                                                                               \
	static void name##_native(const void *args)                                                \
	{                                                                                          \
		struct name##_args a;                                                              \
                                                                                                   \
		memcpy(&a, args, sizeof(a));                                                       \
		name##_kernel(a);                                                                  \
	}
KERNELS(NATIVE)

static const struct {
	size_t args_size;
	void (*run)(const void *args);
} table[] = {
#define ROW(name) {sizeof(struct name##_args), name##_native},
	KERNELS(ROW)};

size_t native_args_size(unsigned k)
{
	return table[k].args_size;
}

void native_run(unsigned k, const struct native_block *block, u32 threads,
		const struct native_flaw *flaw, const void *args)
{
	native_block = *block;
	native_block.flaw = native_flaw_new(flaw);
	if (threads > 1 && !native_block.flaw)
		native_team_run(block, threads, table[k].run, args);
	else
		table[k].run(args);
	native_flaw_free(native_block.flaw);
	native_block.flaw = NULL;
}
