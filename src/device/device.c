// SPDX-License-Identifier: Apache-2.0
/* Opens a set of devices, and the words for faults. */
#include "device/device.h"

#include "base/err.h"
#include "device/cuda.h"
#include "device/host.h"

#include <errno.h>
#include <string.h>

static const char *const fault_words[FAULT_N] = {
	[FAULT_NONE] = "none",       [FAULT_MIRROR] = "mirror", [FAULT_DISPLACE] = "displace",
	[FAULT_STALE] = "stale",     [FAULT_TORN] = "torn",     [FAULT_LOST] = "lost",
	[FAULT_HANG] = "hang",       [FAULT_REFUSE] = "refuse", [FAULT_SLOW] = "slow",
	[FAULT_CACHED] = "cached",   [FAULT_REPLAY] = "replay", [FAULT_OVERTAKE] = "overtake",
	[FAULT_REREAD] = "reread",   [FAULT_REMAP] = "remap",   [FAULT_IPC_OFFSET] = "ipc-offset",
	[FAULT_LATE] = "late",       [FAULT_HOLE] = "hole",     [FAULT_LOSSY] = "lossy",
	[FAULT_COMPTAG] = "comptag", [FAULT_PACKED] = "packed", [FAULT_HOST_SHIFT] = "host-shift",
};

const char *fault_word(enum fault_kind f)
{
	return fault_words[f];
}

enum fault_kind fault_parse(const char *word)
{
	enum fault_kind f = FAULT_NONE;

	while (f < FAULT_N && strcmp(word, fault_words[f]) != 0)
		f++;
	return f;
}

static int open_cuda(const struct device_request *r, struct device_set **ret)
{
	return cuda_open(r, NULL, ret);
}

/* All there are: a new back end is a row here, its file and its word in enum device_kind. */
static int (*const back_ends[DEVICE_KIND_N])(const struct device_request *r,
					     struct device_set **ret) = {
	[DEVICE_CUDA] = open_cuda,
	[DEVICE_HOST] = host_open,
};

int device_open(const struct device_request *r, struct device_set **ret)
{
	if ((unsigned)r->kind >= DEVICE_KIND_N)
		return err_set(EINVAL, "unknown back end %d", (int)r->kind);
	if (r->n == 0 || r->n > DEVICE_MAX)
		return err_set(EINVAL, "number of devices to open: %zu, must be 1 to %d", r->n,
			       DEVICE_MAX);
	return back_ends[r->kind](r, ret);
}
