/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a test or a measurement may use, and why not the others. */
#pragma once

#include "device/device.h"
#include "machine/machine.h"

/* A device that was left out of a test or measurement, and why. */
struct device_skip {
	const char *name, *reason; /* "GPU0 0000:41:00.0" */
};

struct device_choice {
	size_t n;
	const char *names[DEVICE_MAX]; /* "GPU0 0000:41:00.0", "host0" */
	const char *keys[DEVICE_MAX];  /* "0000:41:00.0", "host0": the same after a restart */
	int numbers[DEVICE_MAX];       /* index in machine.gpus, or of the simulated device */
	int ordinals[DEVICE_MAX];      /* of CUDA; -1 for simulated devices */
	struct device_skip skips[DEVICE_MAX];
	size_t skip_n;
	struct arena *arena; /* owns the texts */
};

/*
 * Whether the word names the device: by its number ("0"), or for a GPU (NULL: a simulated device)
 * by "GPU0", its PCI address ("0000:41:00.0", "41:00.0"), "nvml:0" or "cuda:0"; a simulated device
 * by "host0".
 */
bool device_is_named(const char *word, size_t number, const struct gpu *g);

/*
 * `option`: what takes the list, for messages. `list`: NULL for all, or names as above with commas.
 * 0, or -EINVAL and a sentence: something in the list is not a device. device_choice_done frees.
 */
int name_gpus(const struct machine *m, const char *option, const char *list,
	      bool *ret_wanted /* per GPU */);
/* Of a list that names two GPUs: their indexes. */
int name_pair(const struct machine *m, const char *option, const char *list, int ret[2]);
/* As name_gpus, and which of them can be used. */
int choose_gpus(const struct machine *m, const char *list, bool include_busy,
		struct device_choice *ret);
/* n simulated devices of the host back end. */
int choose_simulated(size_t n, const char *list, struct device_choice *ret);
void device_choice_done(struct device_choice *c);
