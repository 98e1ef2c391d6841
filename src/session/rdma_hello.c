/* SPDX-License-Identifier: Apache-2.0 */
/* What two onehops say of their NICs before they measure. */
#include "session/rdma_hosts_impl.h"

#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- to the other ---- */

static void put_links(const struct rdma_session *s, size_t port, struct peer_message *m)
{
	const struct link_list *links =
		&paths_pair(s->paths, rdma_place_of_port(s, port), rdma_place_of_gpu(s, -1))->links;

	for (size_t i = 0; i < links->n && m->list_n < PEER_LIST_MAX; i++)
		m->list[m->list_n++] = links->ids[i];
}

/* A port that is left out here is not ACTIVE for the other. */
static void send_port(struct rdma_hosts *h, size_t i)
{
	const struct nic_port *p = &h->s->listing->ports[i];
	const struct rdma_pair *expected = rdma_session_pair(h->s, i, -1);
	struct peer_message m = {.word = PEER_PORT};

	m.v[PEER_K_NUMBER] = p->number;
	m.v[PEER_K_STATE] = hosts_uses(h, i) ? (uint64_t)p->state : 0;
	m.v[PEER_K_WAYS] = hosts_uses(h, i) ? hosts_ways(h, i) : 0;
	m.v[PEER_K_LAYER] = p->link_layer;
	m.v[PEER_K_MTU] = p->mtu;
	m.v[PEER_K_LID] = p->lid;
	m.v[PEER_K_RATE] = (uint64_t)(p->line_gbps * 1e3);
	m.v[PEER_K_WRITES] = expected ? (uint64_t)(expected->write_gbps * 1e3) : 0;
	m.v[PEER_K_READS] = expected ? (uint64_t)(expected->read_gbps * 1e3) : 0;
	snprintf(m.name, sizeof(m.name), "%s", p->device);
	snprintf(m.text, sizeof(m.text), "%s", expected ? expected->limit : "");
	put_links(h->s, i, &m);
	peer_send(&h->peer, &m);
}

static void send_gids(struct rdma_hosts *h, const struct nic_port *p)
{
	for (size_t i = 0; i < p->gid_n; i++) {
		struct peer_message m = {.word = PEER_GID, .address = p->gids[i].gid};

		m.v[PEER_K_INDEX] = p->gids[i].gid_index;
		m.v[PEER_K_TYPE] = p->gids[i].gid_type;
		peer_send(&h->peer, &m);
	}
}

void hello_send(struct rdma_hosts *h)
{
	struct peer_message m = {.word = PEER_HELLO};

	m.v[PEER_K_VERSION] = PEER_VERSION;
	gethostname(m.name, sizeof(m.name) - 1);
	peer_send(&h->peer, &m);
	for (size_t i = 0; i < h->s->listing->n; i++) {
		send_port(h, i);
		send_gids(h, &h->s->listing->ports[i]);
	}
	peer_say(&h->peer, PEER_READY, "");
}

/* ---- from the other ---- */

static int take_first(struct rdma_hosts *h, const struct peer_message *m)
{
	if (m->word == PEER_BUSY || m->word == PEER_REFUSED)
		return err_set(m->word == PEER_BUSY ? EBUSY : EPROTO, "%s says: %s",
			       h->peer.address, m->text);
	if (m->word != PEER_HELLO)
		return err_set(EPROTO, "%s does not begin with a hello", h->peer.address);
	if (m->v[PEER_K_VERSION] != PEER_VERSION)
		return err_set(
			EPROTO,
			"%s speaks version %llu of the protocol, this onehop version %d: install the same release on both hosts",
			h->peer.address, (unsigned long long)m->v[PEER_K_VERSION], PEER_VERSION);
	snprintf(h->peer_name, sizeof(h->peer_name), "%s", m->name);
	return 0;
}

