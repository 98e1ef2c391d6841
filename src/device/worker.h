/* SPDX-License-Identifier: Apache-2.0 */
/* Devices in a process of their own, that can be killed when they hang. */
#pragma once

#include "device/device.h"

/*
 * Starts `program worker` (NULL: this very program) and opens the devices there. The set forwards
 * every call; what only enqueues (copy, launch, event_record, event_wait, graph_launch) is sent
 * without waiting for an answer, and its error comes with the next call that has one; that call is
 * then done all the same, unless it makes something (alloc, import, ...). wrap, stream_wrap,
 * make_current and stream_native are -ENOTSUP. The worker dies with this process, not with the
 * thread that opened it. A call that takes 10 s longer than its own limit, or 60 s to open, is
 * -ETIMEDOUT, and the worker counts as hung: so is, at once, every later call. It is to be killed
 * then. `stop`, -1 for none, is a file descriptor that ends opening when it becomes readable:
 * -EINTR. Nothing is read from it.
 */
int worker_open(const char *program, const struct device_request *r, int stop,
		struct device_set **ret);

/* Starts to open; worker_open_finish waits for it, and only then is the set of use. So that several
 * workers start side by side. A set that failed to open is closed by the caller too. Apart
 * for tests; worker_open does both. */
int worker_open_start(const char *program, const struct device_request *r, struct device_set **ret);
int worker_open_finish(struct device_set *s, int stop, uint64_t limit_us);

/* SIGKILL, and waits until it is gone, at most limit_us: -ETIMEDOUT when the kernel keeps it. Every
 * later call answers -ESRCH; device_close still frees. */
int worker_kill(struct device_set *s, uint64_t limit_us);

/* The worker's side: serves the socket until it closes. What `program worker` runs. */
int worker_serve(int fd);
