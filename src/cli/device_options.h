/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices a test or benchmark takes: the options, and what is said of those that it leaves
 * out.
 */
#pragma once

#include "cli/command.h"
#include "session/devices.h"

/* clang-format off */
/*
 * Rows for a command whose struct of options has a `request` with a struct device_options
 * `devices`.
 */
#define DEVICE_OPTIONS(TYPE) \
	{"device", 0, OPTION_TEXT, offsetof(TYPE, request.devices.device), "cuda|host:N", \
		"GPUs (the default), or N simulated devices made of threads and memory of " \
		"this host, which need no GPU", NULL, 0, 0, 0}, \
	{"gpus", 0, OPTION_TEXT, offsetof(TYPE, request.devices.gpus), "LIST", \
		"use only these: numbers as onehop topo shows them, PCI addresses, or NVML's " \
		"or CUDA's numbers: 0,41:00.0,nvml:2,cuda:3", NULL, 0, 0, 0, WORDS_GPUS}, \
	{"include-busy", 0, OPTION_FLAG, offsetof(TYPE, request.devices.include_busy), NULL, \
		"also use GPUs that other processes use", NULL, 0, 0, 0}, \
	{"memory", 0, OPTION_TEXT, offsetof(TYPE, request.devices.memory), "SIZE", \
		"use at most this much memory of each GPU (K, M, G: binary)", NULL, 0, 0, 0}
#define FIGURES_JSON(TYPE) \
	{"json", 0, OPTION_FLAG, offsetof(TYPE, common.json), NULL, \
		"print figures as JSON, for onehop compare (see docs/json.md)", NULL, 0, 0, 0}
/* clang-format on */

/* On stderr: that they are simulated, and who is left out; for output that has no place for it. */
void devices_tell(const struct devices *d);
/* There is none: says why, and is the exit code. */
int devices_none(const struct devices *d, bool simulated);
