/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/peer.h"

#include "base/clock.h"
#include "base/err.h"
#include "device/message.h"
#include "device/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ALIVE_US   1000000
#define SILENCE_US 5000000
#define OUT_MAX    (1u << 20) /* that a peer has not taken */
#define FLUSH_US   200000     /* last words */

const struct peer_service peer_onehop = {PEER_TCP_PORT, "onehop bench rdma --listen ADDRESS"};

/* ---- addresses ---- */

static int split(const char *text, const struct peer_service *s, char host[NI_MAXHOST],
		 char port[NI_MAXSERV])
{
	const char *colon = strchr(text, ':');
	size_t n = strlen(text);

	if ((colon && !strchr(colon + 1, ':')) || (*text == '[' && text[n - 1] != ']'))
		return socket_split_address(text, host, port);
	snprintf(port, NI_MAXSERV, "%s", s->tcp_port);
	if (!n || n >= NI_MAXHOST)
		return err_set(EINVAL, "'%s' is not the name or address of a host", text);
	if (*text == '[')
		snprintf(host, NI_MAXHOST, "%.*s", (int)n - 2, text + 1);
	else
		snprintf(host, NI_MAXHOST, "%s", text);
	return 0;
}

static int look_up(const char *text, const struct peer_service *s, struct socket_places *ret)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	int r = split(text, s, host, port);

	if (r < 0)
		return r;
	r = socket_look_up(host, port, 0, ret);
	return r ? err_set(EINVAL, "'%s' is not an address: %s", text, gai_strerror(r)) : 0;
}

static void name_address(const struct sockaddr_storage *a, char ret[static PEER_ADDRESS_MAX])
{
	char text[NI_MAXHOST] = "";

	getnameinfo((const struct sockaddr *)a, sizeof(*a), text, sizeof(text), NULL, 0,
		    NI_NUMERICHOST);
	snprintf(ret, PEER_ADDRESS_MAX, "%.*s", PEER_ADDRESS_MAX - 1,
		 strncmp(text, "::ffff:", 7) == 0 ? text + 7 : text);
}

static void begin(struct peer *p, int fd, const struct sockaddr_storage *a)
{
	*p = (struct peer){.fd = fd, .heard_us = clock_us(), .sent_us = clock_us()};
	name_address(a, p->address);
}

int peer_connect(const char *to, const struct peer_service *s, uint64_t limit_us, struct peer *ret)
{
	uint64_t deadline = deadline_in(limit_us);
	struct socket_places places;
	int r = look_up(to, s, &places), fd;

	*ret = PEER_NONE;
	for (size_t i = 0; r == 0 && i < places.n; i++) {
		fd = socket_new(&places.at[i]);
		if (fd < 0)
			return fd;
		r = socket_connect(fd, &places.at[i], deadline);
		if (r == 0) {
			begin(ret, fd, &places.at[i].address);
			return 0;
		}
		close(fd);
		if (i + 1 < places.n)
			r = 0;
	}
	if (r == -EINVAL)
		return r;
	return err_sys(-r, "cannot reach '%s' (does %s run there?)", to, s->started);
}

static void name_place(int fd, char ret[static PEER_PLACE_MAX])
{
	struct sockaddr_storage a = {0};
	socklen_t size = sizeof(a);
	char host[PEER_ADDRESS_MAX], port[NI_MAXSERV] = "";

	getsockname(fd, (struct sockaddr *)&a, &size);
	name_address(&a, host);
	getnameinfo((struct sockaddr *)&a, size, NULL, 0, port, sizeof(port), NI_NUMERICSERV);
	snprintf(ret, PEER_PLACE_MAX, a.ss_family == AF_INET6 ? "[%s]:%.5s" : "%s:%.5s", host,
		 port);
}

int peer_listen(const char *at, const struct peer_service *s, int *ret_fd,
		char ret_at[static PEER_PLACE_MAX])
{
	struct socket_places places;
	int r = look_up(at, s, &places), fd;

	if (r < 0)
		return r;
	fd = socket_new(&places.at[0]);
	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&places.at[0].address, places.at[0].size) < 0 ||
	    listen(fd, 8) < 0) {
		r = errno;
		close(fd);
		return err_sys(r, "cannot listen on '%s'", at);
	}
	name_place(fd, ret_at);
	*ret_fd = fd;
	return 0;
}

