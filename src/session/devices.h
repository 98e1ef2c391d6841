/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a test or benchmark: which ones, who is left out and why, how they are wired. */
#pragma once

#include "bench/rounds.h"
#include "device/device.h"
#include "session/device_choice.h"
#include "topology/topology.h"

#define SIMULATED_TEXT "simulated devices (threads and memory of this host)"

/* The options as a person writes them. */
struct device_options {
	const char *device, *gpus, *memory;
	bool include_busy;
};

struct devices {
	struct machine *machine;   /* this host, or the one whose links are followed; NULL: none */
	struct topology *topology; /* of the machine; NULL: none */
	/* number: index in machine.gpus, or of the simulated device */
	struct device_request request;
	struct paths *paths;         /* device k is request.number[k] */
	struct device_choice chosen; /* their names, and who is left out and why */
	uint64_t memory_bytes;       /* --memory; 0: not given */
	int lock;                    /* file descriptor; -1: none */
	int stop_fd;                 /* for stop_signals_seen; -1: none */
};

/* For devices_done where devices_choose was not reached. */
#define DEVICES_NONE                                                                               \
	(struct devices)                                                                           \
	{                                                                                          \
		.lock = -1, .stop_fd = -1                                                          \
	}

/*
 * Reads the machine, with `parts` (enum machine_part) besides what choosing needs, and picks the
 * devices; there may be none. `from`: a recording whose links simulated devices follow, or NULL.
 * Call devices_done whatever the answer.
 */
int devices_choose(const struct device_options *o, const char *from, unsigned parts,
		   struct devices *ret);
/*
 * Holds GPUs against another onehop that tests or measures on this host: -EBUSY. Simulated devices
 * need none.
 */
int devices_lock(struct devices *d);
/* For a while that nothing is measured. */
void devices_unlock(struct devices *d);
void devices_done(struct devices *d);

static inline bool devices_are_simulated(const struct devices *d)
{
	return d->request.kind == DEVICE_HOST;
}

/* The GPU of device k; NULL for a simulated device that follows none. */
const struct gpu *devices_gpu(const struct devices *d, size_t k);
/* Whether what was opened as device k is it: CUDA's numbering is a guess until then. -ENXIO. */
int devices_check(const struct devices *d, size_t k, int ordinal, const char *pci);
/*
 * "0->1", or "0-1" for both ways unless ret_both is NULL; indexes. 0, or -EINVAL with a sentence.
 */
int devices_find_pair(const struct devices *d, const char *text, struct pair *ret, bool *ret_both);

/* "512M", "4K", "1.5G", "4096": binary units. 0, or -EINVAL with a sentence that names `option`. */
int parse_bytes(const char *option, const char *text, uint64_t *ret);
/* The same of "0.3", "120": up to an hour. */
int parse_seconds(const char *option, const char *text, double *ret);
