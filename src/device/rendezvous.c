/* SPDX-License-Identifier: Apache-2.0 */
/* A star around rank 0, through which all exchanges go. */
#include "device/rendezvous.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "device/message.h"
#include "device/rendezvous_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Precedes everything that goes over a socket once all are there. */
struct frame {
	uint32_t round; /* how many exchanges there were before; GAVE_UP: a farewell follows */
	uint32_t size;
};

#define GAVE_UP ~0u

/* ---- bytes ---- */

void close_fd(int *fd)
{
	cleanup_close(fd);
	*fd = -1;
}

int send_all(int fd, const void *data, size_t size, uint64_t deadline)
{
	ssize_t n;

	for (size_t at = 0; at < size; at += (size_t)n) {
		struct iovec part = {(char *)data + at, size - at};

		n = message_send(fd, &part, 1, -1, deadline);
		if (n < 0)
			return (int)n;
	}
	return 0;
}

int receive_all(int fd, void *data, size_t size, uint64_t deadline)
{
	ssize_t n;

	for (size_t at = 0; at < size; at += (size_t)n) {
		n = message_receive(fd, (char *)data + at, size - at, NULL, deadline);
		if (n <= 0)
			return n < 0 ? (int)n : -ECONNRESET;
	}
	return 0;
}

/* ---- join and leave ---- */

static int check_request(const struct rendezvous_request *q)
{
	size_t n = q->key ? strlen(q->key) : 0;

	if (n == 0 || n > RENDEZVOUS_KEY_MAX)
		return err_set(EINVAL, "the key of a rendezvous must have 1 to %d bytes",
			       RENDEZVOUS_KEY_MAX);
	if (q->n < 1 || q->n > RENDEZVOUS_RANK_MAX || q->rank < 0 || q->rank >= q->n)
		return err_set(EINVAL, "there is no rank %d of %d ranks", q->rank, q->n);
	return 0;
}

static struct rendezvous *rendezvous_new(const struct rendezvous_request *q)
{
	struct rendezvous *r = calloc(1, sizeof(*r));
	int *sockets = calloc((size_t)q->n, sizeof(*sockets));

	if (!r || !sockets) {
		free(r);
		free(sockets);
		return NULL;
	}
	memcpy(r->key, q->key, strlen(q->key));
	memcpy(r->shown, r->key, sizeof(r->shown));
	text_printable(r->shown);
	r->rank = q->rank;
	r->n = q->n;
	r->one_host = !q->address;
	r->limit_us = q->later_us ? q->later_us : q->limit_us;
	r->sockets = sockets;
	for (int i = 0; i < q->n; i++)
		sockets[i] = -1;
	return r;
}

/* Otherwise those that had come would take rank 0 for the one that went away. */
static void say_farewell(struct rendezvous *r)
{
	const struct frame f = {.round = GAVE_UP, .size = sizeof(r->farewell)};

	for (int i = 1; r->farewell.result && i < r->n; i++)
		if (r->sockets[i] >= 0 && send_all(r->sockets[i], &f, sizeof(f), 0) == 0)
			send_all(r->sockets[i], &r->farewell, sizeof(r->farewell), 0);
}

int rendezvous_join(const struct rendezvous_request *q, struct rendezvous **ret)
{
	uint64_t deadline = deadline_in(q->limit_us);
	struct rendezvous *r;
	int err = check_request(q);

	if (err < 0)
		return err;
	r = rendezvous_new(q);
	if (!r)
		return err_set(ENOMEM, "no memory for a rendezvous of %d", q->n);
	err = rendezvous_meet(r, q->address, deadline);
	if (err < 0) {
		say_farewell(r);
		rendezvous_leave(r);
	} else {
		*ret = r;
	}
	return err;
}

void rendezvous_leave(struct rendezvous *r)
{
	if (!r)
		return;
	for (int i = 0; i < r->n; i++)
		close_fd(&r->sockets[i]);
	free(r->sockets);
	free(r);
}