int peer_accept(int listener, struct peer *ret)
{
	struct sockaddr_storage a = {0};
	socklen_t size = sizeof(a);
	int fd = accept4(listener, (struct sockaddr *)&a, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return 0;
	begin(ret, fd, &a);
	return 1;
}

/* ---- out ---- */

static int flush(struct peer *p)
{
	while (p->out.len) {
		ssize_t n = send(p->fd, p->out.text, p->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return -errno;
		memmove(p->out.text, p->out.text + n, p->out.len - (size_t)n + 1);
		p->out.len -= (size_t)n;
	}
	return 0;
}

void peer_close(struct peer *p)
{
	uint64_t deadline = deadline_in(FLUSH_US);

	while (p->fd >= 0 && flush(p) == 0 && p->out.len && wait_for(p->fd, POLLOUT, deadline) == 0)
		;
	if (p->fd >= 0)
		close(p->fd);
	strbuf_done(&p->out);
	*p = PEER_NONE;
}

void peer_send(struct peer *p, const struct peer_message *m)
{
	if (p->fd < 0 || p->out.len > OUT_MAX)
		return;
	peer_format(m, &p->out);
	p->sent_us = clock_us();
	flush(p);
}

void peer_say(struct peer *p, enum peer_word w, const char *text)
{
	struct peer_message m = {.word = w};

	snprintf(m.text, sizeof(m.text), "%s", text);
	peer_send(p, &m);
}

/* ---- in ---- */

static void receive(struct peer *p)
{
	while (!p->ended && p->in_n < sizeof(p->in)) {
		ssize_t n = recv(p->fd, p->in + p->in_n, sizeof(p->in) - p->in_n, MSG_DONTWAIT);

		if (n > 0) {
			p->in_n += (size_t)n;
			p->heard_us = clock_us();
			continue;
		}
		p->ended = n == 0 || (errno != EAGAIN && errno != EINTR);
		return;
	}
}

int peer_pump(struct peer *p)
{
	uint64_t now = clock_us();

	if (now - p->sent_us >= ALIVE_US)
		peer_say(p, PEER_ALIVE, "");
	/* What has come counts, also where it can be answered no more. */
	if (flush(p) < 0)
		strbuf_done(&p->out);
	receive(p);
	if (p->out.len > OUT_MAX)
		return err_set(ETIMEDOUT, "%s takes no data", p->address);
	if (!p->ended && clock_us() - p->heard_us > SILENCE_US)
		return err_set(ETIMEDOUT,
			       "%s has been silent for %d s: it hangs, or the network does",
			       p->address, SILENCE_US / 1000000);
	return 0;
}

static int stranger(const struct peer *p)
{
	char release[PERFTEST_HELLO];

	if (peer_is_perftest(p->in, p->in_n, release))
		return err_set(
			EPROTO,
			"%s runs perftest %s (ib_write_bw or the like), not onehop: add --as perftest here, or start onehop there",
			p->address, release);
	return 0;
}

int peer_next(struct peer *p, struct peer_message *ret)
{
	char *feed = memchr(p->in, '\n', p->in_n);
	size_t n = feed ? (size_t)(feed - p->in) : p->in_n;
	int r = p->spoke ? 0 : stranger(p);

	if (r < 0)
		return r;
	if (!feed && p->in_n >= PEER_LINE_MAX)
		return err_set(EPROTO, "%s sent a line of more than %d bytes: it is not onehop",
			       p->address, PEER_LINE_MAX);
	if (!feed)
		return p->ended ? err_set(ECONNRESET, "%s closed the connection", p->address) : 0;
	r = peer_parse(p->in, n, ret);
	if (r < 0)
		return err_wrap(r, "%s", p->address);
	p->spoke = true;
	p->in_n -= n + 1;
	memmove(p->in, feed + 1, p->in_n);
	return 1;
}

int peer_due_ms(const struct peer *p)
{
	uint64_t alive = p->sent_us + ALIVE_US, silence = p->heard_us + SILENCE_US;

	return deadline_poll_ms(alive < silence ? alive : silence) + 1;
}

short peer_events(const struct peer *p)
{
	return (short)(POLLIN | (p->out.len ? POLLOUT : 0));
}
