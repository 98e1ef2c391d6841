/* SPDX-License-Identifier: Apache-2.0 */
/* How the processes reach rank 0: an abstract UNIX socket on one host, TCP between several. */
#include "device/rendezvous_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "device/message.h"
#include "device/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define HELLO_MAGIC 0x31706f68656e6f00ul /* "\0onehop1" */
#define PENDING_MAX 64                   /* connections that have not said who they are */
#define RETRY_US    10000                /* between attempts to reach or to be rank 0 */
#define CONNECT_US  2000000              /* at one address: the next may be the right one */

/* What both ends say first; a stranger is whoever says something else. */
struct hello {
	uint64_t magic;
	char key[RENDEZVOUS_KEY_MAX + 1];
	uint32_t rank, n;
	int32_t result; /* rank 0's answer: whether the rank is taken in, a negative errno */
	uint32_t zero;
};

/* ---- where rank 0 is ---- */

void rendezvous_unix_place(const char *name, struct socket_place *ret)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "onehop/%u/%s", getuid(), name);

	memset(ret, 0, sizeof(*ret));
	memcpy(&ret->address, &a, sizeof(a));
	ret->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void unix_places(const char *key, struct socket_places *ret)
{
	ret->n = 1;
	rendezvous_unix_place(key, &ret->at[0]);
}

/* Rank 0 at a name: the wildcard of IPv6, which takes IPv4 too, where there is IPv6. */
static int wildcard_places(const char *port, struct socket_places *ret)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *any = fd >= 0 ? "::" : "0.0.0.0";

	close_fd(&fd);
	return socket_look_up(any, port, AI_NUMERICHOST, ret);
}

static int tcp_places(const char *text, bool listens, struct socket_places *ret)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	int r = socket_split_address(text, host, port);

	if (r < 0)
		return r;
	r = socket_look_up(host, port, AI_NUMERICHOST, ret);
	if (r == EAI_NONAME)
		r = listens ? wildcard_places(port, ret) : socket_look_up(host, port, 0, ret);
	return r ? err_set(EINVAL, "'%s' is not an address: %s", text, gai_strerror(r)) : 0;
}

/* Abstract names have no owner and no mode, so each end looks who the other is. */
static int check_user(int fd)
{
	struct ucred c;
	socklen_t size = sizeof(c);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &size) < 0)
		return err_sys(errno, "the user of a peer");
	if (c.uid != getuid())
		return err_set(EACCES, "process %d answered, which belongs to user %u, not user %u",
			       (int)c.pid, c.uid, getuid());
	return 0;
}

static void pause_before_retry(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000L * RETRY_US}, NULL);
}

/* ---- errors ---- */

static int say_totals(const struct rendezvous *r, uint32_t first, uint32_t rank, uint32_t other)
{
	return err_set(EPROTO,
		       "at '%s', rank 0 expects a total of %u ranks, but rank %u a total of %u",
		       r->shown, first, rank, other);
}

int rendezvous_lost(const struct rendezvous *r, int rank, int err)
{
	const char *did = err == -ETIMEDOUT ? "does not answer" : "closed its connection";

	return err_set(-err, "rank %d of %d at '%s' %s", rank, r->n, r->shown, did);
}

int rendezvous_say(const struct rendezvous *r, const struct farewell *f)
{
	if (f->came)
		return rendezvous_lost(r, (int)f->rank, f->result);
	if (f->result == -EPROTO)
		return say_totals(r, (uint32_t)r->n, f->rank, f->other);
	if (f->result == -EEXIST)
		return err_set(EEXIST,
			       "rank %u of %d did not join at '%s', but two processes claim to be "
			       "rank %u",
			       f->rank, r->n, r->shown, f->other);
	return err_set(ETIMEDOUT, "rank %u of %d did not join at '%s'", f->rank, r->n, r->shown);
}

/* ---- who rank 0 takes in ---- */

static struct hello own_hello(const struct rendezvous *r)
{
	struct hello h = {.magic = HELLO_MAGIC, .rank = (uint32_t)r->rank, .n = (uint32_t)r->n};

	memcpy(h.key, r->key, sizeof(h.key));
	return h;
}

