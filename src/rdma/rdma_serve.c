/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side: calls libibverbs for the process at the other end of the socket. */
#include "rdma/rdma_worker_impl.h"

#include "base/err.h"
#include "device/message.h"

#include <errno.h>
#include <stdlib.h>

#define SEND_LIMIT_US 5000000

struct server {
	int fd;
	struct verbs verbs;
	struct rdma_failure failure; /* of loading the library */
	struct rdma_order order;
	struct link *link;
	struct pulse pulse;
	union {
		struct port_listing listing;
		struct loopback_result result;
		struct link_answer link_answer;
	} answer;
};

static int load(struct server *s)
{
	int r = verbs_load(&s->verbs);

	return r < 0 ? rdma_fail(&s->failure, RDMA_STEP_LIBRARY, -r, "%s", err_msg()) : 0;
}

static size_t list(struct server *s)
{
	struct port_listing *l = &s->answer.listing;

	*l = (struct port_listing){.failure = s->failure};
	if (l->failure.step == RDMA_STEP_NONE)
		l->n = ports_list(&s->verbs, l->ports);
	return sizeof(*l);
}

static size_t loop(struct server *s)
{
	if (s->failure.step == RDMA_STEP_NONE)
		loopback_run(&s->verbs, &s->pulse, &s->order.loopback, &s->answer.result);
	else
		s->answer.result = (struct loopback_result){.failure = s->failure};
	return sizeof(s->answer.result);
}

static size_t act(struct server *s)
{
	if (s->failure.step == RDMA_STEP_NONE)
		link_act(&s->verbs, &s->pulse, &s->link, &s->order.link, &s->answer.link_answer);
	else
		s->answer.link_answer = (struct link_answer){.failure = s->failure};
	return sizeof(s->answer.link_answer);
}

static size_t (*const orders[])(struct server *s) = {
	[RDMA_ORDER_LIST] = list,
	[RDMA_ORDER_LOOPBACK] = loop,
	[RDMA_ORDER_LINK] = act,
};

static int serve(struct server *s)
{
	ssize_t n;

	load(s);
	while ((n = message_receive(s->fd, &s->order, sizeof(s->order), NULL, UINT64_MAX)) ==
	       sizeof(s->order)) {
		size_t size = orders[s->order.kind](s);
		struct iovec part = {&s->answer, size};

		if (message_send(s->fd, &part, 1, -1, deadline_in(SEND_LIMIT_US)) < 0)
			return 0; /* who asked is gone, and nobody is left to hear it */
	}
	return n <= 0 ? 0 : err_set(EPROTO, "a request of %zd bytes", n);
}

int rdma_serve(int fd)
{
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(ENOMEM, "no memory");
	s->fd = s->pulse.fd = fd;
	r = serve(s);
	link_close(&s->link);
	free(s);
	return r;
}
