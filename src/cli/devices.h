/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a test or benchmark: which ones, who is left out and why, how they are wired. */
#pragma once

#include "bench/rounds.h"
#include "cli/command.h"
#include "cli/device_choice.h"
#include "device/device.h"
#include "topology/topology.h"

/* Part of a command's struct of options, as its member `devices`. */
struct device_options {
	const char *device, *gpus, *memory;
	bool include_busy;
};

/* clang-format off */
#define DEVICE_OPTIONS(TYPE) \
	{"device", 0, OPTION_TEXT, offsetof(TYPE, devices.device), "cuda|host:N", \
		"GPUs (the default), or N stand-ins made of threads and memory of this host, which " \
		"need no GPU", NULL, 0, 0, 0}, \
	{"gpus", 0, OPTION_TEXT, offsetof(TYPE, devices.gpus), "LIST", \
		"only these: numbers as onehop topo shows them, PCI addresses, or NVML's or CUDA's " \
		"numbers: 0,41:00.0,nvml:2,cuda:3", NULL, 0, 0, 0}, \
	{"include-busy", 0, OPTION_FLAG, offsetof(TYPE, devices.include_busy), NULL, \
		"use GPUs too that other processes use", NULL, 0, 0, 0}, \
	{"memory", 0, OPTION_TEXT, offsetof(TYPE, devices.memory), "SIZE", \
		"take at most so much memory of each GPU (K, M, G: binary)", NULL, 0, 0, 0}
#define FIGURES_JSON(TYPE) \
	{"json", 0, OPTION_FLAG, offsetof(TYPE, common.json), NULL, \
		"print figures as JSON, for onehop compare (see docs/json.md)", NULL, 0, 0, 0}
/* clang-format on */

struct figures;

struct devices {
	struct machine *machine;   /* this host, or the one whose links are followed; NULL: none */
	struct topology *topology; /* of the machine; NULL: none */
	struct device_request request; /* number: index in machine.gpus, or of the stand-in */
	struct paths *paths;           /* device k is request.number[k] */
	struct device_choice chosen;   /* their names, and who is left out and why */
	uint64_t memory_bytes;         /* --memory; 0: not given */
	int lock;                      /* file descriptor; -1: none */
	int stop_fd;                   /* for stop_signals_seen; -1: none */
};

/* For devices_done where devices_choose was not reached. */
#define DEVICES_NONE                                                                               \
	(struct devices)                                                                           \
	{                                                                                          \
		.lock = -1, .stop_fd = -1                                                          \
	}

/*
 * Reads the machine, with `parts` (enum machine_part) besides what choosing needs, and picks the devices;
 * there may be none. devices_done is due whatever the answer.
 */
int devices_choose(const struct device_options *o, const struct common_options *c, unsigned parts,
		   struct devices *ret);
/* Holds GPUs against another onehop that tests or measures on this host: -EBUSY. Stand-ins need none. */
int devices_lock(struct devices *d);
void devices_done(struct devices *d);

/* On stderr: that they are stand-ins, and who is left out; for output that has no place for it. */
void devices_tell(const struct devices *d);
/*
 * Into figures that were measured just now: when, by which onehop and, of GPUs of the machine m (NULL: of
 * none, or of several), under which driver and what NVML calls them.
 */
void figures_stamp(struct figures *f, const struct machine *m);
/* There is none: says why, and is the exit code. */
int devices_none(const struct devices *d);

static inline bool devices_are_stand_ins(const struct devices *d)
{
	return d->request.kind == DEVICE_HOST;
}

/* The GPU of device k; NULL for a stand-in that follows none. */
const struct gpu *devices_gpu(const struct devices *d, size_t k);
/* Whether what was opened as device k is it: CUDA's numbering is a guess until then. -ENXIO. */
int devices_check(const struct devices *d, size_t k, int ordinal, const char *pci);
/* The index of the device that the word names (device_is_named); -EINVAL with a sentence. */
int devices_find(const struct devices *d, const char *word);
/* "0->1", or "0-1" for both ways; indexes. 0, or -EINVAL with a sentence. */
int devices_find_pair(const struct devices *d, const char *text, struct pair *ret, bool *ret_both);

/* "512M", "4K", "1.5G", "4096": binary units. 0, or -EINVAL with a sentence that names `option`. */
int parse_bytes(const char *option, const char *text, uint64_t *ret);

/*
 * Ctrl-C, SIGTERM and SIGHUP as something to ask for instead of a sudden end, from here on and in
 * what is started from here on. A file descriptor or a negative errno.
 */
int stop_signals_open(void);
/* And from then on: what came is left there for others who ask. */
bool stop_signals_seen(int fd);