/* Why rank 0 did not take us in. */
static int refused(const struct rendezvous *r, const struct hello *h)
{
	if (h->result == -EEXIST)
		return err_set(EEXIST, "two processes claim to be rank %d at '%s'", r->rank,
			       r->shown);
	return say_totals(r, h->n, (uint32_t)r->rank, (uint32_t)r->n);
}

/* -EAGAIN: rank 0 is not there yet, or what is there is not rank 0. */
static int greet(const struct rendezvous *r, int fd, uint64_t deadline)
{
	struct hello h = own_hello(r);
	int err = r->one_host ? check_user(fd) : 0;

	if (err < 0)
		return err;
	if (send_all(fd, &h, sizeof(h), deadline) < 0 ||
	    receive_all(fd, &h, sizeof(h), deadline) < 0 || h.magic != HELLO_MAGIC ||
	    memcmp(h.key, r->key, sizeof(h.key)) != 0)
		return -EAGAIN;
	return h.result < 0 ? refused(r, &h) : 0;
}

/* *ret: where rank 0 has taken us in. */
static int try_place(const struct rendezvous *r, const struct socket_place *p, uint64_t deadline,
		     int *ret)
{
	uint64_t soon = deadline_in(CONNECT_US);
	int fd = socket_new(p), err;

	if (fd < 0)
		return fd == -EAFNOSUPPORT ? -EAGAIN : fd;
	soon = soon < deadline ? soon : deadline;
	err = socket_connect(fd, p, soon) < 0 ? -EAGAIN : greet(r, fd, soon);
	if (err == 0)
		*ret = fd;
	else
		close(fd);
	return err;
}

/* ---- rank 0 ---- */

/* The place is taken: for a moment by the run before (-EAGAIN), or by another rank 0. */
static int ask_who_listens(const struct rendezvous *r, const struct socket_place *p,
			   uint64_t deadline)
{
	int fd = -1, err = try_place(r, p, deadline, &fd);

	close_fd(&fd);
	return err == 0 ? -EAGAIN : err;
}

static int listen_at(const struct rendezvous *r, const struct socket_place *p, uint64_t deadline,
		     int *ret)
{
	int fd, err;

	for (;;) {
		fd = socket_new(p);
		if (fd < 0)
			return fd;
		if (bind(fd, (const struct sockaddr *)&p->address, p->size) == 0 &&
		    listen(fd, SOMAXCONN) == 0)
			break;
		err = errno;
		close(fd);
		if (err != EADDRINUSE || clock_us() >= deadline)
			return err_sys(err, "rank 0 cannot listen");
		err = ask_who_listens(r, p, deadline);
		if (err != -EAGAIN)
			return err;
		pause_before_retry();
	}
	*ret = fd;
	return 0;
}

struct pending {
	int fd; /* -1: free */
	size_t have;
	struct hello hello;
};

struct door {
	struct rendezvous *r;
	int listener;
	int missing;
	size_t oldest;           /* where the next connection goes when all places are taken */
	struct farewell refused; /* the last that came in vain; result 0: none */
	struct pending pending[PENDING_MAX];
};

static size_t place_of_next(struct door *d)
{
	for (size_t i = 0; i < PENDING_MAX; i++) {
		if (d->pending[i].fd < 0)
			return i;
	}
	return d->oldest++ % PENDING_MAX;
}

/* 0 unless nobody can be taken in any more. */
static int take_connection(struct door *d)
{
	int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct pending *p;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? err_sys(errno, "rank 0") : 0;
	if (d->r->one_host && check_user(fd) < 0) {
		close(fd);
		return 0;
	}
	p = &d->pending[place_of_next(d)];
	close_fd(&p->fd);
	*p = (struct pending){.fd = fd};
	return 0;
}

static int judge(const struct rendezvous *r, const struct hello *h)
{
	if (h->rank == 0)
		return -EEXIST;
	if (h->n != (uint32_t)r->n || h->rank >= h->n)
		return -EPROTO;
	return r->sockets[h->rank] >= 0 ? -EEXIST : 0;
}

/* Which rank is missing is known only at the end. */
static struct farewell farewell_of(int result, const struct hello *h)
{
	return (struct farewell){result, h->rank, result == -EEXIST ? h->rank : h->n, 0};
}

