/* SPDX-License-Identifier: Apache-2.0 */
#include "device/message.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

uint64_t deadline_in(uint64_t limit_us)
{
	uint64_t now = clock_us();

	return limit_us > UINT64_MAX - now ? UINT64_MAX : now + limit_us;
}

int deadline_poll_ms(uint64_t deadline_us)
{
	uint64_t now = clock_us();
	uint64_t left = deadline_us > now ? (deadline_us - now + 999) / 1000 : 0;

	return left > INT_MAX ? INT_MAX : (int)left;
}

int wait_for(int fd, short events, uint64_t deadline_us)
{
	struct pollfd p = {.fd = fd, .events = events};
	int left, r;

	do {
		left = deadline_poll_ms(deadline_us);
		r = poll(&p, 1, left);
		if (r < 0 && errno != EINTR)
			return -errno;
	} while (r <= 0 && left > 0);
	return r > 0 ? 0 : -ETIMEDOUT;
}

static bool would_block(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

/* The header says how long it is, the union gives it the alignment of a header. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static void put_passed(struct msghdr *m, union control *c, int pass)
{
	memset(c, 0, sizeof(*c));
	m->msg_control = c->bytes;
	m->msg_controllen = sizeof(c->bytes);
	c->header.cmsg_level = SOL_SOCKET;
	c->header.cmsg_type = SCM_RIGHTS;
	c->header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&c->header), &pass, sizeof(int));
}

ssize_t message_send(int fd, const struct iovec *parts, size_t n, int pass, uint64_t deadline_us)
{
	struct msghdr m = {.msg_iov = (struct iovec *)parts, .msg_iovlen = n};
	union control control;
	ssize_t sent;
	int r = 0;

	if (pass >= 0)
		put_passed(&m, &control, pass);
	do {
		sent = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent >= 0)
			return sent;
		if (!would_block(errno))
			return -errno;
		r = wait_for(fd, POLLOUT, deadline_us);
	} while (r == 0);
	return r;
}

/* Keeps the first file descriptor, -1: none; padding leaves room for more than the one meant. */
static int take_passed(struct msghdr *m)
{
	int first = -1, fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(int));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

static ssize_t accept_message(struct msghdr *m, ssize_t n, int *ret_passed)
{
	int passed = take_passed(m);
	bool whole = !(m->msg_flags & MSG_TRUNC);

	if (ret_passed && whole)
		*ret_passed = passed;
	else if (passed >= 0)
		close(passed);
	return whole ? n : -EMSGSIZE;
}

ssize_t message_receive(int fd, void *to, size_t size, int *ret_passed, uint64_t deadline_us)
{
	struct iovec part = {.iov_base = to, .iov_len = size};
	union control control;
	ssize_t n;
	int r;

	do {
		struct msghdr m = {.msg_iov = &part,
				   .msg_iovlen = 1,
				   .msg_control = control.bytes,
				   .msg_controllen = sizeof(control.bytes)};

		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (n >= 0)
			return accept_message(&m, n, ret_passed);
		if (!would_block(errno))
			return -errno;
		r = wait_for(fd, POLLIN, deadline_us);
	} while (r == 0);
	return r;
}
