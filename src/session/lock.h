/* SPDX-License-Identifier: Apache-2.0 */
/* One run at a time: tests and benchmarks of GPUs would disturb each other. */
#pragma once

/* Held until *ret_fd is closed or the process ends. -EBUSY: the sentence names who holds it. */
int session_lock(const char *name, int *ret_fd);
