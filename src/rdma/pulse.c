/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/pulse.h"

#include "base/clock.h"

#include <stddef.h>
#include <sys/socket.h>

#define EACH_US 1000000

void pulse_warn(struct pulse *p, uint8_t seconds)
{
	if (!p)
		return;
	/* A process that does not read will not kill either. */
	send(p->fd, &seconds, sizeof(seconds), MSG_NOSIGNAL | MSG_DONTWAIT);
	p->next_us = clock_us() + EACH_US;
}

void pulse_beat(struct pulse *p)
{
	if (p && clock_us() >= p->next_us)
		pulse_warn(p, PULSE_QUIET_S);
}