/* A whole hello: strangers get no answer, others learn whether they are in. */
static void judge_pending(struct door *d, struct pending *p)
{
	struct hello answer = own_hello(d->r);

	if (p->hello.magic == HELLO_MAGIC &&
	    memcmp(p->hello.key, d->r->key, sizeof(d->r->key)) == 0) {
		answer.result = judge(d->r, &p->hello);
		if (answer.result < 0)
			d->refused = farewell_of(answer.result, &p->hello);
		if (send_all(p->fd, &answer, sizeof(answer), 0) == 0 && answer.result == 0) {
			d->r->sockets[p->hello.rank] = p->fd;
			p->fd = -1;
			d->missing--;
		}
	}
	close_fd(&p->fd);
}

static void read_pending(struct door *d, struct pending *p)
{
	ssize_t n = message_receive(p->fd, (char *)&p->hello + p->have, sizeof(p->hello) - p->have,
				    NULL, 0);

	if (n == -ETIMEDOUT)
		return;
	if (n <= 0) {
		close_fd(&p->fd);
		return;
	}
	p->have += (size_t)n;
	if (p->have == sizeof(p->hello))
		judge_pending(d, p);
}

static int missing_rank(const struct rendezvous *r)
{
	int rank = 1;

	while (rank < r->n && r->sockets[rank] >= 0)
		rank++;
	return rank;
}

/* Whoever is missing, or would have been the one who was refused. */
static int give_up(struct door *d)
{
	struct farewell f = d->refused;

	if (!f.result)
		f.result = -ETIMEDOUT;
	if (f.result != -EPROTO)
		f.rank = (uint32_t)missing_rank(d->r);
	d->r->farewell = f;
	return rendezvous_say(d->r, &d->r->farewell);
}

static int open_door(struct door *d, uint64_t deadline)
{
	struct pollfd polls[PENDING_MAX + 1] = {{.fd = d->listener, .events = POLLIN}};
	int n, r = 0;

	while (d->missing > 0 && r == 0) {
		for (size_t i = 0; i < PENDING_MAX; i++)
			polls[i + 1] = (struct pollfd){.fd = d->pending[i].fd, .events = POLLIN};
		n = poll(polls, PENDING_MAX + 1, deadline_poll_ms(deadline));
		if (n <= 0 && clock_us() >= deadline)
			return give_up(d);
		for (size_t i = 0; i < PENDING_MAX && n > 0; i++) {
			if (polls[i + 1].revents)
				read_pending(d, &d->pending[i]);
		}
		if (n > 0 && polls[0].revents)
			r = take_connection(d);
	}
	return r;
}

static int join_as_first(struct rendezvous *r, const struct socket_place *p, uint64_t deadline)
{
	struct door d = {.r = r, .missing = r->n - 1};
	int err = listen_at(r, p, deadline, &d.listener);

	if (err < 0)
		return err;
	for (size_t i = 0; i < PENDING_MAX; i++)
		d.pending[i].fd = -1;
	err = open_door(&d, deadline);
	for (size_t i = 0; i < PENDING_MAX; i++)
		close_fd(&d.pending[i].fd);
	close(d.listener);
	return err;
}

/* ---- the others ---- */

static int join_as_other(struct rendezvous *r, const struct socket_places *p, uint64_t deadline)
{
	int err;

	for (size_t i = 0;; i = i + 1 < p->n ? i + 1 : 0) {
		err = try_place(r, &p->at[i], deadline, &r->sockets[0]);
		if (err != -EAGAIN)
			return err;
		if (clock_us() >= deadline)
			return err_set(ETIMEDOUT, "rank 0 of %d did not open '%s'", r->n, r->shown);
		pause_before_retry();
	}
}

int rendezvous_meet(struct rendezvous *r, const char *address, uint64_t deadline_us)
{
	struct socket_places p;
	int err = 0;

	if (address)
		err = tcp_places(address, r->rank == 0, &p);
	else
		unix_places(r->key, &p);
	if (err < 0)
		return err;
	return r->rank == 0 ? join_as_first(r, &p.at[0], deadline_us)
			    : join_as_other(r, &p, deadline_us);
}
