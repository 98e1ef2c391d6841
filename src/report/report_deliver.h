/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of unlock that brings an edited driver, or its options, into a system: what is checked, the
 * plan, what is left.
 */
#pragma once

#include "report/report_unlock_delivery.h"
#include "session/deliver_session.h"

void report_deliver(struct document *out, const struct deliver_session *d, bool verbose);
/* `done`: how the plan ended; NULL: it was not carried out. */
json_t *report_deliver_json(const struct deliver_session *d, const struct fix_outcome *done);