/* ---- exchanges ---- */

/* The end of all exchanges: whoever goes away after the first is not to blame. */
static int lost(struct rendezvous *r, int rank, int err)
{
	r->farewell = (struct farewell){err, (uint32_t)rank, 0, 1};
	return rendezvous_lost(r, rank, err);
}

/* Of a call. The others wait longer than rank 0, which knows who is missing and says so. */
static uint64_t deadline_of(const struct rendezvous *r)
{
	return deadline_in(r->limit_us + (r->rank ? r->limit_us / 8 : 0));
}

/* Nothing is exchanged any more once a rank is lost. */
static int begin_call(const struct rendezvous *r)
{
	return r->farewell.result ? rendezvous_say(r, &r->farewell) : 0;
}

static int end_call(struct rendezvous *r, int err)
{
	if (err < 0)
		say_farewell(r);
	r->round++;
	return err;
}

static int get_farewell(struct rendezvous *r, uint64_t deadline)
{
	struct farewell f;
	int err = receive_all(r->sockets[0], &f, sizeof(f), deadline);

	if (err < 0)
		return lost(r, 0, err);
	r->farewell = f;
	return rendezvous_say(r, &f);
}

/* Rank 0 may have said why before it closed its connection. */
static int lost_in_put(struct rendezvous *r, int rank, int err, uint64_t deadline)
{
	struct frame f;

	if (err != -EPIPE && err != -ECONNRESET)
		return lost(r, rank, err);
	if (rank == 0 && receive_all(r->sockets[0], &f, sizeof(f), deadline) == 0 &&
	    f.round == GAVE_UP)
		return get_farewell(r, deadline);
	return lost(r, rank, -ECONNRESET);
}

static int put(struct rendezvous *r, int rank, const void *data, size_t size, uint64_t deadline)
{
	const struct frame f = {.round = r->round, .size = (uint32_t)size};
	int fd = r->sockets[rank];
	int err = send_all(fd, &f, sizeof(f), deadline);

	if (err == 0)
		err = send_all(fd, data, size, deadline);
	return err < 0 ? lost_in_put(r, rank, err, deadline) : 0;
}

/* After the first byte of its frame, where only a byte was expected. */
static int get_rest_of_farewell(struct rendezvous *r, uint64_t deadline)
{
	char rest[sizeof(struct frame) - 1];
	int err = receive_all(r->sockets[0], rest, sizeof(rest), deadline);

	return err < 0 ? lost(r, 0, err) : get_farewell(r, deadline);
}

static int get(struct rendezvous *r, int rank, void *data, size_t size, uint64_t deadline)
{
	int fd = r->sockets[rank];
	struct frame f;
	int err = receive_all(fd, &f, sizeof(f), deadline);

	if (err == 0 && rank == 0 && f.round == GAVE_UP)
		return get_farewell(r, deadline);
	if (err == 0 && (f.round != r->round || f.size != size))
		return err_set(
			EPROTO,
			"rank %d at '%s' sent %u bytes in round %u, but rank %d expects %zu in round %u",
			rank, r->shown, f.size, f.round, r->rank, size, r->round);
	if (err == 0)
		err = receive_all(fd, data, size, deadline);
	return err < 0 ? lost(r, rank, err) : 0;
}

static int gather_as_first(struct rendezvous *r, const void *mine, size_t size, char *all,
			   uint64_t deadline)
{
	int err = 0;

	memcpy(all, mine, size);
	for (int i = 1; i < r->n && err == 0; i++)
		err = get(r, i, all + (size_t)i * size, size, deadline);
	for (int i = 1; i < r->n && err == 0; i++)
		err = put(r, i, all, (size_t)r->n * size, deadline);
	return err;
}