static int take_port(struct rdma_hosts *h, const struct peer_message *m)
{
	struct far_port *f;

	if (h->far_n == PORTS_MAX)
		return err_set(EPROTO, "%s has more than %d ports", h->peer.address, PORTS_MAX);
	h->far = xrealloc(h->far, h->far_n + 1, sizeof(*h->far));
	f = &h->far[h->far_n++];
	*f = (struct far_port){.writes_gbps = (double)m->v[PEER_K_WRITES] / 1e3,
			       .reads_gbps = (double)m->v[PEER_K_READS] / 1e3,
			       .ways = (unsigned)m->v[PEER_K_WAYS],
			       .link_n = m->list_n};
	memcpy(f->links, m->list, sizeof(f->links));
	snprintf(f->limit, sizeof(f->limit), "%.*s", (int)sizeof(f->limit) - 1, m->text);
	f->port = (struct nic_port){
		.number = (unsigned)m->v[PEER_K_NUMBER],
		.state = (int)m->v[PEER_K_STATE],
		.link_layer = (unsigned)m->v[PEER_K_LAYER],
		.mtu = (unsigned)m->v[PEER_K_MTU],
		.lid = (unsigned)m->v[PEER_K_LID],
		.line_gbps = (double)m->v[PEER_K_RATE] / 1e3,
		.takes_dmabuf = -1,
	};
	snprintf(f->port.device, sizeof(f->port.device), "%s", m->name);
	return 0;
}

static int take_gid(struct rdma_hosts *h, const struct peer_message *m)
{
	struct nic_port *p = h->far_n ? &h->far[h->far_n - 1].port : NULL;

	if (!p || p->gid_n == GIDS_MAX)
		return err_set(EPROTO, "%s sent an address too many", h->peer.address);
	p->gids[p->gid_n++] = (struct verbs_gid_entry){
		.gid = m->address,
		.gid_index = (uint32_t)m->v[PEER_K_INDEX],
		.port_num = p->number,
		.gid_type = (uint32_t)m->v[PEER_K_TYPE],
	};
	p->has_gid = gid_choose(p->gids, p->gid_n, p->link_layer == VERBS_LINK_INFINIBAND, &p->gid);
	return 0;
}

int hello_take(struct rdma_hosts *h, const struct peer_message *m, bool first)
{
	if (first)
		return take_first(h, m);
	switch (m->word) {
	case PEER_ALIVE:
		return 0;
	case PEER_PORT:
		return take_port(h, m);
	case PEER_GID:
		return take_gid(h, m);
	case PEER_READY:
		return 1;
	default:
		return err_set(EPROTO, "%s sent a line too early", h->peer.address);
	}
}

/* ---- queue pairs ---- */

void put_queue(struct peer_message *m, const struct link_address *a)
{
	m->v[PEER_K_LID] = a->queue.lid;
	m->v[PEER_K_MTU] = a->queue.mtu;
	m->v[PEER_K_OUTSTANDING] = a->queue.reads_max;
	m->v[PEER_K_PACKET] = a->queue.packet;
	m->v[PEER_K_IN] = a->in.at;
	m->v[PEER_K_IN_KEY] = a->in.key;
	m->v[PEER_K_OUT] = a->out.at;
	m->v[PEER_K_OUT_KEY] = a->out.key;
	m->v[PEER_K_PLACES] = a->places;
	m->address = a->queue.gid;
	memcpy(m->list, a->numbers, sizeof(m->list));
	m->list_n = a->n;
}
_Static_assert(PEER_LIST_MAX == STREAMS_MAX, "all queue pairs are in a line");

int take_queue(const struct peer_message *m, struct link_address *ret)
{
	*ret = (struct link_address){
		.queue = {.lid = (unsigned)m->v[PEER_K_LID],
			  .mtu = (unsigned)m->v[PEER_K_MTU],
			  .reads_max = (unsigned)m->v[PEER_K_OUTSTANDING],
			  .packet = (uint32_t)m->v[PEER_K_PACKET],
			  .gid = m->address},
		.in = {m->v[PEER_K_IN], (uint32_t)m->v[PEER_K_IN_KEY]},
		.out = {m->v[PEER_K_OUT], (uint32_t)m->v[PEER_K_OUT_KEY]},
		.places = m->v[PEER_K_PLACES],
		.n = (unsigned)m->list_n,
	};
	memcpy(ret->numbers, m->list, sizeof(ret->numbers));
	if (ret->n < 2 || ret->n % 2 || !ret->places)
		return err_set(
			EPROTO,
			"the peer sent an impossible connection: queue pairs %u, places %llu",
			ret->n, (unsigned long long)ret->places);
	for (unsigned i = 0; i < ret->n; i++)
		if (ret->numbers[i] > 0xffffff)
			return err_set(EPROTO, "the peer sent queue pair %u", ret->numbers[i]);
	return 0;
}

uint64_t put_value(double v)
{
	return v > 0 && v < 1e12 ? (uint64_t)(v * 1e6) : 0;
}
