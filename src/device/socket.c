/* SPDX-License-Identifier: Apache-2.0 */
#include "device/socket.h"

#include "base/err.h"
#include "device/message.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int socket_split_address(const char *text, char host[NI_MAXHOST], char port[NI_MAXSERV])
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;
	bool brackets = n > 2 && text[0] == '[' && text[n - 1] == ']';

	if (n == 0 || n >= NI_MAXHOST || !colon[1] || strlen(colon + 1) >= NI_MAXSERV ||
	    (!brackets && memchr(text, ':', n)))
		return err_set(EINVAL, "'%s' is not host:port or [IPv6]:port", text);
	snprintf(host, NI_MAXHOST, "%.*s", (int)(brackets ? n - 2 : n), text + brackets);
	snprintf(port, NI_MAXSERV, "%s", colon + 1);
	/* getaddrinfo would take it modulo 65536. */
	if (strspn(port, "0123456789") == strlen(port) && strtoul(port, NULL, 10) > UINT16_MAX)
		return err_set(EINVAL, "'%s': a port is at most 65535", text);
	return 0;
}

int socket_look_up(const char *host, const char *port, int flags, struct socket_places *ret)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = flags | AI_NUMERICSERV};
	struct addrinfo *list;
	int r = getaddrinfo(host, port, &hints, &list);

	if (r)
		return r;
	memset(ret, 0, sizeof(*ret));
	for (struct addrinfo *a = list; a && ret->n < SOCKET_PLACES_MAX; a = a->ai_next) {
		memcpy(&ret->at[ret->n].address, a->ai_addr, a->ai_addrlen);
		ret->at[ret->n++].size = a->ai_addrlen;
	}
	freeaddrinfo(list);
	return 0;
}

int socket_new(const struct socket_place *p)
{
	static const int zero = 0, one = 1;
	int fd = socket(p->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(errno, "cannot make a socket");
	if (p->address.ss_family != AF_UNIX) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	return fd;
}

int socket_connect(int fd, const struct socket_place *p, uint64_t deadline)
{
	int err = 0;
	socklen_t size = sizeof(err);

	if (connect(fd, (const struct sockaddr *)&p->address, p->size) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (wait_for(fd, POLLOUT, deadline) < 0)
		return -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size);
	return -err;
}
