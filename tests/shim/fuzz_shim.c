/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of calls through the shim: collectives, groups, splits, shrinks, grows, revokes,
 * aborts, destroys, new ones, by 2 to 4 ranks.
 */
#include "rig.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* NOLINTBEGIN(bugprone-reserved-identifier): ThreadSanitizer's names. */
const char *__tsan_default_options(void);
const char *__tsan_default_suppressions(void);

/* libFuzzer notes what is compared without a lock, and its timer's handler allocates. */
const char *__tsan_default_options(void)
{
	return "report_signal_unsafe=0:halt_on_error=1";
}

const char *__tsan_default_suppressions(void)
{
	return "race:__sanitizer_weak_hook_";
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Some are taken over, and some reach the stand-in for NCCL: it depends on the input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	setenv("ONEHOP_NCCL_LIBRARY", STANDIN, 0);
	setenv("ONEHOP_SHIM_DEVICES", "host", 1);
	setenv("ONEHOP_SHIM_MEET_MS", "60000", 1);
	setenv("ONEHOP_SHIM", "all", 0);
	if (!rig_play(data, size))
		abort();
	return 0;
}
