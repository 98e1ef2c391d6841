// SPDX-License-Identifier: Apache-2.0
/*
 * The kernels of collective operations: a PTX module of its own, because drivers need seconds to
 * compile it.
 */
#include "kernels/collective_chain.c"
#include "kernels/collective_flagged.c"
#include "kernels/collective_levels.c"
#include "kernels/collective_messages.c"
#include "kernels/collective_pairs.c"
#include "kernels/collective_piped.c"
#include "kernels/collective_small.c"
