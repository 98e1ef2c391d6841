/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual files of a live source (machine/read.h lists them): what is asked for them. For
 * live.c, its neighbours and their tests only.
 */
#pragma once

#include "base/source.h"

#include <stddef.h>

/* Ends with a NULL name; the context is a const struct machine_request. For live.c and tests. */
extern const struct source_provider live_providers[];

/* Configuration space with only the registers that are decoded; the rest reads as zero. */
int live_read_config(int root_fd, const char *path, char **ret, size_t *ret_size);

/* Rows of live_providers; the caller frees *ret. */
int nvml_capture(void *request, char **ret, size_t *ret_size);
int nvml_capture_p2p(void *request, char **ret, size_t *ret_size);
int rm_capture(void *request, char **ret, size_t *ret_size);

/*
 * Opens `library` if that changes nothing on the machine whose files `s` gives, asks for `parts`
 * (enum machine_part) and hands out nvml.json, malloc'ed; see nvml_capture.c for its form. A
 * library that cannot be opened is an answer too. The library is a parameter for tests.
 */
void nvml_capture_from(struct source *s, const char *library, unsigned parts, char **ret,
		       size_t *ret_size);

/* What is between onehop and the device, so that tests can stand in for RM. Negative errnos. */
struct rm_device {
	int (*open)(void *context);
	int (*call)(void *context, unsigned long request, void *argument);
	void (*close)(void *context);
	void *context;
};

/* Asks the RM of the machine whose files `s` gives and hands out rm.json, malloc'ed; see
 * rm_capture.c for its form. A device that cannot be opened is an answer too.
 * The device is a parameter for tests. */
void rm_capture_from(struct source *s, const struct rm_device *device, char **ret,
		     size_t *ret_size);
