/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set that passes every call to another one, writes it down, and fails or hangs at a chosen call.
 */
#pragma once

#include "device/device.h"

struct fake_plan {
	const char *op; /* slot name, "copy"; NULL: any */
	unsigned nth;   /* which of its calls, from 1; 0: none */
	/* negative errno to answer with; 0: the call hangs (until its deadline, or -ETIMEDOUT) */
	int error;
	bool lasting; /* and every later call of it too */
};

/* Takes over `inner`. */
int fake_open(struct device_set *inner, const struct fake_plan *plan, struct device_set **ret);
/* The calls so far, one a line: "copy 0->1 65536". Owned by the set. */
const char *fake_calls(const struct device_set *s);
