/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that can already exchange data agree on a key for their rendezvous, if they are of one
 * host.
 */
#pragma once

#include "device/rendezvous.h"

/* As in struct onehop_exchange. */
typedef int exchange_gather(void *context, const void *mine, size_t size, void *all);

/*
 * One exchange. -EXDEV, -EPROTO: the sentence names the first rank that differs from rank 0; all
 * ranks get the same.
 */
int exchange_key(exchange_gather *gather, void *context, int rank, int n,
		 char ret[static RENDEZVOUS_KEY_MAX + 1]);
