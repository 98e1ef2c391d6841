// SPDX-License-Identifier: Apache-2.0
#include "nccl/shim.h"

#include "nccl/say.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

static _Thread_local struct shim_thread self;

struct shim_thread *shim_self(void)
{
	return &self;
}

static const struct {
	const char *word;
	enum shim_mode mode;
} words[] = {{"off", SHIM_OFF},
	     {"0", SHIM_OFF},
	     {"on", SHIM_TABLE},
	     {"1", SHIM_TABLE},
	     {"all", SHIM_ALL}};

static enum shim_mode read_mode(void)
{
	const char *value = getenv("ONEHOP_SHIM");

	if (!value || !*value)
		return SHIM_TABLE;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcasecmp(value, words[i].word) == 0)
			return words[i].mode;
	say(SAY_WARN, "ONEHOP_SHIM=%s is not off, on or all: off", value);
	return SHIM_OFF;
}

enum shim_mode shim_mode(void)
{
	static atomic_int known = -1;
	int mode = atomic_load_explicit(&known, memory_order_relaxed);

	if (mode < 0) {
		mode = (int)read_mode();
		atomic_store_explicit(&known, mode, memory_order_relaxed);
	}
	return (enum shim_mode)mode;
}
