/* SPDX-License-Identifier: Apache-2.0 */
/* What the error codes mean that the NVIDIA driver writes to the kernel log as "Xid". */
#pragma once

#include "base/severity.h"
#include "machine/usable.h"

#include <stdint.h>

enum xid_class {
	XID_FAULT,    /* a program's access or command was refused; most often the program's bug */
	XID_MEMORY,   /* the GPU's own memory */
	XID_BUS,      /* the GPU on its PCIe link */
	XID_NVLINK,   /* NVLink and the chip-to-chip link */
	XID_FIRMWARE, /* the GPU's own controllers and the driver's talk with them */
	XID_OTHER,    /* display, video, power and codes in no other group */
	XID_CLASS_N,
};

struct xid {
	unsigned first, last; /* codes that mean the same for different units */
	enum xid_class class;
	enum severity severity;
	const char *name;    /* "GPU fell off the bus" */
	const char *meaning; /* a sentence without its full stop */
	const char *peer;    /* what it means for peer traffic; NULL: nothing */
	const char *remedy;
	enum log_proof proof;   /* what a line with it proves */
	const char *proof_text; /* only a line that has this text; NULL: any */
};

/* NULL: no such code is known. */
const struct xid *xid_find(int64_t code);
