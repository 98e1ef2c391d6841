/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and file descriptors between processes, with a deadline on every wait. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* When limit_us from now will have passed, by clock_us (base/clock.h); UINT64_MAX: never. */
uint64_t deadline_in(uint64_t limit_us);

/* What is left, for poll: rounded up, so that no wait ends before its deadline. */
int deadline_poll_ms(uint64_t deadline_us);

/* Until one of `events` (poll.h), or hang-up, shows on fd: 0, -ETIMEDOUT or another errno. */
int wait_for(int fd, short events, uint64_t deadline_us);

/*
 * One sendmsg or recvmsg, as soon as it can be done before the deadline: the number of bytes, or a
 * negative errno (-ETIMEDOUT, -EPIPE, ...) without a sentence, which the caller can say better.
 * `pass` is a file descriptor to send along, -1: none. *ret_passed becomes the one that came (the
 * caller's, close-on-exec) or -1; ret_passed NULL takes none. A message that was cut off is
 * -EMSGSIZE.
 */
ssize_t message_send(int fd, const struct iovec *parts, size_t n, int pass, uint64_t deadline_us);
ssize_t message_receive(int fd, void *to, size_t size, int *ret_passed, uint64_t deadline_us);
