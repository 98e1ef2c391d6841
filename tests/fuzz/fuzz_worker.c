/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as calls to a worker with host devices; what it answers is read and thrown away. */
#include "device/device.h"
#include "device/worker_protocol.h"

#include "base/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct served {
	int fd;
	struct device_set *set;
};

static void *serve(void *context)
{
	struct served *v = context;

	worker_serve_calls(v->fd, v->set);
	shutdown(v->fd, SHUT_RDWR);
	return NULL;
}

static void drain(int fd, int flags)
{
	static const size_t size = sizeof(struct worker_answer) + WORKER_PAYLOAD_MAX;
	AUTO_FREE char *buffer = malloc(size);

	while (recv(fd, buffer, size, flags) > 0)
		;
}

/*
 * Not sent: kernels, which are given addresses and may go anywhere, and waits, whose length is the
 * caller's business.
 */
static int is_fit(const uint8_t *message, size_t n)
{
	uint32_t op = 0;

	memcpy(&op, message, n < sizeof(op) ? n : sizeof(op));
	return op != WORKER_launch && op != WORKER_wait;
}

/* A message is two bytes of length and as many bytes, or what is left of them. */
static void send_messages(int fd, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at + 2 < size;) {
		size_t n = (size_t)data[at] | (size_t)data[at + 1] << 8;

		at += 2;
		if (n > size - at)
			n = size - at;
		if (n > 0 && is_fit(data + at, n) && send(fd, data + at, n, MSG_NOSIGNAL) < 0)
			return;
		drain(fd, MSG_DONTWAIT);
		at += n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct device_request request = {.kind = DEVICE_HOST,
						      .n = 2,
						      .number = {0, 1},
						      .host.memory_bytes = 1 << 16};
	struct served v = {0};
	pthread_t thread;
	int ends[2];

	if (device_open(&request, &v.set) < 0)
		abort();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		abort();
	v.fd = ends[1];
	if (pthread_create(&thread, NULL, serve, &v))
		abort();
	send_messages(ends[0], data, size);
	shutdown(ends[0], SHUT_WR);
	drain(ends[0], 0);
	pthread_join(thread, NULL);
	close(ends[0]);
	close(ends[1]);
	return 0;
}
