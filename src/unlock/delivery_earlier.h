/* SPDX-License-Identifier: Apache-2.0 */
/* An edit of an earlier onehop that is in the system where a delivery goes: what has to be undone first. */
#pragma once

#include "fix/journal.h"
#include "unlock/delivery.h"

/*
 * Where delivery.others: adds the check that says so, and delivery.earlier, the fixes that brought it in,
 * the last one first. Bad where one of them cannot be undone, or none is known.
 */
void delivery_check_earlier(struct fix_host *h, struct delivery *d,
			    const struct journal_entry *entries, size_t n, struct arena *a);