static int check_size(const char *what, size_t size)
{
	if (size == 0 || size > RENDEZVOUS_BLOB_MAX)
		return err_set(EINVAL, "%s: 1 to %d bytes are possible, not %zu", what,
			       RENDEZVOUS_BLOB_MAX, size);
	return 0;
}

int rendezvous_gather(struct rendezvous *r, const void *mine, size_t size, void *all)
{
	uint64_t deadline = deadline_of(r);
	int err = check_size("gather", size);

	if (err == 0)
		err = begin_call(r);
	if (err == 0 && r->rank == 0)
		err = gather_as_first(r, mine, size, all, deadline);
	else if (err == 0)
		err = put(r, 0, mine, size, deadline);
	if (err == 0 && r->rank != 0)
		err = get(r, 0, all, (size_t)r->n * size, deadline);
	return end_call(r, err);
}

int rendezvous_broadcast(struct rendezvous *r, void *data, size_t size)
{
	uint64_t deadline = deadline_of(r);
	int err = check_size("broadcast", size);

	if (err == 0)
		err = begin_call(r);
	if (err == 0 && r->rank != 0)
		err = get(r, 0, data, size, deadline);
	for (int i = 1; r->rank == 0 && i < r->n && err == 0; i++)
		err = put(r, i, data, size, deadline);
	return end_call(r, err);
}

/* ---- file descriptors ---- */

/* One byte, whether one goes with it. */
static int put_fd(struct rendezvous *r, int rank, int pass, uint64_t deadline)
{
	const char byte = pass >= 0;
	struct iovec part = {(void *)&byte, 1};
	ssize_t n = message_send(r->sockets[rank], &part, 1, pass, deadline);

	return n < 0 ? lost_in_put(r, rank, (int)n, deadline) : 0;
}

static int get_fd(struct rendezvous *r, int rank, int *ret, uint64_t deadline)
{
	char byte;
	ssize_t n = message_receive(r->sockets[rank], &byte, 1, ret, deadline);

	if (n <= 0)
		return lost(r, rank, n < 0 ? (int)n : -ECONNRESET);
	if (rank == 0 && (unsigned char)byte == (GAVE_UP & 0xff))
		return get_rest_of_farewell(r, deadline);
	if ((byte == 1) != (*ret >= 0))
		return err_set(EPROTO, "the file descriptor of rank %d did not arrive", rank);
	return 0;
}

static int copy_fd(int fd, int *ret)
{
	*ret = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd >= 0 && *ret < 0 ? err_sys(errno, "file descriptor %d", fd) : 0;
}

static int gather_fd_as_first(struct rendezvous *r, int mine, int *all, uint64_t deadline)
{
	int err = copy_fd(mine, &all[0]);

	for (int i = 1; i < r->n && err == 0; i++)
		err = get_fd(r, i, &all[i], deadline);
	for (int to = 1; to < r->n; to++) {
		for (int i = 0; i < r->n && err == 0; i++)
			err = put_fd(r, to, all[i], deadline);
	}
	return err;
}

static int gather_fd_as_other(struct rendezvous *r, int mine, int *all, uint64_t deadline)
{
	int err = put_fd(r, 0, mine, deadline);

	for (int i = 0; i < r->n && err == 0; i++)
		err = get_fd(r, 0, &all[i], deadline);
	return err;
}

int rendezvous_gather_fd(struct rendezvous *r, int mine, int *all)
{
	uint64_t deadline = deadline_of(r);
	int err;

	if (!r->one_host)
		return err_set(ENOTSUP, "file descriptors cannot be sent to another host");
	for (int i = 0; i < r->n; i++)
		all[i] = -1;
	err = begin_call(r);
	if (err == 0)
		err = r->rank == 0 ? gather_fd_as_first(r, mine, all, deadline)
				   : gather_fd_as_other(r, mine, all, deadline);
	for (int i = 0; i < r->n && err < 0; i++)
		close_fd(&all[i]);
	return end_call(r, err);
}
