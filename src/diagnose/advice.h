/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to set for each communication library on this machine, and what is set that should not be:
 * `onehop env`.
 */
#pragma once

#include "diagnose/diagnose.h"
#include "diagnose/variables.h"
#include "topology/preflight.h"

/* A variable to set, for one reason at least. */
struct advice_variable {
	const struct variable *variable;
	const char *value;
	const struct finding **findings; /* that ask for it */
	size_t finding_n;
	const struct observed *measured; /* what was measured of it; NULL: nothing */
	const struct setting *set;       /* it is set to that already; NULL: it is not */
	bool sure; /* false: whether it is needed depends on what is unknown */
};

/* The NIC of one GPU. */
struct advice_nic {
	const struct gpu *gpu;
	const struct rdma_device *nic; /* NULL: it has none */
	unsigned port;                 /* the first that is active; 0: none is known */
	enum path_class class;
	size_t equal;               /* NICs that are as near, itself included */
	struct preflight preflight; /* with a NIC only */
};

struct advice {
	struct advice_variable *variables; /* by library, then by name */
	size_t variable_n;
	const struct finding **settings; /* findings about what is set, in the diagnosis' order */
	size_t setting_n;
	struct advice_nic *nics; /* one a GPU, in the machine's order; NULL without NICs */
};

/* All of it lives in the diagnosis' arena. */
struct advice *advice_new(const struct diagnosis *d);
/*
 * BAD: there is something to set, or set wrong, that is more than good to know; UNKNOWN: there is
 * no device.
 */
enum verdict advice_verdict(const struct diagnosis *d, const struct advice *a);
