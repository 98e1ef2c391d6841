// SPDX-License-Identifier: Apache-2.0
/* All kernels but those of collective operations as one translation unit: one PTX module. */
#include "kernels/all_reduce.c"
#include "kernels/copy.c"
#include "kernels/exchange.c"
#include "kernels/gate.c"
#include "kernels/latency.c"
#include "kernels/pattern.c"
#include "kernels/tally.c"
#include "kernels/typed.c"
