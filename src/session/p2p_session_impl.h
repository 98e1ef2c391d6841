/* SPDX-License-Identifier: Apache-2.0 */
/* For p2p_session.c and p2p_choice.c only. */
#pragma once

#include "session/p2p_session.h"

/* Metrics and pace; before the devices are chosen. 0 or -EINVAL with a sentence. */
int p2p_choose_work(struct p2p_session *s);
/* Sizes and pairs; with the devices open. The same. */
int p2p_choose_copies(struct p2p_session *s);
