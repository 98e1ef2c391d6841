/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of other processes and hosts as people write them, and sockets to them. */
#pragma once

#include <netdb.h>
#include <stdint.h>
#include <sys/socket.h>

#define SOCKET_PLACES_MAX 8

struct socket_place {
	struct sockaddr_storage address;
	socklen_t size;
};

/* Of one name. */
struct socket_places {
	size_t n;
	struct socket_place at[SOCKET_PLACES_MAX];
};

/* "host:port" or "[IPv6]:port". 0, or -EINVAL with a sentence. */
int socket_split_address(const char *text, char host[NI_MAXHOST], char port[NI_MAXSERV]);
/* For TCP. 0, or an error of getaddrinfo; flags are its hints. */
int socket_look_up(const char *host, const char *port, int flags, struct socket_places *ret);
/* A socket that does not block, for this place. A negative errno with a sentence. */
int socket_new(const struct socket_place *p);
/* 0 or a negative errno without a sentence. */
int socket_connect(int fd, const struct socket_place *p, uint64_t deadline_us);
